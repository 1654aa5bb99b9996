// Building a job, checking it, and what its ranks hold at most.
#include "sim/job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"

namespace millrace::sim {
namespace {

bool uses_edge(const Step& step) { return step.kind == StepKind::send || step.kind == StepKind::receive; }
bool uses_group(const Step& step) {
  return step.kind == StepKind::collective || step.kind == StepKind::start_collective ||
         step.kind == StepKind::wait_collective;
}

[[noreturn]] void refuse(const std::string& text) { throw InvalidInput("job: " + text); }

void check_ports(const Job& job, const std::vector<PortUse>& ports, const char* of, std::size_t index) {
  for (const PortUse& use : ports) {
    if (use.port < 0 || use.port >= job.ports || use.load < 0) {
      refuse(
          fmt::format("{} {} uses port {} with load {}; there are {} ports", of, index, use.port, use.load, job.ports));
    }
  }
}

// Messages of each slot as a list gives them: sends in any order, receives in theirs.
struct Numbers {
  std::vector<std::vector<std::int32_t>> sent, received;
};

Numbers numbers(const std::vector<Step>& steps) {
  Numbers out;
  for (const Step& step : steps) {
    if (!uses_edge(step)) continue;
    auto& lists = step.kind == StepKind::send ? out.sent : out.received;
    const auto slot = static_cast<std::size_t>(std::max<std::int16_t>(step.slot, 0));
    if (lists.size() <= slot) lists.resize(slot + 1);
    lists[slot].push_back(step.index);
  }
  for (auto& list : out.sent) std::sort(list.begin(), list.end());
  return out;
}

bool counts_up(const std::vector<std::int32_t>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

std::size_t length(const std::vector<std::vector<std::int32_t>>& lists, std::size_t slot) {
  return slot < lists.size() ? lists[slot].size() : 0;
}

void check_programs(const Job& job, const std::vector<Numbers>& counted) {
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    for (std::size_t i = 0; i < job.programs[p].size(); ++i) {
      const Step& step = job.programs[p][i];
      if (!(step.seconds >= 0) || step.bytes < 0 || step.index < 0 || step.slot < 0) {
        refuse(fmt::format("program {}, step {} has {} s, {} bytes, index {} and slot {}; none may be negative", p, i,
                           step.seconds, step.bytes, step.index, step.slot));
      }
    }
    for (const auto* lists : {&counted[p].sent, &counted[p].received}) {
      for (std::size_t slot = 0; slot < lists->size(); ++slot) {
        if (counts_up((*lists)[slot])) continue;
        refuse(fmt::format("program {} {} the messages of edge slot {} not each once, counted from 0{}", p,
                           lists == &counted[p].sent ? "sends" : "receives", slot,
                           lists == &counted[p].sent ? "" : " in the order of their receives"));
      }
    }
  }
}

void check_slots(const Job& job, std::size_t rank) {
  const Rank& who = job.ranks[rank];
  if (who.program < 0 || at(who.program) >= job.programs.size()) {
    refuse(fmt::format("rank {} has program {} of {}", rank, who.program, job.programs.size()));
  }
  if (who.multiplicity < 1 || !(who.slowness >= 0)) {
    refuse(fmt::format("rank {} stands for {} ranks with slowness {}", rank, who.multiplicity, who.slowness));
  }
}

// The widest slot that each program names.
struct Slots {
  std::size_t edges = 0, groups = 0;
};

Slots slots(const std::vector<Step>& steps) {
  Slots out;
  for (const Step& step : steps) {
    const auto slot = static_cast<std::size_t>(step.slot) + 1;
    if (uses_edge(step)) out.edges = std::max(out.edges, slot);
    if (uses_group(step)) out.groups = std::max(out.groups, slot);
  }
  return out;
}

}  // namespace

std::int32_t Job::add_program(std::vector<Step> steps) {
  programs.push_back(std::move(steps));
  return static_cast<std::int32_t>(programs.size()) - 1;
}

std::int32_t Job::add_rank(std::int32_t program, std::int64_t multiplicity, double slowness) {
  ranks.push_back({.program = program, .multiplicity = multiplicity, .slowness = slowness});
  return static_cast<std::int32_t>(ranks.size()) - 1;
}

std::int32_t Job::connect(std::int32_t sender, std::int32_t receiver, double latency, double seconds_per_byte) {
  const auto edge = static_cast<std::int32_t>(edges.size());
  edges.push_back({.sender = sender, .receiver = receiver, .latency = latency, .seconds_per_byte = seconds_per_byte});
  ranks.at(at(sender)).edges.push_back(edge);
  ranks.at(at(receiver)).edges.push_back(edge);
  return edge;
}

std::int32_t Job::add_group(std::vector<std::int32_t> members, std::int64_t size) {
  const auto group = static_cast<std::int32_t>(groups.size());
  std::int64_t all = 0;
  for (const std::int32_t member : members) {
    ranks.at(at(member)).groups.push_back(group);
    all += ranks[at(member)].multiplicity;
  }
  groups.push_back({.members = std::move(members), .size = size > 0 ? size : all});
  return group;
}

std::int64_t Job::devices() const {
  std::int64_t sum = 0;
  for (const Rank& rank : ranks) sum += rank.multiplicity;
  return sum;
}

void check(const Job& job) {
  std::vector<Numbers> counted;
  std::vector<Slots> widest;
  for (const std::vector<Step>& steps : job.programs) counted.push_back(numbers(steps));
  check_programs(job, counted);
  for (const std::vector<Step>& steps : job.programs) widest.push_back(slots(steps));
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    check_slots(job, r);
    const Rank& who = job.ranks[r];
    if (widest[at(who.program)].edges > who.edges.size() || widest[at(who.program)].groups > who.groups.size()) {
      refuse(fmt::format("rank {} has {} edges and {} groups; its program names {} and {}", r, who.edges.size(),
                         who.groups.size(), widest[at(who.program)].edges, widest[at(who.program)].groups));
    }
    for (std::size_t slot = 0; slot < who.edges.size(); ++slot) {
      const std::int32_t e = who.edges[slot];
      if (e < 0 || at(e) >= job.edges.size()) refuse(fmt::format("rank {} has edge {}", r, e));
      const Edge& edge = job.edges[at(e)];
      const bool sends = edge.sender == static_cast<std::int32_t>(r);
      if (!sends && edge.receiver != static_cast<std::int32_t>(r)) {
        refuse(fmt::format("rank {} has edge {}, from {} to {}", r, e, edge.sender, edge.receiver));
      }
      if (edge.sender == edge.receiver) continue;  // equal ranks that send to each other, folded into one
      const Numbers& mine = counted[at(who.program)];
      if (length(sends ? mine.received : mine.sent, slot) > 0) {
        refuse(fmt::format("rank {} {} on edge {}, from {} to {}", r, sends ? "receives" : "sends", e, edge.sender,
                           edge.receiver));
      }
      if (!sends) continue;
      if (edge.receiver < 0 || at(edge.receiver) >= job.ranks.size()) refuse(fmt::format("edge {} has no receiver", e));
      const Rank& other = job.ranks[at(edge.receiver)];
      const auto found = std::find(other.edges.begin(), other.edges.end(), e);
      const std::size_t received =
          found == other.edges.end()
              ? 0
              : length(counted[at(other.program)].received, static_cast<std::size_t>(found - other.edges.begin()));
      const std::size_t sent = length(mine.sent, slot);
      if (sent != received) {
        refuse(fmt::format("rank {} sends {} messages on edge {}, rank {} receives {}", r, sent, e, edge.receiver,
                           received));
      }
      if (!(edge.latency >= 0) || !(edge.seconds_per_byte >= 0)) refuse(fmt::format("edge {} has a negative time", e));
      check_ports(job, edge.ports, "edge", at(e));
    }
    for (const std::int32_t g : who.groups) {
      if (g < 0 || at(g) >= job.groups.size()) refuse(fmt::format("rank {} is in group {}", r, g));
    }
  }
  for (std::size_t g = 0; g < job.groups.size(); ++g) check_ports(job, job.groups[g].ports, "group", g);
}

std::vector<std::int64_t> peak_memory(const Job& job) {
  std::vector<std::int64_t> peaks;
  for (const std::vector<Step>& steps : job.programs) {
    std::int64_t now = 0, peak = 0;
    for (const Step& step : steps) peak = std::max(peak, now += step.memory);
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace millrace::sim
