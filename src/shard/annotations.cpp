// Matches patterns against names, and holds each property against the tensor that it is for.
#include "shard/annotations.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/text.h"

namespace millrace::shard {
namespace {

struct Match {
  TensorId tensor = -1;
  bool exact = false;
};

class Resolver {
 public:
  Resolver(const std::vector<Annotation>& annotations, const Graph& graph, const TensorTable& tensors, Mesh& mesh)
      : annotations_(annotations), graph_(graph), tensors_(tensors), mesh_(mesh) {}

  std::vector<Given> run() {
    for (std::size_t i = 0; i < annotations_.size(); ++i) add(static_cast<std::int32_t>(i));
    if (!faults_.empty()) throw InvalidInput(join(faults_, "\n"));
    std::vector<Given> given;
    for (const auto& [key, claim] : claims_) given.push_back(claim.given);
    return given;
  }

 private:
  struct Claim {
    Given given;
    bool exact = false;
  };

  const Annotation& annotation(std::int32_t number) const { return annotations_[static_cast<std::size_t>(number)]; }

  void fault(const Annotation& one, const std::string& reason) {
    faults_.push_back(one.where + (one.where.empty() ? "" : ": ") + reason);
  }

  std::vector<Match> matches(const Annotation& one) const {
    std::vector<Match> found;
    if (!one.op.empty()) {
      for (const Operator& op : graph_.operators()) {
        if (matches_glob(one.op, op.name)) found.push_back({op.outputs.front(), op.name == one.op});
      }
      return found;
    }
    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors().size()); ++id) {
      const std::string& name = graph_.tensor(id).name;
      if (matches_glob(one.tensor, name)) found.push_back({id, name == one.tensor});
    }
    return found;
  }

  void refuse_no_match(const Annotation& one) {
    std::vector<std::string> names;
    const bool by_op = !one.op.empty();
    if (by_op) {
      for (const Operator& op : graph_.operators()) names.push_back(op.name);
    } else {
      for (const Tensor& tensor : graph_.tensors()) names.push_back(tensor.name);
    }
    const std::string& pattern = by_op ? one.op : one.tensor;
    const auto near = nearest_name(pattern, names);
    fault(one, fmt::format("'{}' matches no {} of {}{}", pattern, by_op ? "operator" : "tensor", graph_.name(),
                           near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
  }

  void add(std::int32_t number) {
    const Annotation& one = annotation(number);
    const std::vector<Match> found = matches(one);
    if (found.empty()) return refuse_no_match(one);
    const int axis = one.axis.empty() ? mesh_.axis_count() - 1 : mesh_.find_axis(one.axis);
    if (axis < 0) {
      std::vector<std::string> names;
      for (const Axis& each : mesh_.axes()) names.push_back(each.name);
      return fault(one, unknown_name("mesh axis", one.axis, names));
    }
    if (!one.weights.empty() && static_cast<int>(one.weights.size()) != mesh_.axis_size(axis)) {
      return fault(one, fmt::format("ratios: found {} weights, allowed: one for each of the {} parts of axis '{}'",
                                    one.weights.size(), mesh_.axis_size(axis),
                                    mesh_.axes()[static_cast<std::size_t>(axis)].name));
    }
    Property property{one.kind, 0, 0};
    if (one.kind == Property::Kind::split) {
      property = split(one.dim, one.weights.empty() ? 0 : mesh_.add_ratio(one.weights));
    }
    const std::size_t before = faults_.size();
    for (const Match& match : found) {
      claim(match, {match.tensor, axis, property, number});
      if (faults_.size() > before) return;  // the same fault of every layer is told once
    }
  }

  void claim(const Match& match, const Given& given) {
    const Annotation& one = annotation(given.annotation);
    if (!sound(one, given)) return;
    const auto [place, fresh] = claims_.try_emplace({given.tensor, given.axis}, Claim{given, match.exact});
    Claim& other = place->second;
    if (fresh || other.given.property == given.property) return;
    if (other.exact != match.exact) {
      if (match.exact) other = {given, true};
      return;
    }
    const Annotation& first = annotation(other.given.annotation);
    fault(one, fmt::format("{} contradicts {}{}{}: both are for '{}'", format(one), format(first),
                           first.where.empty() ? "" : " of ", first.where, graph_.tensor(given.tensor).name));
  }

  bool sound(const Annotation& one, const Given& given) {
    const Tensor& tensor = graph_.tensor(given.tensor);
    const TensorView view = tensors_.view(given.tensor);
    if (given.property.is_partial() && tensor.role != Role::activation) {
      fault(one, fmt::format("'{}' is no output of an operator, and so no partial sum", tensor.name));
      return false;
    }
    if (!given.property.is_split()) return true;
    const auto dim = static_cast<std::size_t>(one.dim);
    if (one.dim < 0 || dim >= view.extents.size()) {
      fault(one, fmt::format("split: found {}, allowed: 0 to {}, the dimensions of '{}'{}", one.dim,
                             static_cast<int>(view.extents.size()) - 1, tensor.name,
                             tensor.shape.batched ? " with the batch axis as 0" : ""));
      return false;
    }
    Placement alone{};
    alone[static_cast<std::size_t>(given.axis)] = given.property;
    if (fits(view, alone, mesh_)) return true;
    const std::int64_t units = view.units[dim];
    const std::int64_t extent = view.extents[dim];
    fault(one,
          fmt::format("'{}' has {} in dimension {}{}; axis '{}' has {} devices, allowed: at most {}", tensor.name,
                      extent, one.dim,
                      units == extent ? "" : fmt::format(", which is cut at multiples of {} only", extent / units),
                      mesh_.axes()[static_cast<std::size_t>(given.axis)].name, mesh_.axis_size(given.axis), units));
    return false;
  }

  const std::vector<Annotation>& annotations_;
  const Graph& graph_;
  const TensorTable& tensors_;
  Mesh& mesh_;
  std::map<std::pair<TensorId, int>, Claim> claims_;
  std::vector<std::string> faults_;
};

}  // namespace

std::string format(const Annotation& annotation) {
  std::string text = annotation.op.empty() ? fmt::format("tensor '{}'", annotation.tensor)
                                           : fmt::format("operator '{}'", annotation.op);
  switch (annotation.kind) {
    case Property::Kind::split:
      text += fmt::format(" split {}", annotation.dim);
      if (!annotation.weights.empty()) text += fmt::format(" in ratios {:.3g}", fmt::join(annotation.weights, ":"));
      break;
    case Property::Kind::partial_sum:
      text += " partial sum";
      break;
    case Property::Kind::partial_max:
      text += " partial max";
      break;
    case Property::Kind::replicated:
    case Property::Kind::unset:
      text += " replicated";
  }
  if (!annotation.axis.empty()) text += fmt::format(" on axis '{}'", annotation.axis);
  return text;
}

std::vector<Given> resolve(const std::vector<Annotation>& annotations, const Graph& graph, const TensorTable& tensors,
                           Mesh& mesh) {
  return Resolver(annotations, graph, tensors, mesh).run();
}

}  // namespace millrace::shard
