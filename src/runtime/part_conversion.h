// One conversion of a tensor between holdings on a rank: slice, all-gather, reduce-scatter, all-to-all, all-reduce.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/stage_parts.h"
#include "runtime/part_group.h"
#include "runtime/region.h"

namespace millrace::runtime {

/// The box of a tensor of `rows` rows that device `device` holds; terms and wholes are the whole.
Region held_region(const Dims& dims, std::int64_t rows, const Holding& holding, int device);

/// Buffers are made once; run() allocates nothing. Sums are taken in the order of the devices.
class PartConversion {
 public:
  /// \param dims  of the whole tensor, one sample. \param rows  0 for tensors without a batch axis
  PartConversion(Dims dims, std::int64_t rows, Holding from, Holding to, std::int64_t element_bytes, PartGroup& group);

  /// Both arrays are row-major and hold what this rank holds before and after.
  void run(const void* from, void* to);

  /// run() in two: what other ranks have to do goes on in between. `from` is used up.
  void begin(void* from);
  void end(const void* from, void* to);
  /// Whether begin() starts anything.
  bool communicates() const { return moves() || sums(); }

 private:
  using Buffers = std::vector<std::vector<std::byte>>;
  /// What goes from one device to another, as a box of what `holder` holds.
  Region part_between(int sender, int receiver, const Holding& holding, int holder) const;
  bool moves() const;  ///< whether messages are exchanged
  bool sums() const;   ///< whether all is summed over the group
  kernels::Precision precision() const;
  void exchange(const std::byte* from);
  void take_in(std::byte* to);
  void add_terms(std::byte* to);

  Dims dims_;
  std::int64_t rows_;
  Holding from_, to_;
  std::int64_t element_bytes_;
  std::int64_t taken_ = 0;  // elements that this rank holds afterwards
  PartGroup& group_;
  std::vector<Region> outgoing_, incoming_;  // by peer; own: from here to here
  Buffers sent_, received_;
  PartGroup::Tickets under_way_;
};

}  // namespace millrace::runtime
