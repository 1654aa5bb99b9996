// Predictions of the shipped measured steps stay within the errors that docs/validation.md states.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "app/shipped_folder.h"
#include "app/step_machines.h"
#include "planner/step_validation.h"

namespace millrace::app {
namespace {

using planner::SetErrors;

const planner::Validation& validation() {
  static const planner::Validation result = [] {
    StepMachines machines;
    return planner::validate_predictions(
        planner::read_measured_steps(*find_shipped("data/measured_steps.csv")),
        [&](const planner::MeasuredStep& row) -> const cluster::Cluster& { return machines.of(row); });
  }();
  return result;
}

const SetErrors& set(const std::string& name) {
  for (const SetErrors& one : validation().sets) {
    if (one.set == name) return one;
  }
  throw std::out_of_range(name);
}

TEST(Validation, EveryRowIsPredicted) {
  std::size_t rows = 0;
  for (const SetErrors& one : validation().sets) rows += one.samples.size() + static_cast<std::size_t>(one.calibration);
  EXPECT_EQ(rows, 508u + 24u);  // profiled rows twice
  EXPECT_TRUE(validation().skipped.empty());
}

TEST(Validation, FewRowsWereCalibratedOn) {
  EXPECT_LE(set("vtrain_multi").calibration + set("vtrain_single").calibration, 16);
  EXPECT_LE(set("megatron_sc21").calibration, 2);
  EXPECT_LE(set("megatron_seqpar").calibration, 2);
  EXPECT_LE(set("zerobubble_iclr").calibration, 4);
  EXPECT_EQ(set("mcore_h100").calibration, 1);
}

TEST(Validation, MeanErrorsOfTheRest) {
  const std::map<std::string, double> limits{{"vtrain_multi", 0.08},
                                             {"vtrain_single", 0.10},
                                             {"megatron_sc21", 0.05},
                                             {"megatron_seqpar", 0.04},
                                             {"mcore_h100", 0.05},
                                             {"zerobubble_iclr", 0.025},
                                             {"zerobubble_iclr_unprofiled", 0.08}};
  for (const auto& [name, limit] : limits) EXPECT_LE(set(name).summary.mape, limit) << name;
}

TEST(Validation, ActivationMemoryIsThePapers) { EXPECT_LE(set("megatron_seqpar_mem").summary.worst, 0.001); }

TEST(Validation, BetterThanTheBestConstantRate) {
  for (const SetErrors& one : validation().sets) {
    if (one.set == "megatron_seqpar_mem") continue;
    EXPECT_LT(one.summary.mape, one.summary.constant_mape) << one.set;
  }
}

// Of the 39.1 B model only the runs with tensor 8: docs/validation.md says what is odd about the others.
TEST(Validation, PlansAreRankedAsMeasured) {
  for (const char* name : {"vtrain_multi", "vtrain_single", "zerobubble_iclr", "zerobubble_iclr_unprofiled"}) {
    for (const planner::ModelRanks& model : set(name).summary.models) {
      if (model.model == "48 layers of 8192") continue;
      EXPECT_GE(model.spearman, 0.95) << name << " " << model.model;
    }
  }
  std::map<std::string, int> tensor;
  for (const planner::MeasuredStep& row : planner::read_measured_steps(*find_shipped("data/measured_steps.csv"))) {
    tensor[row.id] = row.layout.tensor;
  }
  std::vector<double> predicted, measured;
  for (const planner::ErrorSample& sample : set("vtrain_multi").samples) {
    if (sample.model != "48 layers of 8192" || tensor.at(sample.id) != 8) continue;
    predicted.push_back(sample.predicted);
    measured.push_back(sample.measured);
  }
  EXPECT_EQ(predicted.size(), 24u);
  EXPECT_GE(planner::spearman(predicted, measured), 0.95);
}

TEST(Validation, TheBestPlanOfManyIsFound) { EXPECT_LE(set("vtrain_multi").summary.regret, 0.01); }

}  // namespace
}  // namespace millrace::app
