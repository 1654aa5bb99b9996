// The main function of tests with ranks: one verdict per test for all ranks, printed by rank 0, and no hang.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <mpi.h>

namespace {

constexpr auto kPatience = std::chrono::seconds(5);  // how long a failed rank waits for ranks that may never come

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_of_world() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

std::string failures_in(const ::testing::TestResult& result) {
  std::string text;
  for (int i = 0; i < result.total_part_count(); ++i) {
    const ::testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.failed()) continue;
    const char* file = part.file_name() == nullptr ? "?" : part.file_name();
    text += std::string(file) + ":" + std::to_string(part.line_number()) + ": " + part.message() + "\n";
  }
  return text;
}

// Others may still wait for a message that this rank, having failed, will never send: then its failures are printed
// here and the job ends.
void meet_the_others(const std::string& failures) {
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &arrived);
  const auto since = std::chrono::steady_clock::now();
  for (int done = 0; done == 0; MPI_Test(&arrived, &done, MPI_STATUS_IGNORE)) {
    if (!failures.empty() && std::chrono::steady_clock::now() - since > kPatience) {
      std::fprintf(stderr, "rank %d failed and the others did not finish the test:\n%s", rank_of_world(),
                   failures.c_str());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// The texts of all ranks, on rank 0; empty elsewhere.
std::vector<std::string> gather(const std::string& text) {
  const bool root = rank_of_world() == 0;
  const std::size_t ranks = root ? static_cast<std::size_t>(size_of_world()) : 0;
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(ranks), offsets(ranks);
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  int total = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    offsets[r] = total;
    total += lengths[r];
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR, 0, MPI_COMM_WORLD);
  std::vector<std::string> texts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    texts[r] = all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r]));
  }
  return texts;
}

// Placed after the printer: the ends of tests reach listeners in reverse, so a failure added here is still printed.
class OneVerdict : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override { agree(*test.result()); }
  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override { agree(suite.ad_hoc_test_result()); }

  static void agree(const ::testing::TestResult& result) {
    const std::string failures = failures_in(result);
    meet_the_others(failures);
    const std::vector<std::string> texts = gather(failures);
    for (std::size_t r = 1; r < texts.size(); ++r) {
      if (!texts[r].empty()) ADD_FAILURE() << "on rank " << r << ":\n" << texts[r];
    }
    int any = failures.empty() ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any != 0 && failures.empty() && rank_of_world() != 0) ADD_FAILURE() << "on another rank";
  }
};

// Called before the stack unwinds, so that no destructor waits for a rank that waits for this one.
[[noreturn]] void end_job() {
  std::string what = "no exception is active";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "an exception that is no std::exception";
  }
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::fprintf(stderr, "rank %d ended in %s: %s\n", rank_of_world(), test == nullptr ? "no test" : test->name(),
               what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  ::testing::InitGoogleMock(&argc, argv);
  GTEST_FLAG_SET(catch_exceptions, false);  // one that is caught on one rank only would leave the others waiting
  std::set_terminate(end_job);
  if (provided < MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "this MPI does not grant MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rank_of_world() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new OneVerdict);
  int code = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return code;
}
