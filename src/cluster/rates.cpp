// Refuses zero where something is divided by the rate.
#include "cluster/rates.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "cluster/cluster.h"
#include "config/quantity.h"

namespace millrace::cluster {
namespace {

template <class Rate>
void refuse_zero(const config::Field& field, Rate (*parse)(std::string_view)) {
  if (!field.is_scalar()) return;
  try {
    if (parse(field.node()->text).value() == 0) field.refuse("found 0, allowed: more than 0");
  } catch (const InvalidInput&) {
    return;  // the field has told it
  }
}

}  // namespace

BytesPerSecond read_bandwidth(const config::Field& field) {
  if (field.is_word("unlimited")) return kUnlimited;
  refuse_zero(field, config::parse_bandwidth);
  return field.bandwidth();
}

config::Node write_bandwidth(BytesPerSecond bandwidth) {
  if (bandwidth == kUnlimited) return config::Node::plain("unlimited");
  return config::Node::plain(fmt::format("{} B/s", bandwidth.value()));
}

FlopsPerSecond read_compute_rate(const config::Field& field) {
  refuse_zero(field, config::parse_compute_rate);
  return field.compute_rate();
}

}  // namespace millrace::cluster
