// The table of choices, its text form and its file.
#include "kernels/variants.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"

namespace millrace::kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "millrace variants 1";
constexpr char kBetween = '\t';

// The first part of `text` up to `end`, which is taken off with it; nothing where there is no `end`.
std::optional<std::string_view> take(std::string_view& text, char end) {
  const auto at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at + 1);
  return part;
}

// work, variant, then pairs of variant and seconds, each with a tab behind it.
bool read_line(std::string_view line, std::map<std::string, VariantChoice>& choices) {
  const auto work = take(line, kBetween);
  const auto variant = take(line, kBetween);
  if (!work || !variant) return false;
  VariantChoice choice{std::string(*variant), {}};
  while (!line.empty()) {
    const auto name = take(line, kBetween);
    const auto seconds = take(line, kBetween);
    if (!name || !seconds) return false;
    double value = 0;
    const auto [end, error] = std::from_chars(seconds->data(), seconds->data() + seconds->size(), value);
    if (error != std::errc() || end != seconds->data() + seconds->size()) return false;
    choice.times.push_back({std::string(*name), value});
  }
  choices[std::string(*work)] = std::move(choice);
  return true;
}

// Empty for what is no file, too: a pipe would never end.
std::string whole_file(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What the file of a machine begins with, and its own words behind it.
std::string head_of(const std::string& machine) { return fmt::format("{}\n{}\n", kVersion, machine); }

std::string_view body_of(std::string_view text, const std::string& machine) {
  const std::string head = head_of(machine);
  return text.starts_with(head) ? text.substr(head.size()) : std::string_view();
}

}  // namespace

Variants::Variants(fs::path folder, std::string machine)
    : file_(std::move(folder) / fmt::format("variants-{}.txt", digest(machine))), machine_(std::move(machine)) {
  add(body_of(whole_file(file_), machine_));
}

const VariantChoice* Variants::find(const std::string& work) {
  const auto found = choices_.find(work);
  if (found == choices_.end()) return nullptr;
  used_.insert(work);
  return &found->second;
}

std::map<std::string, VariantChoice> Variants::used() const {
  std::map<std::string, VariantChoice> found;
  for (const std::string& work : used_) found.emplace(work, choices_.at(work));
  return found;
}

const VariantChoice* Variants::find_or_measure(const std::string& work, const std::function<VariantChoice()>& measure) {
  if (const VariantChoice* known = find(work)) return known;
  if (file_.empty()) return nullptr;  // it would be another one in the next run
  if (const std::string why = keep(); !why.empty()) {
    give_up(why);
    return nullptr;
  }
  if (const VariantChoice* known = find(work)) return known;
  choices_[work] = measure();
  if (const std::string why = keep(); !why.empty()) {
    choices_.erase(work);
    give_up(why);
    return nullptr;
  }
  return find(work);
}

void Variants::give_up(const std::string& why) {
  log::warning(
      fmt::format("{}: {}: no implementation is chosen by measurement, convolutions that it does not list take the "
                  "direct one",
                  file_.string(), why));
  file_.clear();
}

std::string Variants::text() const {
  std::string lines;
  for (const auto& [work, choice] : choices_) {
    lines += fmt::format("{}\t{}\t", work, choice.variant);
    for (const auto& [variant, seconds] : choice.times) lines += fmt::format("{}\t{}\t", variant, seconds);
    lines += '\n';
  }
  return lines + digest(lines) + '\n';
}

bool Variants::add(std::string_view text) {
  std::map<std::string, VariantChoice> read;
  for (std::string_view rest = text; const auto line = take(rest, '\n');) {
    if (rest.empty()) {
      if (*line != digest(text.substr(0, static_cast<std::size_t>(line->data() - text.data())))) return false;
      for (auto& [work, choice] : read) choices_[work] = std::move(choice);
      return true;
    }
    if (!read_line(*line, read)) return false;
  }
  return false;
}

// Others may have kept choices since: theirs stand. The file is replaced as a whole, so no one reads half of it.
std::string Variants::keep() {
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error) return fmt::format("its folder cannot be made: {}", error.message());
  add(body_of(whole_file(file_), machine_));
  const fs::path written = file_.string() + fmt::format(".{}", ::getpid());
  errno = 0;
  {
    std::ofstream out(written, std::ios::binary);
    out << head_of(machine_) << text();
    if (!out.flush()) error = {errno != 0 ? errno : EIO, std::generic_category()};
  }
  if (!error) fs::rename(written, file_, error);
  if (error) {
    std::error_code ignored;
    fs::remove(written, ignored);
  }
  return error ? fmt::format("cannot be written: {}", error.message()) : std::string();
}

std::optional<fs::path> cache_folder() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? fs::path(value) : fs::path();
  };
  // The specification has relative paths ignored.
  if (const fs::path cache = set("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "millrace";
  if (const fs::path home = set("HOME"); home.is_absolute()) return home / ".cache" / "millrace";
  return std::nullopt;
}

}  // namespace millrace::kernels
