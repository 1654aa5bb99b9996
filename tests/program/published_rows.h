// The rows of data/pipeline_makespans.csv: times of equal stages and the makespans that their authors' evaluator gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/compute_order.h"
#include "program/stage_dag.h"

namespace millrace::test {

/// Everything in µs.
struct PublishedRow {
  int p = 0;  ///< devices
  int m = 0;  ///< micro-batches
  std::int64_t forward = 0, backward_input = 0, backward_weight = 0, hop = 0;
  std::int64_t one_f_one_b = 0, interleaved = 0, h1 = 0, h2 = 0, zb1p = 0, zb2p = 0;
  int chunks = 1;  ///< virtual stages of a device behind `interleaved`
  /// Activations of a layer, in bytes a token (Qi et al. 2024): 34h + 5as after its forward, 32h of them until the
  /// weight gradient; of the model of the row, with 1,024 tokens.
  std::int64_t activations = 0, kept_for_weights = 0;
};

std::vector<PublishedRow> published_rows();

/// What a schedule is told of `stages` stages of a row on `devices` devices; `limit` in micro-batches on each, 0: none.
StageCosts published_costs(const PublishedRow& row, int stages, int limit);

}  // namespace millrace::test
