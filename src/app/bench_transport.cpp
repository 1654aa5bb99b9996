// `millrace bench transport`: messages and sums between ranks of this job by shared memory and by MPI, in alternation.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/benchmarks.h"
#include "app/print.h"
#include "base/errors.h"
#include "base/text.h"
#include "comm/node/node_transport.h"
#include "planner/tables.h"
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

std::string table_of(const std::vector<json>& rows) {
  planner::Table table{{"size", "way", "message", "at GB/s", "all-reduce", "at GB/s"}, {}};
  const auto rate = [](const json& bytes_per_s) { return fmt::format("{:.2f}", bytes_per_s.get<double>() / 1e9); };
  for (const json& row : rows) {
    table.rows.push_back({format(Bytes(row.at("bytes").get<std::int64_t>())), row.at("way").get<std::string>(),
                          format(Seconds(row.at("message_s").get<double>())), rate(row.at("message_bytes_per_s")),
                          format(Seconds(row.at("all_reduce_s").get<double>())),
                          rate(row.at("all_reduce_bytes_per_s"))});
  }
  return table_text(table);
}

}  // namespace

// Each figure is the least of all rounds: what else runs on a machine only makes them longer.
ExitCode bench_transport(const Arguments& arguments, comm::World& world) {
  if (world.size() < 2) {
    throw comm::SharedError(ExitCode::usage,
                            "bench transport measures between ranks: start it with mpirun -n 2 or more of them");
  }
  comm::NodeTransport memory(world.communicator()), mpi(world.communicator(), {.shares_memory = false});
  std::vector<json> rows;
  for (const Bytes size : kSizes) {
    Fastest by_memory, by_mpi;
    for (int round = 0; round < arguments.rounds; ++round) {
      measure(memory, size, by_memory);
      world.barrier();
      measure(mpi, size, by_mpi);
      world.barrier();
    }
    if (memory.ranks_of_node() > 1) rows.push_back(row_of(size, "memory", by_memory));
    rows.push_back(row_of(size, "mpi", by_mpi));
  }
  if (!world.root()) return ExitCode::done;
  if (arguments.format == Format::json) {
    print(json(rows));
  } else {
    print(table_of(rows));
  }
  return ExitCode::done;
}

}  // namespace millrace::app
