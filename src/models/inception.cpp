// Inception v3 with torchvision's names and first values, without its auxiliary classifier (a graph has one loss).
#include <string>

#include "models/conv_unit.h"
#include "models/families.h"

namespace millrace::models {
namespace {

constexpr double kInceptionDeviation = 0.1;

Window square(std::int64_t kernel, std::int64_t padding) {
  return {.kernel = {kernel, kernel}, .padding = {padding, padding}};
}
Window strided(std::int64_t kernel) { return {.kernel = {kernel, kernel}, .stride = {2, 2}}; }
Window wide(std::int64_t kernel) { return {.kernel = {1, kernel}, .padding = {0, kernel / 2}}; }
Window high(std::int64_t kernel) { return {.kernel = {kernel, 1}, .padding = {kernel / 2, 0}}; }

// A block under construction: its units, and its pooling branch.
class InceptionBlock {
 public:
  InceptionBlock(Network& net, std::string name) : net_(net), name_(std::move(name)) { net.layer(name_); }

  TensorId unit(const std::string& branch, TensorId x, std::int64_t out, const Window& window) {
    return conv_unit(net_, name_ + "." + branch, x, out, window, kInceptionDeviation);
  }
  TensorId pooled(TensorId x, std::int64_t out) {
    return unit("branch_pool", net_.avg_pool(name_ + ".pool", x, 3, 1, 1), out, square(1, 0));
  }
  TensorId max_pooled(TensorId x) { return net_.max_pool(name_ + ".branch_pool", x, 3, 2); }
  TensorId concat(std::vector<TensorId> branches, const std::string& name = "concat") {
    return net_.concat(name_ + "." + name, std::move(branches));
  }

 private:
  Network& net_;
  std::string name_;
};

// Figure 5 of the paper, its 5x5 branch as one convolution.
TensorId block_a(Network& net, const std::string& name, TensorId x, std::int64_t pool) {
  InceptionBlock block(net, name);
  const TensorId a = block.unit("branch1x1", x, 64, square(1, 0));
  const TensorId b = block.unit("branch5x5_2", block.unit("branch5x5_1", x, 48, square(1, 0)), 64, square(5, 2));
  TensorId c = block.unit("branch3x3dbl_1", x, 64, square(1, 0));
  c = block.unit("branch3x3dbl_2", c, 96, square(3, 1));
  c = block.unit("branch3x3dbl_3", c, 96, square(3, 1));
  return block.concat({a, b, c, block.pooled(x, pool)});
}

// Figure 10: halves the size.
TensorId block_b(Network& net, const std::string& name, TensorId x) {
  InceptionBlock block(net, name);
  const TensorId a = block.unit("branch3x3", x, 384, strided(3));
  TensorId b = block.unit("branch3x3dbl_1", x, 64, square(1, 0));
  b = block.unit("branch3x3dbl_2", b, 96, square(3, 1));
  b = block.unit("branch3x3dbl_3", b, 96, strided(3));
  return block.concat({a, b, block.max_pooled(x)});
}

// Figure 6: 7x7 as 1x7 and 7x1.
TensorId block_c(Network& net, const std::string& name, TensorId x, std::int64_t narrow) {
  constexpr std::int64_t kOut = 192;
  InceptionBlock block(net, name);
  const TensorId a = block.unit("branch1x1", x, kOut, square(1, 0));
  TensorId b = block.unit("branch7x7_1", x, narrow, square(1, 0));
  b = block.unit("branch7x7_2", b, narrow, wide(7));
  b = block.unit("branch7x7_3", b, kOut, high(7));
  TensorId c = block.unit("branch7x7dbl_1", x, narrow, square(1, 0));
  c = block.unit("branch7x7dbl_2", c, narrow, high(7));
  c = block.unit("branch7x7dbl_3", c, narrow, wide(7));
  c = block.unit("branch7x7dbl_4", c, narrow, high(7));
  c = block.unit("branch7x7dbl_5", c, kOut, wide(7));
  return block.concat({a, b, c, block.pooled(x, kOut)});
}

// Halves the size again.
TensorId block_d(Network& net, const std::string& name, TensorId x) {
  InceptionBlock block(net, name);
  const TensorId a = block.unit("branch3x3_2", block.unit("branch3x3_1", x, 192, square(1, 0)), 320, strided(3));
  TensorId b = block.unit("branch7x7x3_1", x, 192, square(1, 0));
  b = block.unit("branch7x7x3_2", b, 192, wide(7));
  b = block.unit("branch7x7x3_3", b, 192, high(7));
  b = block.unit("branch7x7x3_4", b, 192, strided(3));
  return block.concat({a, b, block.max_pooled(x)});
}

// Figure 7: branches that fork again into 1x3 and 3x1.
TensorId block_e(Network& net, const std::string& name, TensorId x) {
  InceptionBlock block(net, name);
  const auto forked = [&block](const std::string& branch, int number, TensorId y) {
    const std::string at = branch + "_" + std::to_string(number);
    const TensorId first = block.unit(at + "a", y, 384, wide(3));
    return block.concat({first, block.unit(at + "b", y, 384, high(3))}, branch);
  };
  const TensorId a = block.unit("branch1x1", x, 320, square(1, 0));
  const TensorId b = forked("branch3x3", 2, block.unit("branch3x3_1", x, 384, square(1, 0)));
  TensorId c = block.unit("branch3x3dbl_1", x, 448, square(1, 0));
  c = forked("branch3x3dbl", 3, block.unit("branch3x3dbl_2", c, 384, square(3, 1)));
  return block.concat({a, b, c, block.pooled(x, 192)});
}

TensorId stem(Network& net, TensorId x) {
  struct Unit {
    const char* name;
    std::int64_t out;
    Window window;
  };
  const auto unit = [&net](const Unit& u, TensorId y) {
    net.layer(u.name);
    return conv_unit(net, u.name, y, u.out, u.window, kInceptionDeviation);
  };
  x = unit({"Conv2d_1a_3x3", 32, strided(3)}, x);
  x = unit({"Conv2d_2a_3x3", 32, square(3, 0)}, x);
  x = unit({"Conv2d_2b_3x3", 64, square(3, 1)}, x);
  x = net.max_pool("maxpool1", x, 3, 2);
  x = unit({"Conv2d_3b_1x1", 80, square(1, 0)}, x);
  x = unit({"Conv2d_4a_3x3", 192, square(3, 0)}, x);
  return net.max_pool("maxpool2", x, 3, 2);
}

}  // namespace

Graph make_inception_v3(const ImageOptions& options) {
  Network net("inception_v3");
  TensorId x = stem(net, net.image_input(options.channels, options.image));
  x = block_a(net, "Mixed_5b", x, 32);
  x = block_a(net, "Mixed_5c", x, 64);
  x = block_a(net, "Mixed_5d", x, 64);
  x = block_b(net, "Mixed_6a", x);
  x = block_c(net, "Mixed_6b", x, 128);
  x = block_c(net, "Mixed_6c", x, 160);
  x = block_c(net, "Mixed_6d", x, 160);
  x = block_c(net, "Mixed_6e", x, 192);
  x = block_d(net, "Mixed_7a", x);
  x = block_e(net, "Mixed_7b", x);
  x = block_e(net, "Mixed_7c", x);
  net.layer("fc");
  x = net.apply("avgpool", "global_average_pool", x);
  x = net.dropout("dropout", x, options.dropout);
  x = net.linear("fc", x, options.classes);
  net.initialize("fc.weight", normal(kInceptionDeviation));
  return net.finish(x);
}

}  // namespace millrace::models
