// Block by block, each of which fits in the first cache; rows are written in the order they lie in.
#include "kernels/onednn/gradient_reorder.h"

#include <algorithm>
#include <utility>

#include "kernels/onednn/parallel.h"
#include "kernels/onednn/vector_clones.h"

namespace millrace::kernels::onednn {
namespace {

// move(element of the rows, element of the block). Constants make the loops short ones; kPlaces 0: as `places` says.
template <int kBlock, int kPlaces, class Move>
MILLRACE_INLINE void each_weight(std::int64_t places, std::int64_t row, const Move& move) {
  const std::int64_t count = kPlaces > 0 ? kPlaces : places;
  for (std::int64_t o = 0; o < kBlock; ++o) {
    for (std::int64_t i = 0; i < kBlock; ++i) {
      for (std::int64_t s = 0; s < count; ++s) move(o * row + i * count + s, (s * kBlock + i) * kBlock + o);
    }
  }
}

template <int kBlock, class Move>
MILLRACE_INLINE void each_weight_sized(std::int64_t places, std::int64_t row, const Move& move) {
  if (places == 1) {
    each_weight<kBlock, 1>(places, row, move);
  } else if (places == 9) {
    each_weight<kBlock, 9>(places, row, move);
  } else {
    each_weight<kBlock, 0>(places, row, move);
  }
}

// \param row  elements from one output to the next
MILLRACE_VECTOR_CLONES void write_block(const BlockedWeights& w, const float* block, float* rows, std::int64_t row) {
  const auto move = [=](std::int64_t to, std::int64_t from) { rows[to] = block[from]; };
  if (w.block == 16) {
    each_weight_sized<16>(w.places, row, move);
  } else {
    each_weight_sized<8>(w.places, row, move);
  }
}
MILLRACE_VECTOR_CLONES void add_block(const BlockedWeights& w, const float* block, float* rows, std::int64_t row) {
  const auto move = [=](std::int64_t to, std::int64_t from) { rows[to] += block[from]; };
  if (w.block == 16) {
    each_weight_sized<16>(w.places, row, move);
  } else {
    each_weight_sized<8>(w.places, row, move);
  }
}

/// f(w, block, its first row, row); threads share the outputs.
template <class F>
void each_block(int threads, const BlockedWeights& w, const void* from, void* to, F f) {
  const std::int64_t row = w.inputs * w.places;
  parallel_tasks(threads, w.outputs / w.block, w.outputs * row, [&](std::int64_t output, int) {
    const float* block = static_cast<const float*>(from) + output * w.block * row;
    float* rows = static_cast<float*>(to) + output * w.block * row;
    for (std::int64_t input = 0; input < w.inputs / w.block; ++input) {
      f(w, block, rows, row);
      block += w.block * w.block * w.places;
      rows += w.block * w.places;
    }
  });
}

void run_primitive(Primitive& primitive, const void* from, void* to, void* scratch) {
  primitive.bind(0, from);
  primitive.bind(1, to);
  primitive.bind(2, scratch);
  primitive.execute();
}

}  // namespace

std::optional<BlockedWeights> blocked_weights(const MemoryDesc& desc) {
  const memory::dims dims = desc.dims();
  if (dims.size() != 4) return std::nullopt;
  for (const auto& [block, tag] : {std::pair{16, memory::format_tag::OIhw16i16o}, {8, memory::format_tag::OIhw8i8o}}) {
    if (dims[0] % block != 0 || dims[1] % block != 0) continue;
    if (desc == MemoryDesc(dims, memory::data_type::f32, tag)) {
      return BlockedWeights{block, dims[0], dims[1], dims[2] * dims[3]};
    }
  }
  return std::nullopt;
}

GradientReorder::GradientReorder(const Engine& engine, int threads, const MemoryDesc& from)
    : threads_(threads), blocks_(blocked_weights(from)) {
  if (blocks_) return;
  const MemoryDesc rows = plain_desc(from.dims());
  Reorder writing = make_reorder(engine, from, rows);
  Reorder adding = make_reorder(engine, from, rows, true);
  scratch_ = std::max(writing.scratch, adding.scratch);
  writing_ = std::move(writing.primitive);
  adding_ = std::move(adding.primitive);
}

void GradientReorder::write(const void* from, void* rows, void* scratch) {
  if (blocks_) {
    each_block(threads_, *blocks_, from, rows, write_block);
  } else {
    run_primitive(writing_, from, rows, scratch);
  }
}

void GradientReorder::add(const void* from, void* rows, void* scratch) {
  if (blocks_) {
    each_block(threads_, *blocks_, from, rows, add_block);
  } else {
    run_primitive(adding_, from, rows, scratch);
  }
}

}  // namespace millrace::kernels::onednn
