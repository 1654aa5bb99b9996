// For tests: random graphs of `cost` operators, divisions of them, and ranks that are threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "graph/graph_builder.h"
#include "plan/exchange.h"

namespace millrace::testing_support {

/// Each operator reads one to three of the `reach` before it, or the input; figures are uneven. Operator 0 is read by
/// many.
inline Graph random_graph(int size, std::uint64_t seed, int reach = 6) {
  const Random random(seed, "random graph");
  std::uint64_t next = 0;
  const auto draw = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound), next++));
  };
  GraphBuilder builder("random");
  const TensorId x = builder.input("x", {Dims{2}});
  std::vector<TensorId> outputs;
  for (int i = 0; i < size; ++i) {
    std::vector<TensorId> inputs;
    const auto add = [&](TensorId id) {
      if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) inputs.push_back(id);
    };
    const std::int64_t before = std::min<std::int64_t>(reach, i);
    for (std::int64_t k = 0, count = before == 0 ? 0 : draw(4); k < count; ++k) {
      add(outputs[static_cast<std::size_t>(i - 1 - draw(before))]);
    }
    if (i > 0 && draw(5) == 0) add(outputs[0]);
    if (inputs.empty()) add(x);
    const double forward = static_cast<double>(1 + draw(9));
    const OpFigures figures{forward, forward, 0.5 * forward, 100 * draw(8), 10 * (1 + draw(9)), 10 * draw(5)};
    outputs.push_back(builder.add_cost(fmt::format("n{}", i), inputs, figures));
  }
  return builder.build();
}

/// Ranks of a job as threads of this process.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : size_(size), texts_(static_cast<std::size_t>(size)) {}

  class Member : public plan::Exchange {
   public:
    Member(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return ranks_.size_; }
    std::vector<std::string> gather_to_all(const std::string& mine) override { return ranks_.gather(rank_, mine); }

   private:
    ThreadRanks& ranks_;
    int rank_;
  };

 private:
  std::vector<std::string> gather(int rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = mine;
    const int round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      all_ = texts_;
      ++round_;
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [&] { return round_ != round; });
    }
    return all_;
  }

  int size_;
  std::vector<std::string> texts_, all_;
  int arrived_ = 0;
  int round_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
};

}  // namespace millrace::testing_support
