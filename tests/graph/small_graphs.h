// Small graphs that several tests of the graph room look at.
#pragma once

#include "graph/graph_builder.h"

namespace millrace::test {

/// input [4] -> fc1 -> relu -> fc2 -> add (with fc1's output) -> head -> loss; head has two classes.
inline Graph skip_graph() {
  GraphBuilder builder("skip");
  const TensorId x = builder.input("input", {.dims = {4}});
  const TensorId labels = builder.label("labels", {.dims = {}, .element = ElementType::index});
  const TensorId first =
      builder.add({.name = "fc1", .kind = "linear", .inputs = {x}, .attributes = {{"out_features", 3}}});
  const TensorId active = builder.add({.name = "relu", .kind = "relu", .inputs = {first}});
  const TensorId second =
      builder.add({.name = "fc2", .kind = "linear", .inputs = {active}, .attributes = {{"out_features", 3}}});
  const TensorId sum = builder.add({.name = "add", .kind = "add", .inputs = {second, first}});
  const TensorId logits =
      builder.add({.name = "head", .kind = "linear", .inputs = {sum}, .attributes = {{"out_features", 2}}});
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {logits, labels}});
  return builder.build();
}

/// Tokens [3] of 7 -> table -> two linears tied to the table -> loss; the table has three users.
inline Graph tied_graph() {
  GraphBuilder builder("tied");
  const TensorId x = builder.input("input", {.dims = {3}, .element = ElementType::index});
  const TensorId labels = builder.label("labels", {.dims = {3}, .element = ElementType::index});
  const TensorId rows = builder.add(
      {.name = "table", .kind = "embedding", .inputs = {x}, .attributes = {{"vocabulary", 7}, {"width", 7}}});
  const TensorId weight = builder.find_tensor("table.weight");
  const auto tied = [&](std::string name, TensorId input) {
    return builder.add({.name = std::move(name),
                        .kind = "linear",
                        .inputs = {input},
                        .attributes = {{"out_features", 7}, {"bias", false}},
                        .shared_parameters = {weight}});
  };
  builder.add({.name = "loss", .kind = "cross_entropy", .inputs = {tied("head", tied("middle", rows)), labels}});
  return builder.build();
}

}  // namespace millrace::test
