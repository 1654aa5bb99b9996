// The sub-commands and their options; the only file that sees the command line library.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/arguments.h"
#include "app/version.h"
#include "base/errors.h"
#include "base/text.h"
#include "config/values.h"

namespace millrace::app {
namespace {

// `words` starts with the words of Format, in its order.
Format format_of(const std::string& word, const std::vector<std::string>& words) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) throw InvalidInput(unknown_name("--format", word, words));
  return static_cast<Format>(found - words.begin());
}

TableFormat table_format_of(const std::string& word) {
  static const std::vector<std::string> words{"text", "md", "csv", "latex"};  // in the order of TableFormat
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) throw InvalidInput(unknown_name("--table", word, words));
  return static_cast<TableFormat>(found - words.begin());
}

void add_format(CLI::App& command, Arguments& arguments, std::vector<std::string> words) {
  const std::string names = join(words, "|");
  command
      .add_option_function<std::string>(
          "--format",
          [&arguments, words = std::move(words)](const std::string& word) {
            arguments.format = format_of(word, words);
          },
          "how results are printed; json is one document on standard output")
      ->type_name(names);
}

// The library's own words for these ranges end in 1.79769e+308.
CLI::Validator at_least_one() {
  return {[](const std::string& typed) {
            double value = 0;
            const bool sound = CLI::detail::lexical_cast(typed, value) && value >= 1;
            return sound ? std::string() : fmt::format("found {}, allowed: number, at least 1", typed);
          },
          ""};
}

CLI::Validator above_zero() {
  return {[](const std::string& typed) {
            double value = 0;
            const bool sound = CLI::detail::lexical_cast(typed, value) && value > 0;
            return sound ? std::string() : fmt::format("found {}, allowed: number, above 0", typed);
          },
          ""};
}

void add_plugins(CLI::App& command, Arguments& arguments) {
  command.add_option("--plugin", arguments.plugins, "partitioners and schedules from outside the tree; repeatable")
      ->type_name("LIB.so")
      ->allow_extra_args(false);
}

void add_quiet(CLI::App& command, Arguments& arguments) {
  command.add_flag("--quiet", arguments.quiet, "no notices and no progress; results and errors only");
}

// What is built in: no experiment, so nothing to set.
CLI::App* add_listing(CLI::App& app, Arguments& arguments, const std::string& name, const std::string& text) {
  CLI::App* command = app.add_subcommand(name, text);
  add_format(*command, arguments, {"table", "json"});
  add_quiet(*command, arguments);
  return command;
}

void add_common(CLI::App& command, Arguments& arguments) {
  command.add_option("--set", arguments.sets, "change a setting: path.to.key=VALUE, read as YAML; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  add_format(command, arguments, {"table", "json"});
  add_plugins(command, arguments);
  add_quiet(command, arguments);
  command.add_flag("--verbose", arguments.verbose, "details too");
}

void add_experiment(CLI::App& command, Arguments& arguments) {
  command.add_option("experiment", arguments.files, "experiment file (YAML)")
      ->required()
      ->expected(1)
      ->type_name("EXP.yaml");
  add_common(command, arguments);
}

void add_time_limit(CLI::App& command, Arguments& arguments) {
  command
      .add_option_function<std::string>(
          "--time-limit",
          [&arguments](const std::string& written) {
            try {
              arguments.time_limit_s = std::get<Seconds>(config::parse_value(config::Duration{}, written)).value();
            } catch (const InvalidInput& error) {
              throw CLI::ValidationError("--time-limit", error.what());
            }
          },
          "for each partitioner, instead of its own limit: 10s")
      ->type_name("TIME");
}

void add_planning(CLI::App& command, Arguments& arguments) {
  command.add_flag("--explain", arguments.explain, "stage by stage, and why other plans were refused");
  add_time_limit(command, arguments);
  command.add_option("--top", arguments.top, "plans to show, 5 if not given")
      ->type_name("K")
      ->check(CLI::Range(1, 1 << 20));
}

void add_ranks(CLI::App& command, Arguments& arguments) {
  command.add_option("--ranks", arguments.ranks, "ranks to plan for")->type_name("N")->check(CLI::Range(1, 1 << 20));
}

void add_output(CLI::App& command, Arguments& arguments) {
  command.add_option("--output", arguments.output, "folder of the results file, instead of the experiment's")
      ->type_name("DIR");
  command.add_flag("--overwrite", arguments.overwrite, "replace an existing results file");
  command.add_flag("--overwrite-lock", arguments.overwrite_lock, "take over the lock of a run on another host");
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// CLI11 does not name the nearest command; users of other tools expect it.
void check_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) throw InvalidInput(fmt::format("no command given; one of: {}", join(names_of(app))));
  const std::string word = argv[1];
  if (word.empty() || word.front() == '-') return;
  const std::vector<std::string> names = names_of(app);
  if (std::find(names.begin(), names.end(), word) == names.end())
    throw InvalidInput(unknown_name("command", word, names));
}

// An option that the command does not have, or a value where none is taken, confuses the count of what follows it: it
// is told first.
void check_options(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names, flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
      if (option->get_items_expected_max() == 0) flags.push_back("--" + name);
    }
  }
  for (int i = 2; i < argc; ++i) {
    const std::string_view typed(argv[i]);
    const std::string word(typed.substr(0, typed.find('=')));
    if (word != typed && std::find(flags.begin(), flags.end(), word) != flags.end()) {
      throw InvalidInput(fmt::format("option '{}' of {} takes no value, found '{}'", word, command.get_name(), typed));
    }
    if (word.rfind("--", 0) != 0 || word == "--" || std::find(names.begin(), names.end(), word) != names.end())
      continue;
    throw InvalidInput(unknown_name("option of " + command.get_name(), word, names));
  }
}

void define(CLI::App& app, Arguments& arguments) {
  CLI::App* run = app.add_subcommand("run", "plan on rank 0, train on all ranks, keep the results");
  add_experiment(*run, arguments);
  add_planning(*run, arguments);
  add_output(*run, arguments);
  run->add_flag("--resume", arguments.resume, "go on from the newest checkpoint beside the results file");
  run->add_option("--baseline", arguments.baseline, "results of a run that the speed-up is against")->type_name("R.h5");
  run->add_flag("--trace", arguments.trace, "keep when each instruction of the last iteration ran");

  CLI::App* plan = app.add_subcommand("plan", "plan only: the best plans and the stages of the best");
  add_experiment(*plan, arguments);
  add_planning(*plan, arguments);
  add_ranks(*plan, arguments);
  plan->add_option("-o,--output", arguments.output, "write the best plan")->type_name("plan.yaml");
  plan->add_flag("--overwrite", arguments.overwrite, "replace an existing plan file");

  CLI::App* check = app.add_subcommand("check", "everything that can be known without running");
  add_experiment(*check, arguments);
  add_planning(*check, arguments);
  add_ranks(*check, arguments);

  CLI::App* verify = app.add_subcommand("verify", "train a few iterations under the plan and on one rank, and compare");
  add_experiment(*verify, arguments);
  verify->add_option("--iterations", arguments.iterations, "iterations to compare")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));

  CLI::App* profile = app.add_subcommand("profile", "measure every operator on this machine: a cost source for plans");
  add_experiment(*profile, arguments);
  add_ranks(*profile, arguments);
  profile->add_option("-o,--output", arguments.output, "write the profile, to be named in costs:")->type_name("p.h5");
  profile
      ->add_option("--rows", arguments.rows,
                   "samples of the micro-batches to measure: 1,2,4; if not given, powers of two up to the longest that "
                   "the experiment can have")
      ->type_name("N,N,…")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  profile->add_flag("--overwrite", arguments.overwrite, "replace an existing profile");

  CLI::App* simulate = app.add_subcommand("simulate", "plan and predict: iteration time, waiting, memory, timeline");
  add_experiment(*simulate, arguments);
  add_planning(*simulate, arguments);
  add_ranks(*simulate, arguments);
  simulate->add_option("--trace", arguments.trace_file, "write a trace for Chrome or Perfetto")->type_name("t.json");
  simulate->add_flag("--timeline", arguments.timeline, "print the timeline in characters");
  simulate->add_option("--svg", arguments.svg, "write a picture of the timeline")->type_name("t.svg");

  CLI::App* shard = app.add_subcommand("shard", "split operators: properties tensor by tensor, inserted collectives");
  add_experiment(*shard, arguments);
  add_ranks(*shard, arguments);
  shard->add_option("-o,--output", arguments.output, "write the graph of each device there")->type_name("DIR");
  shard->add_option("--dot", arguments.dot, "write the graph with its collectives for Graphviz")->type_name("G.dot");
  shard->add_flag("--overwrite", arguments.overwrite, "replace existing files");

  CLI::App* sweep = app.add_subcommand("sweep", "all cells of a matrix of experiments, at once where there are cores");
  sweep->add_option("sweep", arguments.files, "sweep file (YAML)")->required()->expected(1)->type_name("SWEEP.yaml");
  add_common(*sweep, arguments);
  add_time_limit(*sweep, arguments);
  add_ranks(*sweep, arguments);
  add_output(*sweep, arguments);
  sweep->get_option("--output")->description("folder of the results files, `results` if not given");
  sweep->add_flag("--resume", arguments.resume, "only what is missing or failed")->excludes("--overwrite");
  sweep->add_option("--jobs", arguments.jobs, "cells at once, as many as there are cores if not given")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  sweep->add_flag("--dry-run", arguments.dry_run, "only list the cells: nothing is started, written or submitted");
  sweep->add_flag("--fail-fast", arguments.fail_fast, "start no further cell once one has failed");
  sweep->add_flag("--small", arguments.small, "only the cells of the file's small size");
  sweep->add_option("--workloads", arguments.workloads, "folder of the files that a list names (MILLRACE_WORKLOADS)")
      ->type_name("DIR");

  CLI::Option* slurm = sweep->add_flag("--slurm", arguments.slurm, "write and submit job arrays, one task a cell");
  sweep->add_option("--max-array", arguments.max_array, "tasks of an array, as many as the site allows if not given")
      ->type_name("N")
      ->check(at_least_one())
      ->needs(slurm);
  sweep->add_option("--throttle", arguments.throttle, "array tasks at once, 16 if not given")
      ->type_name("N")
      ->check(at_least_one())
      ->needs(slurm);
  sweep->add_option("--sbatch", arguments.sbatch, "an option of sbatch, such as --partition=NAME; repeatable")
      ->type_name("OPTION")
      ->allow_extra_args(false)
      ->needs(slurm);
  CLI::Option* merge = sweep->add_flag("--merge", arguments.merge, "only take what array tasks left behind");
  merge->excludes(slurm);
  sweep->add_option("--cell", arguments.cell, "what an array task does: work on this line of a file of tasks")
      ->type_name("N")
      ->check(at_least_one())
      ->excludes(slurm)
      ->excludes(merge);

  CLI::App* report = app.add_subcommand("report", "tables from results of runs and sweeps");
  report->add_option("results", arguments.files, "results files (HDF5)")->required()->type_name("R.h5");
  report
      ->add_option_function<std::string>(
          "--table", [&arguments](const std::string& word) { arguments.table = table_format_of(word); },
          "how tables are written; csv has every column")
      ->type_name("md|csv|latex");
  report->add_flag("--paper", arguments.paper, "published figures beside ours, and a verdict");
  report->add_option("-o,--output", arguments.output, "write a page: one file with charts")->type_name("report.html");
  report->add_flag("--overwrite", arguments.overwrite, "replace an existing page");
  add_quiet(*report, arguments);

  CLI::App* compare = app.add_subcommand("compare", "is the second worse, beyond chance? exit 5 where it is");
  compare->add_option("results", arguments.files, "two results files (HDF5)")
      ->required()
      ->expected(2)
      ->type_name("R.h5");
  compare->add_option("--significance", arguments.significance, "probability of a false alarm, 0.05 if not given")
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0));
  compare->add_option("--tolerance", arguments.tolerance, "relative differences of no interest, 0.01 if not given")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0));
  add_format(*compare, arguments, {"table", "json"});
  add_quiet(*compare, arguments);

  CLI::App* watch = app.add_subcommand("watch", "how far a run or a sweep is: rows, loss, time left");
  watch->add_option("results", arguments.files, "results file (HDF5)")->required()->expected(1)->type_name("R.h5");
  watch->add_flag("--follow", arguments.follow, "until it ends");
  add_format(*watch, arguments, {"table", "json"});
  add_quiet(*watch, arguments);

  CLI::App* data = app.add_subcommand("data", "convert IDX, CIFAR-10 or text to the HDF5 data format");
  data->add_option("inputs", arguments.files, "files, or a folder that holds them")->required()->type_name("IN");
  data->add_option("-o,--output", arguments.output, "the data file")->required()->type_name("D.h5");
  data->add_option("--name", arguments.name, "name of the data set")->type_name("NAME");
  data->add_option("--format", arguments.data_format, "idx, cifar10 or text, instead of what the content tells")
      ->type_name("FORMAT");
  data->add_option("--train-limit", arguments.train_limit, "training images, balanced over the classes")
      ->type_name("N")
      ->check(at_least_one());
  data->add_option("--test-limit", arguments.test_limit, "test images, balanced over the classes")
      ->type_name("N")
      ->check(at_least_one());
  data->add_flag("--overwrite", arguments.overwrite, "replace an existing data file");
  data->add_flag("--quiet", arguments.quiet, "no notices and no progress; results and errors only");

  CLI::App* import = app.add_subcommand("import", "a graph of another tool in, a millrace graph file out");
  import->add_option("graph", arguments.files, "PipeDream profile, dnn-partitioning or Piper JSON, millrace graph file")
      ->required()
      ->expected(1)
      ->type_name("FILE");
  import->add_option("-o,--output", arguments.output, "the graph file: YAML, or JSON by its name")->type_name("G.yaml");
  import->add_flag("--summary", arguments.summary, "print what the graph is; the default without -o");
  import->add_option("--profile-batch", arguments.profile_batch, "samples of a PipeDream profile's mini-batch")
      ->type_name("N")
      ->check(at_least_one());
  import->add_flag("--overwrite", arguments.overwrite, "replace an existing graph file");
  add_format(*import, arguments, {"table", "json"});
  import->add_flag("--quiet", arguments.quiet, "no notices; results and errors only");

  CLI::App* bench = app.add_subcommand(
      "bench", "the product's own benchmarks: planner, simulator, growth, sharding, train, transport");
  bench
      ->add_option("benchmark", arguments.files,
                   "planner, simulator, growth: of the simulator, sharding, train, or transport")
      ->required()
      ->expected(1)
      ->type_name("NAME");
  bench->add_option("--data", arguments.data, "planner, train: another list; simulator: other measured steps")
      ->type_name("LIST.yaml|STEPS.csv");
  bench->add_option("--only", arguments.only, "planner, train: only cases of these names, such as '*gnmt*'")
      ->type_name("GLOB");
  bench
      ->add_option("--workloads", arguments.workloads,
                   "planner: folder of the files that the list names (MILLRACE_WORKLOADS)")
      ->type_name("DIR");
  bench->add_option("--peers", arguments.peers, "train: folder of the peer's bench.py; without it ours run alone")
      ->type_name("DIR");
  bench->add_option("--rounds", arguments.rounds, "train, transport: runs of each case, in alternation with the peer's")
      ->type_name("N")
      ->check(at_least_one());
  add_time_limit(*bench, arguments);
  add_format(*bench, arguments, {"table", "json", "csv"});
  bench->add_flag("--quiet", arguments.quiet, "no notices and no progress; results and errors only");

  add_listing(app, arguments, "models", "the built-in networks and their options");
  add_plugins(*add_listing(app, arguments, "partitioners", "the partitioners and their options"), arguments);
  add_plugins(*add_listing(app, arguments, "schedules", "the schedules and their options"), arguments);
  add_listing(app, arguments, "clusters", "the machines that ship as cluster files");

  CLI::App* doctor =
      add_listing(app, arguments, "doctor", "look at MPI, threads and libraries; exit 0, or 4 with a hint");
  doctor->add_option("--timeout", arguments.timeout_s, "seconds that each check may take")
      ->type_name("SECONDS")
      ->check(above_zero());
}

// What is written twice is left as it was written last.
void check_files(const Arguments& arguments) {
  if (arguments.svg.empty() || arguments.trace_file.empty()) return;
  const auto place = [](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
  };
  if (place(arguments.svg) != place(arguments.trace_file)) return;
  throw InvalidInput(fmt::format("--svg and --trace both name {}; each needs a file of its own", arguments.svg));
}

}  // namespace

Arguments parse_command_line(int argc, char** argv, bool speak) {
  Arguments arguments;
  CLI::App app("Plans, predicts and runs hybrid-parallel training of deep neural networks on MPI clusters.",
               "millrace");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 internal error; 2 command line or file; 3 no plan fits; 4 run failed; 5 verification "
      "failed; 130, 143 stopped by a signal after a checkpoint.");
  app.set_version_flag("--version", version_text());
  app.get_formatter()->column_width(34);
  define(app, arguments);
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() == 0) option->disable_flag_override();  // --resume=3 means nothing
    }
  }
  check_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speak) app.exit(answer, std::cout, std::cerr);
    if (!std::cout.flush()) throw SystemError("standard output: write failed");
    return {};
  } catch (const CLI::ParseError& error) {
    for (const CLI::App* command : app.get_subcommands()) check_options(*command, argc, argv);
    throw InvalidInput(
        fmt::format("{} (see millrace {} --help)", error.what(), argc > 1 && argv[1][0] != '-' ? argv[1] : ""));
  }
  arguments.command = app.get_subcommands().front()->get_name();
  check_files(arguments);
  if (arguments.command == "bench") {
    for (const char* name : {"--data", "--only", "--workloads", "--peers", "--rounds", "--time-limit"}) {
      if (app.get_subcommands().front()->count(name) > 0) arguments.typed.emplace_back(name);
    }
  }
  return arguments;
}

}  // namespace millrace::app
