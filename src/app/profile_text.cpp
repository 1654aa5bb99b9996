// Profiles to JSON and back, number by number.
#include "app/profile_text.h"

#include <string>

#include <nlohmann/json.hpp>

namespace millrace::app {
namespace {

using cost::Measured;
using nlohmann::json;

void put(json& into, const std::string& name, const Measured& measured) {
  into[name + "_s"] = measured.median.value();
  into[name + "_spread_s"] = measured.spread.value();
}

Measured measured_of(const json& from, const std::string& name) {
  return {Seconds(from.at(name + "_s").get<double>()), Seconds(from.at(name + "_spread_s").get<double>())};
}

json link_json(const std::optional<cluster::Link>& link) {
  if (!link) return nullptr;
  return {{"bandwidth_bytes_per_s", link->bandwidth.value()}, {"latency_s", link->latency.value()}};
}

std::optional<cluster::Link> link_of(const json& from) {
  if (from.is_null()) return std::nullopt;
  return cluster::Link{BytesPerSecond(from.at("bandwidth_bytes_per_s").get<double>()),
                       Seconds(from.at("latency_s").get<double>())};
}

json job_json(const cost::MeasuredJob& job) {
  json reductions = json::array();
  for (std::size_t i = 0; i < job.reduced.size(); ++i) {
    reductions.push_back({{"bytes", job.reduced[i].value()}, {"time_s", job.reductions[i].value()}});
  }
  return {{"speeds", job.speeds},
          {"links", {{"within_host", link_json(job.within)}, {"between_hosts", link_json(job.between)}}},
          {"reductions", std::move(reductions)}};
}

cost::MeasuredJob job_of(const json& from) {
  cost::MeasuredJob job;
  job.speeds = from.at("speeds").get<std::vector<double>>();
  job.within = link_of(from.at("links").at("within_host"));
  job.between = link_of(from.at("links").at("between_hosts"));
  for (const json& sum : from.at("reductions")) {
    job.reduced.emplace_back(sum.at("bytes").get<std::int64_t>());
    job.reductions.emplace_back(sum.at("time_s").get<double>());
  }
  return job;
}

json size_json(const cost::MeasuredSize& size) {
  json result{{"rows", size.rows},
              {"repetitions", size.repetitions},
              {"slot_bytes", size.slot.value()},
              {"workspace_bytes", size.workspace.value()}};
  put(result, "forward", size.forward);
  put(result, "backward", size.backward);
  return result;
}

cost::MeasuredSize size_of(const json& from) {
  cost::MeasuredSize size;
  size.rows = from.at("rows").get<std::int64_t>();
  size.repetitions = from.at("repetitions").get<std::int64_t>();
  size.slot = Bytes(from.at("slot_bytes").get<std::int64_t>());
  size.workspace = Bytes(from.at("workspace_bytes").get<std::int64_t>());
  size.forward = measured_of(from, "forward");
  size.backward = measured_of(from, "backward");
  return size;
}

}  // namespace

json profile_json(const cost::Profile& profile) {
  json document{{"model", profile.model},     {"graph_digest", profile.graph_digest}, {"cpu", profile.cpu},
                {"threads", profile.threads}, {"kernels", profile.kernels},           {"precision", profile.precision}};
  for (const cost::MeasuredSize& size : profile.sizes) document["sizes"].push_back(size_json(size));
  for (std::size_t op = 0; op < profile.operators.size(); ++op) {
    const cost::MeasuredOperator& measured = profile.operators[op];
    json one{{"name", measured.name}, {"parameter_bytes", measured.parameters.value()}};
    put(one, "update", measured.update);
    for (const cost::MeasuredSize& size : profile.sizes) {
      json times{{"rows", size.rows}};
      put(times, "forward", size.operators[op].forward);
      put(times, "backward_input", size.operators[op].backward_input);
      put(times, "backward_weight", size.operators[op].backward_weight);
      one["times"].push_back(std::move(times));
    }
    document["operators"].push_back(std::move(one));
  }
  document["job"] = job_json(profile.job);
  return document;
}

cost::Profile profile_from_json(const json& document) {
  cost::Profile profile;
  profile.model = document.at("model").get<std::string>();
  profile.graph_digest = document.at("graph_digest").get<std::string>();
  profile.cpu = document.at("cpu").get<std::string>();
  profile.threads = document.at("threads").get<std::int64_t>();
  profile.kernels = document.at("kernels").get<std::string>();
  profile.precision = document.at("precision").get<std::string>();
  for (const json& size : document.at("sizes")) profile.sizes.push_back(size_of(size));
  for (const json& one : document.at("operators")) {
    profile.operators.push_back({one.at("name").get<std::string>(),
                                 Bytes(one.at("parameter_bytes").get<std::int64_t>()), measured_of(one, "update")});
    for (std::size_t i = 0; i < profile.sizes.size(); ++i) {
      const json& times = one.at("times").at(i);
      profile.sizes[i].operators.push_back(
          {measured_of(times, "forward"), measured_of(times, "backward_input"), measured_of(times, "backward_weight")});
    }
  }
  profile.job = job_of(document.at("job"));
  return profile;
}

}  // namespace millrace::app
