// Every replica computes every micro-batch once, in a legal order, and its messages touch only what exists then.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "program/describe.h"
#include "program/rank_links.h"
#include "program/unroll.h"
#include "program/verifier_parts.h"
#include "program/weight_segments.h"

namespace millrace::verification {
namespace {

enum class Progress : std::uint8_t { waiting, forward_done, input_done, all_done };

// One micro-batch of one iteration on one stage.
struct MicroBatch {
  Progress progress = Progress::waiting;
  bool recomputed = false;
  std::int32_t segment = 0;  // of its weight gradients: the next
  std::int64_t version = 0;  // of the weights in its forward
};

// What a rank knows of one of its stages.
struct StageState {
  bool here = false;
  std::vector<MicroBatch> micro_batches;  // [iteration · m + k]
  std::deque<std::size_t> recent;         // last forwards, one a slot
  int live = 0;
  std::optional<std::size_t> gradient_of;        // of the last backward: its input gradients still exist
  std::map<std::int32_t, std::int64_t> updates;  // of each of its buckets: the newest version
  std::map<std::size_t, std::int64_t> stashes;   // version by micro-batch that it is named after
  std::optional<std::int64_t> loaded;            // version for the next computation
};

// A forward and the weights that it used.
struct VersionUse {
  int rank = 0;
  std::size_t position = 0;
  std::int64_t version = 0;
};
using Versions = std::map<std::pair<int, int>, VersionUse>;  // the first, by pipeline and iteration

// Programs that do not flush and update each bucket once for several micro-batches.
bool updates_once(const Program& program) {
  if (program.norm || !program.training || program.stages.front().rows.size() < 2) return false;
  for (const RankProgram& rank : program.ranks) {
    std::map<std::int32_t, int> updates;
    for (const Instruction& at : rank.instructions) {
      if (at.kind == InstructionKind::update_weights && ++updates[at.bucket] > 1) return false;
    }
  }
  return true;
}

// Steps through one rank's list, unrolled.
class RankCheck {
 public:
  RankCheck(const Graph& graph, const Program& program, const RankLinks& links, int rank, Versions* versions,
            Findings& findings)
      : graph_(graph),
        program_(program),
        links_(links),
        rank_(rank),
        versions_(versions),
        findings_(findings),
        stages_(program.stages.size()) {
    for (std::size_t s = 0; s < program.stages.size(); ++s) {
      for (const int r : program.stages[s].ranks) stages_[s].here = stages_[s].here || r == rank;
    }
    for (std::size_t b = 0; b < program.buckets.size(); ++b) {
      const Bucket& bucket = program.buckets[b];
      if (!std::binary_search(bucket.owners.begin(), bucket.owners.end(), rank)) continue;
      for (const std::int32_t s : bucket.stages)
        stages_[static_cast<std::size_t>(s)].updates[static_cast<std::int32_t>(b)] = 0;
    }
  }

  void run(const std::vector<UnrolledInstruction>& list, int iterations) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (!stages_[s].here) continue;
      stages_[s].micro_batches.resize(program_.stages[s].rows.size() * static_cast<std::size_t>(iterations));
    }
    for (const UnrolledInstruction& at : list) {
      position_ = static_cast<std::size_t>(at.position);
      iteration_ = at.iteration;
      step(program_.ranks[static_cast<std::size_t>(rank_)].instructions[position_]);
    }
    for (const auto& [receive, key] : received_) {
      findings_.add(fmt::format("rank {}: {} comes after the computation that reads it", rank_,
                                describe(graph_, program_, receive)));
    }
    for (std::size_t s = 0; s < stages_.size(); ++s) finish(s);
  }

 private:
  static std::string_view missing(Progress progress) {
    if (progress == Progress::waiting) return "no forward";
    return progress == Progress::forward_done ? "no backward" : "no backward_weight";
  }

  void finish(std::size_t s) {
    const StageRef ref = program_.stages[s].ref;
    const StageState& stage = stages_[s];
    for (std::size_t i = 0; i < stage.micro_batches.size(); ++i) {
      const Progress wanted = program_.training ? Progress::all_done : Progress::forward_done;
      if (stage.micro_batches[i].progress == wanted) continue;
      findings_.add(fmt::format("rank {} never completes micro-batch {} of stage {} of pipeline {}: {}", rank_,
                                i % program_.stages[s].rows.size(), ref.stage, ref.pipeline,
                                missing(stage.micro_batches[i].progress)));
    }
    if (!stage.stashes.empty()) {
      findings_.add(fmt::format("rank {} keeps {} stashes of stage {} of pipeline {} for ever", rank_,
                                stage.stashes.size(), ref.stage, ref.pipeline));
    }
    if (stage.loaded) {
      findings_.add(fmt::format("rank {} loads weights of stage {} of pipeline {} for no computation", rank_, ref.stage,
                                ref.pipeline));
    }
  }

  void fault(std::string_view why) {
    findings_.add(fmt::format("{} (instruction {}): {}", describe(graph_, program_, rank_, position_), position_, why));
  }

  std::size_t key_of(const Instruction& at) const {
    return static_cast<std::size_t>(iteration_) * program_.stages[static_cast<std::size_t>(at.stage)].rows.size() +
           static_cast<std::size_t>(at.micro_batch);
  }

  void step(const Instruction& at) {
    if (open_) return continue_segments(at);
    if (at.kind == InstructionKind::update_weights) return update(at);
    if (at.stage < 0) return;  // reductions
    StageState& stage = stages_[static_cast<std::size_t>(at.stage)];
    if (!stage.here) return fault("the stage is not on this rank");
    const std::size_t key = key_of(at);
    switch (at.kind) {
      case InstructionKind::receive_activation:
      case InstructionKind::receive_gradient:
        received_.emplace_back(at, key);
        return;
      case InstructionKind::send_activation:
        if (!output_exists(stage, key)) fault("the stage's output does not exist at this point");
        return;
      case InstructionKind::send_gradient:
        if (stage.gradient_of != key) fault("it must come after the backward of its micro-batch and before the next");
        return;
      case InstructionKind::stash_weights:
        if (!stage.stashes.try_emplace(key, newest(stage)).second) fault("these weights are stashed before");
        return;
      case InstructionKind::load_weights:
        return load(stage, key);
      case InstructionKind::drop_stash:
        if (stage.stashes.erase(key) == 0 && iteration_ > 0) fault("there is no such stash");
        return;
      case InstructionKind::all_reduce:
      case InstructionKind::all_gather:
      case InstructionKind::reduce_scatter:
      case InstructionKind::all_to_all:
        return fault("it stands between no segments of a computation");
      default:
        break;
    }
    use_received(at, key);
    compute(at, stage, key);
    begin_segments(at);
  }

  // A divided computation: its segments and collectives follow each other without a gap, as the table says.
  void begin_segments(const Instruction& at) {
    if (at.kind == InstructionKind::backward_weight) return;  // other micro-batches may come between its segments
    segments_ = collectives_of(program_, at);
    if (segments_.empty()) {
      if (at.segment >= 0) fault("no collective divides this computation");
      return;
    }
    if (at.segment != 0) return fault("it must begin with segment 0");
    open_ = at;
    next_ = 0;
  }

  void continue_segments(const Instruction& at) {
    const bool collective_is_next = next_ % 2 == 0;
    const std::size_t number = next_ / 2;
    Instruction wanted = *open_;
    if (collective_is_next) {
      wanted.kind = program_.collectives[static_cast<std::size_t>(segments_[number])].kind;
      wanted.collective = segments_[number];
      wanted.segment = -1;
    } else {
      wanted.segment = static_cast<std::int16_t>(number + 1);
    }
    if (at != wanted) {
      fault(fmt::format("{} is expected here", describe(graph_, program_, wanted)));
      open_.reset();
      return;
    }
    if (++next_ == 2 * segments_.size()) open_.reset();
  }

  void update(const Instruction& at) {
    for (const std::int32_t s : program_.buckets[static_cast<std::size_t>(at.bucket)].stages) {
      const auto count = stages_[static_cast<std::size_t>(s)].updates.find(at.bucket);
      if (count != stages_[static_cast<std::size_t>(s)].updates.end()) ++count->second;
    }
  }

  void load(StageState& stage, std::size_t key) {
    if (stage.loaded) fault("the weights loaded before were used by no computation");
    const auto place = stage.stashes.find(key);
    if (place == stage.stashes.end() && iteration_ > 0) return fault("there is no such stash");
    stage.loaded = place == stage.stashes.end() ? 0 : place->second;
  }

  // Received rows go to the very next computation.
  void use_received(const Instruction& at, std::size_t key) {
    const bool forward = at.kind == InstructionKind::forward;
    for (const auto& [receive, receive_key] : received_) {
      const bool fits = receive.stage == at.stage && receive_key == key &&
                        at.kind != InstructionKind::backward_weight && at.kind != InstructionKind::recompute &&
                        forward == (receive.kind == InstructionKind::receive_activation);
      if (!fits) {
        fault(
            fmt::format("the computation after {} must be the one that reads it", describe(graph_, program_, receive)));
      }
    }
    received_.clear();
  }

  bool output_exists(const StageState& stage, std::size_t key) const {
    const Progress progress = stage.micro_batches[key].progress;
    if (program_.training) return progress == Progress::forward_done || progress == Progress::input_done;
    return std::find(stage.recent.begin(), stage.recent.end(), key) != stage.recent.end();
  }

  std::int64_t version_of(StageState& stage) {
    const std::int64_t version = stage.loaded ? *stage.loaded : newest(stage);
    stage.loaded.reset();
    return version;
  }

  // Updates of a stage so far; between the updates of its buckets its weights are no version at all.
  std::int64_t newest(const StageState& stage) {
    if (stage.updates.empty()) return 0;
    const std::int64_t version = stage.updates.begin()->second;
    for (const auto& [bucket, count] : stage.updates) {
      if (count != version) fault("some buckets of the stage are updated, others not yet");
    }
    return version;
  }

  void compute(const Instruction& at, StageState& stage, std::size_t key) {
    MicroBatch& work = stage.micro_batches[key];
    if (at.kind == InstructionKind::forward) return forward(at, stage, key);
    if (!program_.training) return fault("an evaluation program has no backward");
    const bool recomputes = !program_.stages[static_cast<std::size_t>(at.stage)].recompute.empty();
    if (at.kind == InstructionKind::recompute) {
      if (work.progress != Progress::forward_done) return fault("its forward has not run, or its backward has");
      if (!recomputes || work.recomputed) fault("nothing is dropped that it could compute again");
      work.recomputed = true;
      return;
    }
    if (at.kind == InstructionKind::backward_weight) {
      if (work.progress != Progress::input_done) return fault("its backward_input has not run, or it ran before");
      const std::int32_t wanted = work.segment == 0 && at.segment < 0 ? -1 : work.segment;
      if (at.segment != wanted) return fault(fmt::format("segment {} of its weight gradients comes next", wanted));
      ++work.segment;
      if (!ends_micro_batch(program_, at)) return;
    } else {
      if (work.progress == Progress::waiting) return fault("its forward has not run");
      if (work.progress != Progress::forward_done) return fault("this micro-batch was computed backward before");
      if (recomputes && !work.recomputed) fault("what it reads was dropped and not computed again");
      if (version_of(stage) != work.version) fault("its weights are not those of its forward");
      for (const std::int32_t consumer : links_.gradient_from[static_cast<std::size_t>(at.stage)]) {
        if (stages_[static_cast<std::size_t>(consumer)].micro_batches[key].progress < Progress::input_done) {
          fault(fmt::format("the backward of stage {}, which it reads on this rank, has not run",
                            program_.stages[static_cast<std::size_t>(consumer)].ref.stage));
        }
      }
      stage.gradient_of = key;
    }
    work.progress = at.kind == InstructionKind::backward_input ? Progress::input_done : Progress::all_done;
    if (work.progress == Progress::all_done) --stage.live;
  }

  // Where all stages update once an iteration, they use one version in it.
  void check_version(const Instruction& at, std::int64_t version) {
    const std::pair iteration{program_.stages[static_cast<std::size_t>(at.stage)].ref.pipeline, iteration_};
    const auto [place, is_new] = versions_->try_emplace(iteration, VersionUse{rank_, position_, version});
    const VersionUse& first = place->second;
    if (is_new || first.version == version) return;
    fault(fmt::format("it uses weights after {} updates, {} (instruction {}) of the same iteration after {}", version,
                      describe(graph_, program_, first.rank, first.position), first.position, first.version));
  }

  void forward(const Instruction& at, StageState& stage, std::size_t key) {
    MicroBatch& work = stage.micro_batches[key];
    if (work.progress != Progress::waiting) return fault("this micro-batch was computed forward before");
    work.progress = Progress::forward_done;
    work.version = version_of(stage);
    if (versions_ != nullptr && !stage.updates.empty()) check_version(at, work.version);
    for (const std::int32_t source : links_.activation_from[static_cast<std::size_t>(at.stage)]) {
      if (!output_exists(stages_[static_cast<std::size_t>(source)], key)) {
        fault(fmt::format("the forward of stage {}, whose results it reads on this rank, has not run, or they are gone",
                          program_.stages[static_cast<std::size_t>(source)].ref.stage));
      }
    }
    const int slots = program_.stages[static_cast<std::size_t>(at.stage)].slots;
    stage.recent.push_back(key);
    if (stage.recent.size() > static_cast<std::size_t>(slots)) stage.recent.pop_front();
    if (program_.training && ++stage.live > slots)
      fault(fmt::format("more live micro-batches than the {} slots", slots));
  }

  const Graph& graph_;
  const Program& program_;
  const RankLinks& links_;
  int rank_;
  Versions* versions_;  // null where stages may use different ones
  Findings& findings_;
  std::size_t position_ = 0;
  int iteration_ = 0;
  std::vector<StageState> stages_;
  std::vector<std::pair<Instruction, std::size_t>> received_;  // since the last computation
  std::optional<Instruction> open_;                            // segment 0 of a divided computation
  std::vector<std::int32_t> segments_;                         // collectives that divide it
  std::size_t next_ = 0;                                       // of its collectives and later segments
};

}  // namespace

void check_compute(const Graph& graph, const Program& program, Findings& findings) {
  const RankLinks links = make_rank_links(graph, program);
  const int iterations = iterations_to_check(program);
  const auto lists = unroll(program, iterations);
  Versions versions;
  Versions* one_version = updates_once(program) ? &versions : nullptr;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankCheck(graph, program, links, static_cast<int>(rank), one_version, findings).run(lists[rank], iterations);
  }
}

}  // namespace millrace::verification
