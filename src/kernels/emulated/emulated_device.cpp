// Kernels as times on the virtual clock; the tensors do not exist.
#include "kernels/emulated/emulated_device.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace millrace::kernels {
namespace {

class EmulatedExecutable final : public Executable {
 public:
  EmulatedExecutable(const StageGraph& stage, const CompileOptions& options, const EmulatedModel& model,
                     VirtualClock& clock)
      : rows_(options.rows),
        ops_(stage.ops),
        recompute_(options.recompute),
        bytes_(model.bytes(stage, options.rows, options.recompute)),
        model_(model),
        clock_(clock) {
    bytes_.slots = options.slots;
  }

  std::int64_t rows() const override { return rows_; }
  ExecutableBytes bytes() const override { return bytes_; }

  void* input(int, TensorId) override { return nullptr; }
  const void* output(int, TensorId) override { return nullptr; }
  void* output_gradient(int, TensorId) override { return nullptr; }
  const void* input_gradient(int, TensorId) override { return nullptr; }

  void forward(int, const BatchContext&) override { spend(Work::forward); }
  void backward(int) override { observer_ == nullptr ? spend(Work::backward) : spend_told(Work::backward); }
  void backward_input(int) override { spend(Work::backward_input); }
  void backward_weight(int) override {
    observer_ == nullptr ? spend(Work::backward_weight) : spend_told(Work::backward_weight);
  }
  void backward_weight_of(int, std::span<const OpId> ops) override {
    if (ops.empty()) return;
    const std::vector<Seconds>& times = of_each(Work::backward_weight);
    const auto first = std::lower_bound(ops_.begin(), ops_.end(), ops.front()) - ops_.begin();
    for (auto i = static_cast<std::size_t>(first) + ops.size(); i-- > static_cast<std::size_t>(first);) {
      clock_.spend(times[i]);
      if (observer_ != nullptr) observer_->done(ops_[i]);
    }
  }
  void recompute(int) override { spend(Work::recompute); }
  void observe(BackwardObserver* observer) override { observer_ = observer; }

 private:
  static std::size_t index(Work work) { return static_cast<std::size_t>(work); }
  void spend(Work work) {
    std::optional<Seconds>& time = times_[index(work)];
    if (!time) time = model_.time(work, work == Work::recompute ? recompute_ : ops_, rows_);
    clock_.spend(*time);
  }
  /// Asked for once, at the first use.
  const std::vector<Seconds>& of_each(Work work) {
    std::vector<Seconds>& times = work == Work::backward ? backward_ : backward_weight_;
    for (std::size_t i = times.size(); i < ops_.size(); ++i) times.push_back(model_.time(work, {&ops_[i], 1}, rows_));
    return times;
  }
  void spend_told(Work work) {
    const std::vector<Seconds>& times = of_each(work);
    for (std::size_t i = ops_.size(); i-- > 0;) {
      clock_.spend(times[i]);
      observer_->done(ops_[i]);
    }
  }

  std::int64_t rows_;
  std::vector<OpId> ops_, recompute_;
  ExecutableBytes bytes_;
  const EmulatedModel& model_;
  std::array<std::optional<Seconds>, 5> times_;
  std::vector<Seconds> backward_, backward_weight_;  // by operator
  BackwardObserver* observer_ = nullptr;
  VirtualClock& clock_;
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(EmulatedModel model, VirtualClock& clock) : model_(std::move(model)), clock_(clock) {}

  std::string_view name() const override { return "emulated"; }
  Storage storage() const override { return Storage::none; }
  std::unique_ptr<Executable> compile(const StageGraph& stage, StageParameters&,
                                      const CompileOptions& options) override {
    return std::make_unique<EmulatedExecutable>(stage, options, model_, clock_);
  }
  void updated(Bytes values) override { clock_.spend(model_.update(values)); }

 private:
  EmulatedModel model_;
  VirtualClock& clock_;
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(EmulatedModel model, VirtualClock& clock) {
  return std::make_unique<EmulatedDevice>(std::move(model), clock);
}

}  // namespace millrace::kernels
