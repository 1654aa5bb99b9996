// The cluster that the ranks of this job make, with standing figures for CPU cores where nothing was measured.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace millrace::cluster {

/// Figures of one CPU core: what vectorised kernels reach on a server core with AVX-512. They set the balance of
/// compute to communication; how operators compare with each other hardly depends on them.
inline constexpr FlopsPerSecond kCoreFlopsFp32{100e9};
inline constexpr FlopsPerSecond kCoreFlopsFp64{50e9};
inline constexpr FlopsPerSecond kCoreFlopsBf16{50e9};  ///< emulated in fp32 without AMX
inline constexpr BytesPerSecond kCoreBandwidth{10e9};
inline constexpr Seconds kOperatorLaunch{2e-6};
inline constexpr Link kSharedMemory{BytesPerSecond(8e9), Seconds(1e-6)};
inline constexpr Link kEthernet{BytesPerSecond(1.25e9), Seconds(30e-6)};  ///< 10 Gb/s

/// Device k is rank k on host `hosts[k]`; the ranks of a host make one node. `hosts` may be empty: one host for all.
/// `threads` is the number of threads that each rank computes with; `speed` is below 1 where several ranks take turns
/// on one core.
/// \throws InvalidInput  ranks or threads below 1, a speed not above 0, or hosts for another number of ranks.
Cluster local_cluster(int ranks, std::span<const std::string> hosts = {}, int threads = 1, double speed = 1.0);

/// The same cluster with what was measured in place of the standing figures: `speeds` by rank, 1 where nothing was
/// taken off; links that are none stay.
Cluster with_measurements(const Cluster& local, std::span<const double> speeds, std::optional<Link> within,
                          std::optional<Link> between);

/// Speeds that differ by no more than `tolerance` become one, the middle of theirs: measurements of equal devices never
/// agree, and equal devices are planned for once.
std::vector<double> with_equal_speeds(std::span<const double> speeds, double tolerance);

}  // namespace millrace::cluster
