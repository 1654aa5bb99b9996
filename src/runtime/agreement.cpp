// Sums in which each rank fills its own places: all that the transport needs to offer.
#include "runtime/agreement.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "base/errors.h"
#include "comm/shared_error.h"

namespace millrace::runtime {
namespace {

constexpr std::size_t kTextLength = 500;

std::string from_doubles(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) {
    if (value > 0) text += static_cast<char>(static_cast<unsigned char>(value));
  }
  return text;
}

}  // namespace

Agreement::Agreement(comm::Transport& transport) : transport_(transport) {
  std::vector<int> everyone(static_cast<std::size_t>(transport.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (everyone.size() > 1) all_ = transport.group(everyone);
}

void Agreement::sum(std::vector<double>& values, comm::WaitObserver& observer) {
  if (all_ < 0) return;
  const auto count = static_cast<std::int64_t>(values.size());
  transport_.wait(transport_.all_reduce(all_, values.data(), count, comm::Element::float64), &observer);
}

std::vector<double> Agreement::after(std::size_t width, const std::function<std::vector<double>()>& work,
                                     comm::WaitObserver& observer) {
  const auto rank = static_cast<std::size_t>(transport_.rank());
  const auto ranks = static_cast<std::size_t>(transport_.size());
  std::vector<double> values(ranks * (width + 1));  // the last `ranks`: the exit codes of failures
  std::string failure;
  try {
    const std::vector<double> own = work();
    std::copy_n(own.begin(), width, values.begin() + static_cast<std::ptrdiff_t>(rank * width));
  } catch (const Error& error) {
    failure = error.what();
    values[ranks * width + rank] = static_cast<double>(error.code());
  } catch (const std::exception& error) {
    failure = error.what();
    values[ranks * width + rank] = static_cast<double>(ExitCode::failed);
  }
  sum(values, observer);
  const auto codes = values.begin() + static_cast<std::ptrdiff_t>(ranks * width);
  const auto failed = std::find_if(codes, values.end(), [](double code) { return code != 0; });
  if (failed == values.end()) {
    values.erase(codes, values.end());
    return values;
  }
  std::vector<double> text(kTextLength);
  const auto lowest = static_cast<std::size_t>(failed - codes);
  if (lowest == rank) {
    const std::string told = ranks > 1 ? fmt::format("rank {}: {}", rank, failure) : failure;
    for (std::size_t i = 0; i < std::min(told.size(), kTextLength); ++i) {
      text[i] = static_cast<double>(static_cast<unsigned char>(told[i]));
    }
  }
  sum(text, observer);
  throw comm::SharedError(static_cast<ExitCode>(static_cast<int>(*failed)), from_doubles(text));
}

}  // namespace millrace::runtime
