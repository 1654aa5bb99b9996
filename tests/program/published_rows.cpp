// Reads the table; sizes of the models are told by the number of stages and the forward time.
#include "tests/program/published_rows.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace millrace::test {

std::vector<PublishedRow> published_rows() {
  std::ifstream file(MILLRACE_SOURCE_DIR "/data/pipeline_makespans.csv");
  std::string line;
  std::getline(file, line);
  std::vector<PublishedRow> all;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    PublishedRow& row = all.emplace_back();
    words >> row.p >> row.m >> row.forward >> row.backward_input >> row.backward_weight >> row.hop >> row.one_f_one_b >>
        row.interleaved >> row.h1 >> row.h2 >> row.zb1p >> row.zb2p;
    row.chunks = row.p == 32 ? 2 : 3;
    std::int64_t hidden = 2304, heads = 24;
    if (row.forward > 29000) hidden = 4096, heads = 32, row.chunks = 4;
    if (row.p == 16) hidden = 5120, heads = 40;
    if (row.p == 32) hidden = 6144, heads = 48;
    row.activations = 34 * hidden + 5 * heads * 1024;
    row.kept_for_weights = 32 * hidden;
  }
  return all;
}

StageCosts published_costs(const PublishedRow& row, int stages, int limit) {
  const auto count = static_cast<std::size_t>(stages);
  StageCosts costs;
  costs.forward.assign(count, Seconds(static_cast<double>(row.forward)));
  costs.backward.assign(count, Seconds(static_cast<double>(row.backward_input + row.backward_weight)));
  costs.backward_weight.assign(count, Seconds(static_cast<double>(row.backward_weight)));
  costs.hop.assign(count, Seconds(static_cast<double>(row.hop)));
  costs.activations.assign(count, Bytes(row.activations));
  costs.kept_for_weights.assign(count, Bytes(row.kept_for_weights));
  if (limit > 0) costs.limit.assign(static_cast<std::size_t>(row.p), Bytes(limit * row.activations));
  return costs;
}

}  // namespace millrace::test
