// The row of the registry for made-up graphs.
#include "models/entries.h"
#include "models/synthetic.h"

namespace millrace::models {

std::vector<Entry> synthetic_entries() {
  return {
      {"synthetic",
       "made-up graph of cost operators of a chosen shape, to plan but not to train",
       {{"shape", "how the operators are wired", config::OneOf{synthetic_shape_names()}, "random_dag"},
        positive("operators", "number of operators", "1000", 1, 10'000'000),
        positive("width", "independent operators; in skip_heavy outputs that wait; a chain has 1", "8", 1, 1'000'000),
        positive("seed", "another graph of the same kind", "1", 0)},
       [](const config::Values& v) {
         return make_synthetic({.shape = synthetic_shape(v.text("shape")),
                                .operators = v.integer("operators"),
                                .width = v.integer("width"),
                                .seed = static_cast<std::uint64_t>(v.integer("seed"))});
       }}};
}

}  // namespace millrace::models
