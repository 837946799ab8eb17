// Axes of the curves of categories, and the order of categories along them.
// Included by kernels.cpp only, before categories.hpp.

constexpr int POWER_STEPS = 8;

// The bins that have rows in the node, ascending.
struct Present {
  int32_t n;
  uint16_t bins[MAX_BINS];
};

inline Present bins_with_rows(const uint32_t* counts, int32_t n_bins) {
  Present present;
  present.n = 0;
  for (int32_t b = 0; b < n_bins; ++b) {
    if (counts[b] > 0) present.bins[present.n++] = static_cast<uint16_t>(b);
  }
  return present;
}

inline double weight_of(const SplitRule& rule, const double* sums, int64_t rows) {
  return rule.weight_channel >= 0 ? sums[rule.weight_channel] : static_cast<double>(rows);
}

// What the difference of a cell's mean curve from the node's, times both weights, measures along
// an axis.
template <int V>
inline double along(const Totals& node, const double* cell, double weight, const double* axis,
                    int64_t n_channels) {
  Lanes total{};
  for (int64_t c = 0; c < (V ? V * LANES : n_channels); c += LANES) {
    const Lanes d = load(cell + c) * node.weight - weight * load(node.sums + c);
    total = total + load(axis + c) * d;
  }
  return NormL1::fold(total);
}

// Scales a direction of curves to size 1, with its largest value positive (the first of several),
// and gives it the channels' weights: an axis. False where it has no direction.
inline bool make_axis(const double* weights, double* direction, int64_t n_channels) {
  double largest = 0;
  for (int64_t c = 0; c < n_channels; ++c) {
    if (weights[c] == 0) continue;
    const double size = direction[c] < 0 ? -direction[c] : direction[c];
    if (size > (largest < 0 ? -largest : largest)) largest = direction[c];
  }
  if (largest == 0) return false;
  for (int64_t c = 0; c < n_channels; ++c) {
    direction[c] = direction[c] / largest * weights[c];
  }
  return true;
}

// The axis along which the categories' mean curves vary most, by steps of the power method from the
// category that is farthest out. False where all have the node's mean.
template <int V>
bool principal_axis(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                    const Present& present, const double* sums, const uint32_t* counts,
                    double* axis) {
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  const auto difference = [&](const double* cell, double weight, int64_t c) {
    return load(cell + c) * node.weight - weight * load(node.sums + c);
  };
  double farthest = 0;
  for (int32_t i = 0; i < present.n; ++i) {
    const double* cell = sums + present.bins[i] * n_channels;
    const double weight = weight_of(rule, cell, counts[present.bins[i]]);
    if (!(weight > 0)) continue;
    Lanes size{};
    for (int64_t c = 0; c < n_channels; c += LANES) {
      size = NormL2::add(size, difference(cell, weight, c), load(rule.channel_weights + c));
    }
    const double spread = NormL2::fold(size) / weight;
    if (!(spread > farthest)) continue;
    farthest = spread;
    for (int64_t c = 0; c < n_channels; c += LANES) store(axis + c, difference(cell, weight, c));
  }
  if (farthest == 0 || !make_axis(rule.channel_weights, axis, n_channels)) return false;
  alignas(CACHE_LINE) double next[MAX_CHANNELS];
  for (int step = 0; step < POWER_STEPS; ++step) {
    for (int64_t c = 0; c < n_channels; ++c) next[c] = 0;
    for (int32_t i = 0; i < present.n; ++i) {
      const double* cell = sums + present.bins[i] * n_channels;
      const double weight = weight_of(rule, cell, counts[present.bins[i]]);
      if (!(weight > 0)) continue;
      const double score = along<V>(node, cell, weight, axis, n_channels) / weight;
      for (int64_t c = 0; c < n_channels; c += LANES) {
        add_to(next + c, difference(cell, weight, c) * score);
      }
    }
    if (!make_axis(rule.channel_weights, next, n_channels)) return true;
    for (int64_t c = 0; c < n_channels; ++c) axis[c] = next[c];
  }
  return true;
}

// Sorts the bins by their scores, ties by bin.
inline void sort_bins(const double* score, Present* present) {
  constexpr int32_t gaps[] = {301, 132, 57, 23, 10, 4, 1};
  for (const int32_t gap : gaps) {
    for (int32_t i = gap; i < present->n; ++i) {
      const uint16_t bin = present->bins[i];
      int32_t place = i;
      for (; place >= gap; place -= gap) {
        const uint16_t other = present->bins[place - gap];
        const bool behind =
            score[other] > score[bin] || (score[other] == score[bin] && other > bin);
        if (!behind) break;
        present->bins[place] = other;
      }
      present->bins[place] = bin;
    }
  }
}

// Sorts the bins by their mean along an axis. Those without weight have the node's mean.
template <int V>
void sort_along(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                const double* axis, const double* sums, const uint32_t* counts, Present* present) {
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  double score[MAX_BINS];
  for (int32_t i = 0; i < present->n; ++i) {
    const int32_t bin = present->bins[i];
    const double* cell = sums + bin * n_channels;
    const double weight = weight_of(rule, cell, counts[bin]);
    score[bin] = weight > 0 ? along<V>(node, cell, weight, axis, n_channels) / weight : 0.0;
  }
  sort_bins(score, present);
}

// Turns a difference into the direction whose product with it is its norm, up to a factor.
inline void to_direction(NormL2, const double*, int64_t, double*) {}
inline void to_direction(NormL1, const double*, int64_t n_channels, double* d) {
  for (int64_t c = 0; c < n_channels; ++c) d[c] = d[c] > 0 ? 1.0 : d[c] < 0 ? -1.0 : 0.0;
}
inline void to_direction(NormLinf, const double* weights, int64_t n_channels, double* d) {
  int64_t chosen = 0;
  double largest = 0;
  for (int64_t c = 0; c < n_channels; ++c) {
    const double size = weights[c] * (d[c] < 0 ? -d[c] : d[c]);
    if (size > largest) {
      largest = size;
      chosen = c;
    }
  }
  for (int64_t c = 0; c < n_channels; ++c) d[c] = c == chosen ? 1.0 : 0.0;
}
