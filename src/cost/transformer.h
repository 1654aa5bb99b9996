// What one GPT layer, the embedding and the head of a large model cost on a group of tensor-parallel devices.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "cost/saturation.h"

namespace millrace::cost {

/// Sizes of a GPT: `ffn` is the width of the hidden layer of the MLP. All layers are alike.
struct Transformer {
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t ffn = 4;
  std::int64_t sequence = 1;
  std::int64_t vocabulary = 51200;

  double layer_parameters() const;      ///< weights of its four products: 4h² + 2·h·ffn
  double embedding_parameters() const;  ///< tokens only: vocabulary · h, shared with the head
};

enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the scores of attention are computed again (Korthikanti et al. 2022, section 5)
  full        ///< every layer is computed again from its input
};

/// How the training software computes, as far as its times show it.
struct Software {
  bool fused_attention = false;        ///< scores stay on the chip, the causal half is skipped (Dao 2023)
  bool fused_softmax_by_four = false;  ///< its fused softmax takes multiples of four matrices, else five operators more
  bool persistent_norm = true;         ///< its layer norm reads each row once a pass (from 2022 on), else twice
  double hidden_gathers = 0;  ///< part of the collectives around products, input gradients' apart, that these hide
  double weight_gradient_bytes = 8;  ///< read and written per parameter and micro-batch to add to the gradients:
                                     ///< 8 where the product adds to fp32 sums itself
  double gradient_bytes = 4;         ///< per parameter in the reduction over replicas
  double optimizer_bytes = 30;       ///< read and written per parameter by one optimizer step
};

/// How a layer lies on devices.
struct Slice {
  std::int64_t micro_batch = 1;
  int tensor = 1;
  bool sequence_parallel = false;  ///< norms and dropouts split over the sequence
};

/// One pass of one micro-batch.
struct PassCost {
  Seconds compute{};
  int operators = 0;       ///< that the host dispatches
  double collectives = 0;  ///< all-reduces of one activation (2·b·s·h bytes); one half: reduce-scatter or all-gather
};

struct BlockCost {
  PassCost forward, backward_input, backward_weight, recompute;
};

/// A transformer layer: the operators of Megatron-LM, their products split by columns, then rows (Shoeybi et al. 2019).
BlockCost layer_cost(const Transformer& model, const Slice& slice, Recompute recompute, const Software& software,
                     const DeviceRates& rates);

/// The last norm, the product with the vocabulary and the cross-entropy in fp32.
BlockCost head_cost(const Transformer& model, const Slice& slice, const DeviceRates& rates);

/// Looking up tokens, and the sum of their gradients.
BlockCost embedding_cost(const Transformer& model, const Slice& slice, const DeviceRates& rates);

/// Bytes of one activation of a micro-batch, b·s·h in 16 bits, whole.
double activation_bytes(const Transformer& model, std::int64_t micro_batch);

/// Bytes that one layer keeps of a micro-batch on each device, by the closed form of Korthikanti et al. 2022 (table 2):
/// s·b·h · (10 + 24/t + 5·a·s/(h·t)), without the last term for `selective`, all over t where the sequence is split,
/// and 2 for `full`. With fused attention there are no scores to keep.
double layer_activation_bytes(const Transformer& model, const Slice& slice, Recompute recompute,
                              bool fused_attention = false);

}  // namespace millrace::cost
