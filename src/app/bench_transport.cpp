// `millrace bench transport`: messages and sums between ranks of this job by shared memory and by MPI, in alternation.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/benchmarks.h"
#include "app/print.h"
#include "base/errors.h"
#include "base/text.h"
#include "comm/node/node_transport.h"
#include "probe/link_speed.h"

namespace millrace::app {
namespace {

using nlohmann::json;

constexpr std::array kSizes{8_B, 4_KiB, 64_KiB, 1_MiB, 4_MiB, 16_MiB, 64_MiB};

struct Fastest {
  Seconds message{1e9};
  Seconds sum{1e9};
};

void measure(comm::Transport& transport, Bytes size, Fastest& fastest) {
  if (transport.rank() < 2) {
    fastest.message = std::min(fastest.message, probe::measure_message(transport, 0, 1, size));
  }
  fastest.sum = std::min(fastest.sum, probe::measure_all_reduce(transport, {&size, 1}).front());
}

json row_of(Bytes size, const char* way, const Fastest& fastest) {
  return {{"bytes", size.value()},
          {"way", way},
          {"message_s", fastest.message.value()},
          {"message_bytes_per_s", static_cast<double>(size.value()) / fastest.message.value()},
          {"all_reduce_s", fastest.sum.value()},
          {"all_reduce_bytes_per_s", static_cast<double>(size.value()) / fastest.sum.value()}};
}

const std::vector<std::string>& transport_columns() {
  static const std::vector<std::string> columns{"size", "way", "message", "at GB/s", "all-reduce", "at GB/s"};
  return columns;
}

std::vector<std::string> cells_of(const json& row) {
  const auto rate = [](const json& bytes_per_s) { return fmt::format("{:.2f}", bytes_per_s.get<double>() / 1e9); };
  return {format(Bytes(row.at("bytes").get<std::int64_t>())),    row.at("way").get<std::string>(),
          format(Seconds(row.at("message_s").get<double>())),    rate(row.at("message_bytes_per_s")),
          format(Seconds(row.at("all_reduce_s").get<double>())), rate(row.at("all_reduce_bytes_per_s"))};
}

/// Prints each row when it is measured: with many ranks a size takes many seconds.
class TransportRows {
 public:
  explicit TransportRows(bool as_json) : as_json_(as_json), lines_(transport_columns(), {8, 6, 9, 8, 10, 8}) {
    if (!as_json_) print(lines_.header());
  }
  void add(const json& row) { as_json_ ? list_.add(row) : print(lines_.row(cells_of(row))); }
  void finish() {
    if (as_json_) list_.finish();
  }

 private:
  bool as_json_;
  TableLines lines_;
  JsonRows list_{""};
};

}  // namespace

// Each figure is the least of all rounds: what else runs on a machine only makes them longer.
ExitCode bench_transport(const Arguments& arguments, comm::World& world) {
  if (world.size() < 2) {
    throw comm::SharedError(ExitCode::usage,
                            "bench transport measures between ranks: start it with mpirun -n 2 or more of them");
  }
  comm::NodeTransport memory(world.communicator()), mpi(world.communicator(), {.shares_memory = false});
  std::optional<TransportRows> rows;
  if (world.root()) rows.emplace(arguments.format == Format::json);
  for (const Bytes size : kSizes) {
    Fastest by_memory, by_mpi;
    for (int round = 0; round < arguments.rounds; ++round) {
      measure(memory, size, by_memory);
      world.barrier();
      measure(mpi, size, by_mpi);
      world.barrier();
    }
    if (!rows) continue;
    if (memory.ranks_of_node() > 1) rows->add(row_of(size, "memory", by_memory));
    rows->add(row_of(size, "mpi", by_mpi));
  }
  if (rows) rows->finish();
  return ExitCode::done;
}

}  // namespace millrace::app
