// Each results table as a list of its columns.
#include "record/columns.h"

namespace millrace::record {

using storage::Column;
using storage::ColumnType;

namespace {

constexpr auto kInteger = ColumnType::int64;
constexpr auto kReal = ColumnType::float64;
constexpr auto kBytes = ColumnType::uint64;
constexpr auto kText = ColumnType::text;

}  // namespace

const std::vector<Column>& iteration_columns() {
  static const std::vector<Column> columns{
      {"iteration", kInteger, "1", "number of the iteration, from 1"},
      {"epoch", kInteger, "1", "pass over the training split, from 1"},
      {"samples", kInteger, "1", "samples so far, padding not counted"},
      {"loss", kReal, "1", "mean over the valid samples of the global batch, before the update"},
      {"gradient_norm", kReal, "1", "global L2 norm before clipping"},
      {"learning_rate", kReal, "1", "of this iteration's update"},
      {"time_s", kReal, "s", "from the end of the iteration before to the end of this one, on rank 0"},
      {"throughput", kReal, "samples/s", "samples of the iteration over its time"},
      {"exposed_communication_s", kReal, "s",
       "part of the time in which rank 0 waited for messages, reductions or sums"},
      {"skipped", ColumnType::uint8, "1", "1 where the gradient was not finite and no rank updated"},
  };
  return columns;
}

const std::vector<Column>& evaluation_columns() {
  static const std::vector<Column> columns{
      {"iteration", kInteger, "1", "iterations before the evaluation"},
      {"loss", kReal, "1", "mean over the test split"},
      {"accuracy", kReal, "1", "fraction of right answers over the test split"},
  };
  return columns;
}

const std::vector<Column>& rank_columns() {
  static const std::vector<Column> columns{
      {"rank", kInteger, "1", "MPI rank"},
      {"host", kText, "1", "host name", 64},
      {"device", kInteger, "1", "device of the cluster"},
      {"pipeline", kInteger, "1", "data-parallel group"},
      {"stages", kText, "1", "stages that the rank computes", 64},
      {"threads", kInteger, "1", "threads of its kernels"},
      {"weights_bytes", kBytes, "bytes", "parameters and running statistics"},
      {"gradients_bytes", kBytes, "bytes", "gradient accumulators"},
      {"optimizer_bytes", kBytes, "bytes", "optimizer state"},
      {"activations_bytes", kBytes, "bytes", "activations of all live micro-batches"},
      {"workspace_bytes", kBytes, "bytes", "gradients in flight, scratch, repacked weights"},
      {"buffers_bytes", kBytes, "bytes", "send and receive buffers"},
      {"peak_bytes", kBytes, "bytes", "sum of the kinds"},
      {"peak_rss_bytes", kBytes, "bytes", "VmHWM of the process"},
      {"busy_s", kReal, "s", "time in kernels and updates"},
      {"idle_s", kReal, "s", "rest of the iterations' time"},
      {"sent_bytes", kBytes, "bytes", "handed to the network"},
      {"received_bytes", kBytes, "bytes", "taken from the network"},
      {"predicted_peak_bytes", kBytes, "bytes", "peak_bytes as counted before the run"},
      {"exposed_p2p_s", kReal, "s", "waits for activations and gradients of other stages, their lateness included"},
      {"exposed_gradients_s", kReal, "s", "waits for gradient reductions"},
      {"exposed_tensor_s", kReal, "s", "waits for the other ranks of a tensor-parallel replica"},
      {"exposed_other_s", kReal, "s", "waits for norms and losses of all ranks"},
      {"gradients_in_flight_s", kReal, "s", "gradient reductions from start to end, hidden or not"},
  };
  return columns;
}

const std::vector<Column>& instruction_columns() {
  static const std::vector<Column> columns{
      {"rank", kInteger, "1", "MPI rank"},
      {"iteration", kInteger, "1", "number of the iteration, from 1"},
      {"kind", kText, "1", "instruction", 24},
      {"stage", kInteger, "1", "stage, counted through all pipelines; -1: none"},
      {"micro_batch", kInteger, "1", "micro-batch of the pipeline; -1: none"},
      {"start_s", kReal, "s", "from the start of the rank's iteration"},
      {"end_s", kReal, "s", "from the start of the rank's iteration"},
      {"predicted_s", kReal, "s", "duration that the simulator gave; -1: not predicted"},
  };
  return columns;
}

}  // namespace millrace::record
