// Events in the order of time: a heap with four children a node, which touches fewer cache lines than two do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace millrace::sim {

/// Equal times come in the order of their keys, so that the order of pushes does not matter.
struct Event {
  double time = 0;
  std::int64_t key = 0;
  bool before(const Event& other) const { return time < other.time || (time == other.time && key < other.key); }
};

class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  const Event& top() const { return events_.front(); }

  void push(Event event) {
    std::size_t i = events_.size();
    events_.push_back(event);
    while (i > 0 && event.before(events_[(i - 1) / 4])) {
      events_[i] = events_[(i - 1) / 4];
      i = (i - 1) / 4;
    }
    events_[i] = event;
  }

  void pop() {
    const Event last = events_.back();
    events_.pop_back();
    if (events_.empty()) return;
    const std::size_t size = events_.size();
    std::size_t i = 0;
    while (4 * i + 1 < size) {
      std::size_t least = 4 * i + 1;
      const std::size_t end = std::min(least + 4, size);
      for (std::size_t child = least + 1; child < end; ++child) {
        if (events_[child].before(events_[least])) least = child;
      }
      if (!events_[least].before(last)) break;
      events_[i] = events_[least];
      i = least;
    }
    events_[i] = last;
  }

 private:
  std::vector<Event> events_;
};

}  // namespace millrace::sim
