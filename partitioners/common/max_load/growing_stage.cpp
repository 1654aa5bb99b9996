// A step changes the counts of the item's transfers and the sums by what each of them begins or ends to cost.
#include "partitioners/common/max_load/growing_stage.h"

namespace millrace::partitioners::max_load {

GrowingStage::GrowingStage(const Model& model) : model_(model), ends_(model.transfers.size()) {}

void GrowingStage::start(const std::vector<bool>& earlier, const DeviceKind& kind) {
  cpu_ = kind.cpu;
  now_ = {};
  past_.clear();
  if (cpu_) return;
  for (std::size_t t = 0; t < ends_.size(); ++t) {
    const Transfer& transfer = model_.transfers[t];
    Ends ends;
    ends.readers = static_cast<std::uint32_t>(transfer.to.size());
    ends.from_outside = earlier[transfer.from];
    for (const Item reader : transfer.to) ends.readers_outside += earlier[reader] ? 1U : 0U;
    ends_[t] = ends;
  }
}

void GrowingStage::count(Ends& ends, bool as_producer, Step step, bool undo) const {
  if (as_producer) {
    (step == Step::add ? ends.from_inside : ends.from_outside) = !undo;
  } else {
    std::uint32_t& readers = step == Step::add ? ends.readers_inside : ends.readers_outside;
    readers = undo ? readers - 1 : readers + 1;
  }
}

void GrowingStage::step(Item item, Step step) {
  past_.push_back(now_);
  if (step == Step::add) {
    now_.compute += cpu_ ? model_.cpu_s[item] : model_.accelerator_s[item];
    now_.bytes += model_.bytes[item];
  }
  if (cpu_) return;
  for (const std::size_t t : model_.touching[item]) {
    Ends& ends = ends_[t];
    const Transfer& transfer = model_.transfers[t];
    const bool paid = ends.paid(), sure = ends.sure();
    count(ends, transfer.from == item, step, false);
    if (paid != ends.paid()) now_.transfers += paid ? -transfer.seconds : transfer.seconds;
    if (sure != ends.sure()) now_.committed += sure ? -transfer.seconds : transfer.seconds;
  }
}

void GrowingStage::undo(Item item, Step step) {
  now_ = past_.back();
  past_.pop_back();
  if (cpu_) return;
  for (const std::size_t t : model_.touching[item]) count(ends_[t], model_.transfers[t].from == item, step, true);
}

void GrowingStage::add(Item item) { step(item, Step::add); }
void GrowingStage::undo_add(Item item) { undo(item, Step::add); }
void GrowingStage::exclude(Item item) { step(item, Step::exclude); }
void GrowingStage::undo_exclude(Item item) { undo(item, Step::exclude); }

}  // namespace millrace::partitioners::max_load
