// What the builder itself refuses: names, operands, roles, ties; and what it fills in.
#include "graph/graph_builder.h"

#include <gmock/gmock.h>

#include <functional>

#include "base/errors.h"

namespace millrace {
namespace {

using testing::HasSubstr;

class Builder : public testing::Test {
 protected:
  std::string refusal(const std::function<void()>& act) {
    try {
      act();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "accepted";
  }
  TensorId linear(std::string name, std::vector<TensorId> inputs, std::int64_t out, std::vector<TensorId> shared = {}) {
    return builder_.add({.name = std::move(name),
                         .kind = "linear",
                         .inputs = std::move(inputs),
                         .attributes = {{"out_features", out}},
                         .shared_parameters = std::move(shared)});
  }

  GraphBuilder builder_{"g"};
  TensorId x_ = builder_.input("x", {.dims = {4}});
};

TEST_F(Builder, FillsInDefaults) {
  builder_.add({.name = "bn", .kind = "batch_norm", .inputs = {x_}, .attributes = {{"momentum", 1}}});
  const Graph graph = builder_.build();
  EXPECT_EQ(graph.op(0).attributes.real("epsilon"), 1e-5);
  EXPECT_TRUE(std::holds_alternative<double>(*graph.op(0).attributes.find("momentum")));
  EXPECT_EQ(graph.buffers().size(), 2U);
  EXPECT_EQ(graph.tensor(graph.buffers()[0]).name, "bn.running_mean");
  EXPECT_FALSE(graph.tensor(graph.buffers()[0]).shape.batched);
}

TEST_F(Builder, RefusesNames) {
  linear("fc", {x_}, 3);
  EXPECT_EQ(refusal([&] { linear("fc", {x_}, 3); }),
            "operator 'fc' (linear): the name is used twice; names must differ");
  EXPECT_THAT(refusal([&] { linear("", {x_}, 3); }), HasSubstr("operator name: found ''"));
  EXPECT_THAT(refusal([&] { linear("a b", {x_}, 3); }), HasSubstr("without white space"));
  EXPECT_THAT(refusal([&] { linear("fc*", {x_}, 3); }), HasSubstr("'*'"));
  EXPECT_THAT(refusal([&] { builder_.input("x", {.dims = {1}}); }), HasSubstr("tensor name 'x' is used twice"));
  EXPECT_THAT(refusal([&] { builder_.add({.name = "a", .kind = "conv2", .inputs = {x_}}); }),
              HasSubstr("operator 'a' (conv2): unknown operator kind 'conv2' (did you mean 'conv2d'?)"));
}

TEST_F(Builder, RefusesOperandsThatDoNotExistOrAreNoData) {
  linear("fc", {x_}, 4);
  EXPECT_THAT(refusal([&] { linear("a", {99}, 3); }), HasSubstr("input 0: found tensor number 99"));
  EXPECT_THAT(refusal([&] { linear("a", {-1}, 3); }), HasSubstr("found tensor number -1"));
  EXPECT_THAT(refusal([&] { linear("a", {builder_.find_tensor("fc.bias")}, 3); }), HasSubstr("'fc.bias'"));
}

TEST_F(Builder, RefusesLabelsOutsideALossAndTwoLosses) {
  const TensorId label = builder_.label("y", {.dims = {4}});
  const TensorId tokens = builder_.input("t", {.dims = {}, .element = ElementType::index});
  EXPECT_THAT(refusal([&] { linear("a", {label}, 3); }),
              HasSubstr("input 0: found label 'y', which only a loss may read"));
  EXPECT_THAT(refusal([&] {
                builder_.add({.name = "l", .kind = "cross_entropy", .inputs = {x_, tokens}});
              }),
              HasSubstr("input 1: found indices 't' that are no label"));
  builder_.add({.name = "loss", .kind = "mean_squared_error", .inputs = {x_, label}});
  EXPECT_EQ(refusal([&] {
              builder_.add({.name = "l", .kind = "mean_squared_error", .inputs = {x_, label}});
            }),
            "operator 'l' (mean_squared_error): found a second loss beside 'loss', allowed: one");
}

TEST_F(Builder, RefusesTiesThatDoNotFit) {
  linear("fc", {x_}, 3);
  const TensorId weight = builder_.find_tensor("fc.weight");
  EXPECT_EQ(refusal([&] { linear("a", {x_}, 5, {weight}); }),
            "operator 'a' (linear): shared weight: found 'fc.weight' [3, 4], allowed: [5, 4]");
  EXPECT_THAT(refusal([&] { linear("b", {x_}, 3, {x_}); }), HasSubstr("allowed: a parameter"));
  EXPECT_THAT(refusal([&] { linear("c", {x_}, 3, {weight, -1, weight}); }), HasSubstr("found 3 shared parameters"));
}

TEST_F(Builder, TiesSomeParametersAndMakesTheOthers) {
  linear("fc", {x_}, 3);
  linear("twin", {x_}, 3, {builder_.find_tensor("fc.weight")});
  const Graph graph = builder_.build();
  EXPECT_EQ(graph.op(1).parameters[0], graph.op(0).parameters[0]);
  EXPECT_EQ(graph.tensor(graph.op(1).parameters[1]).name, "twin.bias");
  EXPECT_EQ(graph.parameter_count(), 12 + 3 + 3);
}

TEST_F(Builder, RefusesSizesThatDoNotCount) {
  EXPECT_THAT(refusal([&] { builder_.input("a", {.dims = {0}}); }), HasSubstr("tensor 'a': found dims [0]"));
  EXPECT_THAT(refusal([&] { builder_.input("b", {.dims = Dims(9, 1)}); }), HasSubstr("found 9 dimensions"));
  EXPECT_THAT(refusal([&] { linear("wide", {x_}, std::int64_t{1} << 62); }), HasSubstr("2^41"));
}

TEST_F(Builder, NeedsAnOperator) {
  EXPECT_THAT(refusal([&] { builder_.build(); }), HasSubstr("no operators"));
}

}  // namespace
}  // namespace millrace
