// `millrace models`, `partitioners`, `schedules`: what is built in, from the rows of the registries.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/print.h"
#include "config/option.h"
#include "models/registry.h"
#include "partitioners/registry.h"
#include "schedules/registry.h"

namespace millrace::app {
namespace {

using nlohmann::json;

struct Row {
  std::string name;
  std::string description;
  config::Options options;
  std::vector<std::string> capabilities;
};

json row_json(const Row& row) {
  json options = json::array();
  for (const config::Option& option : row.options) {
    options.push_back({{"name", option.name},
                       {"description", option.text},
                       {"allowed", config::allowed(option.type)},
                       {"default", option.standard.empty() ? json(nullptr) : json(option.standard)}});
  }
  return {{"name", row.name},
          {"description", row.description},
          {"options", std::move(options)},
          {"capabilities", row.capabilities}};
}

std::string row_text(const Row& row, std::size_t width) {
  std::string text = fmt::format("{:<{}}  {}\n", row.name, width, row.description);
  for (const config::Option& option : row.options) {
    const std::string standard = option.standard.empty() ? "must be given" : "default " + option.standard;
    text += fmt::format("{:<{}}    {}: {} ({}; {})\n", "", width, option.name, option.text,
                        config::allowed(option.type), standard);
  }
  return text;
}

ExitCode list(const std::vector<Row>& rows, const Arguments& arguments, const comm::World& world) {
  if (!world.root()) return ExitCode::done;
  if (arguments.format == Format::json) {
    json all = json::array();
    for (const Row& row : rows) all.push_back(row_json(row));
    print(all);
    return ExitCode::done;
  }
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows) print(row_text(row, width));
  return ExitCode::done;
}

}  // namespace

ExitCode list_models(const Arguments& arguments, comm::World& world) {
  std::vector<Row> rows;
  for (const models::Entry& e : models::registry()) rows.push_back({e.name, e.description, e.options, {}});
  return list(rows, arguments, world);
}

ExitCode list_partitioners(const Arguments& arguments, comm::World& world) {
  std::vector<Row> rows;
  for (const auto& e : partitioners::registry()) {
    rows.push_back({e.name, e.description, e.options, partitioners::capability_names(e.capabilities)});
  }
  return list(rows, arguments, world);
}

ExitCode list_schedules(const Arguments& arguments, comm::World& world) {
  std::vector<Row> rows;
  for (const auto& e : schedules::registry()) {
    rows.push_back({e.name, e.description, e.options, schedules::capability_names(e.capabilities)});
  }
  return list(rows, arguments, world);
}

}  // namespace millrace::app
