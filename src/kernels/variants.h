// Which of several implementations a device uses for a piece of work: measured once, and kept on disk for the machine.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kernels {

/// The implementation that a piece of work uses, and what it was chosen from.
struct VariantChoice {
  struct Time {
    std::string variant;
    double seconds = 0;  ///< processor time of all threads
  };
  std::string variant;
  std::vector<Time> times;  ///< of all that were tried, the standard one first
};

/// Choices by the name of the work, which says the operation and all its sizes. What a table does not know it measures
/// only where it can keep the answer; else the standard implementation is used. So a choice, and with it the bits of a
/// result, does not change from run to run as long as the file is there. That a file cannot be written is told once.
class Variants {
 public:
  /// Knows nothing and measures nothing.
  Variants() = default;
  /// Kept in a file of `folder` for `machine`: processor, threads, and whatever else choices depend on. A file that is
  /// not there, damaged or of another version is as good as an empty one.
  Variants(std::filesystem::path folder, std::string machine);

  /// Null where the work is unknown.
  const VariantChoice* find(const std::string& work);
  /// The choice for `work`; measured, by `measure`, and kept where it is unknown. Null where it can be neither found
  /// nor kept.
  const VariantChoice* find_or_measure(const std::string& work, const std::function<VariantChoice()>& measure);
  /// What was found so far, by work.
  std::map<std::string, VariantChoice> used() const;

  /// All choices as text, and back: for the other ranks of a job, which then choose alike.
  std::string text() const;
  /// Takes what `text` knows. \returns false, and takes nothing, where it is damaged.
  bool add(std::string_view text);

 private:
  std::string keep();  ///< empty, or why it cannot
  void give_up(const std::string& why);

  std::filesystem::path file_;  // empty: nothing is kept
  std::string machine_;
  std::map<std::string, VariantChoice> choices_;
  std::set<std::string> used_;
};

/// Where this user's programs keep what they can make again: XDG_CACHE_HOME, or .cache of the home folder; with
/// "millrace" behind it. Nothing where neither is named.
std::optional<std::filesystem::path> cache_folder();

}  // namespace millrace::kernels
