// `--set path.to.key=VALUE` on experiments: maps made on the way, lists, short forms, and errors that cite the option.
#include <gmock/gmock.h>

#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Set, ChangesAndAddsSettings) {
  const Experiment e = ExperimentFile(small("seed: 3\n"))
                           .read({"seed=5", "data.batch=64", "train.optimizer.kind=adamw", "train.optimizer.lr=1e-2",
                                  "model.options.hidden=[8, 9]"});
  EXPECT_EQ(e.seed, 5U);
  EXPECT_EQ(e.data.batch, 64);
  EXPECT_EQ(e.train.optimizer.kind, runtime::OptimizerKind::adamw);
  EXPECT_EQ(e.train.optimizer.learning_rate, 1e-2);
  EXPECT_THAT(e.model.options.integers("hidden"), ElementsAre(8, 9));
}

TEST(Set, ShortFormsAreExpandedOnTheWay) {
  const Experiment e = ExperimentFile(small("plan: {partitioner: dp}\ntrain: {learning_rate: cosine}\n"))
                           .read({"plan.partitioner.order=topological", "train.learning_rate.warmup=7"});
  EXPECT_EQ(e.plan.partitioners[0].options.text("order"), "topological");
  EXPECT_EQ(e.train.learning_rate.kind, runtime::ScheduleKind::cosine);
  EXPECT_EQ(e.train.learning_rate.warmup, 7);
}

TEST(Set, ListElementsHaveNumbersAndListsAreReplacedWhole) {
  const std::string lists = small("plan: {partitioner: [dp, time_equal], micro_batches: [1, 2]}\n");
  const Experiment element = ExperimentFile(lists).read({"plan.partitioner[1]=layer_equal"});
  EXPECT_EQ(element.plan.partitioners[0].name, "dp");
  EXPECT_EQ(element.plan.partitioners[1].name, "layer_equal");
  EXPECT_THAT(ExperimentFile(lists).read({"plan.micro_batches=[4]"}).plan.micro_batches, ElementsAre(4));
}

TEST(Set, ErrorsCiteTheOptionAndTheFileToo) {
  EXPECT_THAT(refusal(small("train: {iterations: x}\n"), {"plan.stags=2", "seed=-1"}),
              AllOf(HasSubstr("--set plan.stags=2"), HasSubstr("'stags' (did you mean 'stages'?)"),
                    HasSubstr("--set seed=-1"), HasSubstr("e.yaml:4:")));
  EXPECT_THAT(refusal(small(), {"plan.stages"}), HasSubstr("--set plan.stages"));
  EXPECT_THAT(refusal(small(), {"=3"}), HasSubstr("--set =3"));
}

}  // namespace
}  // namespace millrace::app
