// Embedding (a table's rows by token) and position embedding (a table added to every sample).
#include <algorithm>

#include "kernels/onednn/makers.h"
#include "kernels/onednn/parallel.h"
#include "kernels/onednn/row_loops.h"
#include "kernels/reference/index_check.h"

namespace millrace::kernels::onednn {
namespace {

constexpr std::int64_t kColumns = 64;  // of the table that one task of backward adds to

class Embedding : public OpKernel {
 public:
  explicit Embedding(const Site& site)
      : op_(site.op),
        threads_(site.threads),
        per_sample_(element_count(site.input_dims())),
        positions_(site.rows * per_sample_),
        vocabulary_(site.op.attributes.integer("vocabulary")),
        width_(site.op.attributes.integer("width")) {}

  void forward(const OpCall& call) override {
    const std::int32_t* tokens = indices(call);
    for (std::int64_t i = 0; i < positions_; ++i) {
      reference::checked_index(tokens[i], vocabulary_, op_, i / per_sample_);
    }
    parallel_tasks(threads_, positions_, positions_ * width_, [&](std::int64_t i, int) {
      std::copy_n(parameter(call, 0) + tokens[i] * width_, width_, output(call) + i * width_);
    });
  }

  void backward_input(const OpCall&) override {}  // tokens have no gradient

  // Threads share the columns, so that each row of the table gets its terms in the order of positions.
  void backward_weight(const OpCall& call) override {
    const std::int32_t* tokens = indices(call);
    parallel_chunks(threads_, width_, kColumns, positions_ * width_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < positions_; ++i) {
        row_add(parameter_gradient(call, 0) + tokens[i] * width_ + begin, output_gradient(call) + i * width_ + begin,
                end - begin);
      }
    });
  }

 private:
  const Operator& op_;
  int threads_;
  std::int64_t per_sample_, positions_, vocabulary_, width_;
};

class PositionEmbedding : public OpKernel {
 public:
  explicit PositionEmbedding(const Site& site)
      : threads_(site.threads), rows_(site.rows), elements_(element_count(site.input_dims())) {}

  void forward(const OpCall& call) override {
    each_piece([&](std::int64_t n, std::int64_t i, std::int64_t count) {
      const std::int64_t at = n * elements_ + i;
      row_sum_of(input(call) + at, parameter(call, 0) + i, output(call) + at, count);
    });
  }

  void backward_input(const OpCall& call) override {
    if (!input_gradient(call)) return;
    each_piece([&](std::int64_t n, std::int64_t i, std::int64_t count) {
      const std::int64_t at = n * elements_ + i;
      std::copy_n(output_gradient(call) + at, count, input_gradient(call) + at);
    });
  }

  void backward_weight(const OpCall& call) override {
    each_piece([&](std::int64_t n, std::int64_t i, std::int64_t count) {
      row_add(parameter_gradient(call, 0) + i, output_gradient(call) + n * elements_ + i, count);
    });
  }

 private:
  /// f(sample, first element, elements); threads share the elements, each takes the samples in order.
  template <class F>
  void each_piece(F&& f) const {
    parallel_chunks(threads_, elements_, kChunk, rows_ * elements_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = 0; n < rows_; ++n) f(n, begin, end - begin);
    });
  }

  int threads_;
  std::int64_t rows_, elements_;
};

}  // namespace

std::unique_ptr<OpKernel> make_embedding(const Site& site) { return std::make_unique<Embedding>(site); }
std::unique_ptr<OpKernel> make_position_embedding(const Site& site) {
  return std::make_unique<PositionEmbedding>(site);
}

}  // namespace millrace::kernels::onednn
