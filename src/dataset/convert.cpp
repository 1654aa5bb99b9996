// Foreign data files in, one HDF5 data file out: `millrace data IN... -o D.h5` (INTERFACES 1, 9).
#include "dataset/convert.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/errors.h"
#include "dataset/cifar10.h"
#include "dataset/data_writer.h"
#include "dataset/foreign_files.h"
#include "dataset/idx.h"
#include "dataset/known_sets.h"
#include "dataset/text_corpus.h"

namespace millrace::dataset {
namespace {

storage::Existing existing(const ConvertOptions& options) {
  return options.overwrite ? storage::Existing::replace : storage::Existing::refuse;
}

/// What the user says, else what is known, else what can be told from the files.
DataDescription describe(const ConvertOptions& options, const KnownSet& known, DataKind kind,
                         const std::filesystem::path& input, const std::filesystem::path& output) {
  const auto first_of = [](const std::string& a, const std::string& b, const std::string& c) {
    return !a.empty() ? a : !b.empty() ? b : c;
  };
  DataDescription description;
  description.kind = kind;
  description.name = first_of(options.name, known.name, output.stem().string());
  description.licence = first_of(options.licence, known.licence, "unknown");
  description.source = first_of(options.source, known.source, input.string());
  description.classes = options.classes.empty() ? known.classes : options.classes;
  return description;
}

Converted convert_images(Images train, Images test, DataDescription description, const std::filesystem::path& output,
                         const ConvertOptions& options) {
  if (description.classes.empty()) {
    const std::int64_t highest = *std::max_element(train.labels.begin(), train.labels.end());
    for (std::int64_t c = 0; c <= highest; ++c) description.classes.push_back(std::to_string(c));
  }
  if (train.channels != test.channels || train.height != test.height || train.width != test.width) {
    throw InvalidInput(fmt::format("training images are {} x {} x {}, test images {} x {} x {}", train.channels,
                                   train.height, train.width, test.channels, test.height, test.width));
  }
  const auto classes = static_cast<std::int64_t>(description.classes.size());
  require_labels(train, classes);
  require_labels(test, classes);
  if (options.train_limit) train = balanced(train, *options.train_limit, classes);
  if (options.test_limit) test = balanced(test, *options.test_limit, classes);
  const ChannelStatistics statistics = channel_statistics(train);
  description.mean = statistics.mean;
  description.deviation = statistics.deviation;
  write_images(output, existing(options), description, train, test);
  return {std::move(description), train.count(), test.count()};
}

void require_limits(const ConvertOptions& options, ForeignFormat format) {
  for (const auto& limit : {options.train_limit, options.test_limit}) {
    if (!limit) continue;
    if (format == ForeignFormat::text) throw InvalidInput("a limit is for images; text is taken whole");
    if (*limit < 1) throw InvalidInput(fmt::format("a limit of {} images; at least 1 is needed", *limit));
  }
}

}  // namespace

const std::vector<std::string>& foreign_format_names() {
  static const std::vector<std::string> names{"idx", "cifar10", "text"};
  return names;
}

Converted convert(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
                  const ConvertOptions& options) {
  storage::check_target(output, existing(options));  // before hours of reading
  const std::vector<std::filesystem::path> files = files_of(inputs);
  const ForeignFormat format = options.format.value_or(format_of(files));
  require_limits(options, format);
  const std::filesystem::path& input = inputs.front();
  switch (format) {
    case ForeignFormat::idx: {
      const IdxFiles idx = idx_files(files);
      Images train = read_idx_images(idx.train_images, idx.train_labels);
      Images test = read_idx_images(idx.test_images, idx.test_labels);
      const KnownSet known = known_by_labels(train.labels).value_or(KnownSet{});
      return convert_images(std::move(train), std::move(test),
                            describe(options, known, DataKind::images, input, output), output, options);
    }
    case ForeignFormat::cifar10: {
      const Cifar10Files cifar = cifar10_files(files);
      return convert_images(read_cifar10(cifar.train), read_cifar10(cifar.test),
                            describe(options, cifar10(), DataKind::images, input, output), output, options);
    }
    case ForeignFormat::text:
      break;
  }
  const TextCorpus corpus = read_text(files);
  DataDescription description = describe(options, KnownSet{}, DataKind::text, input, output);
  description.classes = corpus.vocabulary;
  write_text(output, existing(options), description, corpus.train, corpus.test);
  return {std::move(description), static_cast<std::int64_t>(corpus.train.size()),
          static_cast<std::int64_t>(corpus.test.size())};
}

}  // namespace millrace::dataset
