// The command line as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::app {

enum class Format : std::uint8_t { table, json, csv };
enum class TableFormat : std::uint8_t { text, markdown, csv, latex };

/// What the user typed, checked for form only. Fields that a command does not take keep their defaults.
struct Arguments {
  std::string command;             ///< "run"; empty: --help or --version was answered
  std::vector<std::string> files;  ///< the experiment, or the inputs of `data`
  std::vector<std::string> sets;
  std::vector<std::string> plugins;  ///< shared libraries with partitioners and schedules
  Format format = Format::table;
  bool quiet = false;
  bool verbose = false;
  std::optional<std::string> output;  ///< --output DIR, or -o FILE of `plan` and `data`
  bool overwrite = false;
  bool overwrite_lock = false;
  bool resume = false;              ///< run: go on from the newest checkpoint; sweep: only what is missing or failed
  bool slurm = false;               ///< sweep: as job arrays
  bool merge = false;               ///< sweep: take what the tasks of arrays left
  std::optional<int> cell;          ///< sweep: the task of a list that an array task works on, from 1
  std::optional<int> max_array;     ///< sweep: tasks of an array; none: what the site allows
  int throttle = 16;                ///< sweep: array tasks at once
  std::vector<std::string> sbatch;  ///< sweep: further options of sbatch
  bool small = false;               ///< sweep: the cells of the small size only
  bool dry_run = false;             ///< sweep: only list the cells
  bool fail_fast = false;           ///< sweep: start no cell after one that failed
  std::optional<int> jobs;          ///< sweep: cells at once in this process; none: as many as it has cores
  std::optional<int> ranks;         ///< of `plan`, `simulate`, `check` with `cluster: local`; none: 1
  bool explain = false;
  std::optional<double> time_limit_s;
  int top = 5;
  std::string baseline;    ///< run: results that its speed-up is against; empty: none
  bool trace = false;      ///< run: keep the instructions of the last iteration
  std::string svg;         ///< simulate: the picture's file
  std::string trace_file;  ///< simulate: the trace's file
  bool timeline = false;   ///< simulate: the timeline in characters
  int iterations = 3;      ///< verify
  std::vector<std::int64_t>
      rows;  ///< profile: of the micro-batches to measure; empty: those that the experiment can have
  std::int64_t train_limit = 0;  ///< data: samples of the split; 0: all
  std::int64_t test_limit = 0;
  std::string data_format;              ///< data: idx, cifar10 or text; empty: told by content
  std::string name;                     ///< data: the set's name
  double timeout_s = 10;                ///< doctor
  bool summary = false;                 ///< import: what the graph is, beside writing it
  std::optional<double> profile_batch;  ///< import: samples of the mini-batch that a PipeDream profile measured
  std::string dot;                      ///< shard: the Graphviz file
  std::optional<TableFormat> table;     ///< report; none: text, unless a page is written
  bool paper = false;                   ///< report: published figures beside ours
  double significance = 0.05;           ///< compare
  double tolerance = 0.01;              ///< compare: relative differences of no interest
  bool follow = false;                  ///< watch: until the run ends
  std::string data;                     ///< bench: the list; empty: the standard one
  std::string only;                     ///< bench planner, train: glob of cases to run; empty: all
  std::string peers;                    ///< bench train: folder of the peer's program; empty: none
  int rounds = 8;                       ///< bench train: runs of each case
  std::vector<std::string> typed;       ///< bench: the options that not all benchmarks use, as far as they were typed
  std::string workloads;  ///< bench, sweep: folder of the files that the list names; empty: the environment says
};

/// Parses, answering --help and --version on `standard output` when `speak` is set (rank 0).
/// \throws InvalidInput  what is wrong, with the nearest valid name.
Arguments parse_command_line(int argc, char** argv, bool speak);

}  // namespace millrace::app
