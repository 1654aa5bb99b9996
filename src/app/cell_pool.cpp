// Starts cells, waits on their pipes and on letters, and turns every end into a document.
#include "app/cell_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace millrace::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Beside letters, which nobody signals, a nap must be short; a waiting rank must not take a core from one that works.
constexpr milliseconds kPause{100};
constexpr milliseconds kPauseBesideLetters{2};

json document_of(ChildOutcome outcome, const std::optional<Seconds>& limit, bool timed_out) {
  if (timed_out) return failed_cell("timeout", fmt::format("limits.time {}", format(*limit)));
  if (outcome.code == ExitCode::done) return json::parse(outcome.text);
  return failed_cell(outcome.code == ExitCode::infeasible ? "infeasible" : "error", outcome.text);
}

// A run ends itself at its limit, with all its ranks; this is for one that does not.
std::optional<Seconds> process_limit(const CellTask& task) {
  if (!task.limits.time || task.command != CellCommand::run) return task.limits.time;
  constexpr Seconds kGrace{15};
  return *task.limits.time + kGrace;
}

}  // namespace

CellProcess::CellProcess(const CellTask& task)
    : limit_(process_limit(task)), child_([&task] { return work_on(task).dump(); }) {}

std::optional<std::string> CellProcess::finished(bool readable) {
  const auto age = [this] { return std::chrono::duration<double>(Clock::now() - start_).count(); };
  const bool timed_out = limit_ && age() > limit_->value();
  if (timed_out) {
    child_.kill();
  } else if (!readable || child_.read_some()) {
    return std::nullopt;
  }
  ChildOutcome outcome = child_.wait();
  const std::int64_t peak = outcome.peak_rss_bytes;
  json document = document_of(std::move(outcome), limit_, timed_out);
  document["time_s"] = age();
  document["peak_rss_bytes"] = peak;
  return document.dump();
}

CellPool::CellPool(int processes, const comm::Mailbox* mailbox) : mailbox_(mailbox) {
  slots_.resize(static_cast<std::size_t>(processes));
  for (int rank = 1; mailbox != nullptr && rank < mailbox->size(); ++rank) {
    slots_.emplace_back();
    slots_.back().rank = rank;
  }
}

bool CellPool::has_room() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.busy; });
}

bool CellPool::idle() const {
  return std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.busy; });
}

void CellPool::start(std::size_t cell, const CellTask& task) {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& one) { return !one.busy; });
  slot->busy = true;
  slot->cell = cell;
  if (slot->rank > 0) {
    mailbox_->send(slot->rank, to_text(task));
  } else {
    slot->process = std::make_unique<CellProcess>(task);
  }
}

void CellPool::wait_for_processes(std::vector<CellOutcome>& ended) {
  std::vector<pollfd> outputs;
  std::vector<Slot*> working;
  for (Slot& slot : slots_) {
    if (!slot.process) continue;
    outputs.push_back({slot.process->output(), POLLIN, 0});
    working.push_back(&slot);
  }
  const milliseconds pause = mailbox_ != nullptr ? kPauseBesideLetters : kPause;
  if (::poll(outputs.data(), outputs.size(), static_cast<int>(pause.count())) < 0 && errno != EINTR) {
    throw SystemError(fmt::format("poll: {}", std::strerror(errno)));
  }
  for (std::size_t i = 0; i < working.size(); ++i) {
    std::optional<std::string> document = working[i]->process->finished(outputs[i].revents != 0);
    if (!document) continue;
    ended.push_back({working[i]->cell, std::move(*document)});
    working[i]->process.reset();
    working[i]->busy = false;
  }
}

std::vector<CellOutcome> CellPool::wait() {
  std::vector<CellOutcome> ended;
  wait_for_processes(ended);
  while (mailbox_ != nullptr) {
    std::optional<comm::Letter> letter = mailbox_->poll();
    if (!letter) break;
    for (Slot& slot : slots_) {
      if (slot.rank != letter->from) continue;
      ended.push_back({slot.cell, std::move(letter->text)});
      slot.busy = false;
    }
  }
  return ended;
}

void CellPool::dismiss() const {
  for (const Slot& slot : slots_) {
    if (slot.rank > 0) mailbox_->send(slot.rank, "");
  }
}

std::string worked_off(const CellTask& task) {
  CellProcess process(task);
  std::optional<std::string> document;
  while (!document) {
    pollfd output{process.output(), POLLIN, 0};
    ::poll(&output, 1, static_cast<int>(kPause.count()));
    document = process.finished(output.revents != 0);
  }
  return *document;
}

void serve_cells(const comm::Mailbox& mailbox) {
  for (;;) {
    const std::optional<comm::Letter> letter = mailbox.poll();
    if (!letter) {
      std::this_thread::sleep_for(kPauseBesideLetters);
      continue;
    }
    if (letter->text.empty()) return;
    mailbox.send(letter->from, worked_off(cell_task_from_text(letter->text)));
  }
}

}  // namespace millrace::app
