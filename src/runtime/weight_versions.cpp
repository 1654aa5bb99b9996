// Stashes name copies; a copy that no stash names is free.
#include "runtime/weight_versions.h"

#include <algorithm>

#include "program/unroll.h"

namespace millrace::runtime {
namespace {

constexpr int kNewest = kernels::StageParameters::kNewest;
constexpr std::int64_t kBeginning = -1;  // the iteration of the stash of the weights of the beginning
constexpr std::size_t kManyStashes = 64;

}  // namespace

VersionNeeds WeightVersions::needs(const Program& program, int rank, std::int32_t stage) {
  WeightVersions counted;
  const RankProgram& list = program.ranks[static_cast<std::size_t>(rank)];
  const auto step = [&](const Instruction& at, std::int64_t iteration) {
    if (at.kind == InstructionKind::update_weights) {
      const auto& stages = program.buckets[static_cast<std::size_t>(at.bucket)].stages;
      if (std::binary_search(stages.begin(), stages.end(), stage)) counted.before_update();
      return;
    }
    if (at.stage != stage) return;
    if (at.kind == InstructionKind::stash_weights) counted.stash(iteration, at.micro_batch);
    if (at.kind == InstructionKind::load_weights) counted.load(iteration, at.micro_batch);
    if (at.kind == InstructionKind::drop_stash) counted.drop(iteration, at.micro_batch);
    if (at.kind == InstructionKind::forward || at.kind == InstructionKind::backward ||
        at.kind == InstructionKind::backward_input) {
      counted.used();
    }
  };
  const int iterations = 2 * program.overlap + 2;  // filled, and then once through: more meet no other state
  for (int pass = 0; pass < 2; ++pass) {           // the second knows whether the weights of the beginning are kept
    counted.begin();
    for (int round = 0; round < iterations + program.overlap; ++round) {
      if (round > program.overlap) counted.first_iteration_is_over();
      for (const Instruction& at : list.instructions) {
        const int iteration = round - at.lag;
        if (iteration >= 0 && iteration < iterations) step(at, iteration);
      }
    }
  }
  counted.needs_.copies = counted.most_copies_;
  return counted.needs_;
}

WeightVersions::WeightVersions(kernels::StageParameters& parameters, VersionNeeds needs)
    : parameters_(&parameters), needs_(needs) {
  stashes_.reserve(kManyStashes);
}

void WeightVersions::begin() {
  stashes_.clear();
  loaded_.reset();
  updated_ = false;
  if (needs_.first) stashes_.push_back({kBeginning, 0, kNewest});
}

void WeightVersions::first_iteration_is_over() { drop(kBeginning, 0); }

WeightVersions::Stash* WeightVersions::find(std::int64_t iteration, std::int32_t micro_batch) {
  const auto found = std::find_if(stashes_.begin(), stashes_.end(), [&](const Stash& stash) {
    return stash.iteration == iteration && stash.micro_batch == micro_batch;
  });
  return found == stashes_.end() ? nullptr : &*found;
}

void WeightVersions::stash(std::int64_t iteration, std::int32_t micro_batch) {
  stashes_.push_back({iteration, micro_batch, kNewest});
}

void WeightVersions::load(std::int64_t iteration, std::int32_t micro_batch) {
  if (const Stash* stash = find(iteration, micro_batch)) {
    loaded_ = *stash;
    return;
  }
  // The first iteration does not have it yet: the weights that it began with.
  const Stash* beginning = find(kBeginning, 0);
  if (updated_ && beginning == nullptr) needs_.first = true;
  loaded_ = beginning != nullptr ? *beginning : Stash{};
}

void WeightVersions::drop(std::int64_t iteration, std::int32_t micro_batch) {
  if (const Stash* stash = find(iteration, micro_batch)) stashes_.erase(stashes_.begin() + (stash - stashes_.data()));
}

int WeightVersions::free_copy() {
  for (int copy = 0;; ++copy) {
    const bool taken = std::any_of(stashes_.begin(), stashes_.end(), [&](const Stash& s) { return s.copy == copy; });
    if (!taken && !(loaded_ && loaded_->copy == copy)) return copy;
  }
}

void WeightVersions::before_update() {
  updated_ = true;
  const bool named = std::any_of(stashes_.begin(), stashes_.end(), [](const Stash& s) { return s.copy == kNewest; });
  if (!named && !(loaded_ && loaded_->copy == kNewest)) return;
  const int copy = free_copy();
  most_copies_ = std::max(most_copies_, copy + 1);
  if (parameters_ != nullptr) parameters_->keep(copy);
  for (Stash& stash : stashes_) {
    if (stash.copy == kNewest) stash.copy = copy;
  }
  if (loaded_ && loaded_->copy == kNewest) loaded_->copy = copy;
}

void WeightVersions::used() {
  loaded_.reset();
  if (parameters_ != nullptr) parameters_->read(kNewest);
}

void WeightVersions::select() const { parameters_->read(loaded_ ? loaded_->copy : kNewest); }

}  // namespace millrace::runtime
