// One HDF5 file a writer: datasets by kind and tensor name.
#include "runtime/checkpoint_tensors.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "runtime/part_conversion.h"
#include "storage/file.h"

namespace millrace::runtime {
namespace {

constexpr const char* kValue = "value";

// HDF5 reads '/' as a path.
std::string dataset_name(const std::string& tensor) {
  std::string name;
  for (const char c : tensor) {
    if (c == '/') name += "%2F";
    else if (c == '%') name += "%25";
    else name += c;
  }
  return name;
}

bool holds(const LocalStage& stage, TensorId tensor) {
  return stage.runner != nullptr && stage.runner->part_of(tensor) >= 0;
}

// A buffer has no optimizer state: the file keeps none of it.
bool has_state(const Graph& graph, TensorId tensor) { return graph.tensor(tensor).role != Role::buffer; }

template <class Real>
void write(storage::Group& group, const Tensor& tensor, const void* data) {
  const Dims& shape = tensor.shape.dims;
  auto dataset = group.make_dataset(dataset_name(tensor.name), storage::number_type<Real>(), shape,
                                    {"1", "global shape, row-major"});
  const auto count = static_cast<std::size_t>(tensor.shape.elements_per_sample());
  dataset.template write<Real>(std::span(static_cast<const Real*>(data), count));
}

template <class Real>
void read(const storage::Group& group, const Tensor& tensor, void* data) {
  const auto count = static_cast<std::size_t>(tensor.shape.elements_per_sample());
  group.dataset(dataset_name(tensor.name)).template read<Real>(std::span(static_cast<Real*>(data), count));
}

void write(storage::Group& group, const Tensor& tensor, const void* data, kernels::Precision precision) {
  return precision == kernels::Precision::fp64 ? write<double>(group, tensor, data) : write<float>(group, tensor, data);
}

void read(const storage::Group& group, const Tensor& tensor, void* data, kernels::Precision precision) {
  return precision == kernels::Precision::fp64 ? read<double>(group, tensor, data) : read<float>(group, tensor, data);
}

// Of the state in the file, a rank takes what its optimizer keeps.
void read_kept(const storage::Group& group, const Tensor& tensor, const LocalStage& stage, std::size_t k,
               TensorId part) {
  const kernels::Precision precision = stage.runner->parameters().precision();
  const ElementRange kept = stage.optimizer->kept(part);
  if (kept.size() == 0) return;
  const std::int64_t size = kernels::real_bytes(precision);
  std::vector<std::byte> whole(static_cast<std::size_t>(tensor.shape.elements_per_sample() * size));
  read(group, tensor, whole.data(), precision);
  std::memcpy(stage.optimizer->state(k, part), whole.data() + kept.begin * size,
              static_cast<std::size_t>(kept.size() * size));
}

// The file has the whole; a rank takes what it holds.
void read_part(const storage::Group& group, const Tensor& tensor, const StageRunner& runner, TensorId id, void* data) {
  const kernels::Precision precision = runner.parameters().precision();
  const Holding holding = runner.holding(id);
  if (holding.kind == Holding::Kind::whole) return read(group, tensor, data, precision);
  const std::int64_t size = kernels::real_bytes(precision);
  std::vector<std::byte> whole(static_cast<std::size_t>(tensor.shape.elements_per_sample() * size));
  read(group, tensor, whole.data(), precision);
  pack(held_region(tensor.shape.dims, 0, holding, runner.group()->index()), whole.data(), size,
       static_cast<std::byte*>(data));
}

}  // namespace

int checkpoint_writer(const Bucket& bucket, std::size_t index) { return bucket.owners[index % bucket.owners.size()]; }

std::vector<TensorId> tensors_of_writer(const std::vector<Bucket>& buckets, int rank) {
  std::vector<TensorId> tensors;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b].shard != 0 || checkpoint_writer(buckets[b], b) != rank) continue;
    tensors.insert(tensors.end(), buckets[b].tensors.begin(), buckets[b].tensors.end());
  }
  return tensors;
}

void write_tensors(const std::filesystem::path& path, const Graph& graph, const std::vector<TensorId>& tensors,
                   const std::vector<LocalStage>& stages, const WholeTensors& whole,
                   const std::function<void()>& written) {
  storage::File file = storage::File::make(path);
  {
    storage::Group values = file.make_group(kValue);
    std::vector<storage::Group> states;
    for (const TensorId tensor : tensors) {
      // A rank that holds several copies keeps them alike: the first is as good as any.
      const auto stage =
          std::find_if(stages.begin(), stages.end(), [&](const LocalStage& s) { return holds(s, tensor); });
      const kernels::Precision precision = stage->runner->parameters().precision();
      const TensorId part = stage->runner->part_of(tensor);
      const auto gathered = whole.find(tensor);
      const bool here = gathered == whole.end();
      write(values, graph.tensor(tensor),
            here ? stage->runner->parameters().value(part) : gathered->second.front().data(), precision);
      written();
      if (!has_state(graph, tensor)) continue;
      const std::vector<std::string> names = stage->optimizer->state_names();
      for (std::size_t k = 0; k < names.size(); ++k) {
        if (k == states.size()) states.push_back(file.make_group(names[k]));
        write(states[k], graph.tensor(tensor), here ? stage->optimizer->state(k, part) : gathered->second[k + 1].data(),
              precision);
        written();
      }
    }
  }
  file.close();
}

void read_tensors(const FoundCheckpoint& checkpoint, const Graph& graph, const std::vector<LocalStage>& stages) {
  for (const CheckpointFile& described : checkpoint.manifest.files) {
    std::optional<storage::File> file;  // opened where this rank needs something of it
    for (const std::string& name : described.tensors) {
      const TensorId tensor = graph.find_tensor(name);
      for (const LocalStage& stage : stages) {
        if (!holds(stage, tensor)) continue;
        if (!file) file.emplace(storage::File::open(checkpoint.folder / described.name));
        kernels::StageParameters& parameters = stage.runner->parameters();
        const TensorId part = stage.runner->part_of(tensor);
        read_part(file->group(kValue), graph.tensor(tensor), *stage.runner, tensor, parameters.value(part));
        if (!has_state(graph, tensor)) continue;
        const std::vector<std::string> states = stage.optimizer->state_names();
        for (std::size_t k = 0; k < states.size(); ++k) {
          const storage::Group group = file->group(states[k]);
          if (stage.optimizer->is_sharded()) {
            read_kept(group, graph.tensor(tensor), stage, k, part);
          } else {
            read_part(group, graph.tensor(tensor), *stage.runner, tensor, stage.optimizer->state(k, part));
          }
        }
      }
    }
  }
}

}  // namespace millrace::runtime
