#include <algorithm>

#include "engine.hpp"
#include "parallel.hpp"
#include "traverse.hpp"

namespace doseforest {

namespace {

constexpr int64_t BRIEF_WORK = 1 << 19;  // additions that do not deserve a thread

}  // namespace

void child_sums(const TrainingRows& data, const uint32_t* rows, const int64_t* ranges,
                const Split* splits, int64_t n_nodes, int64_t n_threads, double* sums) {
  const int64_t width = data.n_channels;
  int64_t work = 0;
  for (int64_t node = 0; node < n_nodes; ++node) {
    work += (ranges[2 * node + 1] - ranges[2 * node]) * width;
  }
  const auto add_up = [&]<class Bin>(int64_t node) {
    const Split& split = splits[node];
    const Sides sides = sides_of(split, data.n_bins[split.feature]);
    double* own = sums + 2 * width * node;
    std::fill_n(own, 2 * width, 0.0);
    for (int64_t i = ranges[2 * node]; i < ranges[2 * node + 1]; ++i) {
      const int64_t row = rows[i];
      const bool left = sides.left(bins_of<Bin>(data, row)[split.feature]);
      double* side = own + (left ? 0 : width);
      const float* values = data.channels + row * width;
      for (int64_t c = 0; c < width; ++c) side[c] += values[c];
    }
  };
  parallel_for(n_nodes, n_threads, work < BRIEF_WORK, [&](int64_t node, int64_t, const StopFlag&) {
    for_bin_type(data, [&]<class Bin>() { add_up.template operator()<Bin>(node); });
  });
}

}  // namespace doseforest
