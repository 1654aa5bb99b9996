// Groups parameters by the stages that use them, each group found by one step from the group before.
#include "plan/owners.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/footprint.h"

namespace millrace::plan {
namespace {

// Sets of users, each a user added to an earlier set. A user is a stage of a cut, which stands for that stage of all
// pipelines cut so.
class UserSets {
 public:
  struct Set {
    int before = -1;  // −1: none
    int cut = 0;
    int stage = 0;
  };

  // The set `set` with the stage added; the same set if it was the last one added.
  int with(int set, int cut, int stage) {
    if (set >= 0 && sets_[static_cast<std::size_t>(set)].cut == cut &&
        sets_[static_cast<std::size_t>(set)].stage == stage) {
      return set;
    }
    if (set == last_before_ && cut == last_cut_ && stage == last_stage_) return last_;
    const auto [entry, is_new] = index_.try_emplace({set, {cut, stage}}, static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back({set, cut, stage});
    last_before_ = set;
    last_cut_ = cut;
    last_stage_ = stage;
    last_ = entry->second;
    return last_;
  }

  std::size_t size() const { return sets_.size(); }

  // Users, last first.
  std::vector<Set> users(int set) const {
    std::vector<Set> users;
    for (; set >= 0; set = sets_[static_cast<std::size_t>(set)].before) {
      users.push_back(sets_[static_cast<std::size_t>(set)]);
    }
    return users;
  }

 private:
  std::vector<Set> sets_;
  std::map<std::pair<int, std::pair<int, int>>, int> index_;
  int last_before_ = -2, last_cut_ = -1, last_stage_ = -1, last_ = -1;
};

void distinct(std::vector<StageRef>& refs) {
  const auto less = [](const StageRef& a, const StageRef& b) {
    return std::pair(a.pipeline, a.stage) < std::pair(b.pipeline, b.stage);
  };
  std::sort(refs.begin(), refs.end(), less);
  refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
}

}  // namespace

std::vector<Reduction> shared_parameters(const Plan& plan, const PlanCuts& cuts, const Graph& graph,
                                         std::int64_t real_bytes) {
  UserSets sets;
  std::vector<int> set_of(graph.tensors().size(), -1);
  for (int c = 0; c < static_cast<int>(cuts.cuts.size()); ++c) {
    const auto& stages =
        plan.pipelines[static_cast<std::size_t>(cuts.cuts[static_cast<std::size_t>(c)].pipeline)].stages;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      for (const OpId op : stages[static_cast<std::size_t>(s)].ops) {
        for (const auto* owned : {&graph.op(op).parameters, &graph.op(op).buffers}) {
          for (const TensorId id : *owned) {
            int& set = set_of[static_cast<std::size_t>(id)];
            set = sets.with(set, c, s);
          }
        }
      }
    }
  }
  std::vector<std::int64_t> bytes(sets.size(), -1);  // −1: no tensor has these users
  for (TensorId id = 0; id < static_cast<TensorId>(set_of.size()); ++id) {
    const int set = set_of[static_cast<std::size_t>(id)];
    if (set < 0) continue;
    std::int64_t& sum = bytes[static_cast<std::size_t>(set)];
    sum = std::max<std::int64_t>(sum, 0) + tensor_bytes(graph.tensor(id), real_bytes).value();
  }

  std::map<std::vector<int>, Reduction> by_owners;
  for (int set = 0; set < static_cast<int>(sets.size()); ++set) {
    if (bytes[static_cast<std::size_t>(set)] < 0) continue;
    std::vector<StageRef> refs;
    std::vector<int> owners;
    for (const auto& user : sets.users(set)) {
      for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
        if (cuts.of_pipeline[static_cast<std::size_t>(p)] != user.cut) continue;
        refs.push_back({p, user.stage});
        const auto& devices =
            plan.pipelines[static_cast<std::size_t>(p)].stages[static_cast<std::size_t>(user.stage)].devices;
        owners.insert(owners.end(), devices.begin(), devices.end());
      }
    }
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());  // a device may hold several stages
    if (owners.size() < 2) continue;
    Reduction& reduction = by_owners[owners];
    reduction.stages.insert(reduction.stages.end(), refs.begin(), refs.end());
    reduction.bytes += Bytes(bytes[static_cast<std::size_t>(set)]);
  }
  std::vector<Reduction> reductions;
  for (auto& [owners, reduction] : by_owners) {
    reduction.devices = owners;
    distinct(reduction.stages);
    reductions.push_back(std::move(reduction));
  }
  return reductions;
}

}  // namespace millrace::plan
