// Names of the work, the other algorithms, and the race between them.
#include "kernels/onednn/convolution_variants.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arena.h"
#include "kernels/onednn/race.h"

namespace millrace::kernels::onednn {
namespace {

constexpr double kConvolutionGain =
    1.1;  // what another algorithm has to be faster by: it rounds more, and takes scratch
constexpr const char* kDirect = "direct";
constexpr const char* kWinograd = "winograd";
constexpr const char* kChannelsLast = "channels last";

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

bool can_be_winograd(const ConvolutionShape& shape) {
  const memory::dims three{3, 3}, one{1, 1};
  return memory::dims(shape.weights.begin() + 2, shape.weights.end()) == three && shape.strides == one;
}

/// Where channels do not fill their blocks, other layouts leave out the products with zeros.
bool can_be_channels_last(const ConvolutionShape& shape, int block) {
  return block > 0 && (shape.source[1] % block != 0 || shape.destination[1] % block != 0);
}

struct Algorithm {
  const char* name;
  ConvolutionPass pass;
};

/// The other algorithms for tensors of these layouts, as far as they are offered. Passes may want other layouts.
std::vector<Algorithm> other_algorithms(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                        const MemoryDesc& source, const MemoryDesc& destination) {
  std::vector<Algorithm> found;
  const auto add = [&](const char* name, const MemoryDesc& from, const MemoryDesc& to, dnnl::algorithm algorithm) {
    try {
      found.push_back({name, make_convolution(engine, pass, shape, from, to, algorithm)});
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  };
  if (can_be_winograd(shape)) add(kWinograd, source, destination, dnnl::algorithm::convolution_winograd);
  if (can_be_channels_last(shape, channel_block(source))) {
    add(kChannelsLast, channels_last_desc(shape.source), channels_last_desc(shape.destination),
        dnnl::algorithm::convolution_direct);
  }
  return found;
}

/// A pass on tensors of its own, all zeros: values do not change its time. With the reorders that it needs where
/// tensors lie as `source` and `destination` say.
class LonePass {
 public:
  LonePass(const Engine& engine, Pass pass, bool bias, const ConvolutionPass& made, const MemoryDesc& source,
           const MemoryDesc& destination) {
    const bool backward_data = pass == Pass::backward_data;
    const bool backward_weights = pass == Pass::backward_weights;
    Primitive::Arguments arguments{{backward_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, made.source},
                                   {backward_weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, made.weights},
                                   {pass == Pass::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, made.destination},
                                   {DNNL_ARG_SCRATCHPAD, made.scratchpad}};
    if (bias && !backward_data) {
      arguments.emplace_back(backward_weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, made.bias);
    }
    const auto reorder = [&](const MemoryDesc& from, const MemoryDesc& to) {
      if (from == to) return;
      Reorder one = make_reorder(engine, from, to);
      bind(one.primitive, {from, to}, one.scratch);
      steps_.push_back(std::move(one.primitive));
    };
    if (!backward_data) reorder(source, made.source);
    if (pass != Pass::forward) reorder(destination, made.destination);
    Primitive primitive(engine, made.primitive, arguments);
    std::vector<MemoryDesc> tensors;
    for (const auto& argument : arguments) tensors.push_back(argument.second);
    bind(primitive, tensors, 0);
    steps_.push_back(std::move(primitive));
    if (backward_data) reorder(made.source, source);
    if (pass == Pass::forward) reorder(made.destination, destination);
  }

  void run() {
    for (Primitive& step : steps_) step.execute();
  }

 private:
  /// Gives each argument memory, and behind them one of `more` bytes if there are any.
  void bind(Primitive& primitive, const std::vector<MemoryDesc>& tensors, std::int64_t more) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      primitive.bind(i, tensors_.emplace_back(static_cast<std::int64_t>(tensors[i].get_size())).at(0));
    }
    if (more > 0) primitive.bind(tensors.size(), tensors_.emplace_back(more).at(0));
  }

  std::vector<Primitive> steps_;
  std::vector<Block> tensors_;
};

std::vector<Contender> contenders_of(std::vector<std::pair<const char*, LonePass>>& passes) {
  std::vector<Contender> contenders;
  for (auto& [name, pass] : passes) contenders.push_back({name, [&one = pass] { one.run(); }});
  return contenders;
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
  std::vector<std::pair<const char*, LonePass>> passes;
  const auto add = [&](const char* name, const ConvolutionPass& made) {
    passes.emplace_back(name, LonePass(engine, pass, shape.bias, made, source, destination));
  };
  add(kDirect, make_convolution(engine, pass, shape, source, destination));
  for (const Algorithm& other : other_algorithms(engine, pass, shape, source, destination)) add(other.name, other.pass);
  if (passes.size() == 1) return {kDirect, {}};
  return choose_fastest(contenders_of(passes), kConvolutionGain);
}

}  // namespace

std::string convolution_work(Pass pass, const ConvolutionShape& shape) {
  const auto image = [](const memory::dims& dims) { return fmt::format("{}x{}x{}", dims[1], dims[2], dims[3]); };
  return fmt::format("convolution {} {} to {} by {}x{} padding {}{} rows {}", words(pass), image(shape.source),
                     image(shape.destination), shape.weights[2], shape.weights[3], fmt::join(shape.padding, "x"),
                     shape.bias ? " bias" : "", measured_rows(shape));
}

ConvolutionPass choose_convolution(const Engine& engine, Pass pass, const ConvolutionShape& shape,
                                   ConvolutionPass direct, Variants* variants) {
  const int block = channel_block(direct.source);
  if (variants == nullptr || block == 0 || channel_block(direct.destination) != block) return direct;
  if (!can_be_winograd(shape) && !can_be_channels_last(shape, block)) return direct;
  const std::string work = convolution_work(pass, shape);
  const VariantChoice* choice = variants->find(work);
  if (choice == nullptr && row_flops(shape) * static_cast<double>(measured_rows(shape)) >= kLeastFlops) {
    choice = variants->find_or_measure(work, [&] { return choose_on_fewer_rows(engine, pass, shape, direct); });
  }
  if (choice == nullptr || choice->variant == kDirect) return direct;
  for (Algorithm& other : other_algorithms(engine, pass, shape, direct.source, direct.destination)) {
    if (choice->variant == other.name) return std::move(other.pass);
  }
  return direct;
}

double least_convolution_seconds(const Engine& engine, Pass pass, const ConvolutionShape& shape) {
  std::vector<std::pair<const char*, LonePass>> passes;
  const auto add = [&](const char* name, const ConvolutionPass& made) {  // without reorders
    passes.emplace_back(name, LonePass(engine, pass, shape.bias, made, made.source, made.destination));
  };
  const ConvolutionPass direct =
      make_convolution(engine, pass, shape, any_desc(shape.source), any_desc(shape.destination));
  add(kDirect, direct);
  for (const Algorithm& other : other_algorithms(engine, pass, shape, direct.source, direct.destination)) {
    add(other.name, other.pass);
  }
  return least_seconds(contenders_of(passes));
}

}  // namespace millrace::kernels::onednn
