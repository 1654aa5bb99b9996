// Rows of measured steps: what blanks mean and what is refused.
#include "planner/measured_steps.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>

#include "base/errors.h"

namespace millrace::planner {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader =
    "id,set,model,layers,hidden,heads,ffn,seq,vocab,gpu,n_gpus,tp,pp,dp,vp,cp,ep,micro_batch,global_batch,schedule,"
    "recompute,seq_parallel,sharding,precision,framework,metric,value,iter_time_s,tf_us,tb_us,tw_us,tcomm_us\n";

std::vector<MeasuredStep> read(const std::string& rows) {
  const std::string file = testing::TempDir() + "measured_steps_test.csv";
  std::ofstream(file) << kHeader << rows;
  return read_measured_steps(file);
}

std::string refusal(const std::string& rows) {
  try {
    read(rows);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(MeasuredSteps, BlanksAreOpenOrTheirDefault) {
  const auto rows = read(
      "a,s,GPT,48,6144,64,,2048,,A100,64,8,4,2,,,,,128,interleaved 1f1b (vp not published),full,1,none,fp16,"
      "Megatron-LM v2.x,time,1,2.5,,,,\n"
      "b,s,GPT,22,2304,24,9216,1024,50304,A100,8,1,8,1,1,,,6,144,zb-2p,none,0,none,fp16,Megatron-LM fork,time,1,1.5,"
      "18522,18086,9337,601\n");
  ASSERT_EQ(rows.size(), 2u);
  const MeasuredStep& first = rows[0];
  EXPECT_EQ(first.layout.model.vocabulary, 51200);
  EXPECT_EQ(first.layout.model.ffn, 4 * 6144);
  EXPECT_TRUE(first.open.micro_batch);
  EXPECT_TRUE(first.open.chunks);
  EXPECT_FALSE(first.open.recompute);
  EXPECT_TRUE(first.layout.sequence_parallel);
  EXPECT_EQ(first.layout.software.weight_gradient_bytes, 12);
  EXPECT_DOUBLE_EQ(*first.time_s, 2.5);
  const MeasuredStep& second = rows[1];
  EXPECT_EQ(second.layout.schedule, "zb-greedy");
  EXPECT_EQ(second.layout.live_limit, 2);
  ASSERT_TRUE(second.layout.profiled);
  EXPECT_DOUBLE_EQ(second.layout.profiled->hop, 601e-6);
  EXPECT_EQ(layers_of_stages(second.layout), (std::vector<int>{2, 3, 3, 3, 3, 3, 3, 2}));
}

TEST(MeasuredSteps, EveryBrokenCellIsNamedWithLineAndColumn) {
  const std::string text = refusal(
      "a,s,GPT,4x8,6144,64,,2048,,A100,63,8,4,2,,,,,128,1f1b,full,2,none,fp16,DeepSpeed,time,1,-2.5,,,,\n"
      "b,s,GPT,48,6144,64,,2048,,A100,64,8,4,2,,,,3,128,spiral,most,0,none,fp16,DeepSpeed,time,1,nan,,,,\n");
  EXPECT_THAT(text, HasSubstr("measured_steps_test.csv:2:9: layers: found '4x8', allowed: an integer, at least 1"));
  EXPECT_THAT(text, HasSubstr("n_gpus: found '63', allowed: tp · pp · dp = 64"));
  EXPECT_THAT(text, HasSubstr("seq_parallel: found '2', allowed: 0 or 1"));
  EXPECT_THAT(text, HasSubstr("iter_time_s: found '-2.5', allowed: a number above 0"));
  EXPECT_THAT(text, HasSubstr(":3:"));
  EXPECT_THAT(text, HasSubstr("schedule: found 'spiral'"));
  EXPECT_THAT(text, HasSubstr("recompute: found 'most'"));
  EXPECT_THAT(text, HasSubstr("iter_time_s: found 'nan'"));
  EXPECT_THAT(text, HasSubstr("global_batch: found '128', allowed: a multiple of dp · micro_batch = 6"));
}

// A row that is whole, with one cell in place of another.
std::string row_with(const std::string& from, const std::string& to, const std::string& id = "a") {
  std::string row = id +
                    ",s,GPT,48,6144,64,,2048,,A100,64,8,4,2,,,,3,126,1f1b,full,1,none,fp16,Megatron-LM v2.x,time,1,"
                    "2.5,18522,18086,9337,601\n";
  const std::size_t at = row.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return row.replace(at, from.size(), to);
}

TEST(MeasuredSteps, OneFaultIsToldOnceWithItsLine) {
  EXPECT_EQ(refusal(row_with(",s,", ",s,")), "");
  const std::vector<std::array<std::string, 3>> faults{
      {",s,", ",,", "set: found '', allowed: a name"},
      {"Megatron-LM", "Colossus", "framework: found 'Colossus v2.x'"},
      {"fp16", "fp17", "precision: found 'fp17', allowed: fp16, bf16 or nothing"},
      {",64,8,4,2,", ",64,8,4,3,", "n_gpus: found '64', allowed: tp · pp · dp = 96"},
      {",64,8,4,2,", ",64,8,x,2,", "pp: found 'x'"},
      {",3,126,", ",3,125,", "global_batch: found '125'"},
      {",601", ",", "tcomm_us: found '', allowed: a number"},
      {",601", ",-1", "tcomm_us: found '-1', allowed: a number, at least 0"}};
  for (const auto& [from, to, told] : faults) {
    const std::string text = refusal(row_with(from, to));
    EXPECT_THAT(text, HasSubstr("measured_steps_test.csv:2:"));
    EXPECT_THAT(text, HasSubstr(told));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
  }
  EXPECT_EQ(read(row_with(",601", ",0"))[0].layout.profiled->hop, 0);
  EXPECT_THAT(refusal(row_with(",s,", ",s,") + row_with(",s,", ",s,")),
              HasSubstr("measured_steps_test.csv:3:1: id: found 'a', allowed: an id of its own; line 2 has it too"));
}

TEST(MeasuredSteps, MissingColumnsAndEmptyFilesAreRefused) {
  EXPECT_THAT(refusal(""), HasSubstr("has no rows"));
  const std::string file = testing::TempDir() + "measured_steps_columns.csv";
  std::ofstream(file) << "id,set\na,b\n";
  try {
    read_measured_steps(file);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("measured_steps_columns.csv:1:1: columns are missing: model, layers, hidden"));
  }
}

TEST(MeasuredSteps, OperationsAsTheirPapersCountThem) {
  // 96·B·s·l·h²·(1 + s/6h + V/16lh) with full recomputation.
  const auto rows = read(
      "a,s,GPT,24,2304,24,,2048,51200,A100,32,1,1,32,,,,,512,none,full,0,none,fp16,Megatron-LM,time,1,3.528,,,,\n");
  const double h = 2304, l = 24, s = 2048;
  EXPECT_NEAR(rows[0].flops() / (96 * 512 * s * l * h * h * (1 + s / (6 * h) + 51200 / (16 * l * h))), 1, 1e-12);
}

}  // namespace
}  // namespace millrace::planner
