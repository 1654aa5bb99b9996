// `model: {file: …}`: graphs of every kind in experiments, with and without a data section (INTERFACES 2 and 9).
#include <gmock/gmock.h>

#include "app/session.h"
#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kGraph =
    "millrace_graph: 1\nname: two\nbatch: 12\noperators:\n"
    "  - {name: a, kind: cost, forward: 2 ms, output: 1 MiB}\n"
    "  - {name: b, kind: cost, inputs: [a], forward: 3 ms}\n";

constexpr const char* kProfile =
    "node1 -- Input -- forward_compute_time=1, backward_compute_time=2, activation_size=3, parameter_size=0\n";

// An experiment beside its model's file.
struct Place {
  explicit Place(const std::string& rest = "", const std::string& options = "")
      : experiment("name: tiny\nmodel: {file: model.txt" + options + "}\n" + rest) {}

  Place& with(const std::string& model) {
    std::ofstream(experiment.folder() / "model.txt") << model;
    return *this;
  }
  std::string load_refusal() const {
    try {
      Experiment read = experiment.read();
      load_graph(read);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

  ExperimentFile experiment;
};

TEST(ModelFile, WithoutADataSectionTheBatchIsTheFiles) {
  Place place;
  Experiment experiment = place.with(kGraph).experiment.read();
  EXPECT_EQ(experiment.model.name, "model");
  EXPECT_EQ(experiment.data.batch, 0);
  EXPECT_THAT(experiment.effective, Not(HasSubstr("data:")));
  const Graph graph = load_graph(experiment);
  EXPECT_EQ(graph.name(), "two");
  EXPECT_EQ(experiment.model.name, "two");  // as import and plan files call it
  EXPECT_EQ(experiment.data.batch, 12);
  Experiment again = experiment_from_text(experiment.effective);
  EXPECT_EQ(again.data.batch, 12);
  EXPECT_EQ(load_graph(again).digest(), graph.digest());
}

TEST(ModelFile, AGivenBatchStays) {
  Place place("data: {batch: 48}\n");
  Experiment experiment = place.with(kGraph).experiment.read();
  load_graph(experiment);
  EXPECT_EQ(experiment.data.batch, 48);
}

TEST(ModelFile, ADataSectionNeedsItsBatch) {
  Place place("data: {tail: pad}\n");
  EXPECT_THAT(place.with(kGraph).load_refusal(), HasSubstr("data.batch: missing"));
  EXPECT_THAT(refusal("name: tiny\nmodel: {name: mlp}\n"), HasSubstr("data.batch: missing"));
}

TEST(ModelFile, OptionsReachTheReader) {
  Place place("", ", options: {profile_batch: 7}");
  Experiment experiment = place.with(kProfile).experiment.read();
  EXPECT_EQ(std::get<LayerProfile>(load_graph(experiment).carried()->extra).profile_batch, 7);
  EXPECT_EQ(experiment.data.batch, 1);
  EXPECT_THAT(experiment.effective, HasSubstr("profile_batch: 7"));
  EXPECT_THAT(Place("", ", options: {profile_batch: 0}").with(kProfile).load_refusal(),
              HasSubstr("model.options.profile_batch: found '0', allowed: integer, at least 1"));
  EXPECT_THAT(Place("", ", options: {classes: 7}").with(kProfile).load_refusal(),
              HasSubstr("model.options.classes: unknown key"));
}

TEST(ModelFile, IsNoSecondModel) {
  EXPECT_THAT(Place("", ", name: mlp").with(kGraph).load_refusal(), HasSubstr("model.file: given beside model.name"));
  EXPECT_THAT(Place().load_refusal(), HasSubstr("no such file 'model.txt'; looked for "));
  EXPECT_THAT(Place().with("hello").load_refusal(), HasSubstr("model.txt: a file of unknown kind"));
}

TEST(ModelFile, WhatCannotBeTrainedSaysWhy) {
  Place place;
  Experiment experiment = place.with(kGraph).experiment.read();
  EXPECT_EQ(why_not_trainable(load_graph(experiment)), "operator 'a' is of kind cost, which has no kernels");
  Place kernels;
  experiment = kernels
                   .with(
                       "millrace_graph: 1\ninputs: [{name: x, shape: [4]}]\noperators:\n"
                       "  - {name: fc, kind: linear, inputs: [x], out_features: 2}\n")
                   .experiment.read();
  EXPECT_EQ(why_not_trainable(load_graph(experiment)), "it has no loss");
}

}  // namespace
}  // namespace millrace::app
