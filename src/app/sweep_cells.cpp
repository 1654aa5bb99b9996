// Turns the matrix of a sweep into experiments, and finds what is wrong with them before anything runs.
#include "app/sweep_cells.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/cell_time.h"
#include "app/planning.h"
#include "app/sections.h"
#include "app/session.h"
#include "base/count.h"
#include "base/errors.h"
#include "config/emit.h"
#include "config/scalar.h"
#include "config/set.h"

namespace millrace::app {
namespace {

using config::Node;

// The one key of a cell that no experiment has: the ranks of `cluster: local`.
constexpr const char* kRanks = "ranks";

struct Model {
  Graph graph;
  std::int64_t batch = 0;  // that the experiment has once its model is read
  std::string name;
};

class SuiteMaker {
 public:
  SuiteMaker(const SweepFile& sweep, const Arguments& arguments) : sweep_(sweep), arguments_(arguments) {
    arguments_.command = name_of(sweep.command);
  }

  Suite make() {
    if (sweep_.cases.empty()) {
      expand();
    } else {
      add_cases();
    }
    if (arguments_.small && told_.empty() && suite_.cells.empty() && suite_.excluded.empty()) {
      note(fmt::format("sweep {}: small: no cell has all of these settings", sweep_.name));
    }
    if (same_ > 0) suite_.excluded.emplace_back("the same experiment as another cell, such as " + first_same_, same_);
    if (told_.empty() && !suite_.cells.empty()) refuse_misfits();
    if (!told_.empty()) throw InvalidInput(told_text_);
    return std::move(suite_);
  }

 private:
  // Single cells that cannot fit are results; where all are so, the sweep is a mistake.
  void refuse_misfits() {
    const auto& cells = suite_.cells;
    if (std::any_of(cells.begin(), cells.end(), [](const SweepCell& cell) { return cell.misfit.empty(); })) return;
    for (const SweepCell& cell : cells) note(cell.misfit);
  }

  void expand() {
    const config::Expansion expansion = config::expand(sweep_.matrix);
    suite_.axes = config::setting_paths(sweep_.matrix);
    if (sweep_.repetitions > 1) suite_.axes.emplace_back("repetition");
    for (std::size_t e = 0; e < expansion.excluded.size(); ++e) {
      const config::Exclusion& exclusion = sweep_.matrix.exclude[e];
      if (expansion.excluded[e] == 0) {
        note(fmt::format("{}: exclude: no combination of the matrix is left for this to exclude",
                         config::to_text(exclusion.where)));
      }
      suite_.excluded.emplace_back(exclusion.reason, expansion.excluded[e]);
    }
    if (expansion.cells.empty()) note(fmt::format("sweep {}: every combination is excluded", sweep_.name));
    check_small();
    for (const config::Settings& settings : expansion.cells) {
      if (wanted(settings)) add(settings);
    }
  }

  // The rows of a list of workloads; those whose file is not there are left out, and said to be.
  void add_cases() {
    suite_.axes = {"workload", "plan.partitioner"};
    check_small();
    std::map<std::string, std::int64_t> absent;
    for (const BenchCase& one : sweep_.cases) {
      const config::Settings settings{{"workload", Node::quote(one.workload)},
                                      {"plan.partitioner", Node::plain(one.partitioner)}};
      if (!wanted(settings)) continue;
      if (one.absent.empty()) {
        add(one);
      } else {
        ++absent[one.absent];
      }
    }
    suite_.excluded.assign(absent.begin(), absent.end());
  }

  void check_small() {
    if (!arguments_.small) return;
    if (sweep_.matrix.small.empty()) {
      note(fmt::format("sweep {}: --small: it has no small size; the key small says what its cells have", sweep_.name));
    }
    for (const config::Setting& setting : sweep_.matrix.small) {
      if (std::find(suite_.axes.begin(), suite_.axes.end(), setting.path) == suite_.axes.end()) {
        note(fmt::format("{}: small: {}", config::to_text(setting.value.where),
                         unknown_name("key of an axis", setting.path, suite_.axes)));
      }
    }
  }

  bool wanted(const config::Settings& settings) const {
    return !arguments_.small || config::has_settings(settings, sweep_.matrix.small);
  }

  // What is wrong with a value is so in every cell that has it: each line is told once.
  void note(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      if (told_.insert(line).second) told_text_ += (told_text_.empty() ? "" : "\n") + line;
      begin = end + 1;
    }
  }

  void add(const config::Settings& settings) {
    refusing([&] { add(sweep_.command == CellCommand::predict ? make_prediction(settings) : make_cell(settings)); });
  }

  void add(const BenchCase& one) {
    refusing([&] {
      SweepCell cell;
      cell.settings = {one.workload, one.partitioner};
      config::Problems problems;
      add(settle(std::move(cell), one.experiment, arguments_.ranks, problems));
    });
  }

  void refusing(const std::function<void()>& what) {
    try {
      what();
    } catch (const InvalidInput& error) {
      note(error.what());
    }
  }

  void add(SweepCell cell) {
    for (int repetition = 1; repetition <= sweep_.repetitions; ++repetition) {
      cell.repetition = repetition;
      cell.id = cell_id(cell.effective, repetition, ranks_matter_ ? std::optional(cell.ranks) : std::nullopt);
      if (sweep_.repetitions > 1) cell.settings.back() = std::to_string(repetition);
      const auto [other, fresh] = by_id_.emplace(cell.id, suite_.cells.size());
      if (fresh) {
        suite_.cells.push_back(cell);
      } else {
        if (same_++ == 0) first_same_ = fmt::format("{} as cell {}", describe(cell), other->second + 1);
      }
    }
  }

  std::string describe(const SweepCell& cell) const {
    std::string text;
    for (std::size_t i = 0; i < suite_.axes.size(); ++i) {
      if (!cell.settings[i].empty())
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", suite_.axes[i], cell.settings[i]);
    }
    return text;
  }

  SweepCell make_cell(const config::Settings& settings) {
    SweepCell cell;
    cell.settings.resize(suite_.axes.size());
    config::Problems problems;
    Node root = sweep_.base;
    std::optional<int> ranks = arguments_.ranks;
    for (const config::Setting& setting : settings) {
      const auto axis = std::find(suite_.axes.begin(), suite_.axes.end(), setting.path);
      cell.settings[static_cast<std::size_t>(axis - suite_.axes.begin())] = config::one_line(setting.value);
      if (setting.path == kRanks) {
        const auto value = config::read_value(config::Integer{1, 1 << 20}, setting.value, kRanks, problems);
        if (value) ranks = static_cast<int>(std::get<std::int64_t>(*value));
      } else {
        config::set_value(root, setting.path, setting.value, experiment_short_forms(), problems);
      }
    }
    return settle(std::move(cell), root, ranks, problems);
  }

  // One set of measured steps.
  SweepCell make_prediction(const config::Settings& settings) {
    SweepCell cell;
    Node root = Node::map();
    root.add("steps", Node::quote(sweep_.steps.string()));
    for (const config::Setting& setting : settings) {
      if (setting.path != "set") {
        throw InvalidInput(fmt::format("{}: {}", config::to_text(setting.value.where),
                                       "found a key that no prediction has; allowed: set"));
      }
      cell.settings = {config::one_line(setting.value)};
      root.add("set", setting.value);
    }
    cell.effective = config::to_yaml(root);
    constexpr double kSeconds = 0.2;
    cell.expected_s = kSeconds;
    return cell;
  }

  SweepCell settle(SweepCell cell, const Node& root, std::optional<int> ranks, config::Problems& problems) {
    Session session = open(experiment_from_node(root, problems), ranks.value_or(1));
    const Experiment& experiment = session.experiment;
    ranks_matter_ = !experiment.cluster.described && !experiment.cluster.carried;
    if (!ranks_matter_ && ranks && *ranks != session.cluster.size()) {
      throw InvalidInput(fmt::format("{}: ranks {} is for cluster: local; cluster '{}' has {}",
                                     cited(experiment, "cluster"), *ranks, session.cluster.name(),
                                     counted(session.cluster.size(), "device")));
    }
    cell.misfit = misfit_of(session);
    cell.ranks = session.cluster.size();
    cell.effective = experiment.effective;
    cell.expected_s = expected_cell_seconds(session, sweep_.command, arguments_);
    keep(std::move(session));
    return cell;
  }

  std::string misfit_of(Session& session) {
    try {
      check_plan_settings(session, arguments_);
      if (sweep_.command == CellCommand::run) open_data(session, comm::World());
    } catch (const Misfit& misfit) {
      return misfit.what();
    } catch (...) {
      keep(std::move(session));
      throw;
    }
    return "";
  }

  // A graph is built or read once for all cells that have it.
  Session open(Experiment experiment, int ranks) {
    key_ = config::to_yaml(write_model(experiment.model)) + (experiment.data.batch == 0 ? "its batch" : "");
    const auto known = models_.find(key_);
    if (known == models_.end()) return planning_session(std::move(experiment), ranks);
    Model model = std::move(known->second);
    models_.erase(known);  // until keep() puts it back
    if (experiment.data.batch == 0) {
      experiment.data.batch = model.batch;
      experiment.effective = effective_text(experiment);
    }
    experiment.model.name = model.name;
    return planning_session(std::move(experiment), std::move(model.graph), ranks);
  }

  void keep(Session session) {
    models_.insert_or_assign(
        key_, Model{std::move(session.graph), session.experiment.data.batch, session.experiment.model.name});
  }

  const SweepFile& sweep_;
  Arguments arguments_;
  Suite suite_;
  std::map<std::string, std::size_t> by_id_;
  std::map<std::string, Model> models_;
  std::string key_;  // of the open session's model
  bool ranks_matter_ = false;
  std::int64_t same_ = 0;  // cells that are another one
  std::string first_same_;
  std::set<std::string> told_;
  std::string told_text_;
};

}  // namespace

Suite make_suite(const SweepFile& sweep, const Arguments& arguments) { return SuiteMaker(sweep, arguments).make(); }

}  // namespace millrace::app
