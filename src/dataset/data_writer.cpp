// Writes data files (INTERFACES 9, Data files).
#include "dataset/data_writer.h"

#include <functional>
#include <span>

#include "storage/file.h"

namespace millrace::dataset {
namespace {

using storage::File;
using storage::Group;
using storage::NumberType;

void write(const std::filesystem::path& target, storage::Existing existing, const DataDescription& description,
           const std::function<void(File&)>& fill) {
  storage::write_aside(target, existing, [&](const std::filesystem::path& aside) {
    File file = File::make(aside);
    file.set("millrace_data", kDataFormat);
    file.set("name", description.name);
    file.set("kind", name_of(description.kind));
    file.set("classes", description.classes);
    file.set("mean", description.mean);
    file.set("std", description.deviation);
    file.set("licence", description.licence);
    file.set("source", description.source);
    fill(file);
    file.close();
  });
}

void write_split(File& file, Split split, const Images& images) {
  Group group = file.make_group(name_of(split));
  const std::vector<std::int64_t> shape{images.count(), images.channels, images.height, images.width};
  group.make_dataset("inputs", NumberType::uint8, shape, {"1", "pixels 0..255: sample, channel, row, column"})
      .write(std::span(images.pixels));
  group
      .make_dataset("labels", NumberType::int64, std::span(shape).first(1),
                    {"1", "class number, an index of 'classes'"})
      .write(std::span(images.labels));
}

}  // namespace

void write_images(const std::filesystem::path& target, storage::Existing existing, const DataDescription& description,
                  const Images& train, const Images& test) {
  write(target, existing, description, [&](File& file) {
    write_split(file, Split::train, train);
    write_split(file, Split::test, test);
  });
}

void write_text(const std::filesystem::path& target, storage::Existing existing, const DataDescription& description,
                const std::vector<std::int32_t>& train, const std::vector<std::int32_t>& test) {
  write(target, existing, description, [&](File& file) {
    for (const Split split : {Split::train, Split::test}) {
      const std::vector<std::int32_t>& tokens = split == Split::train ? train : test;
      const std::vector<std::int64_t> shape{static_cast<std::int64_t>(tokens.size())};
      file.make_group(name_of(split))
          .make_dataset("tokens", NumberType::int32, shape, {"1", "token numbers, indices of 'classes'"})
          .write(std::span(tokens));
    }
  });
}

}  // namespace millrace::dataset
