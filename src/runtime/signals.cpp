// Handlers that count.
#include "runtime/signals.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace::runtime {
namespace {

constexpr std::array kSignals{SIGTERM, SIGINT, SIGUSR1};

// A handler reaches nothing but globals; lock-free, so that it may.
std::array<std::atomic<int>, kSignals.size()> received;
std::array<struct sigaction, kSignals.size()> former;

void note(int number) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == number) received[i].fetch_add(1, std::memory_order_relaxed);
  }
}

double taken(std::size_t index) { return received[index].exchange(0, std::memory_order_relaxed); }

}  // namespace

int SignalCounts::number() const { return terminate > 0 ? SIGTERM : interrupt > 0 ? SIGINT : 0; }

SignalWatch::SignalWatch() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;  // what the libraries wait for goes on
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    received[i] = 0;
    if (::sigaction(kSignals[i], &action, &former[i]) != 0) {
      throw SystemError(fmt::format("sigaction failed: {}", std::strerror(errno)));
    }
  }
}

SignalWatch::~SignalWatch() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
}

SignalCounts SignalWatch::take() { return {taken(0), taken(1), taken(2)}; }

}  // namespace millrace::runtime
