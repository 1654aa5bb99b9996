// Which group of devices made each tensor that a later stage still reads, where links differ.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "partitioners/common/ideals/lattice.h"
#include "partitioners/common/ideals/links.h"

namespace millrace::partitioners::ideals {

/// Lists of groups by number; equal lists have equal numbers. 0: the empty list.
class Makers {
 public:
  /// Both must outlive it.
  Makers(const Graph& graph, const Lattice& lattice);

  /// The group that made a tensor which operators outside `ideal` read. \pre `list` is for that ideal.
  Group of(int ideal, std::int32_t list, TensorId tensor);

  /// The list after a stage from `inner` to `outer` on `group`; `reduced` maps groups to those that stand for them.
  template <class Reduce>
  std::int32_t after(int inner, std::int32_t list, int outer, Group group, const Reduce& reduced) {
    const std::vector<TensorId>& live = this->live(outer);
    std::vector<Group> groups;
    for (const TensorId tensor : live) {
      const OpId producer = graph_.tensor(tensor).producer;
      groups.push_back(reduced(lattice_.contains(inner, producer) ? of(inner, list, tensor) : group));
    }
    return number(std::move(groups));
  }

 private:
  const std::vector<TensorId>& live(int ideal);
  std::int32_t number(std::vector<Group> groups);

  const Graph& graph_;
  const Lattice& lattice_;
  std::unordered_map<int, std::vector<TensorId>> live_;  // by ideal, ascending
  std::vector<std::vector<Group>> lists_;                // aligned with the live tensors of their ideal
  std::map<std::vector<Group>, std::int32_t> numbers_;
};

}  // namespace millrace::partitioners::ideals
