// Keeps columns, and compares two of them to see whether one will do.
#include "partitioners/common/op_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace::partitioners {

const OpTimes::Column& OpTimes::column(int device, std::int64_t rows) {
  std::unique_ptr<Column>& made = columns_[{device, rows}];
  if (made) return *made;
  made = std::make_unique<Column>();
  const auto size = static_cast<std::size_t>(problem_->graph->size());
  made->forward.reserve(size);
  made->total.reserve(size);
  for (OpId op = 0; op < problem_->graph->size(); ++op) {
    const cost::OpTime time = problem_->cost->op_time(op, rows, device);
    made->forward.push_back(time.forward.value());
    made->total.push_back(time.total().value());
  }
  return *made;
}

// Time per row does not grow with rows (cost::CostModel): what is the same at 1 and at `rows` is so in between.
bool OpTimes::proportional(int device, std::int64_t rows) {
  const auto [known, fresh] = proportional_.try_emplace(device, rows);
  if (!fresh && (known->second < 0 || known->second >= rows)) return known->second >= 0;
  constexpr double kRounding = 1e-12;
  const Column& one = column(device, 1);
  const auto count = static_cast<double>(rows);
  known->second = rows;
  for (OpId op = 0; op < problem_->graph->size(); ++op) {
    const cost::OpTime time = problem_->cost->op_time(op, rows, device);
    const auto i = static_cast<std::size_t>(op);
    const double forward = one.forward[i] * count, total = one.total[i] * count;
    if (std::abs(time.forward.value() - forward) > kRounding * forward ||
        std::abs(time.total().value() - total) > kRounding * total) {
      known->second = -1;
      return false;
    }
  }
  return true;
}

OpTimes::Scaled OpTimes::of(int device, std::int64_t rows) {
  if (rows > 1 && !proportional(device, rows)) return {&column(device, rows), 1.0};
  return {&column(device, rows > 0 ? 1 : 0), rows > 0 ? static_cast<double>(rows) : 1.0};
}

const TimeSums::Sums& TimeSums::of(const OpTimes::Column& column) {
  std::unique_ptr<Sums>& made = sums_[&column];
  if (made) return *made;
  made = std::make_unique<Sums>();
  double forward = 0, total = 0;
  std::size_t next = 0;
  for (const std::size_t point : *points_) {
    for (; next < point; ++next) {
      const auto op = static_cast<std::size_t>((*order_)[next]);
      forward += column.forward[op];
      total += column.total[op];
    }
    made->forward.push_back(forward);
    made->total.push_back(total);
  }
  return *made;
}

std::pair<std::vector<double>, std::vector<double>> TimeSums::least(const std::vector<OpTimes::Scaled>& columns) {
  if (columns.size() == 1) {
    std::vector<double> sums = of(*columns[0].column).total;
    for (double& sum : sums) sum *= columns[0].scale;
    return {std::move(sums), {1.0}};
  }
  std::vector<double> sums, strength(columns.size(), 0.0);
  double work = 0;
  std::size_t next = 0;
  for (const std::size_t point : *points_) {
    for (; next < point; ++next) {
      const auto op = static_cast<std::size_t>((*order_)[next]);
      double best = std::numeric_limits<double>::infinity();
      for (const auto& [column, scale] : columns) best = std::min(best, scale * column->total[op]);
      work += best;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const double own = columns[k].scale * columns[k].column->total[op];
        strength[k] = std::max(strength[k], own > 0 ? best / own : 1.0);
      }
    }
    sums.push_back(work);
  }
  return {std::move(sums), std::move(strength)};
}

}  // namespace millrace::partitioners
