// Hand-made IDX and CIFAR-10 files, byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include <zlib.h>

namespace millrace::dataset {

using Bytes = std::vector<std::uint8_t>;

inline void write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_gzipped(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile out = ::gzopen(path.c_str(), "wb");
  ::gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(out);
}

/// Header 00 00 08 AXES, big-endian extents below 256, then `values`.
inline Bytes idx_bytes(const std::vector<std::uint8_t>& shape, const Bytes& values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint8_t extent : shape) bytes.insert(bytes.end(), {0, 0, 0, extent});
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

/// One record: the label, then pixels label + 0, label + 1, ... modulo 256.
inline Bytes cifar10_record(std::uint8_t label) {
  Bytes record{label};
  for (int i = 0; i < 3072; ++i) record.push_back(static_cast<std::uint8_t>(label + i));
  return record;
}

/// A small set of IDX files in `folder`: 4 training images of 1 x 2 pixels, labels 0 1 1 2, and 2 test images.
inline void write_small_idx(const std::filesystem::path& folder) {
  write_bytes(folder / "train-images-idx3-ubyte", idx_bytes({4, 1, 2}, {0, 255, 10, 20, 30, 40, 50, 60}));
  write_bytes(folder / "train-labels-idx1-ubyte", idx_bytes({4}, {0, 1, 1, 2}));
  write_gzipped(folder / "t10k-images-idx3-ubyte.gz", idx_bytes({2, 1, 2}, {1, 2, 3, 4}));
  write_gzipped(folder / "t10k-labels-idx1-ubyte.gz", idx_bytes({2}, {2, 0}));
}

}  // namespace millrace::dataset
