// Owner of a file descriptor with whole reads and writes.
#pragma once

#include <string>
#include <string_view>

namespace millrace::storage {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }

  /// Both work from the start of the file and name `path` in the SystemError they throw.
  std::string read_all(const std::string& path) const;
  void write_all(std::string_view text, const std::string& path) const;
  /// Waits until the content is on the disk; a file system that knows no such thing is left alone.
  void sync(const std::string& path) const;

 private:
  int number_;
};

}  // namespace millrace::storage
