// Samples of a data file that `millrace data` made, or anything else in its format (INTERFACES 9, Data files).
#include "dataset/hdf5_source.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::dataset {
namespace {

using storage::Dataset;
using storage::NumberType;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw InvalidInput(fmt::format("{}: {}", where, what));
}

void require_shape(const Dataset& data, NumberType type, std::size_t axes, std::string_view expected) {
  if (data.type() != type || data.shape().size() != axes) {
    refuse(data.where(), fmt::format("must be {}, found {} {}", expected, name_of(data.type()), data.shape()));
  }
  for (const std::int64_t extent : data.shape()) {
    if (extent < 1) refuse(data.where(), fmt::format("is empty: shape {}", data.shape()));
  }
}

/// Every class number is in [0, classes); read in pieces, since text can be long.
void require_range(const Dataset& numbers, std::int64_t classes, std::string_view what) {
  constexpr std::int64_t kPiece = 1 << 18;
  std::vector<std::int64_t> piece;
  for (std::int64_t first = 0; first < numbers.rows(); first += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, numbers.rows() - first)));
    numbers.read_rows(first, static_cast<std::int64_t>(piece.size()), std::span(piece));
    const auto is_outside = [=](std::int64_t number) { return number < 0 || number >= classes; };
    const auto outside = std::find_if(piece.begin(), piece.end(), is_outside);
    if (outside == piece.end()) continue;
    const std::int64_t at = first + (outside - piece.begin());
    refuse(numbers.where(), fmt::format("{} {} of sample {} is outside 0 .. {} (the file names {} classes)", what,
                                        *outside, at, classes - 1, classes));
  }
}

DataDescription describe(const storage::File& file) {
  if (!file.has("millrace_data")) {
    refuse(file.where(), "not a data file of millrace: attribute 'millrace_data' is missing");
  }
  const std::int64_t format = file.integer("millrace_data");
  if (format != kDataFormat) {
    refuse(file.where(), fmt::format("format {} of data files is not known, only {}", format, kDataFormat));
  }
  DataDescription description;
  static const std::vector<std::string> kinds{"images", "features", "text"};
  const std::string kind = file.text("kind");
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end()) refuse(file.where(), unknown_name("kind", kind, kinds));
  description.kind = static_cast<DataKind>(found - kinds.begin());
  description.name = file.text("name");
  description.classes = file.texts("classes");
  if (description.classes.empty()) refuse(file.where(), "attribute 'classes' is empty");
  if (file.has("licence")) description.licence = file.text("licence");
  if (file.has("source")) description.source = file.text("source");
  return description;
}

void read_statistics(const storage::File& file, std::int64_t channels, DataDescription& description) {
  description.mean = file.reals("mean");
  description.deviation = file.reals("std");
  const auto expected = static_cast<std::size_t>(channels);
  if (description.mean.size() != expected || description.deviation.size() != expected) {
    refuse(file.where(),
           fmt::format("attributes 'mean' and 'std' must have one value for each of {} channels", channels));
  }
  for (const double deviation : description.deviation) {
    if (!(deviation > 0.0)) refuse(file.where(), fmt::format("attribute 'std' must be above 0, found {}", deviation));
  }
}

}  // namespace

struct Hdf5Source::Opened {
  storage::File file;
  DataDescription description;
  SampleFormat format;
  std::vector<Part> parts;
};

Hdf5Source::Hdf5Source(const std::filesystem::path& path, std::optional<std::int64_t> sequence)
    : Hdf5Source(open(path, sequence)) {}

Hdf5Source::Hdf5Source(Opened opened)
    : Source(std::move(opened.format)),
      file_(std::move(opened.file)),
      description_(std::move(opened.description)),
      parts_(std::move(opened.parts)) {}

Hdf5Source::Part Hdf5Source::open_text(const storage::Group& group, std::int64_t sequence, std::int64_t classes) {
  Part part{group.dataset("tokens"), {}, 0};
  require_shape(part.inputs, NumberType::int32, 1, "int32 [tokens]");
  require_range(part.inputs, classes, "token");
  part.samples = (part.inputs.rows() - 1) / sequence;
  if (part.samples < 1) {
    refuse(part.inputs.where(),
           fmt::format("{} tokens are too few for one sample of {} and its labels", part.inputs.rows(), sequence));
  }
  return part;
}

Hdf5Source::Part Hdf5Source::open_labelled(const storage::Group& group, DataKind kind, std::int64_t classes) {
  Part part{group.dataset("inputs"), {}, 0};
  if (kind == DataKind::images) {
    require_shape(part.inputs, NumberType::uint8, 4, "uint8 [samples, channels, height, width]");
  } else {
    require_shape(part.inputs, NumberType::float32, 2, "float32 [samples, features]");
  }
  const Dataset labels = group.dataset("labels");
  require_shape(labels, NumberType::int64, 1, "int64 [samples]");
  part.samples = part.inputs.rows();
  if (labels.rows() != part.samples) {
    refuse(group.where(), fmt::format("{} inputs but {} labels", part.samples, labels.rows()));
  }
  require_range(labels, classes, "label");
  part.labels.resize(static_cast<std::size_t>(part.samples));
  labels.read(std::span(part.labels));
  return part;
}

Hdf5Source::Opened Hdf5Source::open(const std::filesystem::path& path, std::optional<std::int64_t> sequence) {
  storage::File file = storage::File::open(path);
  DataDescription description = describe(file);
  SampleFormat format;
  format.classes = static_cast<std::int64_t>(description.classes.size());
  const bool text = description.kind == DataKind::text;
  if (text != sequence.has_value()) {
    refuse(file.where(), text ? "holds text: the model must say how many tokens a sample has"
                              : fmt::format("holds {}, the model reads text", name_of(description.kind)));
  }
  if (text && *sequence < 1) refuse(file.where(), "a text sample needs at least one token");

  std::vector<Part> parts;
  for (const Split split : {Split::train, Split::test}) {
    const storage::Group group = file.group(name_of(split));
    std::vector<std::int64_t> shape;
    if (text) {
      parts.push_back(open_text(group, *sequence, format.classes));
      shape = {*sequence};
    } else {
      parts.push_back(open_labelled(group, description.kind, format.classes));
      const std::vector<std::int64_t>& whole = parts.back().inputs.shape();
      shape.assign(whole.begin() + 1, whole.end());
    }
    if (split == Split::test && shape != format.shape) {
      refuse(file.where(), fmt::format("samples of /train have shape {}, of /test {}", format.shape, shape));
    }
    format.shape = shape;
  }
  if (description.kind == DataKind::images) read_statistics(file, format.shape.front(), description);
  if (text) {
    format.kind = InputKind::index;
    format.labels_per_sample = *sequence;
  }
  return {std::move(file), std::move(description), std::move(format), std::move(parts)};
}

void Hdf5Source::require_ids(Split split, std::span<const std::int64_t> ids) const {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= samples(split)) {
      refuse(file_.where(),
             fmt::format("sample {} of /{} does not exist, there are {}", id, name_of(split), samples(split)));
    }
  }
}

void Hdf5Source::read_inputs(Split split, std::span<const std::int64_t> ids, float* destination) const {
  if (format().kind != InputKind::real) return Source::read_inputs(split, ids, destination);
  require_ids(split, ids);
  const Part& from = part(split);
  if (description_.kind == DataKind::images) return read_images(from, ids, destination);
  from.inputs.read_row_list(ids, std::span(destination, ids.size() * static_cast<std::size_t>(format().input_size())));
}

void Hdf5Source::read_images(const Part& from, std::span<const std::int64_t> ids, float* destination) const {
  const std::size_t channels = description_.mean.size();
  const std::size_t plane = static_cast<std::size_t>(format().input_size()) / channels;
  const std::scoped_lock lock(mutex_);
  pixels_.resize(ids.size() * channels * plane);
  from.inputs.read_row_list(ids, std::span(pixels_));
  std::array<float, 256> fed;  // a pixel has only 256 values
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double mean = description_.mean[channel], deviation = description_.deviation[channel];
    for (std::size_t x = 0; x < fed.size(); ++x) {
      fed[x] = static_cast<float>((static_cast<double>(x) / 255.0 - mean) / deviation);
    }
    for (std::size_t sample = 0; sample < ids.size(); ++sample) {
      const std::size_t first = (sample * channels + channel) * plane;
      for (std::size_t i = first; i < first + plane; ++i) destination[i] = fed[pixels_[i]];
    }
  }
}

void Hdf5Source::read_inputs(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const {
  if (format().kind != InputKind::index) return Source::read_inputs(split, ids, destination);
  read_tokens(split, ids, 0, destination);
}

void Hdf5Source::read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const {
  if (description_.kind == DataKind::text) return read_tokens(split, ids, 1, destination);
  require_ids(split, ids);
  const std::vector<std::int32_t>& labels = part(split).labels;
  for (const std::int64_t id : ids) *destination++ = labels[static_cast<std::size_t>(id)];
}

void Hdf5Source::read_tokens(Split split, std::span<const std::int64_t> ids, std::int64_t shift,
                             std::int32_t* destination) const {
  require_ids(split, ids);
  const std::int64_t window = format().shape.front();
  for (const std::int64_t id : ids) {
    part(split).inputs.read_rows(id * window + shift, window, std::span(destination, static_cast<std::size_t>(window)));
    destination += window;
  }
}

}  // namespace millrace::dataset
