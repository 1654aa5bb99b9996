// Samples of a data file that `millrace data` made, or anything else in its format (INTERFACES 9, Data files).
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>

#include "dataset/data_file.h"
#include "dataset/source.h"
#include "storage/file.h"

namespace millrace::dataset {

/// Opens the file read-only and reads rows as they are asked for. Images are fed as (x / 255 - mean) / std per channel,
/// features as they are; text sample i is tokens [i·T, i·T + T), its labels the same shifted by one.
class Hdf5Source : public Source {
 public:
  /// Checks the whole format: kinds, shapes, counts, the range of every label and token.
  /// \param sequence  T, the tokens of one text sample; must be given for text, and only for text.
  /// \throws InvalidInput naming file and dataset; SystemError where the library fails.
  explicit Hdf5Source(const std::filesystem::path& path, std::optional<std::int64_t> sequence = std::nullopt);

  std::int64_t samples(Split split) const override { return part(split).samples; }
  const DataDescription& description() const { return description_; }

  void read_inputs(Split split, std::span<const std::int64_t> ids, float* destination) const override;
  void read_inputs(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;
  void read_labels(Split split, std::span<const std::int64_t> ids, std::int32_t* destination) const override;

 private:
  /// One split: `inputs` holds the tokens of text, which has no `labels`. Labels are few bytes and stay in memory.
  struct Part {
    storage::Dataset inputs;
    std::vector<std::int32_t> labels;
    std::int64_t samples = 0;
  };
  struct Opened;

  explicit Hdf5Source(Opened opened);
  static Opened open(const std::filesystem::path& path, std::optional<std::int64_t> sequence);
  static Part open_text(const storage::Group& group, std::int64_t sequence, std::int64_t classes);
  static Part open_labelled(const storage::Group& group, DataKind kind, std::int64_t classes);
  const Part& part(Split split) const { return parts_[split == Split::train ? 0 : 1]; }
  void require_ids(Split split, std::span<const std::int64_t> ids) const;
  void read_images(const Part& part, std::span<const std::int64_t> ids, float* destination) const;
  void read_tokens(Split split, std::span<const std::int64_t> ids, std::int64_t shift, std::int32_t* destination) const;

  storage::File file_;
  DataDescription description_;
  std::vector<Part> parts_;
  mutable std::mutex mutex_;                 ///< of the scratch
  mutable std::vector<std::uint8_t> pixels_;
};

}  // namespace millrace::dataset
