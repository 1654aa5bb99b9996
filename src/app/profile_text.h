// A profile as one JSON document: for `profile --format json`, and from rank 0 to the others.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cost/profile.h"

namespace millrace::app {

nlohmann::json profile_json(const cost::Profile& profile);

/// \pre it was made by profile_json().
cost::Profile profile_from_json(const nlohmann::json& document);

}  // namespace millrace::app
