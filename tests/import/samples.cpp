// The texts of the samples.
#include "tests/import/samples.h"

#include <cstdlib>
#include <stdexcept>

namespace millrace::import::samples {

const Sample& split() {
  static const Sample sample{"split.json", R"({
 "maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 1,
 "nodes": [
  {"id": 1, "name": "one", "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.5, "isBackwardNode": 0, "colorClass": 7, "size": 100.5},
  {"id": 2, "name": "two", "supportedOnFpga": true, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": false, "colorClass": 8, "size": 0},
  {"id": 3, "name": "two'", "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 1, "colorClass": 8, "size": 0},
  {"id": 4, "name": "one'", "supportedOnFpga": 1, "cpuLatency": 80, "fpgaLatency": 8, "isBackwardNode": 1, "colorClass": 7, "size": 100.5},
  {"id": 5, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 16, "isBackwardNode": 1, "size": 3},
  {"id": 6, "name": "two", "supportedOnFpga": 0, "cpuLatency": 2, "fpgaLatency": 0, "isBackwardNode": 0, "size": 0}
 ],
 "edges": [
  {"sourceId": 1, "destId": 2, "cost": 0.25, "size": 9},
  {"sourceId": 1, "destId": 4, "cost": 0.25},
  {"sourceId": 2, "destId": 3, "cost": 0.5},
  {"sourceId": 3, "destId": 5, "cost": 0.125},
  {"sourceId": 5, "destId": 4, "cost": 2},
  {"sourceId": 1, "destId": 6, "cost": 0.25}
 ]
}
)"};
  return sample;
}

const Sample& piper() {
  static const Sample sample{"piper.json", R"({
 "maxDevices": 4, "maxMemoryPerDevice": 8000.0, "bandwidth": 25.5, "mbsInBatch": 12,
 "nodes": [
  {"id": 9, "name": "last", "TMPCs": {"1": [
    {"id": "vanilla", "timePerSample": 0.3, "parameterSize": 0.0, "memoryUsageA": 1.0, "memoryUsageB": 0.0,
     "syncTimeFw": {"8": 1.5, "7": 2.5}, "syncTimeBw": {}}]}},
  {"id": 7, "name": "layer", "TMPCs": {"2": [
    {"id": "vanilla", "timePerSample": 1.6, "parameterSize": 5.0, "memoryUsageA": 3.0, "memoryUsageB": 4.0,
     "syncTimeFw": {}, "syncTimeBw": {"8": 1.0, "9": 2.0}}], "1": [
    {"id": "activation recomp", "timePerSample": 4.0, "parameterSize": 10.0, "memoryUsageA": 2.0, "memoryUsageB": 8.0,
     "syncTimeFw": {}, "syncTimeBw": {"8": 0.0, "9": 0.0}},
    {"id": "vanilla", "timePerSample": 3.0, "parameterSize": 10.0, "memoryUsageA": 6.25, "memoryUsageB": 8.0,
     "syncTimeFw": {}, "syncTimeBw": {"8": 0.0, "9": 0.0}}]}},
  {"id": 8, "name": "layer", "TMPCs": {"1": [
    {"id": "only", "timePerSample": 0.75, "parameterSize": 1.0, "memoryUsageA": 0.0, "memoryUsageB": 0.0,
     "syncTimeFw": {"7": 3.5}, "syncTimeBw": {"9": 4.5}}]}}
 ],
 "edges": [
  {"sourceId": 7, "destId": 8, "communicationCost": 64.0},
  {"sourceId": 7, "destId": 9, "communicationCost": 100.5},
  {"sourceId": 8, "destId": 9, "communicationCost": 8.0}
 ]
}
)"};
  return sample;
}

const Sample& profile() {
  static const Sample sample{
      "tiny-pbs-16.txt",
      "node4 -- LSTM(4, 8) -- forward_compute_time=3.190, backward_compute_time=5.348, "
      "activation_size=[100.0; 20.0; 3.5], parameter_size=364.000\n"
      "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, "
      "parameter_size=0.000\n"
      "node2 -- Dropout(p=0.2) -- forward_compute_time=0.5, backward_compute_time=0.25, activation_size=64, "
      "parameter_size=0.000\n"
      "\tnode1 -- node2\n"
      "\tnode2 -- node4"};
  return sample;
}

const Sample& graph_yaml() {
  static const Sample sample{"graph.yaml", R"(millrace_graph: 1
name: two-branches
operators:
  - {name: in,  kind: cost, inputs: [],       forward: 2 ms, backward_input: 2 ms, backward_weight: 2 ms, parameters: 4 MiB, output: 1 MiB, saved: 3 MiB}
  - {name: a,   kind: cost, inputs: [in],     forward: 5 ms, backward: 10 ms, parameters: 16 MiB, output: 1 MiB}
  - {name: b,   kind: cost, inputs: [in],     forward: 3 ms, backward: 6 ms, output: 1 MiB}
  - {name: add, kind: cost, inputs: [a, b],   forward: 1 ms, backward: 1 ms, output: 1 MiB}
  - {name: fc,  kind: linear, inputs: [add], out_features: 10, bias: true}
)"};
  return sample;
}

const Sample& graph_json() {
  static const Sample sample{"graph.json", R"({
 "name": "tiny", "micro_batch": 2, "batch": 8,
 "operators": [
  {"name": "embed", "kind": "embedding", "inputs": ["tokens"], "vocabulary": 11, "width": 4},
  {"name": "drop", "kind": "dropout", "inputs": ["embed"], "probability": 0.5, "layer": "first"},
  {"name": "time", "kind": "cost", "forward": "3 ms", "output": "5 B", "x-note": [1, {"a": null}]},
  {"name": "head", "kind": "linear", "inputs": ["drop"], "out_features": 11, "bias": false, "tied": ["embed.weight"]},
  {"name": "loss", "kind": "cross_entropy", "inputs": ["head", "labels"]}
 ],
 "inputs": [{"name": "tokens", "shape": [3], "element": "index"}],
 "labels": [{"name": "labels", "shape": [3]}],
 "millrace_graph": 1
}
)"};
  return sample;
}

// Written by hand in the way of `import -o`, cut down to two operators.
Sample graph_with_split() {
  return {"carried.json", R"({"millrace_graph": 1, "operators": [
  {"name": "a", "kind": "cost"}, {"name": "b", "kind": "cost", "inputs": ["a"]}],
 "carried": {"format": "dnn-partitioning", "accelerators": 2, "cpus": 1, "memory": 1e3,
  "operators": [{"accelerator": 1.5, "cpu": 2, "size": 3, "on_accelerator": true, "nodes": 1},
   {"accelerator": 0, "cpu": 2, "size": 0, "on_accelerator": false, "nodes": 2}],
  "transfers": [{"from": "a", "to": ["b"], "time": 0.25}]}}
)"};
}

std::vector<Sample> all() { return {split(), piper(), profile(), graph_yaml(), graph_json(), graph_with_split()}; }

std::string with(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the sample has no '" + from + "'");
  return text.substr(0, at) + to + text.substr(at + from.size());
}

std::optional<std::filesystem::path> workloads() {
  const char* named = std::getenv("MILLRACE_WORKLOADS");
  const std::filesystem::path folder =
      named != nullptr ? std::filesystem::path(named)
                       : std::filesystem::path(MILLRACE_SOURCE_DIR).parent_path() / "shared" / "workloads";
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  return folder;
}

}  // namespace millrace::import::samples
