// Times of all operators on a device for a number of rows, asked of the cost model once for all orders and pipelines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plan/problem.h"

namespace millrace::partitioners {

class OpTimes {
 public:
  /// Seconds, by operator.
  struct Column {
    std::vector<double> forward, total;
  };
  /// Times are those of the column, `scale` times.
  struct Scaled {
    const Column* column = nullptr;
    double scale = 1;
  };

  explicit OpTimes(const plan::Problem& problem) : problem_(&problem) {}

  /// Where time is in proportion to rows, one column serves all numbers of rows. \pre rows ≥ 0.
  Scaled of(int device, std::int64_t rows);

 private:
  const Column& column(int device, std::int64_t rows);
  bool proportional(int device, std::int64_t rows);

  const plan::Problem* problem_;
  std::map<std::pair<int, std::int64_t>, std::unique_ptr<Column>> columns_;  // by device and rows
  std::map<int, std::int64_t> proportional_;                                 // by device: up to so many rows; −1: not
};

/// Sums of columns along an order, at cut points; made once for all models of the same segments.
class TimeSums {
 public:
  struct Sums {
    std::vector<double> forward, total;
  };

  /// Both must outlive it. `points`: positions in the order, ascending from 0 to its size.
  TimeSums(const std::vector<OpId>& order, const std::vector<std::size_t>& points) : order_(&order), points_(&points) {}
  const Sums& of(const OpTimes::Column& column);
  /// Of the least times of all columns, scaled; and the most that each comes to of the least of one operator.
  std::pair<std::vector<double>, std::vector<double>> least(const std::vector<OpTimes::Scaled>& columns);

 private:
  const std::vector<OpId>* order_;
  const std::vector<std::size_t>* points_;
  std::map<const OpTimes::Column*, std::unique_ptr<Sums>> sums_;
};

}  // namespace millrace::partitioners
