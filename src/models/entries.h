// The rows of the registry, one source file for each kind of network, and the option records that they share.
#pragma once

#include <string>
#include <vector>

#include "models/registry.h"

namespace millrace::models {

std::vector<Entry> image_entries();
std::vector<Entry> branching_entries();
std::vector<Entry> sequence_entries();
std::vector<Entry> synthetic_entries();

/// An integer from `minimum`; the largest keeps every product of two sizes far inside 64 bits (GraphBuilder refuses
/// tensors that are too large).
config::Option positive(std::string name, std::string text, std::string standard, std::int64_t minimum = 1,
                        std::int64_t maximum = 1'000'000'000);

/// classes, image and channels. \param smallest  pixels that the network's strides leave one of.
config::Options image_options(std::string classes, std::string image, std::string channels, std::int64_t smallest = 1);

config::Option dropout_option(std::string where);

}  // namespace millrace::models
