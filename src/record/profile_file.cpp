// Profiles as tables, one row a measurement.
#include "record/profile_file.h"

#include <string>
#include <variant>

#include <fmt/format.h>

#include "base/errors.h"
#include "record/data_table.h"
#include "storage/file.h"

namespace millrace::record {
namespace {

using cost::Measured;
using cost::MeasuredOperator;
using cost::MeasuredSize;
using cost::Profile;
using storage::Column;
using storage::ColumnType;

constexpr std::int64_t kVersion = 1;

const Column kOperator{"operator", ColumnType::text, "1", "name of the operator"};
const Column kRows{"rows", ColumnType::int64, "1", "samples of the micro-batch"};

// A median and its spread.
void add_measured(std::vector<Column>& columns, const std::string& name, const std::string& what) {
  columns.push_back({name + "_s", ColumnType::float64, "s", what + ", median"});
  columns.push_back({name + "_spread_s", ColumnType::float64, "s", what + ", between the quartiles"});
}

void add_measured(std::vector<Value>& row, const Measured& measured) {
  row.emplace_back(measured.median.value());
  row.emplace_back(measured.spread.value());
}

void add_bytes(std::vector<Column>& columns, const std::string& name, const std::string& what) {
  columns.push_back({name + "_bytes", ColumnType::int64, "bytes", what});
}

DataTable operators_table(const Profile& profile) {
  DataTable table{{kOperator, kRows}, {}};
  add_measured(table.columns, "forward", "forward");
  add_measured(table.columns, "backward_input", "gradients of the inputs");
  add_measured(table.columns, "backward_weight", "gradients of the parameters");
  for (const MeasuredSize& size : profile.sizes) {
    for (std::size_t op = 0; op < profile.operators.size(); ++op) {
      std::vector<Value>& row = table.rows.emplace_back();
      row = {profile.operators[op].name, size.rows};
      add_measured(row, size.operators[op].forward);
      add_measured(row, size.operators[op].backward_input);
      add_measured(row, size.operators[op].backward_weight);
    }
  }
  return table;
}

DataTable updates_table(const Profile& profile) {
  DataTable table{{kOperator}, {}};
  add_bytes(table.columns, "parameter", "parameters and buffers; tied ones with their first operator");
  add_measured(table.columns, "update", "optimizer step over these");
  for (const MeasuredOperator& op : profile.operators) {
    std::vector<Value>& row = table.rows.emplace_back();
    row = {op.name, op.parameters.value()};
    add_measured(row, op.update);
  }
  return table;
}

DataTable sizes_table(const Profile& profile) {
  DataTable table{{kRows, {"repetitions", ColumnType::int64, "1", "that count; the warm-up does not"}}, {}};
  add_measured(table.columns, "forward", "the whole network");
  add_measured(table.columns, "backward", "the whole network");
  add_bytes(table.columns, "slot", "kept of one micro-batch from forward to backward");
  add_bytes(table.columns, "workspace", "shared among micro-batches");
  for (const MeasuredSize& size : profile.sizes) {
    std::vector<Value>& row = table.rows.emplace_back();
    row = {size.rows, size.repetitions};
    add_measured(row, size.forward);
    add_measured(row, size.backward);
    row.insert(row.end(), {size.slot.value(), size.workspace.value()});
  }
  return table;
}

void write_job(storage::Group& root, const cost::MeasuredJob& job) {
  if (job.speeds.empty()) return;
  DataTable ranks{{{"rank", ColumnType::int64, "1", "rank of the job"},
                   {"speed", ColumnType::float64, "1", "of what the operators were measured on"}},
                  {}};
  for (const double speed : job.speeds) ranks.rows.push_back({static_cast<std::int64_t>(ranks.rows.size()), speed});
  write_table(root, "ranks", ranks, "the ranks of the job");
  DataTable links{{{"between", ColumnType::text, "1", "ranks (of one host) or hosts"},
                   {"bandwidth", ColumnType::float64, "B/s", "of a message of 1 MiB"},
                   {"latency_s", ColumnType::float64, "s", "of a message of 8 bytes"}},
                  {}};
  const auto add = [&](const char* name, const std::optional<cluster::Link>& link) {
    if (link) links.rows.push_back({std::string(name), link->bandwidth.value(), link->latency.value()});
  };
  add("ranks", job.within);
  add("hosts", job.between);
  if (!links.rows.empty()) write_table(root, "links", links, "messages between two ranks");
  DataTable sums{{}, {}};
  add_bytes(sums.columns, "summed", "of each rank");
  sums.columns.push_back({"time_s", ColumnType::float64, "s", "median"});
  for (std::size_t i = 0; i < job.reduced.size(); ++i) {
    sums.rows.push_back({job.reduced[i].value(), job.reductions[i].value()});
  }
  if (!sums.rows.empty()) write_table(root, "reductions", sums, "sums over all ranks");
}

/// A table with its columns by name.
class Rows {
 public:
  Rows(const storage::Group& root, const std::string& name) : table_(read_table(root, name)) {}

  std::size_t size() const { return table_.rows.size(); }
  double real(std::size_t row, const std::string& column) const { return number_of(cell(row, column)).value_or(0); }
  std::int64_t integer(std::size_t row, const std::string& column) const {
    const auto* value = std::get_if<std::int64_t>(&cell(row, column));
    return value == nullptr ? 0 : *value;
  }
  std::string text(std::size_t row, const std::string& column) const { return to_text(cell(row, column)); }
  Measured measured(std::size_t row, const std::string& name) const {
    return {Seconds(real(row, name + "_s")), Seconds(real(row, name + "_spread_s"))};
  }

 private:
  const Value& cell(std::size_t row, const std::string& column) const { return table_.rows[row][table_.at(column)]; }

  DataTable table_;
};

cost::MeasuredJob read_job(const storage::Group& root) {
  cost::MeasuredJob job;
  if (!root.contains("ranks")) return job;
  const Rows ranks(root, "ranks");
  for (std::size_t i = 0; i < ranks.size(); ++i) job.speeds.push_back(ranks.real(i, "speed"));
  if (root.contains("links")) {
    const Rows links(root, "links");
    for (std::size_t i = 0; i < links.size(); ++i) {
      (links.text(i, "between") == "ranks" ? job.within : job.between) =
          cluster::Link{BytesPerSecond(links.real(i, "bandwidth")), Seconds(links.real(i, "latency_s"))};
    }
  }
  if (root.contains("reductions")) {
    const Rows sums(root, "reductions");
    for (std::size_t i = 0; i < sums.size(); ++i) {
      job.reduced.emplace_back(sums.integer(i, "summed_bytes"));
      job.reductions.emplace_back(sums.real(i, "time_s"));
    }
  }
  return job;
}

// Size after size, in the order of the operators.
void read_operators(const storage::Group& root, const std::string& file, Profile& profile) {
  const Rows rows(root, "operators");
  std::size_t next = 0;
  for (MeasuredSize& size : profile.sizes) {
    for (const MeasuredOperator& op : profile.operators) {
      if (next == rows.size() || rows.text(next, "operator") != op.name || rows.integer(next, "rows") != size.rows) {
        throw InvalidInput(fmt::format("{}: /operators: row {} is not that of operator '{}' with {} rows", file, next,
                                       op.name, size.rows));
      }
      size.operators.push_back({rows.measured(next, "forward"), rows.measured(next, "backward_input"),
                                rows.measured(next, "backward_weight")});
      ++next;
    }
  }
}

}  // namespace

void write_profile(const std::filesystem::path& file, storage::Existing existing, const Profile& profile,
                   const std::vector<Fact>& origin) {
  storage::write_aside(file, existing, [&](const std::filesystem::path& aside) {
    storage::File made = storage::File::make(aside);
    made.set("millrace_profile", kVersion);
    for (const Fact& fact : origin) {
      std::visit([&](const auto& value) { made.set(fact.name, value); }, fact.value);
    }
    made.set("model", profile.model);
    made.set("graph_digest", profile.graph_digest);
    made.set("cpu", profile.cpu);
    made.set("threads", profile.threads);
    made.set("kernels", profile.kernels);
    made.set("precision", profile.precision);
    write_table(made, "operators", operators_table(profile), "each operator at each size, on one rank");
    write_table(made, "updates", updates_table(profile), "the optimizer step of each operator's parameters");
    write_table(made, "sizes", sizes_table(profile), "the whole network at each size");
    write_job(made, profile.job);
    made.close();
  });
}

Profile read_profile(const std::filesystem::path& path) {
  const storage::File file = storage::File::open(path);
  if (!file.has("millrace_profile")) {
    throw InvalidInput(path.string() + ": is no measured profile; millrace profile makes them");
  }
  Profile profile;
  profile.model = file.text("model");
  profile.graph_digest = file.text("graph_digest");
  profile.cpu = file.text("cpu");
  profile.threads = file.integer("threads");
  profile.kernels = file.text("kernels");
  profile.precision = file.text("precision");
  const Rows updates(file, "updates");
  for (std::size_t i = 0; i < updates.size(); ++i) {
    profile.operators.push_back(
        {updates.text(i, "operator"), Bytes(updates.integer(i, "parameter_bytes")), updates.measured(i, "update")});
  }
  const Rows sizes(file, "sizes");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    MeasuredSize size;
    size.rows = sizes.integer(i, "rows");
    size.repetitions = sizes.integer(i, "repetitions");
    size.forward = sizes.measured(i, "forward");
    size.backward = sizes.measured(i, "backward");
    size.slot = Bytes(sizes.integer(i, "slot_bytes"));
    size.workspace = Bytes(sizes.integer(i, "workspace_bytes"));
    if (size.rows < 1 || (i > 0 && size.rows <= profile.sizes.back().rows)) {
      throw InvalidInput(fmt::format("{}: /sizes: rows do not ascend from 1", path.string()));
    }
    profile.sizes.push_back(std::move(size));
  }
  if (profile.sizes.empty()) throw InvalidInput(fmt::format("{}: /sizes: is empty", path.string()));
  read_operators(file, path.string(), profile);
  profile.job = read_job(file);
  return profile;
}

}  // namespace millrace::record
