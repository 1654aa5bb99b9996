// NASNet-A mobile with the names of its PyTorch port. Two of its details need operators that nothing else has: pools
// here count padding in their mean and pad both sides alike, and both paths of a factorised reduction take the even
// pixels. Sizes, operators, operations and parameters are the same.
#include <array>
#include <string>

#include "models/families.h"
#include "models/network.h"

namespace millrace::models {
namespace {

TensorId cell_norm(Network& net, const std::string& name, TensorId x) {
  return net.apply(name, "batch_norm", x, {{"epsilon", 0.001}});
}

TensorId conv(Network& net, const std::string& name, TensorId x, std::int64_t out) {
  x = net.conv(name, x, out, 1, 1, 0, false);
  net.initialize(name + ".weight", normal(kaiming_fan_out(out, 1)));
  return x;
}

// A cell under construction; all its combinations have the same channels.
class Cell {
 public:
  Cell(Network& net, const std::string& name, std::int64_t channels) : net_(net), at_(name + "."), channels_(channels) {
    net.layer(name);
  }

  /// Brings an input to the cell's channels.
  TensorId adjust(const std::string& name, TensorId x) {
    x = net_.apply(at_ + name + ".relu", "relu", x);
    return cell_norm(net_, at_ + name + ".bn", conv(net_, at_ + name + ".conv", x, channels_));
  }

  /// The same and half the size, on two paths.
  TensorId reduce(TensorId x) {
    x = net_.apply(at_ + "relu", "relu", x);
    std::vector<TensorId> paths;
    for (const char* path : {"path_1", "path_2"}) {
      const TensorId y = net_.avg_pool(at_ + path + ".avgpool", x, 1, 2);
      paths.push_back(conv(net_, at_ + path + ".conv", y, channels_ / 2));
    }
    return cell_norm(net_, at_ + "final_path_bn", net_.concat(at_ + "final_path", std::move(paths)));
  }

  /// A depthwise and a pointwise convolution, twice.
  TensorId separable(const std::string& name, TensorId x, std::int64_t kernel, std::int64_t stride = 1) {
    const std::string in = at_ + name + ".";
    for (const char* number : {"1", "2"}) {
      x = net_.apply(in + (number[0] == '1' ? "relu" : "relu1"), "relu", x);
      const std::string separable = in + "separable_" + number;
      x = net_.apply(separable + ".depthwise_conv2d", "depthwise_conv2d", x,
                     {{"kernel", std::vector{kernel, kernel}},
                      {"stride", std::vector{stride, stride}},
                      {"padding", std::vector{kernel / 2, kernel / 2}},
                      {"bias", false}});
      x = conv(net_, separable + ".pointwise_conv2d", x, channels_);
      x = cell_norm(net_, in + "bn_sep_" + number, x);
      stride = 1;
    }
    return x;
  }
  TensorId mean(const std::string& name, TensorId x, std::int64_t stride = 1) {
    return net_.avg_pool(at_ + name, x, 3, stride, 1);
  }
  TensorId maximum(const std::string& name, TensorId x) { return net_.max_pool(at_ + name, x, 3, 2, 1); }

  /// The terms as a list, so that operators are in the order in which they are written.
  TensorId add(const std::string& name, const std::array<TensorId, 2>& terms) {
    return net_.add(at_ + name, terms[0], terms[1]);
  }
  TensorId concat(std::vector<TensorId> inputs) { return net_.concat(at_ + "concat", std::move(inputs)); }

 private:
  Network& net_;
  std::string at_;
  std::int64_t channels_;
};

// Figure 4, left; `left` is from the cell before the last.
TensorId normal_combinations(Cell& cell, TensorId left, TensorId right) {
  const TensorId sum0 = cell.add(
      "comb_iter_0", {cell.separable("comb_iter_0_left", right, 5), cell.separable("comb_iter_0_right", left, 3)});
  const TensorId sum1 = cell.add(
      "comb_iter_1", {cell.separable("comb_iter_1_left", left, 5), cell.separable("comb_iter_1_right", left, 3)});
  const TensorId sum2 = cell.add("comb_iter_2", {cell.mean("comb_iter_2_left", right), left});
  const TensorId sum3 =
      cell.add("comb_iter_3", {cell.mean("comb_iter_3_left", left), cell.mean("comb_iter_3_right", left)});
  const TensorId sum4 = cell.add("comb_iter_4", {cell.separable("comb_iter_4_left", right, 3), right});
  return cell.concat({left, sum0, sum1, sum2, sum3, sum4});
}

// Figure 4, right.
TensorId reducing_combinations(Cell& cell, TensorId left, TensorId right) {
  const TensorId sum0 = cell.add("comb_iter_0", {cell.separable("comb_iter_0_left", right, 5, 2),
                                                 cell.separable("comb_iter_0_right", left, 7, 2)});
  const TensorId sum1 = cell.add(
      "comb_iter_1", {cell.maximum("comb_iter_1_left", right), cell.separable("comb_iter_1_right", left, 7, 2)});
  const TensorId sum2 = cell.add(
      "comb_iter_2", {cell.mean("comb_iter_2_left", right, 2), cell.separable("comb_iter_2_right", left, 5, 2)});
  const TensorId sum3 = cell.add("comb_iter_3", {cell.mean("comb_iter_3_right", sum0), sum1});
  const TensorId sum4 =
      cell.add("comb_iter_4", {cell.separable("comb_iter_4_left", sum0, 3), cell.maximum("comb_iter_4_right", right)});
  return cell.concat({sum1, sum2, sum3, sum4});
}

// The outputs of the last two cells.
struct Pair {
  TensorId last, before;
  void push(TensorId x) {
    before = last;
    last = x;
  }
};

// A group of four normal cells at one size; the first meets an older input of twice the size.
void normal_group(Network& net, Pair& x, int first, std::int64_t channels) {
  for (int i = first; i < first + 4; ++i) {
    Cell cell(net, "cell_" + std::to_string(i), channels);
    const TensorId left = i == first ? cell.reduce(x.before) : cell.adjust("conv_prev_1x1", x.before);
    const TensorId right = cell.adjust("conv_1x1", x.last);
    x.push(normal_combinations(cell, left, right));
  }
}

void reduction(Network& net, Pair& x, const std::string& name, std::int64_t channels) {
  Cell cell(net, name, channels);
  const TensorId left = cell.adjust("conv_prev_1x1", x.before);
  const TensorId right = cell.adjust("conv_1x1", x.last);
  x.push(reducing_combinations(cell, left, right));
}

}  // namespace

Graph make_nasnet_mobile(const ImageOptions& options) {
  constexpr std::int64_t kStem = 32;
  constexpr std::int64_t kFilters = 44;  // 1056 / 24
  Network net("nasnet_mobile");
  TensorId image = net.image_input(options.channels, options.image);
  net.layer("conv0");
  image = net.conv("conv0.conv", image, kStem, 3, 2, 0, false);
  net.initialize("conv0.conv.weight", normal(kaiming_fan_out(kStem, 3)));
  image = cell_norm(net, "conv0.bn", image);

  Pair x{image, image};
  Cell stem0(net, "cell_stem_0", kFilters / 4);
  x.push(reducing_combinations(stem0, image, stem0.adjust("conv_1x1", image)));
  Cell stem1(net, "cell_stem_1", kFilters / 2);
  const TensorId newer = stem1.adjust("conv_1x1", x.last);
  x.push(reducing_combinations(stem1, stem1.reduce(x.before), newer));
  normal_group(net, x, 0, kFilters);
  reduction(net, x, "reduction_cell_0", 2 * kFilters);
  normal_group(net, x, 6, 2 * kFilters);
  reduction(net, x, "reduction_cell_1", 4 * kFilters);
  normal_group(net, x, 12, 4 * kFilters);

  net.layer("last_linear");
  TensorId y = net.apply("relu", "relu", x.last);
  y = net.apply("avg_pool", "global_average_pool", y);
  y = net.dropout("dropout", y, options.dropout);
  return net.finish(net.linear("last_linear", y, options.classes));
}

}  // namespace millrace::models
