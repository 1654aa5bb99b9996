// The operators of a stage as a value that copies share: a plan of a thousand equal pipelines holds one list a stage.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "graph/tensor.h"

namespace millrace {

/// An immutable list of operators; assigning or appending makes a new one. Reads like a const std::vector<OpId>.
class OpList {
 public:
  using value_type = OpId;
  using size_type = std::size_t;
  using const_iterator = std::vector<OpId>::const_iterator;
  using iterator = const_iterator;
  using const_reference = const OpId&;
  using reference = const_reference;
  using difference_type = std::ptrdiff_t;

  OpList() = default;
  OpList(std::vector<OpId> ops)  // NOLINT(google-explicit-constructor): stands where a vector is expected
      : ops_(ops.empty() ? nullptr : std::make_shared<const std::vector<OpId>>(std::move(ops))) {}
  OpList(std::initializer_list<OpId> ops) : OpList(std::vector<OpId>(ops)) {}

  /// begin, begin + 1, …, end − 1.
  static OpList range(OpId begin, OpId end) {
    std::vector<OpId> ops;
    for (OpId op = begin; op < end; ++op) ops.push_back(op);
    return ops;
  }

  const std::vector<OpId>& vector() const {
    static const std::vector<OpId> kEmpty;
    return ops_ ? *ops_ : kEmpty;
  }
  operator const std::vector<OpId>&() const { return vector(); }  // NOLINT(google-explicit-constructor)

  const_iterator begin() const { return vector().begin(); }
  const_iterator end() const { return vector().end(); }
  const OpId* data() const { return vector().data(); }
  std::size_t size() const { return vector().size(); }
  bool empty() const { return ops_ == nullptr; }
  OpId front() const { return vector().front(); }
  OpId back() const { return vector().back(); }
  OpId operator[](std::size_t i) const { return vector()[i]; }

  /// Copies the list: of use where a few are put together by hand.
  void push_back(OpId op) {
    std::vector<OpId> longer = vector();
    longer.push_back(op);
    *this = OpList(std::move(longer));
  }

  friend bool operator==(const OpList& a, const OpList& b) { return a.ops_ == b.ops_ || a.vector() == b.vector(); }

 private:
  std::shared_ptr<const std::vector<OpId>> ops_;  // null: empty
};

}  // namespace millrace
