// What ranks will hold, counted before anything of it is allocated.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.h"
#include "program/run_rows.h"
#include "runtime/trainer.h"

namespace millrace::runtime {

/// The memory of one rank by kind, as its Trainer will report it; of times and messages nothing is filled in.
struct Forecast {
  RankReport rank;
  std::map<std::int32_t, RankReport> stages;  ///< of it, by flat stage index; without gradients that wait for others
};

/// The device is asked for the bytes of every stage and number of rows that the programs use, without slots and without
/// parameters. No other rank is asked.
/// \param device  in place of the one that the options name; null: that one.
Forecast forecast(const Graph& graph, const Programs& programs, const TrainOptions& options, int rank,
                  kernels::Device* device = nullptr);
/// The same for all ranks; what ranks have in common is asked for once.
std::vector<Forecast> forecast_all(const Graph& graph, const Programs& programs, const TrainOptions& options,
                                   kernels::Device* device = nullptr);

}  // namespace millrace::runtime
