// Log, HDF5 and CSV of a sweep, from the documents of its cells.
#include "app/sweep_store.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/output_file.h"
#include "app/sweep_columns.h"
#include "base/count.h"
#include "base/errors.h"
#include "base/log.h"
#include "record/table_text.h"
#include "storage/write_aside.h"

namespace millrace::app {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// What readers see: every tenth cell, and where cells take long each one.
constexpr int kPublishEvery = 10;
constexpr std::chrono::seconds kPublishAfter{10};

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw SystemError(fmt::format("--output: {}: cannot be made: {}", folder.string(), failure.message()));
}

std::string dumped(const json& document, const char* key) {
  const auto found = document.find(key);
  return found == document.end() ? "" : found->dump();
}

// Overwriting replaces results of sweeps, never something else of that name.
void require_cells(const fs::path& file) {
  if (!fs::exists(file)) return;
  bool cells = false;
  try {
    cells = record::is_cells_file(storage::File::open(file));
  } catch (const Error&) {
    // No HDF5 file.
  }
  if (!cells) throw InvalidInput(file.string() + " exists and holds no cells of a sweep; choose another --output");
}

}  // namespace

fs::path sweep_folder(const Arguments& arguments) { return arguments.output.value_or("results"); }

SweepStore::SweepStore(const SweepFile& sweep, const Suite& suite, const Arguments& arguments,
                       std::vector<record::Fact> origin)
    : suite_(suite),
      log_file_(sweep_folder(arguments) / (sweep.name + ".jsonl")),
      results_file_(sweep_folder(arguments) / (sweep.name + ".h5")),
      csv_file_(sweep_folder(arguments) / (sweep.name + ".csv")) {
  make_folder(sweep_folder(arguments));
  for (const fs::path& file : {log_file_, results_file_, csv_file_}) refuse_same_file(file, sweep.inputs);
  lock_.emplace(results_file_, arguments.overwrite_lock);
  require_cells(results_file_);
  if (arguments.overwrite) {
    for (const fs::path& file : {log_file_, results_file_, csv_file_}) fs::remove(file);
  } else if (!arguments.resume && !arguments.merge) {
    for (const fs::path& file : {log_file_, results_file_}) {
      if (!fs::exists(file)) continue;
      throw InvalidInput(
          fmt::format("{}: exists already; --resume goes on with it, --overwrite starts again", file.string()));
    }
  }
  record::CellsFile content{std::move(origin), suite.axes, {}, sweep.published};
  content.root.push_back({"sweep", sweep.name});
  content.root.push_back({"cells", static_cast<std::int64_t>(suite.cells.size())});
  results_.emplace(results_file_, content);
  columns_ = sweep_columns(suite);
  statuses_.resize(suite.cells.size());
  rows_.resize(suite.cells.size());
  read_log();
}

void SweepStore::read_log() {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < suite_.cells.size(); ++i) places[suite_.cells[i].id] = i;
  std::int64_t strangers = 0;
  if (fs::exists(log_file_)) {
    for (const record::LoggedCell& logged : record::read_cell_log(log_file_)) {
      const auto place = places.find(logged.id);
      if (place == places.end()) {
        ++strangers;
      } else {
        take(place->second, json::parse(logged.line));
      }
    }
  }
  if (strangers > 0) {
    log::notice(fmt::format("{}: {} of other settings than the sweep has now: kept there, left out of the tables",
                            log_file_.string(), counted(strangers, "line")));
  }
  log_.emplace(log_file_);
}

void SweepStore::take(std::size_t cell, const json& document) {
  statuses_[cell] = document.at("status").get<std::string>();
  rows_[cell] = sweep_row(columns_, suite_.cells[cell], document);
  record::CellDetail detail;
  detail.id = suite_.cells[cell].id;
  detail.config = suite_.cells[cell].effective;
  detail.plan = document.value("plan", "");
  detail.ranks = dumped(document, "ranks");
  const auto result = document.find("result");
  detail.stages = result == document.end() ? "" : dumped(*result, "stages");
  results_->put(detail);
}

bool is_settled(const std::string& status) { return status == "done" || status == "infeasible"; }

std::map<std::string, std::string> logged_statuses(const std::string& sweep, const Arguments& arguments) {
  std::map<std::string, std::string> statuses;
  const fs::path file = sweep_folder(arguments) / (sweep + ".jsonl");
  if (!arguments.resume || !fs::exists(file)) return statuses;
  for (const record::LoggedCell& logged : record::read_cell_log(file)) {
    statuses[logged.id] = json::parse(logged.line).at("status").get<std::string>();
  }
  return statuses;
}

bool SweepStore::settled(std::size_t cell) const { return is_settled(statuses_[cell]); }

void SweepStore::add(std::size_t cell, json document) {
  const SweepCell& made = suite_.cells[cell];
  json line{{"cell", made.id}, {"number", cell + 1}};
  json axes = json::object();
  for (std::size_t axis = 0; axis < suite_.axes.size(); ++axis) axes[suite_.axes[axis]] = made.settings[axis];
  line["axes"] = std::move(axes);
  line.update(document);
  log_->add({made.id, line.dump()});
  take(cell, line);
  if (++unpublished_ >= kPublishEvery || Clock::now() - published_ >= kPublishAfter) publish("running");
}

record::DataTable SweepStore::table() const {
  record::DataTable table{columns_, {}};
  for (const auto& row : rows_) {
    if (!row.empty()) table.rows.push_back(row);
  }
  return table;
}

void SweepStore::publish(const std::string& state) {
  const record::DataTable cells = table();
  results_->write(cells, state);
  storage::write_text_aside(csv_file_, storage::Existing::replace, record::csv_text(cells));
  unpublished_ = 0;
  published_ = Clock::now();
}

}  // namespace millrace::app
