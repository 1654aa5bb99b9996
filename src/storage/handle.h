// Owner of one HDF5 identifier, so that no HDF5 type appears in a public header.
#pragma once

#include <cstdint>
#include <utility>

namespace millrace::storage {

/// Closes what it owns (file, group, dataset, type, ...) when it goes; closing is quiet: File::close() reports.
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::int64_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, kNone)) {}
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { reset(); }

  std::int64_t id() const { return id_; }
  bool valid() const { return id_ >= 0; }
  void reset() noexcept;
  /// Gives the identifier up without closing it.
  std::int64_t release() { return std::exchange(id_, kNone); }

 private:
  static constexpr std::int64_t kNone = -1;
  std::int64_t id_ = kNone;
};

}  // namespace millrace::storage
