// A measured operator profile: what each operator of one network took on one kind of device, as `millrace profile`
// keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "graph/graph.h"

namespace millrace::cost {

/// Repeated measurements of one thing.
struct Measured {
  Seconds median{};
  Seconds spread{};  ///< between the quartiles

  bool operator==(const Measured&) const = default;
};

/// The passes of an operator. One that it does not have takes no time.
struct MeasuredPasses {
  Measured forward;
  Measured backward_input;
  Measured backward_weight;

  bool operator==(const MeasuredPasses&) const = default;
};

/// Everything about micro-batches of one number of rows.
struct MeasuredSize {
  std::int64_t rows = 1;
  std::int64_t repetitions = 0;  ///< that count; those that warm up are left out
  Measured forward;              ///< of the whole network
  Measured backward;
  Bytes slot{};                           ///< that the device keeps of one micro-batch from forward to backward
  Bytes workspace{};                      ///< that it shares among micro-batches
  std::vector<MeasuredPasses> operators;  ///< by operator

  bool operator==(const MeasuredSize&) const = default;
};

/// An operator, by name, and what does not depend on rows.
struct MeasuredOperator {
  std::string name;
  Bytes parameters{};  ///< parameters and buffers; tied ones with their first operator
  Measured update;     ///< the optimizer step over these

  bool operator==(const MeasuredOperator&) const = default;
};

/// The ranks of one job and the links between them.
struct MeasuredJob {
  std::vector<double> speeds;              ///< by rank, of what the profile was measured on
  std::optional<cluster::Link> within{};   ///< between ranks of a host; none: no host has two
  std::optional<cluster::Link> between{};  ///< between hosts; none: there is one
  std::vector<Bytes> reduced{};            ///< sizes, ascending, of sums over all ranks,
  std::vector<Seconds> reductions{};       ///< and their times

  bool operator==(const MeasuredJob&) const = default;
};

struct Profile {
  std::string model;
  std::string graph_digest;
  std::string cpu;  ///< the processor's name
  std::int64_t threads = 1;
  std::string kernels;                      ///< name of the device
  std::string precision;                    ///< fp32, bf16 or fp64
  std::vector<MeasuredOperator> operators;  ///< in the graph's order
  std::vector<MeasuredSize> sizes;          ///< rows ascend
  MeasuredJob job;

  bool operator==(const Profile&) const = default;
};

/// What a profile is wanted for.
struct ProfileUse {
  std::string cpu;           ///< empty: any
  std::int64_t threads = 0;  ///< 0: any
  std::string kernels;
  std::string precision;
};

/// Why the profile says nothing of `graph` used like that: another operator, shape, processor, number of threads,
/// kernels or precision; empty: it does.
std::string why_not_usable(const Profile& profile, const Graph& graph, const ProfileUse& use);

}  // namespace millrace::cost
