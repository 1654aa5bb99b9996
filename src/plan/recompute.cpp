// Goes over a stage's operators and asks of each tensor whether it must outlive its segment.
#include "plan/recompute.h"

#include <algorithm>

#include "graph/footprint.h"
#include "graph/recompute_segments.h"
#include "graph/width.h"

namespace millrace::plan {
namespace {

constexpr int kNotRecomputed = -1;

class Keeping {
 public:
  Keeping(const StageGraph& stage, std::span<const OpId> recompute, std::int64_t real_bytes)
      : stage_(stage), graph_(*stage.graph), real_(real_bytes), segments_(stage.ops.size(), kNotRecomputed) {
    const std::vector<int> segments = recompute_segments(graph_, recompute);
    for (std::size_t i = 0; i < recompute.size(); ++i) {
      segments_[index(recompute[i])] = segments[i];
      count_ = std::max(count_, segments[i] + 1);
    }
  }

  KeptActivations run(std::int64_t rows) {
    std::vector<OpId> others;
    for (const OpId op : stage_.ops) {
      if (segments_[index(op)] == kNotRecomputed) others.push_back(op);
    }
    SavedTensors saved = saved_tensors(graph_, others);
    kept_.tensors = std::move(saved.tensors);
    kept_.beside_per_sample = beside(saved);
    kept_.beside_per_micro_batch = Bytes(saved.extra_reals_per_micro_batch * wide_bytes(real_));
    kept_.tensors.insert(kept_.tensors.end(), stage_.inputs.begin(), stage_.inputs.end());
    kept_.tensors.insert(kept_.tensors.end(), stage_.outputs.begin(), stage_.outputs.end());
    brought_back_.resize(static_cast<std::size_t>(count_));
    if (count_ > 0) {
      for (const OpId op : stage_.ops) recomputed(op);
    }
    distinct(kept_.tensors);
    for (Segment& segment : brought_back_) {
      distinct(segment.tensors);
      Bytes bytes = rows * segment.beside + segment.beside_per_micro_batch;
      for (const TensorId id : segment.tensors) {
        if (!std::binary_search(kept_.tensors.begin(), kept_.tensors.end(), id)) {
          bytes += rows * tensor_bytes(graph_.tensor(id), real_);
        }
      }
      kept_.recomputed = std::max(kept_.recomputed, bytes);
    }
    return std::move(kept_);
  }

 private:
  struct Segment {
    std::vector<TensorId> tensors;  // that its backward reads
    Bytes beside{};
    Bytes beside_per_micro_batch{};
  };

  std::size_t index(OpId op) const {
    return static_cast<std::size_t>(std::lower_bound(stage_.ops.begin(), stage_.ops.end(), op) - stage_.ops.begin());
  }
  bool inside(OpId op) const { return op >= 0 && std::binary_search(stage_.ops.begin(), stage_.ops.end(), op); }
  static void distinct(std::vector<TensorId>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  Bytes beside(const SavedTensors& saved) const {
    return Bytes(saved.extra_reals_per_sample * wide_bytes(real_)) + saved.extra_per_sample;
  }

  void recomputed(OpId op) {
    const int number = segments_[index(op)];
    if (number == kNotRecomputed) return;
    Segment& segment = brought_back_[static_cast<std::size_t>(number)];
    const SavedTensors saved = saved_tensors(graph_, std::span(&op, 1));
    segment.tensors.insert(segment.tensors.end(), saved.tensors.begin(), saved.tensors.end());
    segment.beside += beside(saved);
    segment.beside_per_micro_batch += Bytes(saved.extra_reals_per_micro_batch * wide_bytes(real_));
    for (const TensorId input : graph_.op(op).inputs) {
      const OpId producer = graph_.tensor(input).producer;
      if (inside(producer) && segments_[index(producer)] != number) kept_.tensors.push_back(input);
    }
  }

  const StageGraph& stage_;
  const Graph& graph_;
  std::int64_t real_;
  std::vector<int> segments_;  // by position among the stage's operators
  int count_ = 0;
  std::vector<Segment> brought_back_;
  KeptActivations kept_;
};

}  // namespace

KeptActivations kept_activations(const StageGraph& stage, std::span<const OpId> recompute, std::int64_t rows,
                                 std::int64_t real_bytes) {
  return Keeping(stage, recompute, real_bytes).run(rows);
}

}  // namespace millrace::plan
