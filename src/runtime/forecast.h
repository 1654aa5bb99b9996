// What a rank will hold, counted before anything of it is allocated.
#pragma once

#include "comm/transport.h"
#include "graph/graph.h"
#include "program/run_rows.h"
#include "runtime/trainer.h"

namespace millrace::runtime {

/// The memory of the transport's rank by kind, as its Trainer will report it: the device is asked for the bytes of
/// every stage and number of rows that the programs use, without slots. Of the times and messages nothing is filled in.
/// \param device  in place of the one that the options name; null: that one.
RankReport forecast(const Graph& graph, const Programs& programs, const TrainOptions& options,
                    comm::Transport& transport, kernels::Device* device = nullptr);

}  // namespace millrace::runtime
