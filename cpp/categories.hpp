// The split search over categories: which of a feature's bins go left, in any combination.
// Included by kernels.cpp only.
//
// Few categories: every subset. Many: they are put in an order and cut like numbers. The first
// order is along the principal axis of their mean curves. The best cut's own difference of curves
// gives the next, as long as that helps: the norm of a difference is its product with some
// direction, and in the order along that there is a cut no worse. With one channel all orders are
// that of the means, in which the best subset is a cut. Nothing here depends on the splits of other
// features, so the work can be shared out by features.

constexpr int32_t MAX_ENUMERATED = 8;  // bins with rows up to which every subset is tried
constexpr int POWER_STEPS = 8;
constexpr int MAX_ORDERS = 4;

// The bins that have rows in the node, ascending.
struct Present {
  int32_t n;
  uint8_t bins[MAX_BINS];
};

inline Present bins_with_rows(const uint32_t* counts, int32_t n_bins) {
  Present present{};
  for (int32_t b = 0; b < n_bins; ++b) {
    if (counts[b] > 0) present.bins[present.n++] = static_cast<uint8_t>(b);
  }
  return present;
}

inline void put(uint64_t* set, int32_t bin) { set[bin >> 6] |= uint64_t{1} << (bin & 63); }

// Categories that the node has not seen go where its missing values go, or else with most rows.
inline void put_absent(const uint32_t* counts, int32_t n_bins, uint64_t* set) {
  for (int32_t b = 0; b < n_bins; ++b) {
    if (counts[b] == 0) put(set, b);
  }
}

inline double weight_of(const SplitRule& rule, const double* sums, int64_t rows) {
  return rule.weight_channel >= 0 ? sums[rule.weight_channel] : static_cast<double>(rows);
}

// The gain of the sums of a left child; -inf where a child has no weight.
template <class D>
inline double gain_of_left(const SplitRule& rule, const Totals& node, const double* left,
                           int64_t left_rows, int64_t n_channels) {
  const double left_weight = weight_of(rule, left, left_rows);
  if (!(left_weight > 0 && left_weight < node.weight)) return -__builtin_inf();
  Lanes size{};
  for (int64_t c = 0; c < n_channels; c += LANES) {
    const Lanes d = load(left + c) * node.weight - left_weight * load(node.sums + c);
    size = D::add(size, d, load(rule.channel_weights + c));
  }
  double gain = gain_of<D>(rule, D::fold(size), left_weight, node.weight);
  if (rule.positivity != Positivity::NONE) gain += positivity_term(rule, node, left, left_weight);
  return gain;
}

// Every subset that holds the first bin, for the other half are their complements; missing values
// are one more item. A step adds or takes away one item, which exact sums allow. Of equal gains the
// subset that is lowest as a binary number wins, the missing values being its highest digit.
// `gain_of_sums` tells the gain of the sums and rows of a left child.
template <int V, class Gain>
Split best_subset(const TrainingRows& data, const Totals& node, int32_t feature,
                  const Present& present, const double* sums, const uint32_t* counts, double* left,
                  Gain gain_of_sums) {
  const int32_t missing_bin = data.n_bins[feature];
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  uint8_t items[MAX_ENUMERATED + 1];
  int32_t n_items = 0;
  for (; n_items < present.n; ++n_items) items[n_items] = present.bins[n_items];
  const bool missing = counts[missing_bin] > 0;
  if (missing) items[n_items++] = static_cast<uint8_t>(missing_bin);

  Split best{-__builtin_inf(), -1, BY_SET, 0, {}};
  const uint32_t all = (1u << (n_items - 1)) - 1;
  uint32_t side = 0, chosen = 0;  // bit i: whether item i + 1 is on the left
  int64_t left_rows = counts[items[0]], chosen_rows = 0;
  for (int64_t c = 0; c < n_channels; ++c) left[c] = sums[items[0] * n_channels + c];
  for (uint32_t step = 0; step <= all; ++step) {
    if (step > 0) {
      const int flipped = __builtin_ctz(step);
      const double* cell = sums + items[flipped + 1] * n_channels;
      side ^= 1u << flipped;
      const bool added = (side >> flipped) & 1;
      for (int64_t c = 0; c < n_channels; c += LANES) {
        store(left + c, added ? load(left + c) + load(cell + c) : load(left + c) - load(cell + c));
      }
      const int64_t rows = counts[items[flipped + 1]];
      left_rows += added ? rows : -rows;
    }
    if (left_rows < node.min_rows || node.rows - left_rows < node.min_rows) continue;
    const double gain = gain_of_sums(left, left_rows);
    if (gain > best.gain || (gain == best.gain && best.feature >= 0 && side < chosen)) {
      best.gain = gain;
      best.feature = feature;
      chosen = side;
      chosen_rows = left_rows;
    }
  }
  if (best.feature < 0) return best;
  put(best.left_bins, items[0]);
  for (int32_t i = 1; i < present.n; ++i) {
    if ((chosen >> (i - 1)) & 1) put(best.left_bins, items[i]);
  }
  best.missing_left = missing ? (chosen >> (n_items - 2)) & 1 : 2 * chosen_rows >= node.rows;
  return best;
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
  constexpr int32_t gaps[] = {57, 23, 10, 4, 1};
  for (const int32_t gap : gaps) {
    for (int32_t i = gap; i < present->n; ++i) {
      const uint8_t bin = present->bins[i];
      int32_t place = i;
      for (; place >= gap; place -= gap) {
        const uint8_t other = present->bins[place - gap];
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

// The best cut of the bins in an order, over both sides that missing values may take; `cut_in`
// finds it for an order, a side and a gain to beat.
template <class CutIn>
bool improve_by_order(const Totals& node, int32_t feature, int32_t missing_bin,
                      const Present& present, const uint32_t* counts, Split* best, CutIn cut_in) {
  bool improved = false;
  const ListedOrder order{present.n, present.bins};
  for (int side = 0; side < (counts[missing_bin] > 0 ? 2 : 1); ++side) {
    const Cut cut = cut_in(order, side == 1, best->gain);
    if (cut.place < 0) continue;
    improved = true;
    *best = {cut.gain, feature, BY_SET, side, {}};
    if (counts[missing_bin] == 0) best->missing_left = 2 * cut.left_rows >= node.rows;
    for (int32_t i = 0; i <= cut.place; ++i) put(best->left_bins, present.bins[i]);
  }
  return improved;
}

// Sums of the left child of a set; returns its rows.
inline int64_t add_up_left(const Split& split, int32_t missing_bin, const double* sums,
                           const uint32_t* counts, int64_t n_channels, double* out) {
  int64_t rows = 0;
  for (int64_t c = 0; c < n_channels; ++c) out[c] = 0;
  for (int32_t bin = 0; bin <= missing_bin; ++bin) {
    if (!(bin < missing_bin ? in_set(split.left_bins, bin) : split.missing_left)) continue;
    rows += counts[bin];
    for (int64_t c = 0; c < n_channels; c += LANES) {
      add_to(out + c, load(sums + bin * n_channels + c));
    }
  }
  return rows;
}

// The difference of the mean curves of the left child and the node, times both weights.
template <int V>
void difference_of_left(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                        const Split& split, const double* sums, const uint32_t* counts,
                        double* out) {
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  const int64_t rows =
      add_up_left(split, data.n_bins[split.feature], sums, counts, n_channels, out);
  const double weight = weight_of(rule, out, rows);
  for (int64_t c = 0; c < n_channels; c += LANES) {
    store(out + c, load(out + c) * node.weight - weight * load(node.sums + c));
  }
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

// Takes a split by a set in place of a worse one, with the bins in it that the node has not seen.
inline void take_if_better(Split own, const uint32_t* counts, int32_t n_bins, Split* best) {
  if (own.feature < 0 || !(own.gain > best->gain)) return;
  if (own.missing_left) put_absent(counts, n_bins, own.left_bins);
  *best = own;
}

template <int V, class D, bool Extras>
Split best_ordered(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                   int32_t feature, Present present, const double* sums, const uint32_t* counts,
                   double* left) {
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  alignas(CACHE_LINE) double axis[MAX_CHANNELS];
  Split best{-__builtin_inf(), -1, BY_SET, 0, {}};
  bool has_axis = principal_axis<V>(data, rule, node, present, sums, counts, axis);
  for (int orders = 0; orders < MAX_ORDERS; ++orders) {
    if (has_axis) sort_along<V>(data, rule, node, axis, sums, counts, &present);
    const int32_t missing_bin = data.n_bins[feature];
    const auto cut_in = [&](ListedOrder order, bool missing_left, double gain_to_beat) {
      return best_cut<V, D, Extras>(data, rule, node, missing_bin, order, missing_left, sums,
                                    counts, left, gain_to_beat);
    };
    const bool improved =
        improve_by_order(node, feature, missing_bin, present, counts, &best, cut_in);
    if (!improved || !has_axis) break;
    difference_of_left<V>(data, rule, node, best, sums, counts, axis);
    to_direction(D{}, rule.channel_weights, n_channels, axis);
    has_axis = make_axis(rule.channel_weights, axis, n_channels);
  }
  return best;
}

// Improves `best` by the best set of categories of one feature.
template <int V, class D, bool Extras>
void scan_categories(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                     int32_t feature, const double* sums, const uint32_t* counts, double* left,
                     Split* best) {
  const int32_t n_bins = data.n_bins[feature];
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  const Present present = bins_with_rows(counts, n_bins);
  const auto gain = [&](const double* own, int64_t rows) {
    return gain_of_left<D>(rule, node, own, rows, n_channels);
  };
  const Split own =
      present.n <= MAX_ENUMERATED
          ? best_subset<V>(data, node, feature, present, sums, counts, left, gain)
          : best_ordered<V, D, Extras>(data, rule, node, feature, present, sums, counts, left);
  take_if_better(own, counts, n_bins, best);
}
