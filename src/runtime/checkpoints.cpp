// The steps of a checkpoint and what is told between the ranks.
#include "runtime/checkpoints.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "storage/write_aside.h"

namespace millrace::runtime {
namespace {

// A file's size and its digest in four pieces, exact in doubles.
constexpr std::size_t kPieces = 4, kPieceDigits = 8, kWidth = 1 + kPieces;

std::vector<double> numbers_of(const CheckpointFile& file) {
  std::vector<double> numbers{static_cast<double>(file.bytes)};
  for (std::size_t i = 0; i < kPieces; ++i) {
    std::uint32_t piece = 0;
    const char* first = file.digest.data() + i * kPieceDigits;
    std::from_chars(first, first + kPieceDigits, piece, 16);
    numbers.push_back(static_cast<double>(piece));
  }
  return numbers;
}

CheckpointFile file_of(std::string name, const double* numbers) {
  CheckpointFile file;
  file.name = std::move(name);
  file.bytes = static_cast<std::int64_t>(numbers[0]);
  for (std::size_t i = 0; i < kPieces; ++i) {
    file.digest += fmt::format("{:08x}", static_cast<std::uint32_t>(numbers[1 + i]));
  }
  return file;
}

std::string tensor_file(int rank) { return fmt::format("rank-{:05}.h5", rank); }

}  // namespace

Checkpoints::Checkpoints(CheckpointSettings settings, comm::Transport& transport)
    : settings_(std::move(settings)),
      folders_(settings_.root),
      transport_(transport),
      agreement_(transport),
      rank_(transport.rank()),
      ranks_(transport.size()) {}

void Checkpoints::save(const TrainingCounters& counters, const Graph& graph, const std::vector<Bucket>& buckets,
                       const std::vector<LocalStage>& stages, comm::WaitObserver& observer) {
  const bool root = rank_ == 0;
  try {
    agreement_.after(
        0,
        [&](const Step&) {
          if (root) folders_.begin(counters.step);
          return std::vector<double>();
        },
        observer);
    WholeTensors whole = gather_parts(graph, buckets, stages, rank_);
    gather_shards(graph, buckets, stages, transport_, observer, whole);
    const std::vector<double> described = agreement_.after(
        kWidth, [&](const Step& step) { return write_own(counters.step, graph, buckets, stages, whole, step); },
        observer);
    agreement_.after(
        0,
        [&](const Step& step) {
          if (root) complete(counters, graph, buckets, described, step);
          return std::vector<double>();
        },
        observer);
  } catch (const Error&) {
    if (root) folders_.abandon(counters.step);
    throw;
  }
}

std::vector<double> Checkpoints::write_own(std::int64_t step, const Graph& graph, const std::vector<Bucket>& buckets,
                                           const std::vector<LocalStage>& stages, const WholeTensors& whole,
                                           const Step& step_done) const {
  const std::vector<TensorId> tensors = tensors_of_writer(buckets, rank_);
  if (tensors.empty()) return std::vector<double>(kWidth);
  const std::filesystem::path folder = folders_.partial(step);
  if (!std::filesystem::is_directory(folder)) {
    throw SystemError(
        fmt::format("{}: is not seen here: checkpoints need a folder that all hosts share", folder.string()));
  }
  const std::filesystem::path file = folder / tensor_file(rank_);
  write_tensors(file, graph, tensors, stages, whole, step_done);
  return numbers_of(describe_file(file, step_done));
}

void Checkpoints::complete(const TrainingCounters& counters, const Graph& graph, const std::vector<Bucket>& buckets,
                           const std::vector<double>& described, const Step& step_done) const {
  CheckpointManifest manifest{
      counters, settings_.graph_digest, settings_.order, settings_.optimizer, settings_.request, settings_.partitioner,
      {}};
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::vector<TensorId> tensors = tensors_of_writer(buckets, rank);
    if (tensors.empty()) continue;
    manifest.files.push_back(file_of(tensor_file(rank), described.data() + static_cast<std::size_t>(rank) * kWidth));
    for (const TensorId tensor : tensors) manifest.files.back().tensors.push_back(graph.tensor(tensor).name);
  }
  const std::filesystem::path folder = folders_.partial(counters.step);
  for (const auto& [name, text] : {std::pair{kPlanFile, &settings_.plan}, std::pair{kConfigFile, &settings_.config}}) {
    storage::write_text_aside(folder / name, storage::Existing::refuse, *text);
    manifest.files.push_back(describe_file(folder / name));
    step_done();
  }
  storage::write_text_aside(folder / kManifestFile, storage::Existing::refuse, to_text(manifest));
  folders_.finish(counters.step);
  folders_.keep(static_cast<std::size_t>(settings_.keep));
}

}  // namespace millrace::runtime
