// Labelled images in memory, on their way from a foreign format to a data file.
#include "dataset/images.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::dataset {

ChannelStatistics channel_statistics(const Images& images) {
  ChannelStatistics statistics;
  const std::int64_t plane = images.height * images.width;
  for (std::int64_t channel = 0; channel < images.channels; ++channel) {
    // Sums of whole numbers, so that the result depends on no order.
    std::array<std::uint64_t, 256> times{};
    for (std::int64_t image = 0; image < images.count(); ++image) {
      const std::uint8_t* pixel = images.pixels.data() + image * images.image_size() + channel * plane;
      for (std::int64_t i = 0; i < plane; ++i) ++times[pixel[i]];
    }
    std::uint64_t sum = 0, squares = 0;
    for (std::uint64_t value = 0; value < times.size(); ++value) {
      sum += value * times[value];
      squares += value * value * times[value];
    }
    const double count = static_cast<double>(images.count() * plane);
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    statistics.mean.push_back(mean / 255.0);
    // One value everywhere: 1 leaves it at 0 after the mean is taken off, where 0 would divide by it.
    statistics.deviation.push_back(variance > 0.0 ? std::sqrt(variance) / 255.0 : 1.0);
  }
  return statistics;
}

Images balanced(const Images& images, std::int64_t limit, std::int64_t classes) {
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(classes), limit / classes);
  for (std::int64_t c = 0; c < limit % classes; ++c) ++wanted[static_cast<std::size_t>(c)];
  Images kept{images.channels, images.height, images.width, {}, {}, images.origin};
  for (std::int64_t image = 0; image < images.count(); ++image) {
    const std::int64_t label = images.labels[static_cast<std::size_t>(image)];
    if (wanted[static_cast<std::size_t>(label)]-- <= 0) continue;
    const auto first = images.pixels.begin() + image * images.image_size();
    kept.pixels.insert(kept.pixels.end(), first, first + images.image_size());
    kept.labels.push_back(label);
  }
  for (std::size_t c = 0; c < wanted.size(); ++c) {
    if (wanted[c] > 0) {
      throw InvalidInput(fmt::format("{}: class {} has {} images fewer than a balanced choice of {} needs",
                                     images.origin, c, wanted[c], limit));
    }
  }
  return kept;
}

void require_labels(const Images& images, std::int64_t classes) {
  for (std::size_t image = 0; image < images.labels.size(); ++image) {
    const std::int64_t label = images.labels[image];
    if (label >= 0 && label < classes) continue;
    throw InvalidInput(fmt::format("{}: label {} of image {} is outside 0 .. {} ({} classes)", images.origin, label,
                                   image, classes - 1, classes));
  }
}

}  // namespace millrace::dataset
