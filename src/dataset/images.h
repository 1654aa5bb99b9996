// Labelled images in memory, on their way from a foreign format to a data file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::dataset {

/// Images of one split: pixels [count, channels, height, width], one label each.
struct Images {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  std::string origin;  ///< the file of the labels, for error messages

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_size() const { return channels * height * width; }
};

/// Mean and standard deviation (of the whole population) of each channel, pixels in 0..1.
struct ChannelStatistics {
  std::vector<double> mean;
  std::vector<double> deviation;
};
ChannelStatistics channel_statistics(const Images& images);

/// The first images of every class, `limit` altogether, as equal in number as that allows (the lower classes take the
/// remainder), in their old order.
/// \throws InvalidInput naming the file when a class has too few images.
Images balanced(const Images& images, std::int64_t limit, std::int64_t classes);

/// \throws InvalidInput naming the file and the first image whose label is not in [0, classes).
void require_labels(const Images& images, std::int64_t classes);

}  // namespace millrace::dataset
