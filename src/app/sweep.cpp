// `millrace sweep`: all cells of a matrix, each in a process of its own, on the cores of this one or the ranks of a
// job.
#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cell_pool.h"
#include "app/commands.h"
#include "app/print.h"
#include "app/run_facts.h"
#include "app/sweep_cells.h"
#include "app/sweep_progress.h"
#include "app/sweep_slurm.h"
#include "app/sweep_store.h"
#include "base/count.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/launcher.h"

namespace millrace::app {
namespace {

using nlohmann::json;

struct Sweep {
  SweepFile file;
  Suite suite;
  std::filesystem::path path;
  std::unique_ptr<SweepStore> store;  // none where nothing is to be done
  std::vector<std::string> settled;   // by cell: its status, where that needs no work any more
  std::vector<std::size_t> work;      // cells that are missing or failed, in order
  double expected_s = 0;              // of them, on one core
};

std::string duration(double seconds) {
  if (seconds < 120) return format(Seconds(seconds));
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

int processes_here(const Sweep& sweep, const Arguments& arguments, const comm::World& world) {
  if (sweep.file.command == CellCommand::run) return 1;  // runs beside each other would measure each other
  if (arguments.jobs) return *arguments.jobs;
  return world.size() > 1 ? 1 : static_cast<int>(std::max<std::size_t>(1, cluster::affinity_cores().size()));
}

// A reason on one line of a table: what happened, and the first cause of it that a further line gives.
std::string short_reason(const std::string& text) {
  const std::size_t first = text.find('\n');
  if (first == std::string::npos) return text;
  const std::size_t begin = text.find_first_not_of(" \n", first);
  if (begin == std::string::npos) return text.substr(0, first);
  return text.substr(0, first) + "; " + text.substr(begin, text.find('\n', begin) - begin);
}

// Every cell, what is left out and why, and how long it will take: before anything starts.
std::string suite_text(const Sweep& sweep, int workers) {
  const Suite& suite = sweep.suite;
  planner::Table table{{"", "cell"}, {}};
  table.columns.insert(table.columns.end(), suite.axes.begin(), suite.axes.end());
  table.columns.insert(table.columns.end(), {"time", ""});
  for (std::size_t i = 0; i < suite.cells.size(); ++i) {
    const SweepCell& cell = suite.cells[i];
    std::vector<std::string> row{std::to_string(i + 1), cell.id};
    row.insert(row.end(), cell.settings.begin(), cell.settings.end());
    row.push_back("~" + duration(cell.expected_s));
    row.push_back(sweep.settled[i]);
    table.rows.push_back(std::move(row));
  }
  std::string text = table_text(table) + "\n";
  for (const auto& [reason, count] : suite.excluded) {
    text += fmt::format("excluded: {}{}\n", counted(count, "combination"), reason.empty() ? "" : ": " + reason);
  }
  const auto misfits =
      std::count_if(suite.cells.begin(), suite.cells.end(), [](const SweepCell& cell) { return !cell.misfit.empty(); });
  if (misfits > 0) {
    const auto first = std::find_if(suite.cells.begin(), suite.cells.end(),
                                    [](const SweepCell& cell) { return !cell.misfit.empty(); });
    text += fmt::format("infeasible without a search: {}, such as cell {}: {}\n", counted(misfits, "cell"),
                        first - suite.cells.begin() + 1, first->misfit);
  }
  const auto cells = static_cast<std::int64_t>(suite.cells.size());
  const auto left = static_cast<std::int64_t>(sweep.work.size());
  text += fmt::format("sweep {}: {} to {}, {} of them {} to be worked on, about {} with {} at once\n", sweep.file.name,
                      counted(cells, "cell"), name_of(sweep.file.command), left, left == 1 ? "is" : "are",
                      duration(sweep.expected_s / workers), workers);
  return text;
}

CellTask task_of(const Sweep& sweep, std::size_t cell, const Arguments& arguments) {
  CellTask task;
  task.command = sweep.file.command;
  task.effective = sweep.suite.cells[cell].effective;
  task.ranks = sweep.suite.cells[cell].ranks;
  task.time_limit_s = arguments.time_limit_s;
  task.limits = sweep.file.limits;
  task.id = sweep.suite.cells[cell].id;
  task.folder = (sweep_folder(arguments) / (sweep.file.name + ".cells")).string();
  return task;
}

void work(const Sweep& sweep, const Arguments& arguments, CellPool& pool, SweepStore& store, SweepProgress& progress) {
  std::deque<std::size_t> left(sweep.work.begin(), sweep.work.end());
  store.publish("running");
  while (!left.empty() || !pool.idle()) {
    while (!left.empty() && pool.has_room()) {
      pool.start(left.front(), task_of(sweep, left.front(), arguments));
      left.pop_front();
    }
    for (const CellOutcome& outcome : pool.wait()) {
      const json document = json::parse(outcome.document);
      store.add(outcome.cell, document);
      progress.ended(store.status(outcome.cell), sweep.suite.cells[outcome.cell].expected_s);
      if (store.settled(outcome.cell)) continue;
      progress.tell(fmt::format("cell {} ({}): {}: {}", outcome.cell + 1, sweep.suite.cells[outcome.cell].id,
                                store.status(outcome.cell), short_reason(document.value("reason", ""))));
      if (arguments.fail_fast) left.clear();
    }
  }
}

// What did not come to be, by cell.
std::string failures_text(const record::DataTable& cells, std::size_t axes) {
  planner::Table table{{"cell", "status"}, {}};
  for (std::size_t axis = 0; axis < axes; ++axis) table.columns.push_back(cells.columns[3 + axis].name);
  table.columns.emplace_back("reason");
  for (const auto& row : cells.rows) {
    if (record::to_text(row[1]) == "done") continue;
    std::vector<std::string> line{record::to_text(row[0]), record::to_text(row[1])};
    for (std::size_t axis = 0; axis < axes; ++axis) line.push_back(record::to_text(row[3 + axis]));
    line.push_back(short_reason(record::to_text(row[2])));
    table.rows.push_back(std::move(line));
  }
  return table.rows.empty() ? "" : table_text(table) + "\n";
}

json document_of(const Sweep& sweep, const SweepStore& store) {
  json cells = json::array();
  const record::DataTable table = store.table();
  for (const auto& row : table.rows) {
    json cell = json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      json& value = cell[table.columns[c].name];
      if (const auto* integer = std::get_if<std::int64_t>(&row[c])) value = *integer;
      if (const auto* real = std::get_if<double>(&row[c])) value = *real;
      if (const auto* text = std::get_if<std::string>(&row[c])) value = *text;
    }
    cells.push_back(std::move(cell));
  }
  return {{"sweep", sweep.file.name},
          {"command", name_of(sweep.file.command)},
          {"axes", sweep.suite.axes},
          {"cells", std::move(cells)},
          {"results", store.results_file().string()}};
}

// What a dry run has to say.
json listing_of(const Sweep& sweep) {
  json cells = json::array();
  for (std::size_t i = 0; i < sweep.suite.cells.size(); ++i) {
    const SweepCell& made = sweep.suite.cells[i];
    json cell{{"cell", made.id}, {"status", sweep.settled[i]}, {"reason", made.misfit}};
    for (std::size_t axis = 0; axis < sweep.suite.axes.size(); ++axis) {
      cell[sweep.suite.axes[axis]] = made.settings[axis];
    }
    cells.push_back(std::move(cell));
  }
  return {{"sweep", sweep.file.name},
          {"command", name_of(sweep.file.command)},
          {"axes", sweep.suite.axes},
          {"cells", std::move(cells)}};
}

ExitCode lead(const Arguments& arguments, const comm::World& world, Sweep& sweep, json& document,
              const comm::Mailbox* mailbox) {
  SweepStore& store = *sweep.store;
  CellPool pool(processes_here(sweep, arguments, world), mailbox);
  // 1. do it
  const auto cells = static_cast<std::int64_t>(sweep.suite.cells.size());
  SweepProgress progress(cells, cells - static_cast<std::int64_t>(sweep.work.size()), sweep.expected_s,
                         arguments.quiet);
  work(sweep, arguments, pool, store, progress);
  pool.dismiss();
  progress.finish();
  // 2. what came of it
  bool whole = true;
  for (std::size_t i = 0; i < sweep.suite.cells.size(); ++i) whole = whole && store.settled(i);
  store.publish(whole ? "complete" : "failed");
  if (arguments.format == Format::json) {
    document = document_of(sweep, store);
  } else {
    print(failures_text(store.table(), sweep.suite.axes.size()));
    print(fmt::format("sweep {}: {}; results: {}, {}, {}\n", sweep.file.name, progress.counts(),
                      store.results_file().string(), store.csv_file().string(), store.log_file().string()));
  }
  return whole ? ExitCode::done : ExitCode::failed;
}

// The words by which this very sweep is read again.
std::string words_of(const Sweep& sweep, const Arguments& arguments) {
  std::string words = "sweep " + quoted_word(sweep.path.string());
  const auto add = [&](const char* option, const std::string& value) {
    words += fmt::format(" {} {}", option, quoted_word(value));
  };
  for (const std::string& set : arguments.sets) add("--set", set);
  for (const std::string& plugin : arguments.plugins) add("--plugin", plugin);
  if (arguments.output) add("--output", *arguments.output);
  if (arguments.ranks) add("--ranks", std::to_string(*arguments.ranks));
  if (!arguments.workloads.empty()) add("--workloads", arguments.workloads);
  if (arguments.small) words += " --small";
  return words;
}

ExitCode submit(const Arguments& arguments, Sweep& sweep) {
  if (sweep.work.empty()) {
    print(fmt::format("sweep {}: nothing is missing\n", sweep.file.name));
    return ExitCode::done;
  }
  std::vector<CellTask> tasks;
  int ranks = 1;
  for (const std::size_t cell : sweep.work) {
    tasks.push_back(task_of(sweep, cell, arguments));
    if (sweep.file.command == CellCommand::run) ranks = std::max(ranks, tasks.back().ranks);
  }
  const std::vector<std::string> jobs =
      submit_sweep(arguments, sweep.file.name, ranks, tasks, words_of(sweep, arguments));
  print(fmt::format("sweep {}: {} submitted as {}, merged by job {} into {}\n", sweep.file.name,
                    counted(static_cast<std::int64_t>(tasks.size()), "cell"),
                    counted(static_cast<std::int64_t>(jobs.size()) - 1, "array"), jobs.back(),
                    sweep.store->results_file().string()));
  return ExitCode::done;
}

// What array tasks left behind becomes lines of the log; each of their files counts once.
ExitCode merge(const Arguments& arguments, Sweep& sweep) {
  SweepStore& store = *sweep.store;
  const std::filesystem::path folder = slurm_folder(arguments, sweep.file.name);
  std::int64_t merged = 0, missing = 0;
  for (const std::size_t cell : sweep.work) {
    const std::filesystem::path file = folder / (sweep.suite.cells[cell].id + ".json");
    if (std::ifstream in(file); in) {
      store.add(cell, json::parse(in));
      std::filesystem::remove(file);
      ++merged;
    } else if (store.status(cell).empty()) {
      ++missing;
    }
  }
  bool whole = true;
  for (std::size_t i = 0; i < sweep.suite.cells.size(); ++i) whole = whole && store.settled(i);
  store.publish(whole ? "complete" : "failed");
  print(failures_text(store.table(), sweep.suite.axes.size()));
  print(fmt::format("sweep {}: {} merged, {} missing; results: {}, {}, {}\n", sweep.file.name, counted(merged, "cell"),
                    missing, store.results_file().string(), store.csv_file().string(), store.log_file().string()));
  return whole ? ExitCode::done : ExitCode::failed;
}

// What needs no work, and what does.
void settle(Sweep& sweep, const Arguments& arguments) {
  const Suite& suite = sweep.suite;
  sweep.settled.resize(suite.cells.size());
  const auto logged = sweep.store ? std::map<std::string, std::string>() : logged_statuses(sweep.file.name, arguments);
  for (std::size_t i = 0; i < suite.cells.size(); ++i) {
    const SweepCell& cell = suite.cells[i];
    if (sweep.store && !cell.misfit.empty() && !sweep.store->settled(i)) {
      sweep.store->add(i, failed_cell("infeasible", cell.misfit));
    }
    if (sweep.store) {
      sweep.settled[i] = sweep.store->settled(i) ? sweep.store->status(i) : "";
    } else if (const auto found = logged.find(cell.id); found != logged.end()) {
      sweep.settled[i] = is_settled(found->second) ? found->second : "";
    } else {
      sweep.settled[i] = cell.misfit.empty() ? "" : "infeasible";
    }
    if (!sweep.settled[i].empty()) continue;
    sweep.work.push_back(i);
    sweep.expected_s += cell.expected_s;
  }
}

// Everything that there is to do, read and checked before any of it starts.
std::vector<Sweep> read_sweeps(const Arguments& arguments, const comm::World& world) {
  std::string command = "millrace sweep " + arguments.files.front();
  for (const std::string& set : arguments.sets) command += " --set " + set;
  std::vector<Sweep> sweeps;
  for (const std::filesystem::path& file : sweeps_of(arguments.files.front())) {
    Sweep& sweep = sweeps.emplace_back();
    sweep.path = file;
    sweep.file = read_sweep_file(file, arguments);
    if (sweep.file.command == CellCommand::run && world.size() > 1) {
      throw InvalidInput(
          fmt::format("{}: the cells of this sweep train: each starts a job of its own, so the sweep "
                      "itself is started alone, without mpirun",
                      file.string()));
    }
    sweep.suite = make_suite(sweep.file, arguments);
  }
  for (Sweep& sweep : sweeps) {
    if (!arguments.dry_run) {
      sweep.store = std::make_unique<SweepStore>(sweep.file, sweep.suite, arguments, origin_facts(world, command));
    }
    settle(sweep, arguments);
  }
  return sweeps;
}

}  // namespace

ExitCode sweep(const Arguments& arguments, comm::World& world) {
  if (world.size() > 1 && (arguments.slurm || arguments.merge || arguments.cell)) {
    throw comm::SharedError(ExitCode::usage, "--slurm, --merge and --cell are for a sweep that is started alone");
  }
  if (arguments.cell) return work_on_listed(arguments);
  std::vector<Sweep> sweeps;
  const std::size_t count = std::stoul(world.on_root_then_all([&] {
    sweeps = read_sweeps(arguments, world);
    return std::to_string(sweeps.size());
  }));
  std::optional<comm::Mailbox> mailbox;
  if (world.size() > 1) mailbox.emplace(world.communicator());
  ExitCode code = ExitCode::done;
  if (!world.root()) {
    for (std::size_t i = 0; i < count && !arguments.dry_run; ++i) serve_cells(*mailbox);
  } else {
    if (arguments.format != Format::json && !arguments.quiet) {
      for (const Sweep& sweep : sweeps) {
        const int ranks = world.size() - 1;
        print(suite_text(sweep, processes_here(sweep, arguments, world) + ranks));
      }
    }
    json documents = json::array();
    for (Sweep& sweep : sweeps) {
      if (arguments.dry_run) documents.push_back(listing_of(sweep));
      const ExitCode one = arguments.dry_run ? ExitCode::done
                           : arguments.slurm ? submit(arguments, sweep)
                           : arguments.merge
                               ? merge(arguments, sweep)
                               : lead(arguments, world, sweep, documents.emplace_back(), mailbox ? &*mailbox : nullptr);
      if (one == ExitCode::done) continue;
      code = one;
      if (!arguments.fail_fast) continue;
      for (Sweep& later : sweeps) later.work.clear();  // the other ranks are still to be told
    }
    if (!documents.empty() && arguments.format == Format::json)
      print(sweeps.size() == 1 ? documents.front() : documents);
  }
  if (world.size() == 1) return code;
  return static_cast<ExitCode>(std::stoi(world.broadcast(std::to_string(static_cast<int>(code)))));
}

}  // namespace millrace::app
