// Cuts of an order by capacity: the pipeline of one group of devices, each stage with devices of its own speed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "partitioners/common/equal_cuts.h"
#include "partitioners/common/row_footprint.h"
#include "plan/problem.h"

namespace millrace::partitioners {

/// The devices of one stage, numbers of the cluster, and their parts of each micro-batch.
struct Team {
  std::vector<int> devices{};
  std::vector<double> shares{};
  bool operator==(const Team&) const = default;
  auto operator<=>(const Team&) const = default;
};

struct CapacityCut {
  Cuts ends{};         ///< positions in the order
  double slowest = 0;  ///< s: stage, transfers included
};

/// Cuts one order for any teams so that the slowest stage is as fast as possible and each stage fits.
class CapacityCutter {
 public:
  /// Both must outlive it. Cuts are looked for at every position of small graphs, else at those where the fewest bytes
  /// cross; the more stages, the fewer places. `margin`: bytes that every device keeps free. `recompute`: all operators
  /// are run again before their backward.
  CapacityCutter(const plan::Problem& problem, const Order& order, std::int64_t margin, bool recompute);

  /// For micro-batches of `rows` rows; none where no cut fits in memory. \pre no more teams than operators.
  const std::optional<CapacityCut>& cut(const std::vector<Team>& teams, std::int64_t rows);

  /// Rows of a micro-batch, at most `rows`, for which a cut fits; 0: none.
  std::int64_t most_rows(const std::vector<Team>& teams, std::int64_t rows);

 private:
  // Teams of devices that cost the same, with the links between them, are cut alike.
  struct Question {
    std::int64_t rows = 0;
    std::vector<Team> teams;
    std::vector<std::pair<double, double>> links;  // bandwidth and latency
    auto operator<=>(const Question&) const = default;
  };

  Question question(const std::vector<Team>& teams, std::int64_t rows) const;
  std::optional<CapacityCut> solve(const std::vector<Team>& teams, std::int64_t rows);
  const std::vector<std::size_t>& places(std::size_t stages);
  const std::vector<double>& times_before(int device, std::int64_t rows);
  double received(std::size_t begin, std::int64_t rows, int from, int to) const;
  bool fits(const Team& team, std::size_t begin, std::size_t end, std::int64_t rows, std::int64_t live);
  const RowFootprint& footprint(std::size_t begin, std::size_t end);

  const plan::Problem& problem_;
  const Order& order_;
  std::int64_t margin_;
  bool recompute_;
  plan::AnalyticBytes bytes_;
  bool limited_ = false;
  std::vector<int> same_device_;
  std::vector<double> crossing_bytes_;    // of a row, by position
  std::vector<double> crossing_tensors_;  // by position
  std::vector<double> times_;             // by position: of one operator on device 0
  std::map<Question, std::optional<CapacityCut>> known_;
  std::map<std::size_t, std::vector<std::size_t>> places_;  // by number of stages
  std::map<std::pair<int, std::int64_t>, std::vector<double>> profiles_;
  std::map<std::pair<std::size_t, std::size_t>, RowFootprint> footprints_;
};

}  // namespace millrace::partitioners
