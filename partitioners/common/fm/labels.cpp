// Takes off what a node's tensors come to before a move and adds it again after.
#include "partitioners/common/fm/labels.h"

#include <algorithm>
#include <numeric>

namespace millrace::partitioners::fm {
namespace {

std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }

}  // namespace

Labels::Labels(const Model& model, const StageOf& stage_of)
    : model_(model), stage_of_(stage_of), pins_(model.netlist->readers.items()) {
  const Netlist& netlist = *model_.netlist;
  const auto count = index(stages());
  count_.assign(count, 0);
  transfer_.assign(count, 0);
  sums_.assign(count, {});
  seconds_.assign(count, {});
  if (model_.machine->counts_memory()) {
    memory_.assign(count, 0);
    excess_.assign(count, 0);
  }
  load_start_.assign(1, 0);
  for (int s = 0; s < stages(); ++s) load_start_.push_back(load_start_.back() + model_.machine->profiles(s).size());
  forward_.assign(load_start_.back(), 0);
  backward_.assign(load_start_.back(), 0);
  tied_.resize(netlist.tied.size());
  pin_count_.assign(netlist.nets.size(), 0);

  for (std::size_t node = 0; node < netlist.nodes(); ++node) {
    ++count_[index(stage_of_[node])];
    hold(static_cast<Node>(node), stage_of_[node], 1);
    for (const Read& read : netlist.reads[node]) add_reader(read.tensor, stage_of_[node], 1, read.saved ? 1 : 0);
  }
  for (std::size_t tensor = 0; tensor < netlist.nets.size(); ++tensor) {
    const auto id = static_cast<std::int32_t>(tensor);
    const int producer = producer_stage(id);
    bool at_producer = false;
    for (const Pin& pin : pins(id)) {
      account(id, producer, pin.stage, 1);
      at_producer = at_producer || pin.stage == producer;
    }
    if (producer >= 0 && !at_producer) account(id, producer, producer, 1);
  }
  for (int s = 0; s < stages(); ++s) refresh(s);
}

int Labels::producer_stage(std::int32_t tensor) const {
  const Node producer = model_.netlist->nets[index(tensor)].producer;
  return producer < 0 ? -1 : stage(producer);
}

Labels::Pin Labels::pin(std::int32_t tensor, int stage) const {
  for (const Pin& pin : pins(tensor)) {
    if (pin.stage == stage) return pin;
  }
  return {stage, 0, 0};
}

void Labels::add_reader(std::int32_t tensor, int stage, int readers, int savers) {
  const std::size_t start = model_.netlist->readers.start(index(tensor));
  std::int32_t& count = pin_count_[index(tensor)];
  std::int32_t at = 0;
  while (at < count && pins_[start + index(at)].stage != stage) ++at;
  if (at == count) pins_[start + index(count++)] = {stage, 0, 0};
  Pin& pin = pins_[start + index(at)];
  pin.readers += readers;
  pin.savers += savers;
  if (pin.readers == 0) pins_[start + index(at)] = pins_[start + index(--count)];
}

void Labels::account(std::int32_t tensor, int producer_stage, int stage, int sign) {
  const Net& net = model_.netlist->nets[index(tensor)];
  const Pin here = pin(tensor, stage);
  StageSums& sums = sums_[index(stage)];
  const std::int64_t bytes = sign * net.bytes;
  if (stage == producer_stage) {
    const bool outside = static_cast<std::size_t>(here.readers) < model_.netlist->readers[index(tensor)].size();
    if (outside) sums.border += bytes;
    if (outside || net.kept || here.savers > 0) sums.kept += bytes;
    return;
  }
  if (here.readers == 0) return;
  sums.kept += bytes;
  if (producer_stage < 0) return;
  sums.border += bytes;
  transfer_[index(stage)] += sign * model_.machine->message(producer_stage, stage, net.bytes);
  received_ += bytes * model_.machine->all_rows(stage);
}

std::pair<int, int> Labels::range(Node node) const {
  int first = 0, last = stages() - 1;
  for (const Read& read : model_.netlist->reads[index(node)]) first = std::max(first, producer_stage(read.tensor));
  for (const std::int32_t tensor : model_.netlist->outputs[index(node)]) {
    for (const Pin& pin : pins(tensor)) last = std::min(last, pin.stage);
  }
  return {first, last};
}

void Labels::move(Node node, int to) {
  const int from = stage(node);
  for (const Read& read : model_.netlist->reads[index(node)]) move_read(read, from, to);
  for (const std::int32_t tensor : model_.netlist->outputs[index(node)]) move_output(tensor, from, to);
  hold(node, from, -1);
  hold(node, to, 1);
  --count_[index(from)];
  ++count_[index(to)];
  stage_of_[index(node)] = to;
  refresh(from);
  refresh(to);
}

void Labels::move_read(const Read& read, int from, int to) {
  const int producer = producer_stage(read.tensor);
  // How many readers are elsewhere counts at the producer, where memory does.
  const bool producer_too = producer >= 0 && producer != from && producer != to && model_.machine->counts_memory();
  for (const int sign : {-1, 1}) {
    account(read.tensor, producer, from, sign);
    account(read.tensor, producer, to, sign);
    if (producer_too) account(read.tensor, producer, producer, sign);
    if (sign > 0) break;
    add_reader(read.tensor, from, -1, read.saved ? -1 : 0);
    add_reader(read.tensor, to, 1, read.saved ? 1 : 0);
  }
  if (producer_too) refresh(producer);
}

void Labels::move_output(std::int32_t tensor, int from, int to) {
  for (const int sign : {-1, 1}) {
    const int producer = sign < 0 ? from : to;
    bool at_producer = false;
    for (const Pin& pin : pins(tensor)) {
      account(tensor, producer, pin.stage, sign);
      at_producer = at_producer || pin.stage == producer;
      if (sign > 0) refresh(pin.stage);
    }
    if (!at_producer) account(tensor, producer, producer, sign);
  }
}

void Labels::hold(Node node, int stage, int sign) {
  const Netlist& netlist = *model_.netlist;
  const auto add = [&](const Holding& holding) {
    StageSums& sums = sums_[index(stage)];
    sums.weights += sign * holding.weights;
    sums.elements += sign * holding.elements;
    sums.kept += sign * holding.kept;
    sums.kept_once += sign * holding.kept_once;
  };
  add(netlist.holdings[index(node)]);
  for (const std::int32_t tie : netlist.ties[index(node)]) {
    std::vector<Holders>& holders = tied_[index(tie)];
    auto here = std::find_if(holders.begin(), holders.end(), [&](const Holders& h) { return h.stage == stage; });
    if (here == holders.end()) here = holders.insert(here, {stage, 0});
    const bool held = here->nodes > 0;
    here->nodes += sign;
    if (held != (here->nodes > 0)) add(netlist.tied[index(tie)]);
  }
  const auto profiles = model_.machine->profiles(stage);
  const Times& times = *model_.times;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const std::size_t load = load_start_[index(stage)] + i, at = profiles[i] * times.nodes + index(node);
    forward_[load] += sign * times.forward[at];
    backward_[load] += sign * times.backward[at];
  }
}

// The slowest replica counts; transfers both ways count for the receiving stage (plan::StageTimes).
void Labels::refresh(int stage) {
  std::size_t slowest = load_start_[index(stage)];
  for (std::size_t load = slowest + 1; load < load_start_[index(stage) + 1]; ++load) {
    if (forward_[load] + backward_[load] > forward_[slowest] + backward_[slowest]) slowest = load;
  }
  const auto transfer = static_cast<double>(transfer_[index(stage)]);
  seconds_[index(stage)] = {Seconds(static_cast<double>(forward_[slowest]) + transfer),
                            Seconds(static_cast<double>(backward_[slowest]) + transfer)};
  if (memory_.empty()) return;
  memory_[index(stage)] = model_.machine->memory(stage, sums_[index(stage)]);
  excess_[index(stage)] = model_.machine->excess(stage, sums_[index(stage)]);
}

double Labels::peak() const { return memory_.empty() ? 0.0 : *std::max_element(memory_.begin(), memory_.end()); }

double Labels::excess() const { return std::accumulate(excess_.begin(), excess_.end(), 0.0); }

}  // namespace millrace::partitioners::fm
