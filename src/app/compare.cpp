// `millrace compare A.h5 B.h5`: is the second worse, beyond chance? Exit code 5 where it is.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/print.h"
#include "record/comparison.h"

namespace millrace::app {

ExitCode compare(const Arguments& arguments, comm::World& world) {
  if (!world.root()) return ExitCode::done;
  if (arguments.files.size() != 2) throw InvalidInput("compare takes two results files: A.h5 B.h5");
  const record::Results before = record::read_results(arguments.files[0]);
  const record::Results after = record::read_results(arguments.files[1]);
  if (before.sweep != after.sweep) {
    throw InvalidInput(fmt::format("{} holds a {}, {} a {}", arguments.files[0], before.sweep ? "sweep" : "run",
                                   arguments.files[1], after.sweep ? "sweep" : "run"));
  }
  const auto figures = record::compare(before, after, {arguments.significance, arguments.tolerance});
  const bool worse = record::any_worse(figures);
  if (arguments.format == Format::json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const record::ComparedFigure& figure : figures) {
      rows.push_back({{"cell", figure.cell},
                      {"metric", figure.metric},
                      {"first", figure.before},
                      {"second", figure.after},
                      {"p", figure.p},
                      {"verdict", record::name_of(figure.difference)},
                      {"note", figure.note}});
    }
    print(nlohmann::json{{"figures", std::move(rows)}, {"worse", worse}});
  } else {
    const record::TextTable table = readable(figures);
    print(table_text({table.columns, table.rows}));
    print(std::string(worse ? "the second is worse\n" : "no significant loss\n"));
  }
  return worse ? ExitCode::verification : ExitCode::done;
}

}  // namespace millrace::app
