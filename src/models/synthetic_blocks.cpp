// Shapes that are made of blocks one after the other: series_parallel and nasnet_cells, emitted branch by branch.
#include <algorithm>
#include <utility>

#include "models/synthetic_builder.h"

namespace millrace::models {
namespace {

// Operators of `width` branches of one operator each that join in pairs.
constexpr std::int64_t least_operators(std::int64_t width) { return 2 * width - 1; }

TensorId chain(SyntheticBuilder& graph, TensorId x, std::int64_t operators) {
  for (std::int64_t i = 0; i < operators; ++i) x = graph.compute({x});
  return x;
}

// `operators` between `x` and the result, `width` of them independent. \pre operators >= least_operators(width).
TensorId block(SyntheticBuilder& graph, TensorId x, std::int64_t operators, std::int64_t width) {
  if (width == 1) return chain(graph, x, operators);
  // A few operators before the branches, two branches, and the join. Shares of the width are between a quarter and
  // three quarters, so that blocks nest only logarithmically deep.
  const std::int64_t spare = operators - least_operators(width);
  const std::int64_t before = graph.below(1 + spare / 2);
  x = chain(graph, x, before);
  const std::int64_t quarter = std::max<std::int64_t>(1, width / 4);
  const std::int64_t left = quarter + graph.below(width - 2 * quarter + 1);
  const std::int64_t left_spare = graph.below(spare - before + 1);
  const TensorId a = block(graph, x, least_operators(left) + left_spare, left);
  const TensorId b = block(graph, x, least_operators(width - left) + spare - before - left_spare, width - left);
  return graph.join({a, b});
}

}  // namespace

void add_series_parallel(SyntheticBuilder& graph, std::int64_t width) {
  constexpr std::int64_t kChains = 4;  // a block has up to this many operators for each that its width needs
  graph.layer("block0");
  TensorId x = graph.compute({});
  for (std::int64_t number = 0; graph.left() > 0; ++number) {
    graph.layer("block" + std::to_string(number));
    // The first block is as wide as asked for, the others are of any width.
    const std::int64_t widest = std::clamp<std::int64_t>((graph.left() + 1) / 2, 1, width);
    const std::int64_t wide = number == 0 ? widest : 1 + graph.below(widest);
    const std::int64_t least = least_operators(wide);
    x = block(graph, x, std::min(graph.left(), least + graph.below(kChains * least)), wide);
  }
}

// A cell brings its two inputs to one shape, runs branches on either, adds them in pairs and joins all sums.
void add_nasnet_cells(SyntheticBuilder& graph, std::int64_t width) {
  const auto operators_of = [](std::int64_t branches) { return 2 + branches + (branches + 1) / 2 + 1; };
  graph.layer("stem");
  TensorId before = graph.compute({});
  TensorId last = before;
  std::int64_t branches = width;
  while (branches > 1 && operators_of(branches) > graph.left()) --branches;
  for (std::int64_t cell = 0; graph.left() >= operators_of(branches); ++cell) {
    graph.layer("cell" + std::to_string(cell));
    const TensorId inputs[] = {graph.compute({last}), graph.compute({before})};
    const auto any_input = [&] { return inputs[graph.below(2)]; };
    std::vector<TensorId> sums;
    for (std::int64_t i = 0; i < branches; i += 2) {
      const TensorId a = graph.compute({any_input()});
      // The partner of an odd branch is an input as it is.
      const TensorId b = i + 1 < branches ? graph.compute({any_input()}) : any_input();
      sums.push_back(graph.join({a, b}));
    }
    sums.push_back(inputs[1]);  // NASNet joins the older input too, and so none is left unread
    sums.push_back(inputs[0]);
    before = std::exchange(last, graph.join(std::move(sums)));
  }
  graph.layer("head");
  chain(graph, last, graph.left());
}

}  // namespace millrace::models
