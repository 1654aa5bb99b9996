// Values and optimizer state of logical tensors, from the stages of a rank into a file and back.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/checkpoint_manifest.h"
#include "runtime/checkpoint_parts.h"
#include "runtime/program_runner.h"

namespace millrace::runtime {

/// Which rank writes each bucket of a checkpoint: its owners hold the same, so they take turns.
int checkpoint_writer(const Bucket& bucket, std::size_t index);

/// The parameters and buffers that `rank` writes; a tensor in parts is written by a rank that has the first.
std::vector<TensorId> tensors_of_writer(const std::vector<Bucket>& buckets, int rank);

/// Makes `file`, which is on the disk when this returns: group `value`, and one for each number that the optimizer
/// keeps, each with a dataset of global shape for every tensor. \param whole  those of which this rank has a part
/// \param written  called after each tensor \throws SystemError
void write_tensors(const std::filesystem::path& file, const Graph& graph, const std::vector<TensorId>& tensors,
                   const std::vector<LocalStage>& stages, const WholeTensors& whole,
                   const std::function<void()>& written);

/// Reads all tensors of this rank's stages, whatever plan wrote them, from the files of a checkpoint.
/// \pre the checkpoint is of this graph and optimizer. \throws Error  a file cannot be read.
void read_tensors(const FoundCheckpoint& checkpoint, const Graph& graph, const std::vector<LocalStage>& stages);

}  // namespace millrace::runtime
