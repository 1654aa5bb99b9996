// From each place, a stage grows over the items behind it until no better chain can hold it.
#include "partitioners/common/max_load/linear_cut.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "partitioners/common/max_load/growing_stage.h"

namespace millrace::partitioners::max_load {
namespace {

constexpr std::size_t kMostStates = 3'000'000;  // of the table: 48 MB
constexpr std::size_t kMostAdds = 2'000'000;    // of items to growing stages, if these were of equal length

// Positions between items at which stages may end, 0 and the size among them: all, or from each of equally long
// stretches the one that the least transfers cross.
std::vector<std::size_t> places(const Model& model, std::span<const Item> order, std::size_t most) {
  const std::size_t n = order.size();
  std::vector<std::size_t> at;
  if (n <= most) {
    for (std::size_t i = 0; i <= n; ++i) at.push_back(i);
    return at;
  }
  std::vector<std::size_t> position(n);
  for (std::size_t i = 0; i < n; ++i) position[order[i]] = i;
  std::vector<double> change(n + 1, 0.0);  // of the seconds that cross, from one position to the next
  for (const Transfer& transfer : model.transfers) {
    std::size_t first = position[transfer.from], last = first;
    for (const Item reader : transfer.to) {
      first = std::min(first, position[reader]);
      last = std::max(last, position[reader]);
    }
    change[first + 1] += transfer.seconds;
    change[last + 1] -= transfer.seconds;
  }
  at.push_back(0);
  double crossing = 0, least = kNever;
  std::size_t best = 0, stretch = 0;
  for (std::size_t i = 1; i < n; ++i) {
    crossing += change[i];
    if (i * most / n != stretch) {
      if (best > 0) at.push_back(best);
      least = kNever;
      stretch = i * most / n;
    }
    if (crossing < least) {
      least = crossing;
      best = i;
    }
  }
  at.push_back(best);
  at.push_back(n);
  return at;
}

class Table {
 public:
  Table(const Model& model, std::span<const Item> order, double below, std::chrono::steady_clock::time_point deadline,
        std::size_t most_places)
      : model_(model), order_(order), below_(below), deadline_(deadline), stage_(model) {
    for (const DeviceKind& kind : model.kinds) {
      stride_.push_back(codes_);
      codes_ *= kind.devices.size() + 1;
    }
    const std::size_t quick = kMostAdds * static_cast<std::size_t>(model.devices()) / order.size();
    places_ = places(model, order, std::clamp<std::size_t>(std::min(quick, kMostStates / codes_), 2, most_places));
    load_.assign(places_.size() * codes_, kNever);
    from_.resize(load_.size());
    load_[0] = 0;
    for (const Item item : order) {
      const DeviceSums& last = sums_.empty() ? DeviceSums{} : sums_.back();
      sums_.push_back({last.cpu_s + model.cpu_s[item], last.bytes + model.bytes[item]});
    }
  }

  Parts run() {
    const std::vector<bool> none(model_.size(), false);
    bool accelerators = false;
    for (const DeviceKind& kind : model_.kinds) accelerators = accelerators || !kind.cpu;
    stage_.start(none, DeviceKind{});
    for (std::size_t place = 0; place + 1 < places_.size(); ++place) {
      if (std::chrono::steady_clock::now() > deadline_) return {};
      const auto row = load_.begin() + static_cast<std::ptrdiff_t>(place * codes_);
      if (*std::min_element(row, row + static_cast<std::ptrdiff_t>(codes_)) < below_) {
        if (accelerators) grow_on_accelerators(place);
        grow_on_cores(place);
      }
      // What lies before the next place comes earlier than all stages from now on.
      for (std::size_t i = places_[place]; i < places_[place + 1]; ++i) stage_.exclude(order_[i]);
    }
    return trace();
  }

 private:
  struct DeviceSums {
    double cpu_s = 0;
    double bytes = 0;
  };
  struct From {
    std::uint32_t place = 0;
    std::uint32_t kind = 0;
  };

  DeviceSums before(std::size_t position) const { return position == 0 ? DeviceSums{} : sums_[position - 1]; }

  void grow_on_accelerators(std::size_t place) {
    std::vector<Item> added;
    for (std::size_t end = place + 1; end < places_.size(); ++end) {
      for (std::size_t i = places_[end - 1]; i < places_[end]; ++i) {
        stage_.add(order_[i]);
        added.push_back(order_[i]);
      }
      if (!(stage_.committed() < below_)) break;
      const double bytes = before(places_[end]).bytes - before(places_[place]).bytes;
      bool any = false;
      for (std::size_t kind = 0; kind < model_.kinds.size(); ++kind) {
        if (model_.kinds[kind].cpu || bytes > model_.kinds[kind].memory) continue;
        any = true;
        push(place, end, kind, stage_.load());
      }
      if (!any) break;
    }
    while (!added.empty()) {
      stage_.undo_add(added.back());
      added.pop_back();
    }
  }

  void grow_on_cores(std::size_t place) {
    for (std::size_t kind = 0; kind < model_.kinds.size(); ++kind) {
      if (!model_.kinds[kind].cpu) continue;
      for (std::size_t end = place + 1; end < places_.size(); ++end) {
        const double load = before(places_[end]).cpu_s - before(places_[place]).cpu_s;
        if (!(load < below_)) break;
        push(place, end, kind, load);
      }
    }
  }

  void push(std::size_t place, std::size_t end, std::size_t kind, double load) {
    if (!(load < below_)) return;
    const std::size_t stride = stride_[kind], radix = model_.kinds[kind].devices.size() + 1;
    for (std::size_t code = 0; code < codes_; ++code) {
      const double reached = load_[place * codes_ + code];
      if (!(reached < below_) || code / stride % radix + 1 == radix) continue;
      const std::size_t to = end * codes_ + code + stride;
      const double most = std::max(reached, load);
      if (!(most < load_[to])) continue;
      load_[to] = most;
      from_[to] = {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(kind)};
      if (end + 1 == places_.size()) below_ = std::min(below_, most);
    }
  }

  Parts trace() const {
    const std::size_t last = (places_.size() - 1) * codes_;
    const auto best = std::min_element(load_.begin() + static_cast<std::ptrdiff_t>(last), load_.end());
    Parts parts;
    if (*best == kNever) return parts;
    std::size_t at = static_cast<std::size_t>(best - load_.begin());
    while (at != 0) {
      const From from = from_[at];
      const std::size_t end = places_[at / codes_], begin = places_[from.place];
      Part part{
          from.kind,
          {order_.begin() + static_cast<std::ptrdiff_t>(begin), order_.begin() + static_cast<std::ptrdiff_t>(end)}};
      std::sort(part.items.begin(), part.items.end());
      parts.push_back(std::move(part));
      at = from.place * codes_ + at % codes_ - stride_[from.kind];
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

  const Model& model_;
  std::span<const Item> order_;
  double below_;
  std::chrono::steady_clock::time_point deadline_;
  GrowingStage stage_;
  std::size_t codes_ = 1;            // numbers of devices used, mixed radix
  std::vector<std::size_t> stride_;  // by kind
  std::vector<std::size_t> places_;  // positions
  std::vector<double> load_;         // of the fullest stage; by place, then code
  std::vector<From> from_;
  std::vector<DeviceSums> sums_;  // of the order's beginnings
};

}  // namespace

Parts best_cut(const Model& model, std::span<const Item> order, double below,
               std::chrono::steady_clock::time_point deadline, std::size_t most_places) {
  return Table(model, order, below, deadline, most_places).run();
}

}  // namespace millrace::partitioners::max_load
