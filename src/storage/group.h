// Groups: make and open what lies in them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/column.h"
#include "storage/dataset.h"
#include "storage/object.h"
#include "storage/table.h"

namespace millrace::storage {

/// Unit ("s", "bytes", "1") and meaning: every dataset carries both as attributes (INTERFACES 6).
struct Meaning {
  std::string unit;
  std::string description;
};

/// A group of an open file. Names are relative paths. Making what exists throws SystemError; opening what is
/// missing or of another kind throws InvalidInput; both name file and path.
class Group : public Object {
 public:
  Group() = default;
  Group(Handle handle, std::string file, std::string path);

  bool contains(const std::string& name) const;
  std::vector<std::string> names() const;  ///< of the direct children, sorted

  /// Takes the name away from what it names. \pre it is there.
  void remove(const std::string& name);

  Group make_group(const std::string& name);
  Group group(const std::string& name) const;

  /// Chunked by rows of axis 0 so that a chunk holds about 1 MiB; not compressed. `shape` must have no empty axis.
  Dataset make_dataset(const std::string& name, NumberType type, std::span<const std::int64_t> shape,
                       const Meaning& meaning);
  Dataset dataset(const std::string& name) const;

  /// A scalar UTF-8 string.
  void make_text(const std::string& name, std::string_view utf8, const Meaning& meaning);
  std::string text_dataset(const std::string& name) const;

  /// A table of `capacity` rows, all of its room taken on the disk at once (see Table).
  Table make_table(const std::string& name, const std::vector<Column>& columns, std::uint64_t capacity,
                   const std::string& description);
  Table table(const std::string& name) const;

 private:
  std::string path_of(const std::string& name) const;
  std::string place(const std::string& name) const;
  Handle open_dataset(const std::string& name, std::int64_t access) const;

  std::string file_;
  std::string path_;
};

}  // namespace millrace::storage
