// Experiment files: defaults, what is refused and how, and the way back to text (INTERFACES 2 and 9).
#include "app/experiment.h"

#include <gmock/gmock.h>

#include "tests/app/experiment_file.h"

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Experiment, DefaultsAreThoseOfTheDocument) {
  const Experiment e = ExperimentFile(small()).read();
  EXPECT_EQ(e.seed, 1U);
  EXPECT_FALSE(e.data.file);
  EXPECT_EQ(e.data.tail, dataset::Tail::drop);
  ASSERT_EQ(e.plan.partitioners.size(), 1U);
  EXPECT_EQ(e.plan.partitioners[0].name, "dp");
  EXPECT_EQ(e.plan.partitioners[0].options.duration("time_limit"), Seconds(10));
  EXPECT_EQ(e.plan.order, "best");
  EXPECT_EQ(e.plan.objective, "throughput");
  ASSERT_EQ(e.plan.schedules.size(), 1U);
  EXPECT_EQ(e.plan.schedules[0].name, "1f1b");
  EXPECT_THAT(e.plan.micro_batches, IsEmpty());
  EXPECT_THAT(e.plan.warmup, IsEmpty());
  EXPECT_EQ(e.plan.bucket_sizes, std::vector<Bytes>{25_MiB});
  EXPECT_FALSE(e.plan.stages || e.plan.pipelines || e.plan.memory_limit || e.plan.file);
  EXPECT_EQ(e.train.iterations, 100);
  EXPECT_EQ(e.train.optimizer.kind, runtime::OptimizerKind::sgd);
  EXPECT_EQ(e.train.optimizer.learning_rate, 0.01);
  EXPECT_EQ(e.train.optimizer.momentum, 0);
  EXPECT_EQ(e.train.optimizer.weight_decay, 0);
  EXPECT_EQ(e.train.learning_rate.kind, runtime::ScheduleKind::constant);
  EXPECT_EQ(e.train.clip_norm, 0);
  EXPECT_EQ(e.train.precision, kernels::Precision::fp32);
  EXPECT_EQ(e.train.kernels, "auto");
  EXPECT_EQ(e.train.evaluate_every, 0);
  EXPECT_TRUE(e.train.evaluates);
  EXPECT_EQ(e.train.seed, 1U);
  EXPECT_EQ(e.output, "results/tiny.h5");
}

TEST(Experiment, BucketSizesAreOneOrSeveralOrFound) {
  EXPECT_THAT(ExperimentFile(small()).read().plan.deferred_weights, ElementsAre(0));
  EXPECT_THAT(ExperimentFile(small("plan: {deferred_weights: auto}\n")).read().plan.deferred_weights, IsEmpty());
  EXPECT_THAT(ExperimentFile(small("plan: {deferred_weights: [0, 4]}\n")).read().plan.deferred_weights,
              ElementsAre(0, 4));
  EXPECT_THAT(ExperimentFile(small("plan: {bucket_size: auto}\n")).read().plan.bucket_sizes, IsEmpty());
  EXPECT_EQ(ExperimentFile(small("plan: {bucket_size: [1 MiB, 5 MiB]}\n")).read().plan.bucket_sizes,
            (std::vector<Bytes>{1_MiB, 5_MiB}));
}

TEST(Experiment, AdamHasItsOwnDefaults) {
  for (const char* kind : {"adam", "adamw"}) {
    const Experiment e = ExperimentFile(small("train: {optimizer: {kind: " + std::string(kind) + "}}\n")).read();
    EXPECT_EQ(e.train.optimizer.learning_rate, 1e-3);
    EXPECT_EQ(e.train.optimizer.beta1, 0.9);
    EXPECT_EQ(e.train.optimizer.beta2, 0.999);
    EXPECT_EQ(e.train.optimizer.epsilon, 1e-8);
    EXPECT_EQ(e.train.optimizer.weight_decay, 0);
  }
}

TEST(Experiment, EffectiveTextReadsBackAsItself) {
  const std::vector<std::string> texts{
      small(),
      small("seed: 7\noutput: \"out {name}/{name}: 1.h5\"\n"),
      small("plan: {partitioner: [dp, {name: dp, order: topological, time_limit: 2 s}, time_equal], schedule: [gpipe, "
            "1f1b]}\n"),
      small("plan: {order: topological, micro_batches: [1, 2, 4], warmup: [3, 2, 0], stages: 3, pipelines: 2}\n"),
      small("plan: {stages: [[\"linear0\", \"relu*\"], [linear1, linear2, loss]], bucket_size: 1 KiB, memory_limit: 12 "
            "GiB}\n"),
      small("plan: {pipelines: 2, micro_batch_size: 4, objective: bottleneck}\n"),
      small("plan: {deferred_weights: [4, 16], schedule: zb-h1}\n"),
      small("plan: {bucket_size: auto, schedule: {name: interleaved, chunks: 3}}\n"),
      small("plan: {bucket_size: [1 MiB, 25 MiB], schedule: [zb-v, {name: zb-greedy, rules: 3}]}\n"),
      small(
          "train: {epochs: 3, optimizer: {kind: sgd, lr: 1e-1, momentum: 0.9, nesterov: true, weight_decay: 1e-4}}\n"),
      small("train: {optimizer: {kind: adamw, beta1: 0.8, epsilon: 1e-6}, learning_rate: {kind: cosine, warmup: 20, "
            "minimum: 1e-5}}\n"),
      small("train: {learning_rate: {kind: step, every: 30, factor: 0.1}, clip_norm: 1.5, precision: fp64, kernels: "
            "reference}\n"),
      small("plan: {reduction: ps}\nslowdown: {3: 1.5}\n"),
      small("train: {evaluate_every: 10, maximum_skips: 2, stall_limit: 90 s}\n"),
      "name: \"no\"\nmodel: {name: gpt, options: {layers: 1, width: 8, heads: 2, sequence: 4, vocabulary: 11, tied: "
      "false}}\n"
      "data: {batch: 3, tail: uneven}\n"};
  for (const std::string& text : texts) {
    const Experiment e = ExperimentFile(text).read();
    const Experiment again = experiment_from_text(e.effective);
    EXPECT_EQ(again.output, e.output);
    // Writing what was read from the effective text gives the effective text: nothing is lost on the way.
    EXPECT_EQ(ExperimentFile(e.effective).read().effective, e.effective) << text;
  }
}

TEST(Experiment, OrderOfThePlanIsTheDefaultOfThePartitioners) {
  const Experiment e =
      ExperimentFile(small("plan: {order: topological, partitioner: [dp, {name: dp, order: best}]}\n")).read();
  EXPECT_EQ(e.plan.partitioners[0].options.text("order"), "topological");
  EXPECT_EQ(e.plan.partitioners[1].options.text("order"), "best");
}

TEST(Experiment, AllErrorsAreToldAtOnceWithTheirLines) {
  const std::string told = refusal(
      "name: tiny\n"
      "model: {name: mpl}\n"
      "data: {batch: 0, tial: drop}\n"
      "plan:\n"
      "  partitioner: dq\n"
      "  stages: 010\n"
      "  bucket_size: 25\n"
      "train:\n"
      "  optimiser: {kind: sgd}\n"
      "  iterations: 1e3\n"
      "  clip_norm: yes please\n");
  for (const char* part :
       {"e.yaml:2:", "unknown model 'mpl' (did you mean 'mlp'?)", "e.yaml:3:", "data.batch",
        "'tial' (did you mean 'tail'?)", "e.yaml:5:", "'dq' (did you mean 'dp'?)", "e.yaml:6:", "plan.stages",
        "e.yaml:7:", "plan.bucket_size", "e.yaml:9:", "'optimiser' (did you mean 'optimizer'?)",
        "e.yaml:10:", "train.iterations", "e.yaml:11:", "train.clip_norm"}) {
    EXPECT_THAT(told, HasSubstr(part));
  }
}

TEST(Experiment, RequiredKeysAreNamed) {
  EXPECT_THAT(refusal("seed: 1\n"), AllOf(HasSubstr("name"), HasSubstr("model")));
  EXPECT_THAT(refusal("name: a\nmodel: {name: mlp}\ndata: {source: synthetic}\n"), HasSubstr("data.batch"));
  EXPECT_THAT(refusal("name: a/b\nmodel: {name: mlp}\ndata: {batch: 1}\n"), HasSubstr("no '/'"));
}

TEST(Experiment, IterationsAndEpochsExcludeEachOther) {
  EXPECT_THAT(refusal(small("train: {iterations: 5, epochs: 1}\n")), HasSubstr("iterations or epochs, not both"));
  const Experiment e = ExperimentFile(small("train: {epochs: 2}\n")).read();
  EXPECT_EQ(e.epochs, 2);
  EXPECT_THAT(e.effective, AllOf(HasSubstr("epochs: 2"), Not(HasSubstr("iterations:"))));
}

TEST(Experiment, MicroBatchesAndTheirSizeExcludeEachOther) {
  EXPECT_THAT(refusal(small("plan: {micro_batches: 4, micro_batch_size: 2}\n")), HasSubstr("not both"));
  EXPECT_EQ(ExperimentFile(small("plan: {micro_batch_size: 2}\n")).read().plan.micro_batch_size, 2);
}

TEST(Experiment, WhatIsListedTwiceIsToldToBe) {
  EXPECT_THAT(refusal(small("plan: {schedule: [1f1b, gpipe, 1f1b]}\n")),
              HasSubstr("plan.schedule[2]: '1f1b' is given twice, with the same options"));
  EXPECT_THAT(refusal(small("plan: {partitioner: [dp, {name: dp}]}\n")), HasSubstr("'dp' is given twice"));
  EXPECT_THAT(refusal(small("plan: {micro_batches: [2, 4, 2]}\n")), HasSubstr("plan.micro_batches[2]: given twice"));
  EXPECT_EQ(refusal(small("plan: {schedule: [{name: interleaved, chunks: 2}, {name: interleaved, chunks: 4}]}\n")), "");
}

TEST(Experiment, StagesMayBeGivenAsPatterns) {
  const Experiment e = ExperimentFile(small("plan: {stages: [[linear0, \"relu*\"], [linear1]]}\n")).read();
  EXPECT_THAT(e.plan.explicit_stages, ElementsAre(ElementsAre("linear0", "relu*"), ElementsAre("linear1")));
  EXPECT_FALSE(e.plan.stages);
  EXPECT_THAT(refusal(small("plan: {stages: [[linear0], []]}\n")), HasSubstr("at least one operator"));
  EXPECT_THAT(refusal(small("plan: {stages: []}\n")), HasSubstr("at least one stage"));
}

TEST(Experiment, EmptyListsAreRefusedWithTheirPlace) {
  for (const char* key : {"schedule", "partitioner", "micro_batches", "warmup"}) {
    EXPECT_THAT(
        refusal(small("plan: {" + std::string(key) + ": []}\n")),
        AllOf(HasSubstr("e.yaml:4:"), HasSubstr("plan." + std::string(key) + ": found an empty list, allowed: ")));
    EXPECT_THAT(refusal(small(), {"plan." + std::string(key) + "=[]"}), HasSubstr("found an empty list"));
  }
}

TEST(Experiment, APlanFileExcludesWhatItSaysItself) {
  const ExperimentFile both(small("plan: {file: p.yaml, schedule: gpipe, recompute: all, objective: bottleneck}\n"));
  std::ofstream(both.folder() / "p.yaml") << "x";
  try {
    both.read();
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("e.yaml:4:"), HasSubstr("plan.schedule: given beside plan.file"),
                                    HasSubstr("plan.recompute: given"), Not(HasSubstr("plan.objective"))));
  }
  const ExperimentFile keys(small("plan: {schedule: gpipe, stages: 2, bucket_size: 1 MiB}\n"));
  std::ofstream(keys.folder() / "p.yaml") << "x";
  testing::internal::CaptureStderr();
  const Experiment e = keys.read({"plan.file=p.yaml"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("plan.schedule, plan.stages have no effect"));
  EXPECT_THAT(e.effective, AllOf(HasSubstr("p.yaml"), HasSubstr("bucket_size"), Not(HasSubstr("gpipe"))));
  EXPECT_EQ(*experiment_from_text(e.effective).plan.file, keys.folder() / "p.yaml");
  // What is asked for on the command line is never without effect.
  EXPECT_THROW(keys.read({"plan.file=p.yaml", "plan.stages=3"}), InvalidInput);
}

TEST(Experiment, OtherFilesOfMillraceAreToldApart) {
  EXPECT_THAT(refusal("millrace_graph: 1\noperators: []\n"),
              HasSubstr("e.yaml:1:1: this is a graph file; an experiment names it: model: {file: …}"));
  EXPECT_THAT(refusal("millrace_plan: 1\n"), HasSubstr("this is a plan file"));
  EXPECT_THAT(refusal("bench: train\nrows: []\n"), HasSubstr("a list for millrace bench, which takes it with --data"));
  EXPECT_THAT(refusal("sweeps: [a.yaml]\n"), HasSubstr("they are run by millrace sweep"));
}

TEST(Experiment, FailuresAreATimeApart) {
  EXPECT_THAT(
      refusal("name: a\nmodel: {name: mlp}\ndata: {batch: 1}\nsimulation: {failures: {mean_time_between: 0 s}}\n"),
      AllOf(HasSubstr("e.yaml:4:"), HasSubstr("mean_time_between"), HasSubstr("above 0 s")));
}

TEST(Experiment, WhatIsMissingSaysHowItIsGot) {
  EXPECT_THAT(refusal("name: a\nmodel: {name: mlp}\ndata: {batch: 1, source: data/fashion-mnist.h5}\n"),
              AllOf(HasSubstr("e.yaml:3:"), HasSubstr("./quickstart.sh makes it")));
  EXPECT_THAT(refusal("name: a\nmodel: {name: mlp}\ndata: {batch: 1, source: x.h5}\n"),
              HasSubstr("millrace data makes"));
  EXPECT_THAT(refusal("name: a\nmodel: {name: synthetic}\n"), HasSubstr("as in data: {batch: 128}"));
  EXPECT_THAT(refusal(small("plan: {objective: thruput}\n")), HasSubstr("did you mean 'throughput'?"));
}

TEST(Experiment, NamesAreTextWhateverTheyLookLike) {
  for (const std::string name : {"no", "on", "1e3", "null", "~x"}) {
    const Experiment e = ExperimentFile("name: \"" + name + "\"\nmodel: {name: mlp}\ndata: {batch: 1}\n").read();
    EXPECT_EQ(e.output, "results/" + name + ".h5");
    EXPECT_EQ(experiment_from_text(e.effective).name, name);
  }
}

TEST(Experiment, OutputFolderIsReplacedAndTheFileKeepsItsName) {
  const ExperimentFile file(small("output: somewhere/{name}-x.h5\n"));
  EXPECT_EQ(file.read().output, "somewhere/tiny-x.h5");
  EXPECT_EQ(read_experiment({file.path(), {}, "other/place"}).output, "other/place/tiny-x.h5");
}

TEST(Experiment, InputsAreLookedUpBesideTheFileThenInTheWorkingFolder) {
  const ExperimentFile named("name: a\nmodel: {name: mlp}\ndata: {batch: 1, source: beside.h5}\n");
  std::ofstream(named.folder() / "beside.h5") << "x";
  const Experiment e = named.read();
  EXPECT_EQ(*e.data.file, named.folder() / "beside.h5");
  EXPECT_EQ(*experiment_from_text(e.effective).data.file, named.folder() / "beside.h5");
  EXPECT_THAT(refusal("name: a\nmodel: {name: mlp}\ndata: {batch: 1, source: nothing.h5}\n"),
              AllOf(HasSubstr("nothing.h5"), HasSubstr(std::filesystem::current_path().string())));
}

TEST(Experiment, OptimizersRefuseWhatTheyDoNotHave) {
  EXPECT_THAT(refusal(small("train: {optimizer: {kind: adam, momentum: 0.9}}\n")), HasSubstr("unknown key 'momentum'"));
  EXPECT_THAT(refusal(small("train: {optimizer: {nesterov: true}}\n")), HasSubstr("Nesterov needs a momentum"));
  EXPECT_THAT(refusal(small("train: {optimizer: {lr: -1}}\n")), HasSubstr("train.optimizer.lr"));
  EXPECT_THAT(refusal(small("train: {precision: fp64, kernels: onednn}\n")), HasSubstr("reference"));
  EXPECT_THAT(refusal(small("train: {precision: fp16}\n")), HasSubstr("fp32, bf16, fp64"));
}

TEST(Experiment, CheckpointsAreOffUnlessAskedFor) {
  EXPECT_EQ(ExperimentFile(small("")).read().train.checkpoint_every, 0);
  EXPECT_EQ(ExperimentFile(small("train: {checkpoint: off}\n")).read().train.checkpoint_every, 0);
  const Experiment e = ExperimentFile(small("train: {checkpoint: {every: 10}, reproducible: any}\n")).read();
  EXPECT_EQ(e.train.checkpoint_every, 10);
  EXPECT_EQ(e.train.checkpoint_keep, 2);
  EXPECT_TRUE(e.train.any_grid);
  EXPECT_EQ(experiment_from_text(e.effective).effective, e.effective);
  EXPECT_THAT(refusal(small("train: {checkpoint: {keep: 1}}\n")), HasSubstr("train.checkpoint"));
  EXPECT_THAT(refusal(small("train: {checkpoint: {every: 10, keep: 0}}\n")), HasSubstr("train.checkpoint.keep"));
  EXPECT_THAT(refusal(small("train: {reproducible: always}\n")), HasSubstr("grid"));
}

TEST(Experiment, SlowdownsAreFactorsOfRanks) {
  const Experiment e = ExperimentFile(small("slowdown: {3: 1.5, 0: 2}\n")).read();
  EXPECT_THAT(e.slowdown, ElementsAre(testing::Pair(0, 2.0), testing::Pair(3, 1.5)));
  EXPECT_THAT(e.effective, HasSubstr("slowdown:\n  \"0\": 2\n  \"3\": 1.5\n"));
  EXPECT_THAT(ExperimentFile(small()).read().slowdown, IsEmpty());
  EXPECT_EQ(ExperimentFile(small()).read({"slowdown.1=3"}).slowdown.at(1), 3);
  for (const char* factor : {"0", "-1", "fast", "1.5 s"}) {
    EXPECT_THAT(refusal(small("slowdown: {3: " + std::string(factor) + "}\n")),
                AllOf(HasSubstr("e.yaml:4:15: slowdown.3: found"), HasSubstr(factor)));
  }
  for (const char* rank : {"-1", "01", "one", "1.0"}) {
    EXPECT_THAT(refusal(small("slowdown: {" + std::string(rank) + ": 2}\n")),
                HasSubstr("found '" + std::string(rank) + "' as a key, allowed: the number of a rank"));
  }
}

TEST(Experiment, ReductionIsOneOfTwo) {
  EXPECT_EQ(ExperimentFile(small()).read().plan.reduction, sim::Reduction::all_reduce);
  const Experiment e = ExperimentFile(small("plan: {reduction: ps}\n")).read();
  EXPECT_EQ(e.plan.reduction, sim::Reduction::parameter_server);
  EXPECT_EQ(e.simulation.options.reduction, sim::Reduction::parameter_server);
  EXPECT_THAT(refusal(small("plan: {reduction: pss}\n")), AllOf(HasSubstr("plan.reduction"), HasSubstr("all_reduce")));
}

TEST(Experiment, ShardOptimizerIsOffUnlessAskedFor) {
  EXPECT_FALSE(ExperimentFile(small()).read().train.shard_optimizer);
  EXPECT_TRUE(ExperimentFile(small("train: {shard_optimizer: true}\n")).read().train.shard_optimizer);
  EXPECT_THAT(refusal(small("train: {shard_optimizer: 2}\n")), HasSubstr("train.shard_optimizer"));
}

}  // namespace
}  // namespace millrace::app
