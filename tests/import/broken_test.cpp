// Broken files: one error with file, line and key, and what is allowed.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "graph/op_schema.h"
#include "import/import.h"
#include "tests/import/samples.h"

namespace millrace::import {
namespace {

using samples::Sample;

std::string message_of(const std::string& text, const std::string& file) {
  try {
    load_text(text, file);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

// A sample with one change, and the error that it makes.
struct Broken {
  std::string from;
  std::string to;
  std::string message;
};

void expect_refused(const Sample& sample, const std::vector<Broken>& table) {
  for (const Broken& broken : table) {
    EXPECT_EQ(message_of(samples::with(sample.text, broken.from, broken.to), sample.file), broken.message)
        << broken.from << " → " << broken.to;
  }
}

TEST(Broken, DnnPartitioning) {
  const std::string latency = R"("cpuLatency": 20)";
  const std::string number = "split.json:5: nodes[1].cpuLatency: found ";
  expect_refused(
      samples::split(),
      {{latency, R"("cpuLatency": -20)", number + "'-20', allowed: number, at least 0"},
       {latency, R"("cpuLatency": "20")", number + "\"20\", allowed: number, at least 0"},
       {latency, R"("cpuLatency": null)", number + "nothing, allowed: number, at least 0"},
       {latency, R"("cpuLatency": [20])", number + "a list, allowed: number, at least 0"},
       {latency, R"("cpuLatency": 1e999)", "split.json:5:71: not JSON: number overflow parsing '1e999'"},
       {latency, R"("cpuLatency": NaN)",
        "split.json:5:67: not JSON: syntax error while parsing value - invalid literal"},
       {latency, R"("cpuLatenzy": 20)", "split.json:5: nodes[1]: key 'cpuLatency' must be given"},
       {R"("id": 2)", R"("id": 1)", "split.json:5: nodes[1].id: id 1 is used twice"},
       {R"("id": 2)", R"("id": 2.5)", "split.json:5: nodes[1].id: found '2.5', allowed: integer"},
       {R"("id": 2)", R"("id": 99999999999999999999)", "split.json:5: nodes[1].id: found '1e+20', allowed: integer"},
       {R"("id": 2)", R"("id": 18446744073709551615)",
        "split.json:5: nodes[1].id: found '18446744073709551615', allowed: integer"},
       {R"("isBackwardNode": false)", R"("isBackwardNode": 2)",
        "split.json:5: nodes[1].isBackwardNode: found '2', allowed: true, false, 1 or 0"},
       {R"("colorClass": 8)", R"("colorClass": "eight")",
        "split.json:5: nodes[1].colorClass: found \"eight\", allowed: integer"},
       {R"("name": "two")", R"("name": 2)", "split.json:5: nodes[1].name: found '2', allowed: text"},
       {R"("size": 100.5)", R"("size": 1e19)",
        "split.json:4: nodes[0].size: found '1e+19', allowed: number of bytes, below 2^63"},
       {R"("size": 100.5)", R"("size": 9e18)",
        "split.json: tensor 'one.weight': found dims [9000000000000000000], allowed: at most 2^41 elements"},
       {R"("sourceId": 2)", R"("sourceId": 22)",
        "split.json:14: edges[2].sourceId: found 22, allowed: the id of a node"},
       {R"("sourceId": 2, "destId": 3)", R"("sourceId": 2, "destId": 2)",
        "split.json:14: edges[2]: an edge from a node to itself, allowed: between two nodes"},
       {R"("sourceId": 2, "destId": 3)", R"("sourceId": 3, "destId": 2)",
        "split.json:14: edges[2]: an edge from a backward to a forward node, allowed: all others"},
       {R"("sourceId": 2, "destId": 3)", R"("sourceId": 2, "destId": 1)",
        "split.json:11: edges: nodes depend on each other: 1 → 2 → 1; allowed: no cycles"},
       {R"("cost": 0.25})", R"("cost": 0.75})",
        "split.json:13: edges[1].cost: found 0.75, allowed: 0.25 as on the first edge from node 1"},
       {R"("maxFPGAs": 2)", R"("maxFPGAs": -1)", "split.json:2: maxFPGAs: found '-1', allowed: integer, 0 to 1000000"},
       {R"("maxFPGAs": 2, "maxCPUs": 1)", R"("maxFPGAs": 0, "maxCPUs": 0)",
        "split.json:2: maxFPGAs: found 0 and maxCPUs 0, allowed: at least one device"},
       {R"("maxCPUs": 1,)", "", "split.json:1: key 'maxCPUs' must be given"},
       {R"("edges")", R"("edgez")", "split.json:1: key 'edges' must be given"},
       {R"("maxCPUs": 1,)", R"("maxCPUs": 1, "maxCPUs": 2,)",
        "split.json:2:57: key 'maxCPUs' is given twice, first in line 2"}});
  EXPECT_EQ(message_of(R"({"maxFPGAs": 1, "nodes": [], "edges": []})", "empty.json"),
            "empty.json:1: nodes: found no nodes, allowed: at least one");
  EXPECT_EQ(message_of(R"({"maxFPGAs": 1, "nodes": {"a": 1}, "edges": []})", "map.json"),
            "map.json:1: nodes: found a map, allowed: a list");
}

TEST(Broken, Piper) {
  expect_refused(
      samples::piper(),
      {{R"("8": 1.5, "7": 2.5)", R"("8": 1.5)",
        "piper.json:6: nodes[0].TMPCs.1[0].syncTimeFw: an edge of the node is missing, allowed: all of one direction"},
       {R"("8": 1.5, "7": 2.5)", R"("8": 1.5, "9": 2.5)",
        "piper.json:6: nodes[0].TMPCs.1[0].syncTimeFw.9: found node 9, allowed: one that an edge joins"},
       {R"("8": 1.5, "7": 2.5)", R"("8": 1.5, "x": 2.5)",
        "piper.json:6: nodes[0].TMPCs.1[0].syncTimeFw.x: found key 'x', allowed: the id of a node"},
       {R"("TMPCs": {"2")", R"("TMPCs": {"0")", "piper.json:7: nodes[1].TMPCs.0: found degree 0, allowed: at least 1"},
       {R"("TMPCs": {"2")", R"("TMPCs": {"two")",
        "piper.json:7: nodes[1].TMPCs.two: found key 'two', allowed: a tensor-parallel degree"},
       {R"("TMPCs": {"2")", R"("TMPCs": {"01")", "piper.json:7: nodes[1].TMPCs: a degree is given twice"},
       {R"("activation recomp")", R"("vanilla")",
        "piper.json:12: nodes[1].TMPCs.1[1]: variant 'vanilla' is given twice"},
       {R"("bandwidth": 25.5)", R"("bandwidth": 0)", "piper.json:2: bandwidth: found '0', allowed: number, above 0"},
       {R"("mbsInBatch": 12)", R"("mbsInBatch": 0)",
        "piper.json:2: mbsInBatch: found '0', allowed: integer, 1 to 1099511627776"},
       {R"({"sourceId": 7, "destId": 9)", R"({"sourceId": 7, "destId": 8)",
        "piper.json:20: edges[1]: this edge is given twice"},
       {R"({"sourceId": 7, "destId": 8)", R"({"sourceId": 9, "destId": 8)",
        "piper.json:18: edges: nodes depend on each other: 9 → 8 → 9; allowed: no cycles"},
       {R"("TMPCs": {"1": [
    {"id": "only")",
        R"("TMPCs": {"1": [], "x-1": [
    {"id": "only")",
        "piper.json:14: nodes[2].TMPCs.x-1: found key 'x-1', allowed: a tensor-parallel degree"}});
}

TEST(Broken, PipeDream) {
  expect_refused(
      samples::profile(),
      {{"=3.190", "=3.19o", "tiny-pbs-16.txt:1:1: forward_compute_time: found '3.19o', allowed: number, at least 0"},
       {"=3.190", "=-3", "tiny-pbs-16.txt:1:1: forward_compute_time: found '-3', allowed: number, at least 0"},
       {"=3.190", "=nan", "tiny-pbs-16.txt:1:1: forward_compute_time: found 'nan', allowed: number, at least 0"},
       {"=3.190", "", "tiny-pbs-16.txt:1:1: forward_compute_time: '=' and a value must follow"},
       {"=3.190", "=", "tiny-pbs-16.txt:1:1: forward_compute_time: found nothing, allowed: number, at least 0"},
       {"=3.190", "=1e999",
        "tiny-pbs-16.txt:1:1: forward_compute_time: found '1e999', allowed: number, at least 0 (too large for 64 "
        "bits)"},
       {", parameter_size=364.000", "", "tiny-pbs-16.txt:1:1: parameter_size must be given"},
       {"parameter_size=364.000", "parametersize=364.000",
        "tiny-pbs-16.txt:1:1: unknown field 'parametersize' (did you mean 'parameter_size'?); valid: "
        "forward_compute_time, backward_compute_time, activation_size, parameter_size"},
       {"activation_size=[", "activat=[",
        "tiny-pbs-16.txt:1:1: unknown field 'activat' (did you mean 'activation_size'?); valid: forward_compute_time, "
        "backward_compute_time, activation_size, parameter_size"},
       {"parameter_size=364.000", "activation_size=364.000", "tiny-pbs-16.txt:1:1: activation_size: given twice"},
       {"; 3.5]", "; 3.5", "tiny-pbs-16.txt:1:1: activation_size: a '[' has no ']'"},
       {"; 3.5]", "; x]", "tiny-pbs-16.txt:1:1: activation_size: found 'x', allowed: number, at least 0"},
       {"node4 -- LSTM(4, 8) -- ", "node4 -- LSTM(4, 8) ",
        "tiny-pbs-16.txt:1:1: found node 'node4', allowed: one that has a line of its own above"},
       {"node4 -- LSTM", "node4 -- a -- b -- LSTM",
        "tiny-pbs-16.txt:1:1: found 5 parts between ' -- ', allowed: `node -- description -- figures` or `node -- "
        "node`"},
       {"node2 -- Drop", "node1 -- Drop", "tiny-pbs-16.txt:3:1: node 'node1' is given twice, first in line 2"},
       {"\tnode1 -- node2", "\tnode1 -- node7",
        "tiny-pbs-16.txt:4:1: found node 'node7', allowed: one that has a line of its own above"},
       {"\tnode1 -- node2", "\tnode2 -- node2",
        "tiny-pbs-16.txt:4:1: an edge from node 'node2' to itself, allowed: between two nodes"},
       {"\tnode1 -- node2", "\tnode2 -- node4", "tiny-pbs-16.txt:5:1: the edge node2 -- node4 is given twice"},
       {"\tnode1 -- node2", "\tnode4 -- node2",
        "tiny-pbs-16.txt:5:1: nodes depend on each other: node4 → node2 → node4; allowed: no cycles"},
       {"Dropout", "Drop\xff", "tiny-pbs-16.txt:3:14: byte 0xff is not text; a PipeDream profile in UTF-8 is needed"}});
  EXPECT_EQ(message_of(samples::profile().text, "x-pbs-.txt"),
            "x-pbs-.txt: no number of samples after 'pbs-' in the name; set model.options.profile_batch");
}

TEST(Broken, GraphFile) {
  const std::string duration = "allowed: number with a unit of time (ns, us, ms, s, min, h), such as 10 us";
  const std::string above = "allowed: what stands above (operators are in topological order, without cycles)";
  const std::string unknown_a =
      "\ngraph.yaml:7:38: operators[3].inputs: unknown input 'a' (did you mean 'b'?); allowed: an operator above, an "
      "input, a label";
  expect_refused(
      samples::graph_yaml(),
      {{"forward: 5 ms", "forward: 5",
        "graph.yaml:5:56: operators[1].forward: found '5', " + duration + " (the unit is missing)"},
       {"forward: 5 ms", "forward: 0",
        "graph.yaml:5:56: operators[1].forward: found '0', " + duration + " (the unit is missing)"},
       {"forward: 5 ms", "forward: -5 ms",
        "graph.yaml:5:56: operators[1].forward: found '-5 ms', " + duration + " (not negative)"},
       {"forward: 5 ms", "forward: [5]",
        "graph.yaml:5:56: operators[1].forward: found a list, allowed: number with a unit"},
       {"forward: 5 ms", "forwards: 5 ms",
        "graph.yaml:5:47: operators[1].forwards: unknown key 'forwards' (did you mean 'forward'?); valid: name, kind, "
        "inputs, layer, forward, backward, backward_input, backward_weight, parameters, output, saved"},
       {"forward: 5 ms", "backward_input: 5 ms",
        "graph.yaml:5:79: operators[1].backward: given beside backward_input or backward_weight; allowed: the whole or "
        "its parts"},
       {"output: 1 MiB, saved", "output: 0.5 B, saved",
        "graph.yaml:4:134: operators[0].output: found '0.5 B', allowed: number with a unit of size (B, kB, MB, GB, TB, "
        "KiB, MiB, GiB, TiB), such as 12 GiB (bytes are whole)"},
       {"name: a,", "name: b,",
        "graph.yaml:6:5: operators[2]: tensor name 'b.output' is used twice; names must differ" + unknown_a},
       {"name: a,", "name: 'a b',",
        "graph.yaml:5:5: operators[1]: operator name: found 'a b', allowed: one or more characters without white "
        "space, '*' and '?'" +
            unknown_a},
       {"name: a,", "", "graph.yaml:5:5: operators[1].name: must be given" + unknown_a},
       {"inputs: [a, b]", "inputs: [a, c]",
        "graph.yaml:7:41: operators[3].inputs: unknown input 'c' (did you mean 'a'?); allowed: an operator above, an "
        "input, a label"},
       {"inputs: [in]", "inputs: [add]",
        "graph.yaml:5:38: operators[1].inputs: found 'add', which stands below or is the operator itself; " + above},
       {"inputs: [in]", "inputs: [a]",
        "graph.yaml:5:38: operators[1].inputs: found 'a', which stands below or is the operator itself; " + above},
       {"inputs: [in]", "inputs: in", "graph.yaml:5:37: operators[1].inputs: found 'in', allowed: a list of operators"},
       {"out_features: 10", "out_features: ten",
        "graph.yaml:8:5: operators[4]: operator 'fc' (linear): attribute 'out_features': found ten (text), allowed: "
        "integer"},
       {"bias: true", "bias: {a: 1}",
        "graph.yaml:8:70: operators[4].bias: found a map, allowed: a number, a word, true, false or a list of "
        "integers"},
       {"bias: true", "tied: [a.weight]",
        "graph.yaml:8:5: operators[4]: operator 'fc' (linear): shared weight: found 'a.weight' [16777216], allowed: "
        "[10, "
        "262144]"},
       {"bias: true", "tied: [z.weight]",
        "graph.yaml:8:71: operators[4].tied: found 'z.weight', allowed: a parameter of an operator above, or null"},
       {"output: 1 MiB}\n  - {name: fc", "output: 7 B}\n  - {name: fc",
        "graph.yaml:8:5: operators[4]: operator 'fc' (linear): input 0: found 7 bytes of 'add.output', allowed: 4-byte "
        "reals, at least one"},
       {"millrace_graph: 1", "millrace_graph: 2",
        "graph.yaml:1:17: millrace_graph: found '2', allowed: integer, 1 to 1"},
       {"name: two-branches", "name: two-branches\nmicro_batches: 2",
        "graph.yaml:3:1: micro_batches: unknown key 'micro_batches' (did you mean 'micro_batch'?); valid: "
        "millrace_graph, name, micro_batch, batch, inputs, labels, carried, operators"},
       {"name: two-branches", "micro_batch: 0",
        "graph.yaml:2:14: micro_batch: found '0', allowed: integer, 1 to 1099511627776"}});
  EXPECT_EQ(message_of("millrace_graph: 1\noperators: []\n", "none.yaml"),
            "none.yaml:2:12: operators: found no operators, allowed: at least one");
  EXPECT_EQ(message_of("millrace_graph: 1\n", "none.yaml"),
            "none.yaml:1:1: operators: missing, allowed: a list of operators");
}

TEST(Broken, SeveralFaultsAreToldTogetherAndWhatFollowsFromThemIsNot) {
  std::string kinds;
  for (const OpSchema* row : op_schemas()) kinds += (kinds.empty() ? "" : ", ") + row->name;
  const std::string keys =
      "valid: name, kind, inputs, layer, forward, backward, backward_input, backward_weight, parameters, output, saved";
  EXPECT_EQ(message_of(R"(millrace_graph: 1
inputs: [{name: x, shape: [0]}]
operators:
  - {name: a, kind: cost, inputs: [x], forward: 1}
  - {name: alpha, kind: cost, inputs: [a]}
  - {name: c, kind: costt, inputs: [alpha], forwrd: 1 ms}
  - {name: d, kind: relu, inputs: []}
  - {name: e, kind: cost, inputs: [alpa], output: 7, forwrd: 1 ms}
  - {name: f, kind: linear, inputs: [zz], out_featurs: 7}
)",
                       "many.yaml"),
            "many.yaml:2:28: inputs[0].shape[0]: found '0', allowed: integer, at least 1\n"
            "many.yaml:4:49: operators[0].forward: found '1', allowed: number with a unit of time (ns, us, ms, s, min, "
            "h), such as 10 us (the unit is missing)\n"
            "many.yaml:6:21: operators[2].kind: unknown operator kind 'costt' (did you mean 'cost'?); valid: " +
                kinds +
                "\n"
                "many.yaml:6:45: operators[2].forwrd: unknown key 'forwrd' (did you mean 'forward'?); " +
                keys +
                "\n"
                "many.yaml:7:5: operators[3]: operator 'd' (relu): found 0 inputs, allowed: 1\n"
                "many.yaml:8:36: operators[4].inputs: unknown input 'alpa' (did you mean 'alpha'?); allowed: an "
                "operator above, an input, a label\n"
                "many.yaml:8:51: operators[4].output: found '7', allowed: number with a unit of size (B, kB, MB, GB, "
                "TB, KiB, MiB, GiB, TiB), such as 12 GiB (the unit is missing)\n"
                "many.yaml:8:54: operators[4].forwrd: unknown key 'forwrd' (did you mean 'forward'?); " +
                keys +
                "\n"
                "many.yaml:9:5: operators[5].out_features: must be given for kind linear\n"
                "many.yaml:9:38: operators[5].inputs: unknown input 'zz'; allowed: an operator above, an input, a "
                "label\n"
                "many.yaml:9:43: operators[5].out_featurs: unknown key 'out_featurs' (did you mean 'out_features'?); "
                "valid: name, kind, inputs, layer, tied, out_features, bias");
}

TEST(Broken, GraphFileInJson) {
  expect_refused(
      samples::graph_json(),
      {{R"("3 ms")", "3",
        "graph.json:6:36: operators[2].forward: found '3', allowed: number with a unit of time (ns, us, ms, s, "
        "min, h), such as 10 us (the unit is missing)"},
       {R"("3 ms")", "null", "graph.json:6:36: operators[2].forward: found nothing, allowed: number with a unit"},
       {R"("output")", R"("outputs")",
        "graph.json:6:55: operators[2].outputs: unknown key 'outputs' (did you mean 'output'?); valid: name, kind, "
        "inputs, layer, forward, backward, backward_input, backward_weight, parameters, output, saved"},
       {R"("x-note")", R"("name")", "graph.json:6:72: key 'name' is given twice, first in line 6"},
       {R"("element": "index")", R"("element": "indexes")",
        "graph.json:10:57: inputs[0].element: found \"indexes\", allowed: one of: real, index (did you mean 'index'?)"},
       {R"(["head", "labels"])", R"(["head", "label"])",
        "graph.json:8:64: operators[4].inputs: unknown input 'label' (did you mean 'labels'?); allowed: an operator "
        "above, an input, a label"},
       {R"("shape": [3], "element")", R"("shape": [0], "element")",
        "graph.json:10:41: inputs[0].shape[0]: found '0', allowed: integer, at least 1"},
       {R"("name": "tokens")", R"("name": "")",
        "graph.json:4:53: operators[0].inputs: unknown input 'tokens'; allowed: an operator above, an input, a label\n"
        "graph.json:10:13: inputs[0]: tensor name: found '', allowed: one or more characters without white space, '*' "
        "and '?'"},
       {R"("name": "labels")", R"("name": "tokens")",
        "graph.json:8:64: operators[4].inputs: unknown input 'labels'; allowed: an operator above, an input, a label\n"
        "graph.json:11:13: labels[0]: name 'tokens' is used twice"},
       {R"(["tokens"])", R"(["labels"])",
        "graph.json:4:3: operators[0]: operator 'embed' (embedding): input 0: found label 'labels', which only a loss "
        "may read"},
       {"\"operators\": [", "\"operators\": {\"a\": [",
        "graph.json:14:1: not JSON: syntax error while parsing object - unexpected end of input; expected '}'"}});
}

TEST(Broken, WhatAGraphFileCarries) {
  const std::string elements =
      "carried.json:4:16: carried.operators: found 1 elements, allowed: one for each of the 2 operators";
  expect_refused(
      samples::graph_with_split(),
      {{R"("from": "a")", R"("from": "c")",
        "carried.json:6:26: carried.transfers[0].from: found \"c\", allowed: the name of an operator"},
       {R"(["b"])", R"(["b", "a"])",
        "carried.json:6:37: carried.transfers[0].to: found a list, allowed: operators in their order, each once"},
       {R"("time": 0.25)", R"("time": -1)",
        "carried.json:6:44: carried.transfers[0].time: found '-1', allowed: number, at least 0"},
       {R"("cpus": 1)", R"("cpu": 1)",
        "carried.json:3:13: carried.cpus: missing, allowed: integer, 0 to 2147483647\n"
        "carried.json:3:63: carried.cpu: unknown key 'cpu' (did you mean 'cpus'?); valid: format, accelerators, cpus, "
        "memory, operators, transfers"},
       {R"("format": "dnn-partitioning")", R"("format": "dnn")",
        "carried.json:3:24: carried.format: found \"dnn\", allowed: one of: dnn-partitioning, piper, pipedream (did "
        "you mean "
        "'dnn-partitioning'?)"},
       {R"(, "size": 3, "on_accelerator": true, "nodes": 1},
   {"accelerator": 0, "cpu": 2, "size": 0)",
        ", \"size\": 0", elements}});
}

TEST(Broken, KindsThatAreNotKnown) {
  const std::string kinds =
      "a file of unknown kind; allowed: a millrace graph (key 'millrace_graph'), PipeDream profile (lines 'node -- "
      "…'), "
      "dnn-partitioning JSON (key 'maxFPGAs'), Piper JSON (key 'maxDevices')";
  EXPECT_EQ(message_of("", "empty"), "empty: " + kinds);
  EXPECT_EQ(message_of("hello", "text"), "text: " + kinds);
  EXPECT_EQ(load_text("\xef\xbb\xbf" + samples::split().text, "x.json").format, "dnn-partitioning");
  EXPECT_EQ(load_text("\xef\xbb\xbf" + samples::profile().text, "x.txt").graph.op(2).name, "node4");
  EXPECT_EQ(load_text("\xef\xbb\xbf" + samples::graph_json().text, "x.json").batch, 8);
  EXPECT_EQ(load_text("\xef\xbb\xbf" + samples::graph_yaml().text, "x.yaml").batch, 1);
  EXPECT_EQ(message_of("{}", "map.json"), "map.json:1: " + kinds);
  EXPECT_EQ(message_of("[]", "list.json"), "list.json:1: found a list, allowed: a map");
  EXPECT_EQ(message_of(std::string(100'000, '['), "deep.json"), "deep.json:1:65: nested beyond 64 levels");
  EXPECT_EQ(message_of("{\"maxFPGAs\": \"\xff\"}", "bytes.json"),
            "bytes.json:1:15: not JSON: syntax error while parsing value - invalid string: ill-formed UTF-8 byte");
  const auto refusal = [](const std::filesystem::path& file) -> std::string {
    try {
      load(file);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal("model.onnx"),
            "model.onnx: ONNX is not built in yet; allowed: a millrace graph, a PipeDream profile, dnn-partitioning "
            "JSON, Piper JSON");
  EXPECT_EQ(refusal("nowhere.json"), "nowhere.json: no such file");
  EXPECT_EQ(refusal("/"), "/: is a folder; a graph file is needed");
  EXPECT_THROW(load_text(samples::split().text, "split.json", {.profile_batch = 2}), InvalidInput);
}

}  // namespace
}  // namespace millrace::import
