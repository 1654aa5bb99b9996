// Cells to layouts.
#include "planner/measured_steps.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/text.h"
#include "config/csv.h"

namespace millrace::planner {
namespace {

using config::CsvRow;
using config::CsvTable;
using cost::Recompute;

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::string_view kFrameworks[] = {"DeepSpeed", "Megatron-LM", "Megatron-Core"};

// What the training software does differently, by the name in the column `framework`.
cost::Software software_of(const std::string& framework) {
  cost::Software software;
  if (framework.find("DeepSpeed") != std::string::npos) {
    software.fused_softmax_by_four = true;
    software.weight_gradient_bytes = 8;  // all in 16 bits
    software.gradient_bytes = 2;
    software.persistent_norm = false;
  } else if (framework.find("Megatron-LM v2") != std::string::npos) {
    // Weight gradients are made in 16 bits, then added to the sum in 32 (fused into the product from 2022 on).
    software.weight_gradient_bytes = 12;
    software.persistent_norm = false;
  } else if (framework.find("Megatron-Core") != std::string::npos) {
    software.fused_attention = true;
  }
  return software;
}

struct KnownLayout {
  const char* model;
  std::int64_t layers, hidden, heads;
  int tensor, pipeline, chunks;
  std::int64_t micro_batch, global_batch;
};

// Korthikanti et al. 2022, table 3.
constexpr KnownLayout kSequenceParallelPaper[] = {{"GPT-22B", 48, 6144, 64, 8, 1, 1, 4, 4},
                                                  {"GPT-175B", 96, 12288, 96, 8, 8, 3, 1, 64},
                                                  {"GPT-530B", 105, 20480, 128, 8, 35, 3, 1, 280},
                                                  {"GPT-1T", 128, 25600, 160, 8, 64, 1, 1, 512}};

class RowReader {
 public:
  RowReader(const CsvTable& table, config::Problems& problems) : table_(table), problems_(problems) {
    std::vector<std::string> missing;
    for (const char* name :
         {"id",           "set",      "model",     "layers",      "hidden",       "heads",    "ffn",
          "seq",          "vocab",    "gpu",       "n_gpus",      "tp",           "pp",       "dp",
          "vp",           "cp",       "ep",        "micro_batch", "global_batch", "schedule", "recompute",
          "seq_parallel", "sharding", "precision", "framework",   "metric",       "value",    "iter_time_s",
          "tf_us",        "tb_us",    "tw_us",     "tcomm_us"}) {
      if (!table.column(name)) missing.emplace_back(name);
    }
    if (!missing.empty()) problems.add(table.where, "", fmt::format("columns are missing: {}", join(missing)));
  }

  MeasuredStep read(const CsvRow& row) {
    row_ = &row;
    broken_.clear();
    MeasuredStep step;
    step.where = to_text(cell("id").where);
    step.id = text("id");
    step.set = text("set");
    for (const char* column : {"id", "set"}) {
      if (text(column).empty()) refuse(column, "a name");
    }
    const auto [known, is_new] = lines_.try_emplace(step.id, cell("id").where.line);
    if (!is_new) refuse("id", fmt::format("an id of its own; line {} has it too", known->second));
    check_software();
    step.model = text("model");
    step.gpu = text("gpu");
    step.calibration = table_.column("calibration") && !text("calibration").empty();
    if (text("metric").find("activation memory") != std::string::npos) {
      read_memory(step);
    } else {
      read_time(step);
    }
    return step;
  }

 private:
  const config::CsvCell& cell(std::string_view column) const { return (*row_)[*table_.column(column)]; }
  const std::string& text(std::string_view column) const { return cell(column).text; }

  void refuse(std::string_view column, std::string_view allowed) {
    broken_.insert(column);
    problems_.add(cell(column).where, column, fmt::format("found '{}', allowed: {}", text(column), allowed));
  }

  // What follows from cells that are broken themselves is not told.
  bool whole(std::initializer_list<std::string_view> columns) const {
    return std::none_of(columns.begin(), columns.end(), [&](std::string_view name) { return broken_.contains(name); });
  }

  std::optional<double> positive(std::string_view column, bool or_zero = false) {
    const std::string& from = text(column);
    if (from.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
    if (error != std::errc() || end != from.data() + from.size() || !std::isfinite(value) || value < 0 ||
        (value == 0 && !or_zero)) {
      refuse(column, or_zero ? "a number, at least 0" : "a number above 0");
      return std::nullopt;
    }
    return value;
  }

  std::optional<std::int64_t> count(std::string_view column) {
    const std::string& from = text(column);
    if (from.empty()) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
    if (error != std::errc() || end != from.data() + from.size() || value < 1 || value > kMost) {
      refuse(column, "an integer, at least 1");
      return std::nullopt;
    }
    return value;
  }
  std::int64_t required(std::string_view column) {
    if (text(column).empty()) refuse(column, "an integer, at least 1");
    return count(column).value_or(1);
  }
  int degree(std::string_view column) { return static_cast<int>(count(column).value_or(1)); }

  bool flag(std::string_view column) {
    const std::string& from = text(column);
    if (!from.empty() && from != "0" && from != "1") refuse(column, "0 or 1");
    return from == "1";
  }

  void check_software() {
    const std::string& framework = text("framework");
    const bool known = framework.empty() || std::any_of(std::begin(kFrameworks), std::end(kFrameworks), [&](auto name) {
                         return framework.find(name) != std::string::npos;
                       });
    if (!known) refuse("framework", "a name with DeepSpeed, Megatron-LM or Megatron-Core in it, or nothing");
    const std::string& precision = text("precision");
    if (!precision.empty() && precision != "fp16" && precision != "bf16") refuse("precision", "fp16, bf16 or nothing");
  }

  void read_model(cost::Transformer& model) {
    model.layers = required("layers");
    model.hidden = required("hidden");
    model.heads = required("heads");
    model.sequence = required("seq");
    model.ffn = count("ffn").value_or(4 * model.hidden);
    model.vocabulary = count("vocab").value_or(51200);
  }

  void read_schedule(MeasuredStep& step) {
    Layout& layout = step.layout;
    const std::string& schedule = text("schedule");
    const auto has = [&](const char* part) { return schedule.find(part) != std::string::npos; };
    layout.chunks = static_cast<int>(count("vp").value_or(1));
    if (has("interleaved")) {
      step.open.chunks = text("vp").empty();
      layout.schedule = layout.chunks > 1 ? "interleaved" : "1f1b";
    } else if (has("zb-1p") || has("zb-2p")) {
      layout.schedule = "zb-greedy";
      layout.live_limit = has("zb-1p") ? 1 : 2;
    } else if (schedule == "none" || schedule.empty() || schedule == "1f1b" || schedule == "gpipe") {
      layout.schedule = schedule == "gpipe" ? "gpipe" : "1f1b";
    } else {
      refuse("schedule", "none, gpipe, 1f1b, interleaved…, zb-1p or zb-2p");
    }
    if (layout.pipeline == 1) layout.schedule = "1f1b";
  }

  void read_recompute(MeasuredStep& step) {
    const std::string& recompute = text("recompute");
    if (recompute == "full") {
      step.layout.recompute = Recompute::full;
    } else if (recompute == "selective") {
      step.layout.recompute = Recompute::selective;
    } else if (recompute.empty() || recompute == "unpublished") {
      step.open.recompute = true;
    } else if (recompute != "none") {
      refuse("recompute", "none, selective, full, unpublished or nothing");
    }
  }

  void read_time(MeasuredStep& step) {
    Layout& layout = step.layout;
    read_model(layout.model);
    layout.tensor = degree("tp");
    layout.pipeline = degree("pp");
    layout.data = degree("dp");
    layout.global_batch = required("global_batch");
    const std::optional<std::int64_t> micro_batch = count("micro_batch");
    step.open.micro_batch = !micro_batch;
    layout.micro_batch = micro_batch.value_or(1);
    read_schedule(step);
    read_recompute(step);
    layout.sequence_parallel = flag("seq_parallel");
    layout.sharded_optimizer = text("sharding").find("distributed optimizer") != std::string::npos;
    layout.overlapped = text("sharding").find("overlap") != std::string::npos;
    layout.software = software_of(text("framework"));
    // Overlapped products and collectives go in as many parts as there are devices; the first stays exposed.
    if (layout.overlapped) layout.software.hidden_gathers = 1 - 1.0 / layout.tensor;
    step.time_s = positive("iter_time_s");
    read_profile(layout);
    const auto devices = count("n_gpus");
    if (devices && whole({"tp", "pp", "dp"}) && *devices != layout.devices()) {
      refuse("n_gpus", fmt::format("tp · pp · dp = {}", layout.devices()));
    }
    if (whole({"n_gpus", "dp", "micro_batch", "global_batch"}) &&
        layout.global_batch % (layout.data * layout.micro_batch) != 0) {
      refuse("global_batch", fmt::format("a multiple of dp · micro_batch = {}", layout.data * layout.micro_batch));
    }
    if (whole({"n_gpus", "pp", "vp", "layers"}) && layout.stages() > layout.model.layers + 2)
      refuse("pp", "pp · vp of at most layers + 2");
    if (!step.time_s) step.why_not = "no iteration time";
    if (degree("cp") > 1 || degree("ep") > 1) step.why_not = "context and expert parallelism are not modelled";
  }

  void read_profile(Layout& layout) {
    constexpr std::string_view kColumns[] = {"tf_us", "tb_us", "tw_us", "tcomm_us"};
    const auto forward = positive(kColumns[0]), input = positive(kColumns[1]), weight = positive(kColumns[2]),
               hop = positive(kColumns[3], true);
    const bool any = std::any_of(std::begin(kColumns), std::end(kColumns), [&](auto c) { return !text(c).empty(); });
    for (const std::string_view column : kColumns) {
      if (any && text(column).empty()) refuse(column, "a number, as tf_us, tb_us, tw_us and tcomm_us go together");
    }
    if (!forward || !input || !weight || !hop) return;
    layout.profiled = ProfiledStage{*forward * 1e-6, *input * 1e-6, *weight * 1e-6, *hop * 1e-6};
  }

  void read_memory(MeasuredStep& step) {
    Layout& layout = step.layout;
    const std::string& recompute = text("recompute");
    for (std::size_t from = 0; from <= recompute.size();) {
      const std::size_t end = std::min(recompute.find('+', from), recompute.size());
      const std::string part = recompute.substr(from, end - from);
      if (part == "selective") {
        layout.recompute = Recompute::selective;
      } else if (part == "full") {
        layout.recompute = Recompute::full;
      } else if (part == "SP") {
        layout.sequence_parallel = true;
      } else if (part != "none") {
        refuse("recompute", "none, selective or full, SP, joined by '+'");
      }
      from = end + 1;
    }
    if (const auto value = positive("value")) step.activation_bytes = *value * 1024 * 1024 * 1024;
    for (const KnownLayout& known : kSequenceParallelPaper) {
      if (step.model != known.model) continue;
      layout.model = {known.layers, known.hidden, known.heads, 4 * known.hidden, 2048, 51200};
      layout.tensor = known.tensor;
      layout.pipeline = known.pipeline;
      layout.chunks = known.chunks;
      layout.micro_batch = known.micro_batch;
      layout.global_batch = known.global_batch;
      layout.schedule = known.chunks > 1 ? "interleaved" : "1f1b";
      return;
    }
    step.why_not = "its model is not one of Korthikanti et al. 2022";
  }

  const CsvTable& table_;
  config::Problems& problems_;
  const CsvRow* row_ = nullptr;
  std::set<std::string_view> broken_;  // columns of the row
  std::map<std::string, int> lines_;   // by id
};

}  // namespace

double MeasuredStep::flops() const {
  const cost::Transformer& m = layout.model;
  const auto l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden), s = static_cast<double>(m.sequence);
  const auto v = static_cast<double>(m.vocabulary), b = static_cast<double>(layout.global_batch);
  const double passes = layout.recompute == Recompute::full ? 4 : 3;
  return passes * 24 * b * s * l * h * h * (1 + s / (6 * h)) + 6 * b * s * h * v;
}

std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file) {
  config::Problems problems;
  const CsvTable table = config::load_csv(file, problems);
  problems.throw_if_any();
  RowReader reader(table, problems);
  problems.throw_if_any();
  std::vector<MeasuredStep> steps;
  for (const CsvRow& row : table.rows) steps.push_back(reader.read(row));
  problems.throw_if_any();
  if (steps.empty()) throw InvalidInput(fmt::format("{}: has no rows", file.string()));
  return steps;
}

}  // namespace millrace::planner
