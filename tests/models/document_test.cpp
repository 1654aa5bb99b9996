// docs/networks.md says what the registry has: each row's numbers are those of the network at its defaults.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "models/registry.h"

namespace millrace::models {
namespace {

/// "61,100,840".
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

/// The row of the table up to the source, which is not a fact of the code.
std::string row(const Entry& entry) {
  const Graph graph = entry.make(config::defaults(entry.options));
  return fmt::format("| {} | {} | {} | {} |", entry.name, grouped(graph.parameter_count()), grouped(graph.size()),
                     graph.trainable() ? "trained" : "planned");
}

TEST(Document, ListsEveryNetworkWithItsNumbers) {
  std::ifstream file(MILLRACE_SOURCE_DIR "/docs/networks.md");
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty());
  for (const Entry& entry : registry()) {
    if (entry.name == "synthetic") continue;  // has no numbers of its own
    EXPECT_NE(text.str().find(row(entry)), std::string::npos) << "docs/networks.md should have the row\n" << row(entry);
  }
}

}  // namespace
}  // namespace millrace::models
