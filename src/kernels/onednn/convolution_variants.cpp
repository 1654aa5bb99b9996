// Names of the work, and the race between the algorithms.
#include "kernels/onednn/convolution_variants.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arena.h"
#include "kernels/onednn/race.h"

namespace millrace::kernels::onednn {
namespace {

constexpr double kEnoughFlops = 2e9;  // of a measurement: some ten milliseconds of a core
constexpr double kLeastFlops = 2e7;   // of a pass that is worth one
constexpr double kLeastGain = 1.1;    // what another algorithm has to be faster by: it rounds more, and takes scratch
constexpr const char* kDirect = "direct";
constexpr const char* kWinograd = "winograd";

double row_flops(const ConvolutionShape& shape) {
  const auto product = [](const memory::dims& dims, std::size_t from) {
    return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(from), dims.end(), 1.0, std::multiplies<>());
  };
  return 2 * product(shape.weights, 0) * product(shape.destination, 2);
}

/// Rows that the work is measured on.
std::int64_t measured_rows(const ConvolutionShape& shape) {
  const auto rows = static_cast<std::uint64_t>(shape.source[0]);
  const auto enough = static_cast<std::uint64_t>(std::max(1.0, kEnoughFlops / row_flops(shape)));
  return static_cast<std::int64_t>(std::bit_floor(std::min(rows, enough)));
}

const char* name_of(Pass pass) {
  if (pass == Pass::forward) return "forward";
  return pass == Pass::backward_data ? "backward input" : "backward weight";
}

bool can_be_winograd(const ConvolutionShape& shape) {
  const memory::dims three{3, 3}, one{1, 1};
  return memory::dims(shape.weights.begin() + 2, shape.weights.end()) == three && shape.strides == one;
}

std::optional<ConvolutionPass> make_winograd(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                             const MemoryDesc& source, const MemoryDesc& destination) {
  try {
    return make_convolution(engine, pass, shape, source, destination, dnnl::algorithm::convolution_winograd);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return std::nullopt;
  }
}

/// A pass on tensors of its own, all zeros: values do not change its time.
class LonePass {
 public:
  LonePass(const Engine& engine, Pass pass, bool bias, const ConvolutionPass& made) {
    const bool backward_data = pass == Pass::backward_data;
    const bool backward_weights = pass == Pass::backward_weights;
    Primitive::Arguments arguments{{backward_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, made.source},
                                   {backward_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, made.weights},
                                   {pass == Pass::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, made.destination},
                                   {DNNL_ARG_SCRATCHPAD, made.scratchpad}};
    if (bias && !backward_data) {
      arguments.emplace_back(backward_weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, made.bias);
    }
    primitive_ = Primitive(engine, made.primitive, arguments);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      tensors_.emplace_back(static_cast<std::int64_t>(arguments[i].second.get_size()));
      primitive_.bind(i, tensors_.back().at(0));
    }
  }

  void run() { primitive_.execute(); }

 private:
  Primitive primitive_;
  std::vector<Block> tensors_;
};

VariantChoice choose(const Engine& engine, Pass pass, const ConvolutionShape& shape, const MemoryDesc& source,
                     const MemoryDesc& destination) {
  const auto winograd = make_winograd(engine, pass, shape, source, destination);
  if (!winograd) return {kDirect, {}};
  LonePass direct(engine, pass, shape.bias, make_convolution(engine, pass, shape, source, destination));
  LonePass other(engine, pass, shape.bias, *winograd);
  return choose_fastest({{kDirect, [&] { direct.run(); }}, {kWinograd, [&] { other.run(); }}}, kLeastGain);
}

VariantChoice choose_on_fewer_rows(const Engine& engine, Pass pass, ConvolutionShape shape,
                                   const ConvolutionPass& direct) {
  const std::int64_t rows = measured_rows(shape);
  const auto fewer = [rows](const MemoryDesc& desc) {
    memory::dims dims = desc.dims();
    dims[0] = rows;
    const int block = channel_block(desc);
    return block > 0 ? blocked_desc(dims, block) : plain_desc(dims);
  };
  const MemoryDesc source = fewer(direct.source), destination = fewer(direct.destination);
  shape.source[0] = shape.destination[0] = rows;
  return choose(engine, pass, shape, source, destination);
}

}  // namespace

std::string convolution_work(Pass pass, const ConvolutionShape& shape) {
  const auto image = [](const memory::dims& dims) { return fmt::format("{}x{}x{}", dims[1], dims[2], dims[3]); };
  return fmt::format("convolution {} {} to {} by {}x{} padding {}{} rows {}", name_of(pass), image(shape.source),
                     image(shape.destination), shape.weights[2], shape.weights[3], fmt::join(shape.padding, "x"),
                     shape.bias ? " bias" : "", measured_rows(shape));
}

ConvolutionPass choose_convolution(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                   ConvolutionPass direct, Variants* variants) {
  if (variants == nullptr || !can_be_winograd(shape)) return direct;
  if (channel_block(direct.source) == 0 || channel_block(direct.destination) == 0) return direct;
  const std::string work = convolution_work(pass, shape);
  const VariantChoice* choice = variants->find(work);
  if (choice == nullptr && row_flops(shape) * static_cast<double>(measured_rows(shape)) >= kLeastFlops) {
    choice = variants->find_or_measure(work, [&] { return choose_on_fewer_rows(engine, pass, shape, direct); });
  }
  if (choice == nullptr || choice->variant != kWinograd) return direct;
  auto winograd = make_winograd(engine, pass, shape, direct.source, direct.destination);
  return winograd ? *std::move(winograd) : std::move(direct);
}

double least_convolution_seconds(const Engine& engine, Pass pass, const ConvolutionShape& shape) {
  const MemoryDesc source = any_desc(shape.source), destination = any_desc(shape.destination);
  const ConvolutionPass direct = make_convolution(engine, pass, shape, source, destination);
  LonePass standard(engine, pass, shape.bias, direct);
  std::vector<Contender> contenders{{kDirect, [&] { standard.run(); }}};
  std::optional<LonePass> other;
  if (can_be_winograd(shape)) {
    if (const auto winograd = make_winograd(engine, pass, shape, direct.source, direct.destination)) {
      contenders.push_back({kWinograd, [&] { other->run(); }});
      other.emplace(engine, pass, shape.bias, *winograd);
    }
  }
  return least_seconds(contenders);
}

}  // namespace millrace::kernels::onednn
