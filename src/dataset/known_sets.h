// What is known of published data sets: names of their classes, licence, source.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace::dataset {

struct KnownSet {
  std::string name;
  std::vector<std::string> classes;
  std::string licence;
  std::string source;
};

KnownSet cifar10();

/// The published set whose training labels these are, all of them in their order.
std::optional<KnownSet> known_by_labels(std::span<const std::int64_t> training_labels);

}  // namespace millrace::dataset
