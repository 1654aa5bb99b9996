// The IDX format of MNIST and Fashion-MNIST: big-endian magic 00 00 08 AXES, extents, bytes.
#include "dataset/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"
#include "dataset/input_file.h"

namespace millrace::dataset {
namespace {

constexpr std::uint8_t kByteElements = 0x08;

/// Reads the magic number. \returns the number of axes
int read_axes(InputFile& file) {
  const std::filesystem::path& path = file.path();
  const std::vector<std::uint8_t> magic = file.read_exactly(4);
  if (magic[0] != 0 || magic[1] != 0) {
    throw InvalidInput(fmt::format("{}: not an IDX file: starts with {:02x}, not with 00 00", path.string(),
                                   fmt::join(magic, " ")));
  }
  if (magic[2] != kByteElements) {
    throw InvalidInput(
        fmt::format("{}: IDX elements of type {:02x}; only bytes (08) are read", path.string(), magic[2]));
  }
  if (magic[3] < 1 || magic[3] > 4) {
    throw InvalidInput(fmt::format("{}: IDX array of {} axes; 1 to 4 are read", path.string(), magic[3]));
  }
  return magic[3];
}

}  // namespace

bool is_idx(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> magic = InputFile(path).read(4);
  return magic.size() == 4 && magic[0] == 0 && magic[1] == 0 && magic[2] >= kByteElements && magic[2] <= 0x0E &&
         magic[3] >= 1 && magic[3] <= 4;
}

int idx_axes(const std::filesystem::path& path) {
  InputFile file(path);
  return read_axes(file);
}

IdxArray read_idx(const std::filesystem::path& path) {
  InputFile file(path);
  const int axes = read_axes(file);
  IdxArray array;
  std::int64_t size = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const std::vector<std::uint8_t> bytes = file.read_exactly(4);
    std::int64_t extent = 0;
    for (const std::uint8_t byte : bytes) extent = extent << 8 | byte;
    if (extent == 0) throw InvalidInput(fmt::format("{}: axis {} of the IDX file is empty", path.string(), axis));
    if (size > INT64_MAX / extent) throw InvalidInput(path.string() + ": the IDX header announces an impossible size");
    size *= extent;
    array.shape.push_back(extent);
  }
  array.values = file.read_exactly(size);
  file.require_end();
  return array;
}

Images read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray pixels = read_idx(images);
  const IdxArray classes = read_idx(labels);
  const std::vector<std::int64_t>& shape = pixels.shape;
  if (shape.size() != 3 && shape.size() != 4) {
    throw InvalidInput(fmt::format("{}: images must have 3 or 4 axes, found {}", images.string(), shape));
  }
  if (classes.shape.size() != 1) {
    throw InvalidInput(fmt::format("{}: labels must have 1 axis, found {}", labels.string(), classes.shape));
  }
  if (shape.front() != classes.shape.front()) {
    throw InvalidInput(fmt::format("{} images in {} but {} labels in {}", shape.front(), images.string(),
                                   classes.shape.front(), labels.string()));
  }
  Images read;  // one axis fewer: grey
  read.origin = labels.string();
  read.channels = shape.size() == 4 ? shape[1] : 1;
  read.height = shape[shape.size() - 2];
  read.width = shape.back();
  read.pixels = std::move(pixels.values);
  read.labels.assign(classes.values.begin(), classes.values.end());
  return read;
}

}  // namespace millrace::dataset
