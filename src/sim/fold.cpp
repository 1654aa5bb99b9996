// Refinement of classes until equal ranks meet equal ranks in every slot, then one rank a class.
#include "sim/fold.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include <fmt/format.h>

#include "base/errors.h"
#include "base/index.h"

namespace millrace::sim {
namespace {

// Mixes a word into a 128-bit state: classes are told apart by these, and two different ones do not meet by accident.
struct Digest {
  std::uint64_t low = 0x9e3779b97f4a7c15u, high = 0xc2b2ae3d27d4eb4fu;

  bool operator==(const Digest&) const = default;
  void add(std::uint64_t word) {
    low = std::rotl((low ^ word) * 0xff51afd7ed558ccdu, 31) + high;
    high = std::rotl((high ^ (word + 0x632be59bd9b4e019u)) * 0xc4ceb9fe1a85ec53u, 29) + low;
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(std::int32_t number) { add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(number))); }
};

struct DigestHash {
  std::size_t operator()(const Digest& digest) const { return digest.low ^ std::rotl(digest.high, 17); }
};

// Numbers of equal digests, in the order in which they come first.
class Classes {
 public:
  explicit Classes(std::size_t count) : of_(count) {}
  // Returns how many there are.
  std::int32_t set(const std::vector<Digest>& digests) {
    std::unordered_map<Digest, std::int32_t, DigestHash> found;
    for (std::size_t i = 0; i < digests.size(); ++i) {
      of_[i] = found.try_emplace(digests[i], static_cast<std::int32_t>(found.size())).first->second;
    }
    return static_cast<std::int32_t>(found.size());
  }
  std::int32_t of(std::int32_t index) const { return of_[at(index)]; }
  std::vector<std::int32_t> take() { return std::move(of_); }

 private:
  std::vector<std::int32_t> of_;
};

// Ports that edges and groups use, told apart by who uses them with which load.
std::vector<Digest> port_digests(const Job& job, const Classes& ranks) {
  std::vector<Digest> digests(at(job.ports));
  // Sums do not depend on the order of users.
  const auto use = [&](const std::vector<PortUse>& ports, const Digest& user) {
    for (const PortUse& port : ports) {
      Digest one = user;
      one.add(port.load);
      digests[at(port.port)].low += one.low;
      digests[at(port.port)].high += one.high;
    }
  };
  for (const Edge& edge : job.edges) {
    if (edge.ports.empty()) continue;
    Digest user;
    user.add(ranks.of(edge.sender));
    user.add(ranks.of(edge.receiver));
    user.add(edge.latency);
    user.add(edge.seconds_per_byte);
    use(edge.ports, user);
  }
  for (const Group& group : job.groups) {
    if (group.ports.empty()) continue;
    Digest user;
    Digest members;
    for (const std::int32_t member : group.members) {
      Digest one;
      one.add(ranks.of(member));
      members.low += one.low;
      members.high += one.high;
    }
    user.add(members.low);
    user.add(members.high);
    use(group.ports, user);
  }
  return digests;
}

void add_ports(Digest& digest, const std::vector<PortUse>& ports, const std::vector<Digest>& port_classes) {
  for (const PortUse& use : ports) {
    digest.add(port_classes[at(use.port)].low);
    digest.add(port_classes[at(use.port)].high);
    digest.add(use.load);
  }
}

class Folding {
 public:
  Folding(const Job& job, std::span<const std::int32_t> apart) : job_(job), classes_(job.ranks.size()) {
    std::vector<Digest> digests(job.ranks.size());
    for (std::size_t r = 0; r < digests.size(); ++r) {
      digests[r].add(job.ranks[r].program);
      digests[r].add(job.ranks[r].slowness);
      digests[r].add(static_cast<std::uint64_t>(job.ranks[r].edges.size()));
      digests[r].add(static_cast<std::uint64_t>(job.ranks[r].groups.size()));
    }
    for (const std::int32_t rank : apart) digests.at(at(rank)).add(rank);
    count_ = classes_.set(digests);
    while (refine()) {
    }
  }

  Job job();
  std::vector<std::int32_t> take_classes() { return classes_.take(); }

 private:
  // Which slot of a rank an edge or a group is.
  template <class List>
  static std::int32_t slot(const List& list, std::int32_t index) {
    return static_cast<std::int32_t>(std::find(list.begin(), list.end(), index) - list.begin());
  }

  bool refine() {
    const std::vector<Digest> ports = port_digests(job_, classes_);
    std::vector<Digest> groups(job_.groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Group& group = job_.groups[g];
      for (const std::int32_t member : group.members) {
        Digest one;
        one.add(classes_.of(member));
        one.add(slot(job_.ranks[at(member)].groups, static_cast<std::int32_t>(g)));
        groups[g].low += one.low;
        groups[g].high += one.high;
      }
      add_ports(groups[g], group.ports, ports);
      groups[g].add(static_cast<std::uint64_t>(group.size));
    }
    std::vector<Digest> digests(job_.ranks.size());
    for (std::size_t r = 0; r < digests.size(); ++r) {
      const Rank& rank = job_.ranks[r];
      Digest& digest = digests[r];
      digest.add(classes_.of(static_cast<std::int32_t>(r)));
      for (const std::int32_t e : rank.edges) {
        const Edge& edge = job_.edges[at(e)];
        const std::int32_t other = edge.sender == static_cast<std::int32_t>(r) ? edge.receiver : edge.sender;
        digest.add(classes_.of(other));
        digest.add(slot(job_.ranks[at(other)].edges, e));
        digest.add(edge.latency);
        digest.add(edge.seconds_per_byte);
        add_ports(digest, edge.ports, ports);
      }
      for (const std::int32_t g : rank.groups) {
        digest.add(groups[at(g)].low);
        digest.add(groups[at(g)].high);
      }
    }
    const std::int32_t before = count_;
    count_ = classes_.set(digests);
    return count_ > before;
  }

  const Job& job_;
  Classes classes_;
  std::int32_t count_ = 0;
};

Job Folding::job() {
  Job out;
  out.programs = job_.programs;
  Classes ports(at(job_.ports));
  out.ports = ports.set(port_digests(job_, classes_));
  out.receive_window = job_.receive_window;
  std::vector<std::int32_t> first(at(count_), -1);
  std::vector<std::int64_t> size(at(count_), 0);
  for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
    const std::int32_t c = classes_.of(static_cast<std::int32_t>(r));
    if (first[at(c)] < 0) first[at(c)] = static_cast<std::int32_t>(r);
    size[at(c)] += job_.ranks[r].multiplicity;
  }
  // Equal ports become one as well; what flows of a class go through one port together count there as one flow.
  std::unordered_map<std::int64_t, std::int32_t> flows;  // by (class of the sender, slot, port): how many edges
  const auto flow = [&](std::int32_t sender, std::int32_t slot, std::int32_t port) {
    return (std::int64_t{classes_.of(sender)} * 4096 + slot) * std::max(1, job_.ports) + port;
  };
  for (std::size_t e = 0; e < job_.edges.size(); ++e) {
    const Edge& edge = job_.edges[e];
    const std::int32_t its = slot(job_.ranks[at(edge.sender)].edges, static_cast<std::int32_t>(e));
    for (const PortUse& use : edge.ports) ++flows[flow(edge.sender, its, use.port)];
  }
  std::unordered_map<std::int64_t, std::int32_t> collectives;  // by (class of the first member, slot, port)
  for (std::size_t g = 0; g < job_.groups.size(); ++g) {
    if (job_.groups[g].members.empty()) continue;
    const std::int32_t member = job_.groups[g].members.front();
    const std::int32_t its = slot(job_.ranks[at(member)].groups, static_cast<std::int32_t>(g));
    for (const PortUse& use : job_.groups[g].ports) ++collectives[flow(member, its, use.port)];
  }
  for (std::int32_t c = 0; c < count_; ++c) {
    const Rank& rank = job_.ranks[at(first[at(c)])];
    Rank folded = rank;
    folded.multiplicity = size[at(c)];
    folded.number = rank.number < 0 ? first[at(c)] : rank.number;
    out.ranks.push_back(std::move(folded));
  }
  // Edges and groups of each class are those of its first rank; the other end is the class that it meets.
  std::unordered_map<std::int64_t, std::int32_t> edge_between;
  std::unordered_map<Digest, std::int32_t, DigestHash> group_of;
  for (std::int32_t c = 0; c < count_; ++c) {
    Rank& folded = out.ranks[at(c)];
    for (std::size_t s = 0; s < folded.edges.size(); ++s) {
      const Edge& edge = job_.edges[at(folded.edges[s])];
      const std::int32_t sender = classes_.of(edge.sender), receiver = classes_.of(edge.receiver);
      const std::int32_t from = slot(job_.ranks[at(edge.sender)].edges, folded.edges[s]);
      const std::int64_t key = std::int64_t{sender} * 4096 + from;
      const auto [found, is_new] = edge_between.try_emplace(key, static_cast<std::int32_t>(out.edges.size()));
      if (is_new) {
        Edge one = edge;
        one.sender = sender;
        one.receiver = receiver;
        for (PortUse& use : one.ports) {
          use = {ports.of(use.port), use.load * flows.at(flow(edge.sender, from, use.port))};
        }
        out.edges.push_back(std::move(one));
      }
      folded.edges[s] = found->second;
    }
    for (std::size_t s = 0; s < folded.groups.size(); ++s) {
      const Group& group = job_.groups[at(folded.groups[s])];
      std::vector<std::int64_t> members;  // (class, slot), each once
      for (const std::int32_t member : group.members) {
        members.push_back(std::int64_t{classes_.of(member)} * 4096 +
                          slot(job_.ranks[at(member)].groups, folded.groups[s]));
      }
      std::sort(members.begin(), members.end());
      members.erase(std::unique(members.begin(), members.end()), members.end());
      Digest key;
      for (const std::int64_t member : members) key.add(static_cast<std::uint64_t>(member));
      const auto [found, is_new] = group_of.try_emplace(key, static_cast<std::int32_t>(out.groups.size()));
      if (is_new) {
        Group one{.members = {}, .size = group.size, .ports = group.ports};
        const std::int32_t front = group.members.front();
        const std::int32_t its = slot(job_.ranks[at(front)].groups, folded.groups[s]);
        for (PortUse& use : one.ports) {
          use = {ports.of(use.port), use.load * collectives.at(flow(front, its, use.port))};
        }
        for (const std::int64_t member : members) one.members.push_back(static_cast<std::int32_t>(member / 4096));
        out.groups.push_back(std::move(one));
      }
      folded.groups[s] = found->second;
    }
  }
  return out;
}

}  // namespace

Job fold(const Job& job, std::span<const std::int32_t> apart, std::vector<std::int32_t>* class_of) {
  Folding folding(job, apart);
  Job out = folding.job();
  if (class_of != nullptr) *class_of = folding.take_classes();
  return out;
}

void slow_down(Job& job, std::span<const Straggler> stragglers) {
  for (const Straggler& straggler : stragglers) {
    if (straggler.rank < 0 || at(straggler.rank) >= job.ranks.size()) {
      throw InvalidInput(
          fmt::format("there is no rank {} to slow down; the job has {}", straggler.rank, job.ranks.size()));
    }
    job.ranks[at(straggler.rank)].slowness *= straggler.factor;
  }
}

}  // namespace millrace::sim
