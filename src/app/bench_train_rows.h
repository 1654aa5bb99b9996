// The rows of `millrace bench train`, printed one by one: a run takes half an hour and may be stopped.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "app/print.h"

namespace millrace::app {

class TrainRows {
 public:
  explicit TrainRows(bool as_json) : as_json_(as_json) {}
  /// Prints all figures of a case.
  void add(const nlohmann::json& row);
  /// For people: the speeds of all cases below each other.
  void finish();

 private:
  bool as_json_;
  JsonRows list_{"rows"};
  std::vector<nlohmann::json> rows_;
};

}  // namespace millrace::app
