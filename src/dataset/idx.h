// The IDX format of MNIST and Fashion-MNIST: big-endian magic 00 00 08 AXES, extents, bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "dataset/images.h"

namespace millrace::dataset {

struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// True if the file, plain or gzipped, starts like an IDX file.
bool is_idx(const std::filesystem::path& path);

/// The number of axes, from the start of the file alone. \throws InvalidInput as read_idx() does.
int idx_axes(const std::filesystem::path& path);

/// \throws InvalidInput naming the file: missing, wrong magic, other elements than bytes, truncated, trailing bytes.
IdxArray read_idx(const std::filesystem::path& path);

/// Images [N, H, W] or [N, C, H, W] with labels [N]. \throws InvalidInput too where shapes or counts do not match.
Images read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace millrace::dataset
