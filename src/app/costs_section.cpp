// `costs: analytic`, `costs: measured`, or a profile that `millrace profile` wrote.
#include <fmt/format.h>

#include "app/sections.h"
#include "base/errors.h"
#include "config/emit.h"
#include "config/input_file.h"

namespace millrace::app {

CostsSection read_costs(const config::Field& field) {
  CostsSection section;
  if (!field || field.is_word("analytic")) return section;
  section.measured = field.is_word("measured");
  if (section.measured) return section;
  const std::string written = field.as(config::Text{});
  if (!field.is_scalar()) return section;
  try {
    const auto& source = field.where().source;
    section.file = config::find_input(written, source ? source->folder : std::filesystem::path());
  } catch (const InvalidInput& error) {
    field.refuse(fmt::format("{}; allowed: analytic, measured, or a profile: millrace profile EXP.yaml -o {} makes it",
                             error.what(), written));
  }
  return section;
}

config::Node write_costs(const CostsSection& section) {
  return config::Node::quote(section.file ? section.file->string() : section.measured ? "measured" : "analytic");
}

}  // namespace millrace::app
