// What each type of option allows, in words.
#include "config/option.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/quantity.h"

namespace millrace::config {
namespace {

// ", at least 1", ", 0 to 1", …: only the ends that bound anything are told.
template <class Bounds>
std::string range(const Bounds& bounds, std::string_view lead) {
  const Bounds unbounded{};
  const bool low = bounds.minimum != unbounded.minimum;
  const bool high = bounds.maximum != unbounded.maximum;
  if (low && high) return fmt::format("{}{} to {}", lead, bounds.minimum, bounds.maximum);
  if (low) return fmt::format("{}at least {}", lead, bounds.minimum);
  if (high) return fmt::format("{}at most {}", lead, bounds.maximum);
  return "";
}

struct Words {
  std::string operator()(const Boolean&) const { return "true or false"; }
  std::string operator()(const Text&) const { return "text"; }
  std::string operator()(const Integer& type) const { return "integer" + range(type, ", "); }
  std::string operator()(const Real& type) const { return "number" + range(type, ", "); }
  std::string operator()(const OneOf& type) const { return "one of: " + join(type.words); }
  std::string operator()(const IntegerList& type) const { return "list of integers" + range(type, ", each "); }
  std::string operator()(const Duration&) const { return allowed_duration(); }
  std::string operator()(const Size&) const { return allowed_size(); }
};

}  // namespace

std::string allowed(const OptionType& type) { return std::visit(Words{}, type); }

}  // namespace millrace::config
