// Measured costs as a document and as attributes.
#include "app/costs_facts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/profile_text.h"
#include "base/text.h"

namespace millrace::app {

std::string costs_source(const Session& session) {
  return session.experiment.costs.file ? "profile" : session.experiment.costs.measured ? "measured" : "analytic";
}

nlohmann::json costs_json(const Session& session) {
  nlohmann::json costs{{"source", costs_source(session)}};
  if (!session.profile) return costs;
  for (const cluster::Device& device : session.cluster.devices()) costs["speeds"].push_back(device.speed);
  for (const cost::MeasuredSize& size : session.profile->sizes) costs["rows"].push_back(size.rows);
  nlohmann::json whole = profile_json(*session.profile);
  for (const char* key : {"cpu", "threads", "kernels", "precision"}) costs[key] = whole.at(key);
  costs["links"] = whole.at("job").at("links");
  costs["reductions"] = whole.at("job").at("reductions");
  costs["measuring_s"] = session.measuring_s;
  return costs;
}

std::vector<record::Fact> costs_facts(const Session& session) {
  const cost::Profile& profile = *session.profile;
  std::vector<std::string> rows, speeds;
  for (const cost::MeasuredSize& size : profile.sizes) rows.push_back(std::to_string(size.rows));
  for (const cluster::Device& device : session.cluster.devices()) speeds.push_back(fmt::format("{}", device.speed));
  std::vector<record::Fact> facts{
      {"source", costs_source(session)},   {"cpu", profile.cpu}, {"threads", profile.threads},
      {"kernels", profile.kernels},        {"rows", join(rows)}, {"speeds", join(speeds)},
      {"measuring_s", session.measuring_s}};
  const auto add = [&](const std::string& name, const std::optional<cluster::Link>& link) {
    if (!link) return;
    facts.push_back({name + "_bandwidth", link->bandwidth.value()});
    facts.push_back({name + "_latency_s", link->latency.value()});
  };
  add("within_host", profile.job.within);
  add("between_hosts", profile.job.between);
  return facts;
}

}  // namespace millrace::app
