// What runs tell of where their predictions come from.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/session.h"
#include "record/results_file.h"

namespace millrace::app {

/// "analytic", "measured", or "profile": a kept one.
std::string costs_source(const Session& session);

/// What was measured, and of what: for the documents and the results file of runs.
nlohmann::json costs_json(const Session& session);
/// \pre the session has a profile.
std::vector<record::Fact> costs_facts(const Session& session);

}  // namespace millrace::app
