// Every message is sent and received once, is told apart by its tag, and together they carry exactly what is read.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "graph/stage_graph.h"
#include "program/describe.h"
#include "program/unroll.h"
#include "program/verifier_parts.h"

namespace millrace::verification {
namespace {

std::string words(const Graph& graph, const Transfer& t) {
  return fmt::format("{} of {}, micro-batch {}, rows {} to {}, from rank {} to rank {}",
                     t.direction == Direction::activation ? "activation" : "gradient", graph.tensor(t.tensor).name,
                     t.micro_batch, t.rows.begin, t.rows.end, t.sender, t.receiver);
}

using Edge = std::tuple<Direction, TensorId, std::int32_t, std::int32_t>;
Edge edge_of(const Transfer& t) { return {t.direction, t.tensor, t.from_stage, t.to_stage}; }

// The messages of one way between two ranks.
using Pair = std::pair<std::int32_t, std::int32_t>;
// … of them, those with one tag.
using Channel = std::tuple<std::int32_t, std::int32_t, std::int32_t>;

void check_tags(const Graph& graph, const Program& program, std::int32_t tag_limit, Findings& findings) {
  std::map<Channel, Edge> edge_of_tag;
  std::map<std::pair<Pair, std::int32_t>, Edge> edge_of_number;
  for (const Transfer& t : program.transfers) {
    if (t.tag < 0 || t.tag > tag_limit) {
      findings.add(fmt::format("{}: tag {} is outside 0 to {}", words(graph, t), t.tag, tag_limit));
    }
    if (edge_of_tag.try_emplace(Channel{t.sender, t.receiver, t.tag}, edge_of(t)).first->second != edge_of(t)) {
      findings.add(fmt::format("{}: tag {} belongs to another edge of these ranks", words(graph, t), t.tag));
    }
    if (edge_of_number.try_emplace({Pair{t.sender, t.receiver}, t.edge}, edge_of(t)).first->second != edge_of(t)) {
      findings.add(fmt::format("{}: number {} belongs to another edge of these ranks", words(graph, t), t.edge));
    }
  }
}

// A message in a channel: where it stands, and which one it is.
struct Post {
  int rank = 0;
  std::size_t position = 0;
  std::int32_t transfer = -1;
  std::int32_t iteration = 0;
};

// Messages with one tag meet in the order in which they are sent and received, over iterations too.
void check_order(const Graph& graph, const Program& program, Findings& findings) {
  std::map<Channel, std::vector<Post>> sent;
  std::map<Channel, std::vector<Post>> received;
  const auto lists = unroll(program, iterations_to_check(program));
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    for (const UnrolledInstruction& step : lists[rank]) {
      const Instruction& at = program.ranks[rank].instructions[static_cast<std::size_t>(step.position)];
      if (at.transfer < 0) continue;
      const Transfer& t = program.transfers[static_cast<std::size_t>(at.transfer)];
      const bool send = at.kind == InstructionKind::send_activation || at.kind == InstructionKind::send_gradient;
      (send ? sent : received)[Channel{t.sender, t.receiver, t.tag}].push_back(
          {static_cast<int>(rank), static_cast<std::size_t>(step.position), at.transfer, step.iteration});
    }
  }
  for (const auto& [channel, list] : sent) {
    const std::vector<Post>& other = received[channel];
    for (std::size_t i = 0; i < std::min(list.size(), other.size()); ++i) {
      if (list[i].transfer == other[i].transfer && list[i].iteration == other[i].iteration) continue;
      findings.add(fmt::format(
          "{} (instruction {}) meets {} (instruction {}): rank {} sends its messages with tag {} to rank {} in another "
          "order than they are received",
          describe(graph, program, list[i].rank, list[i].position), list[i].position,
          describe(graph, program, other[i].rank, other[i].position), other[i].position, std::get<0>(channel),
          std::get<2>(channel), std::get<1>(channel)));
      break;
    }
  }
}

}  // namespace

void check_matching(const Graph& graph, const Program& program, std::int32_t tag_limit, Findings& findings) {
  check_tags(graph, program, tag_limit, findings);
  std::vector<int> sends(program.transfers.size(), 0);
  std::vector<int> receives(program.transfers.size(), 0);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const std::vector<Instruction>& list = program.ranks[rank].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Instruction& at = list[i];
      const bool send = at.kind == InstructionKind::send_activation || at.kind == InstructionKind::send_gradient;
      const bool receive =
          at.kind == InstructionKind::receive_activation || at.kind == InstructionKind::receive_gradient;
      if (!send && !receive) continue;
      const Transfer& t = program.transfers[static_cast<std::size_t>(at.transfer)];
      const bool activation =
          at.kind == InstructionKind::send_activation || at.kind == InstructionKind::receive_activation;
      const bool fits = (send ? t.sender : t.receiver) == static_cast<std::int32_t>(rank) &&
                        activation == (t.direction == Direction::activation) &&
                        (send ? t.from_stage : t.to_stage) == at.stage && t.micro_batch == at.micro_batch;
      if (!fits) {
        findings.add(fmt::format("{} (instruction {}) does not belong to its message: {}",
                                 describe(graph, program, static_cast<int>(rank), i), i, words(graph, t)));
      }
      ++(send ? sends : receives)[static_cast<std::size_t>(at.transfer)];
    }
  }
  for (std::size_t t = 0; t < program.transfers.size(); ++t) {
    if (sends[t] == 1 && receives[t] == 1) continue;
    findings.add(fmt::format("{}: {} sends and {} receives; a message has one of each",
                             words(graph, program.transfers[t]), sends[t], receives[t]));
  }
  check_order(graph, program, findings);
}

namespace {

// Where rows are needed: edge, micro-batch, receiver.
using Need = std::tuple<Edge, std::int32_t, std::int32_t>;

class Coverage {
 public:
  Coverage(const Graph& graph, const Program& program, Findings& findings)
      : graph_(graph), program_(program), findings_(findings) {
    for (const Transfer& t : program.transfers) {
      carried_[Need{edge_of(t), t.micro_batch, t.receiver}].push_back(t.rows);
      check_sender(t);
    }
  }

  void run() {
    std::map<std::pair<int, TensorId>, std::int32_t> producers;  // by pipeline and tensor
    std::vector<StageGraph> parts;
    for (std::size_t s = 0; s < program_.stages.size(); ++s) {
      parts.push_back(make_stage_graph(graph_, program_.stages[s].ops));
      for (const TensorId output : parts.back().outputs) {
        producers[{program_.stages[s].ref.pipeline, output}] = static_cast<std::int32_t>(s);
      }
    }
    std::set<std::tuple<int, TensorId, std::vector<int>>> received;
    for (std::size_t s = 0; s < program_.stages.size(); ++s) {
      const auto stage = static_cast<std::int32_t>(s);
      for (const TensorId input : parts[s].inputs) {
        if (graph_.tensor(input).role != Role::activation) continue;
        const std::int32_t producer = producers.at({program_.stages[s].ref.pipeline, input});
        if (shares_ranks(producer, stage)) continue;
        // Once for all stages of the same ranks.
        const auto key = std::tuple(program_.stages[s].ref.pipeline, input, program_.stages[s].ranks);
        if (received.insert(key).second) need({Direction::activation, input, producer, stage});
      }
      if (!program_.training) continue;
      for (const TensorId input : parts[s].gradient_inputs) {
        const std::int32_t producer = producers.at({program_.stages[s].ref.pipeline, input});
        if (!shares_ranks(producer, stage)) need({Direction::gradient, input, stage, producer});
      }
    }
    for (const auto& [key, rows] : carried_) {
      findings_.add(fmt::format("rank {} gets rows of {}, micro-batch {}, that it does not read", std::get<2>(key),
                                graph_.tensor(std::get<1>(std::get<0>(key))).name, std::get<1>(key)));
    }
  }

 private:
  bool shares_ranks(std::int32_t a, std::int32_t b) const {
    return program_.stages[static_cast<std::size_t>(a)].ranks == program_.stages[static_cast<std::size_t>(b)].ranks;
  }

  void check_sender(const Transfer& t) {
    const ProgramStage& stage = program_.stages[static_cast<std::size_t>(t.from_stage)];
    const auto place = std::find(stage.ranks.begin(), stage.ranks.end(), t.sender);
    const bool has = place != stage.ranks.end() &&
                     intersect(t.rows, stage.rows[static_cast<std::size_t>(t.micro_batch)][stage.replica_of(
                                           static_cast<std::size_t>(place - stage.ranks.begin()))]) == t.rows;
    if (!has) findings_.add(fmt::format("{}: the sender does not have these rows", words(graph_, t)));
  }

  // All replicas of the receiving stage get their rows of `edge`, each row once.
  void need(const Edge& edge) {
    const ProgramStage& stage = program_.stages[static_cast<std::size_t>(std::get<3>(edge))];
    for (std::size_t k = 0; k < stage.rows.size(); ++k) {
      for (std::size_t r = 0; r < stage.ranks.size(); ++r) {
        const RowInterval wanted = stage.rows[k][stage.replica_of(r)];
        if (wanted.empty()) continue;
        const auto place = carried_.find(Need{edge, static_cast<std::int32_t>(k), stage.ranks[r]});
        const bool complete = place != carried_.end() && tiles(place->second, wanted);
        if (place != carried_.end()) carried_.erase(place);
        if (complete) continue;
        findings_.add(fmt::format("rank {} does not get rows {} to {} of the {} of {}, micro-batch {}, each once",
                                  stage.ranks[r], wanted.begin, wanted.end,
                                  std::get<0>(edge) == Direction::activation ? "activation" : "gradient",
                                  graph_.tensor(std::get<1>(edge)).name, k));
      }
    }
  }

  static bool tiles(std::vector<RowInterval> rows, RowInterval wanted) {
    std::sort(rows.begin(), rows.end(), [](RowInterval a, RowInterval b) { return a.begin < b.begin; });
    std::int64_t next = wanted.begin;
    for (const RowInterval part : rows) {
      if (part.empty() || part.begin != next) return false;
      next = part.end;
    }
    return next == wanted.end;
  }

  const Graph& graph_;
  const Program& program_;
  Findings& findings_;
  std::map<Need, std::vector<RowInterval>> carried_;
};

// Gradients of a tensor are added up as they are listed: latest stage first, then by rows (METHODS 4).
void check_sum_order(const Graph& graph, const Program& program, Findings& findings) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const std::vector<Instruction>& list = program.ranks[rank].instructions;
    std::map<std::tuple<TensorId, std::int32_t, std::int32_t>, std::pair<std::int32_t, std::int64_t>> last;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != InstructionKind::receive_gradient) continue;
      const Transfer& t = program.transfers[static_cast<std::size_t>(list[i].transfer)];
      const std::pair now{-t.from_stage, t.rows.begin};
      const auto [place, first] = last.try_emplace({t.tensor, t.to_stage, t.micro_batch}, now);
      if (!first && now < place->second) {
        findings.add(fmt::format("{} (instruction {}): gradients must be received latest stage first, then by rows",
                                 describe(graph, program, static_cast<int>(rank), i), i));
      }
      place->second = now;
    }
  }
}

}  // namespace

void check_coverage(const Graph& graph, const Program& program, Findings& findings) {
  Coverage(graph, program, findings).run();
  check_sum_order(graph, program, findings);
}

}  // namespace millrace::verification
