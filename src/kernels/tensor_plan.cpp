// Decides which tensors a slot keeps, and requests workspace for the lifetimes of the others.
#include "kernels/tensor_plan.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "kernels/arena.h"

namespace millrace::kernels {
namespace {

bool holds(const std::vector<TensorId>& ascending, TensorId tensor) {
  return std::binary_search(ascending.begin(), ascending.end(), tensor);
}

/// Buffers of one pass, whose offsets are known only when all are: `place` is filled in at the end.
class PassMemory {
 public:
  void request(Place& place, std::int64_t bytes, std::int64_t first, std::int64_t last) {
    place.region = Place::Region::workspace;
    places_.push_back(&place);
    lifetimes_.push_back({bytes, first, last});
  }

  /// Keeps what was requested for `place` alive until `last`.
  void extend(const Place& place, std::int64_t last) {
    const auto found = std::find(places_.begin(), places_.end(), &place);
    Lifetime& lifetime = lifetimes_[static_cast<std::size_t>(found - places_.begin())];
    lifetime.last = std::max(lifetime.last, last);
  }

  /// Returns the bytes needed after `base`.
  std::int64_t assign(std::int64_t base) {
    const std::int64_t bytes = assign_offsets(lifetimes_);
    for (std::size_t i = 0; i < places_.size(); ++i) places_[i]->offset = base + lifetimes_[i].offset;
    return bytes;
  }

 private:
  std::vector<Place*> places_;  // into maps and vectors that do not move any more
  std::vector<Lifetime> lifetimes_;
};

class TensorPlanner {
 public:
  TensorPlanner(const StageGraph& stage, const GradientFlow& flow, const RecomputePlan& again,
                const CompileOptions& options, const KernelFactory& factory,
                std::span<const std::unique_ptr<OpKernel>> kernels)
      : stage_(stage),
        flow_(flow),
        again_(again),
        options_(options),
        factory_(factory),
        kernels_(kernels),
        backward_times_(stage.ops.size()),
        recompute_times_(stage.ops.size(), -1) {
    std::int64_t time = 0;
    for (const std::size_t position : again.first) recompute_times_[position] = time++;
    for (std::size_t i = stage.ops.size(); i-- > 0;) {
      for (const std::size_t position : again.before[i]) recompute_times_[position] = time++;
      backward_times_[i] = time++;
    }
    for (std::size_t i = 0; i < stage.ops.size(); ++i) {
      if (!absorbed(i)) {
        hosts_[op(i).outputs[0]] = i;
        continue;
      }
      behind_[joint(i)] = op(i).outputs[0];
      before_[op(i).outputs[0]] = joint(i);
      hosts_[op(i).outputs[0]] = hosts_.at(joint(i));
    }
  }

  TensorPlan plan() {
    plan_.ops.resize(stage_.ops.size());
    find_inputs();
    plan_.samples = in_slot(options_.rows * static_cast<std::int64_t>(sizeof(std::int64_t)));
    plan_values();
    if (options_.training) plan_gradients();
    plan_recomputed();
    plan_kernel_memory();
    // Passes never overlap in time, so they share the workspace behind the stage's input gradients.
    const std::int64_t base = plan_.workspace_bytes;
    plan_.workspace_bytes += std::max(forward_.assign(base), backward_.assign(base));
    for (const auto& [tensor, over] : overwriting_) plan_.gradients[tensor] = Place(*over);
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      if (!absorbed(i)) continue;
      const TensorId before = joint(i), after = op(i).outputs[0];
      plan_.values[after] = plan_.values.at(before);
      if (const auto again = plan_.recomputed.find(before); again != plan_.recomputed.end()) {
        plan_.recomputed[after] = Place(again->second);
      }
    }
    for (std::size_t i = stage_.ops.size(); i-- > 0;) {
      if (!absorbed(i)) continue;
      const TensorId before = joint(i), after = op(i).outputs[0];
      if (const auto gradient = plan_.gradients.find(after); gradient != plan_.gradients.end()) {
        plan_.gradients[before] = Place(gradient->second);
      }
    }
    return std::move(plan_);
  }

 private:
  const Operator& op(std::size_t position) const { return stage_.graph->op(stage_.ops[position]); }
  bool absorbed(std::size_t position) const { return factory_.absorbed(stage_.ops[position]); }
  /// Of an absorbed operator: the input that lies where its output does.
  TensorId joint(std::size_t position) const { return op(position).inputs[factory_.joint(stage_.ops[position])]; }
  /// Time in the backward pass of the operator at `position`.
  std::int64_t backward_time(std::size_t position) const { return backward_times_[position]; }

  /// The tensor in whose place the gradient of `tensor` is kept: that behind operators which others do.
  TensorId with_absorbed(TensorId tensor) const {
    const auto found = behind_.find(tensor);
    return found == behind_.end() ? tensor : with_absorbed(found->second);
  }
  /// The tensor in whose place the values of `tensor` are kept: that before them.
  TensorId before_absorbed(TensorId tensor) const {
    const auto found = before_.find(tensor);
    return found == before_.end() ? tensor : before_absorbed(found->second);
  }

  Place in_slot(std::int64_t bytes) {
    const Place place{Place::Region::slot, plan_.slot_bytes};
    plan_.slot_bytes += aligned(bytes);
    return place;
  }

  std::unordered_set<TensorId> saved_tensors() const {
    std::unordered_set<TensorId> saved;
    for (std::size_t i = 0; options_.training && i < stage_.ops.size(); ++i) {
      if (!flow_.active[i]) continue;
      const Saved kept = factory_.saved(stage_, stage_.ops[i]);
      for (const int k : kept.inputs) saved.insert(op(i).inputs[static_cast<std::size_t>(k)]);
      for (const int k : kept.outputs) saved.insert(op(i).outputs[static_cast<std::size_t>(k)]);
    }
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      // An operator that runs again reads what is not dropped where its first forward left it.
      if (recompute_times_[i] >= 0) saved.insert(op(i).inputs.begin(), op(i).inputs.end());
    }
    for (const TensorId tensor : again_.dropped) saved.erase(tensor);
    for (std::size_t i = stage_.ops.size(); i-- > 0;) {  // where the values really are
      const bool kept = absorbed(i) && (saved.contains(op(i).outputs[0]) || holds(stage_.outputs, op(i).outputs[0]));
      if (kept) saved.insert(joint(i));
    }
    return saved;
  }

  void plan_values() {
    const std::unordered_set<TensorId> saved = saved_tensors();
    std::unordered_map<TensorId, std::int64_t> last_read;
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      for (const TensorId input : op(i).inputs) last_read[input] = static_cast<std::int64_t>(i);
    }
    for (std::size_t i = stage_.ops.size(); i-- > 0;) {
      if (!absorbed(i)) continue;
      const auto read = last_read.find(op(i).outputs[0]);
      if (read != last_read.end()) last_read[joint(i)] = read->second;
    }
    for (const TensorId input : stage_.inputs) plan_.values[input] = in_slot(factory_.tensor_bytes(input));
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      if (absorbed(i)) continue;
      for (const TensorId output : op(i).outputs) {
        const std::int64_t bytes = factory_.tensor_bytes(output);
        Place& place = plan_.values[output];
        if (holds(stage_.outputs, output) || saved.contains(output)) {
          place = in_slot(bytes);
        } else {
          const auto time = static_cast<std::int64_t>(i);
          const auto read = last_read.find(output);
          forward_.request(place, bytes, time, read == last_read.end() ? time : read->second);
        }
      }
    }
  }

  /// What is dropped is back from its second forward to the last that reads it then.
  void plan_recomputed() {
    std::unordered_map<TensorId, std::pair<std::int64_t, std::int64_t>> times;
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      if (recompute_times_[i] < 0) continue;
      for (const TensorId output : op(i).outputs) {
        // What forward alone read is written again, too, where nothing else lies.
        const bool in_slot = plan_.values.at(output).region == Place::Region::slot;
        if (again_.dropped.contains(output) || !in_slot) times[output] = {recompute_times_[i], recompute_times_[i]};
      }
      for (const TensorId input : op(i).inputs) {
        if (again_.dropped.contains(input)) times.at(before_absorbed(input)).second = recompute_times_[i];
      }
    }
    for (std::size_t i = stage_.ops.size(); i-- > 0;) {
      if (!flow_.active[i] || !options_.training) continue;
      const Saved kept = factory_.saved(stage_, stage_.ops[i]);
      const auto reads = [&](TensorId tensor) {
        const auto found = times.find(before_absorbed(tensor));
        if (found != times.end()) found->second.second = std::max(found->second.second, backward_time(i));
      };
      for (const int k : kept.inputs) reads(op(i).inputs[static_cast<std::size_t>(k)]);
      for (const int k : kept.outputs) reads(op(i).outputs[static_cast<std::size_t>(k)]);
    }
    for (const auto& [tensor, time] : times) {
      backward_.request(plan_.recomputed[tensor], factory_.tensor_bytes(tensor), time.first, time.second);
    }
  }

  void plan_gradients() {
    for (const TensorId input : stage_.gradient_inputs) {
      plan_.gradients[input] = {Place::Region::workspace, plan_.workspace_bytes};
      plan_.workspace_bytes += aligned(factory_.tensor_bytes(input));
    }
    for (const TensorId output : stage_.gradient_outputs) {
      plan_.gradients[output] = in_slot(factory_.tensor_bytes(output));
    }
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      const TensorId output = op(i).outputs[0];
      const bool loss = stage_.ops[i] == stage_.graph->loss();
      if (loss && !plan_.gradients.contains(output)) plan_.gradients[output] = in_slot(factory_.tensor_bytes(output));
    }

    std::unordered_map<TensorId, int> to_come;  // contributions
    for (const OpPlaces& places : plan_.ops) {
      for (const KernelInput& input : places.inputs) to_come[input.tensor] += wanted(input) ? 1 : 0;
    }
    std::unordered_set<TensorId> begun(stage_.gradient_outputs.begin(), stage_.gradient_outputs.end());
    for (std::size_t i = stage_.ops.size(); i-- > 0;) {
      // Inputs of operators that come later first.
      std::vector<KernelInput>& inputs = plan_.ops[i].inputs;
      for (std::size_t n = 0; n < inputs.size(); ++n) {
        KernelInput& input = inputs[(n + op(i).inputs.size()) % inputs.size()];
        if (!wanted(input)) continue;
        const TensorId tensor = input.tensor;
        const bool last = --to_come[tensor] == 0;
        if (begun.insert(tensor).second) {
          if (!plan_.gradients.contains(tensor)) begin_gradient(tensor, i, hosts_.at(tensor));
        } else if (last && adds_gradient(tensor)) {
          input.gradient = KernelInput::Gradient::term;
          backward_.request(plan_.terms[tensor], factory_.tensor_bytes(tensor), backward_time(i),
                            backward_time(hosts_.at(tensor)));
        } else {
          input.gradient = KernelInput::Gradient::added;
          backward_.request(input.added, factory_.tensor_bytes(tensor), backward_time(i), backward_time(i));
        }
      }
    }
  }

  static bool wanted(const KernelInput& input) { return input.gradient != KernelInput::Gradient::none; }

  void find_inputs() {
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      const bool own = !absorbed(i);
      std::vector<KernelInput>& inputs = plan_.ops[own ? i : hosts_.at(joint(i))].inputs;
      for (std::size_t k = 0; k < op(i).inputs.size(); ++k) {
        if (!own && k == factory_.joint(stage_.ops[i])) continue;
        const auto gradient = flow_.wanted[i][k] ? KernelInput::Gradient::sum : KernelInput::Gradient::none;
        inputs.push_back({op(i).inputs[k], gradient, {}});
      }
    }
  }

  /// Whether the kernel that makes `tensor` takes its gradient in two terms.
  bool adds_gradient(TensorId tensor) const {
    const auto host = hosts_.find(tensor);
    return host != hosts_.end() && kernels_[host->second]->adds_gradient() &&
           with_absorbed(op(host->second).outputs[0]) == tensor;
  }

  /// The gradient of an inner tensor lives from its last reader's backward to its producer's; for a weight half that
  /// is called apart, until then.
  void begin_gradient(TensorId tensor, std::size_t reader, std::size_t producer) {
    const std::int64_t bytes = factory_.tensor_bytes(tensor);
    Place* const over = may_overwrite(reader, bytes);
    Place& place = plan_.gradients[tensor];
    if (may_overwrite_values(tensor, reader, producer)) {
      place = plan_.values.at(tensor);
    } else if (options_.split_backward && !op(producer).parameters.empty()) {
      place = in_slot(bytes);
    } else if (over != nullptr) {
      backward_.extend(*over, backward_time(producer));
      overwriting_.emplace_back(tensor, over);
      place.region = Place::Region::workspace;
    } else {
      backward_.request(place, bytes, backward_time(reader), backward_time(producer));
    }
  }

  /// Where in the workspace the operator at `reader` may write another gradient of `bytes`: over that of its output, or
  /// over the second term of that. Once only: what it writes beside that reads it.
  Place* may_overwrite(std::size_t reader, std::int64_t bytes) {
    if (options_.split_backward || !kernels_[reader]->overwrites_gradient()) return nullptr;
    const TensorId output = with_absorbed(op(reader).outputs[0]);
    if (factory_.tensor_bytes(output) != bytes) return nullptr;
    for (auto* places : {&plan_.gradients, &plan_.terms}) {
      const auto found = places->find(output);
      if (found == places->end() || found->second.region != Place::Region::workspace) continue;
      Place* place = &found->second;
      for (const auto& [tensor, over] : overwriting_) {
        if (tensor == output && places == &plan_.gradients) place = over;  // it lies over another one itself
      }
      if (overwritten_.insert(&found->second).second) return place;
    }
    return nullptr;
  }

  /// Whether the values of `tensor` are in the slot for the operator at `reader` alone, which writes the gradient over
  /// them.
  bool may_overwrite_values(TensorId tensor, std::size_t reader, std::size_t producer) const {
    if (!kernels_[reader]->overwrites_input() || op(reader).inputs[0] != tensor) return false;
    if (stage_.graph->consumers(tensor).size() != 1 || before_.contains(tensor)) return false;
    if (plan_.values.at(tensor).region != Place::Region::slot) return false;
    return factory_.saved(stage_, stage_.ops[producer]).outputs.empty();
  }

  void plan_kernel_memory() {
    for (std::size_t i = 0; i < stage_.ops.size(); ++i) {
      const OpKernel& kernel = *kernels_[i];
      OpPlaces& places = plan_.ops[i];
      const auto time = static_cast<std::int64_t>(i);
      if (kernel.extra_bytes() > 0) {
        const bool kept = flow_.active[i] && options_.training;
        if (kept && !again_.drops_extra[i]) {
          places.extra = in_slot(kernel.extra_bytes());
        } else {
          forward_.request(places.extra, kernel.extra_bytes(), time, time);
        }
        if (recompute_times_[i] >= 0 && (again_.drops_extra[i] || !kept)) {
          const std::int64_t last = kept ? backward_time(i) : recompute_times_[i];
          backward_.request(places.recomputed_extra, kernel.extra_bytes(), recompute_times_[i], last);
        }
      }
      if (kernel.scratch_bytes() > 0) {
        forward_.request(places.forward_scratch, kernel.scratch_bytes(), time, time);
        if (recompute_times_[i] >= 0) {
          backward_.request(places.recompute_scratch, kernel.scratch_bytes(), recompute_times_[i], recompute_times_[i]);
        }
        if (options_.training && flow_.active[i]) {
          backward_.request(places.backward_scratch, kernel.scratch_bytes(), backward_time(i), backward_time(i));
        }
      }
    }
  }

  const StageGraph& stage_;
  const GradientFlow& flow_;
  const RecomputePlan& again_;
  const CompileOptions& options_;
  const KernelFactory& factory_;
  std::span<const std::unique_ptr<OpKernel>> kernels_;
  std::vector<std::int64_t> backward_times_;                // by position
  std::vector<std::int64_t> recompute_times_;               // by position, in the backward
                                                            // pass; -1: does not run again
  std::unordered_map<TensorId, TensorId> behind_, before_;  // from one side of an absorbed operator to the other
  std::unordered_map<TensorId, std::size_t> hosts_;         // by tensor: position of the operator whose kernel makes it
  std::vector<std::pair<TensorId, Place*>> overwriting_;    // gradients that lie in the place of another
  std::unordered_set<const Place*> overwritten_;
  TensorPlan plan_;
  PassMemory forward_;
  PassMemory backward_;
};

}  // namespace

TensorPlan plan_tensors(const StageGraph& stage, const GradientFlow& flow, const RecomputePlan& again,
                        const CompileOptions& options, const KernelFactory& factory,
                        std::span<const std::unique_ptr<OpKernel>> kernels) {
  return TensorPlanner(stage, flow, again, options, factory, kernels).plan();
}

}  // namespace millrace::kernels
