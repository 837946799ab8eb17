// The split search over categories: which of a feature's bins go left, in any combination.
// Included by kernels.cpp only.
//
// Few categories: every subset. Many: they are put in orders (category_orders.hpp) and cut like
// numbers. With one channel all orders are that of the means, in which the best subset is a cut.
// Nothing here depends on the splits of other features, so the work can be shared out by features.

constexpr int32_t MAX_ENUMERATED = 8;  // bins with rows up to which every subset is tried

inline void put(uint64_t* set, int32_t bin) { set[bin >> 6] |= uint64_t{1} << (bin & 63); }

// Categories that the node has not seen go where its missing values go, or else with most rows.
inline void put_absent(const uint32_t* counts, int32_t n_bins, uint64_t* set) {
  for (int32_t b = 0; b < n_bins; ++b) {
    if (counts[b] == 0) put(set, b);
  }
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
  int32_t items[MAX_ENUMERATED + 1];
  int32_t n_items = 0;
  for (; n_items < present.n; ++n_items) items[n_items] = present.bins[n_items];
  const bool missing = counts[missing_bin] > 0;
  if (missing) items[n_items++] = missing_bin;

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

// Takes a split by a set in place of a worse one, with the bins in it that the node has not seen.
inline void take_if_better(Split own, const uint32_t* counts, int32_t n_bins, Split* best) {
  if (own.feature < 0 || !(own.gain > best->gain)) return;
  if (own.missing_left) put_absent(counts, n_bins, own.left_bins);
  *best = own;
}

// The steps of category_orders.hpp for mean curves.
template <int V, class D, bool Extras>
struct MeanSteps {
  const TrainingRows& data;
  const SplitRule& rule;
  const Totals& node;
  int32_t feature;
  const double* sums;
  const uint32_t* counts;
  double* left;  // scratch
  Present present;
  Split best;

  int64_t n_channels() const { return V ? V * LANES : data.n_channels; }

  bool principal(double* axis) const {
    return principal_axis<V>(data, rule, node, present, sums, counts, axis);
  }

  [[gnu::noinline]] bool improve(const double* axis) {
    if (axis) sort_along<V>(data, rule, node, axis, sums, counts, &present);
    const int32_t missing_bin = data.n_bins[feature];
    const auto cut_in = [&](ListedOrder order, bool missing_left, double gain_to_beat) {
      return best_cut<V, D, Extras>(data, rule, node, missing_bin, order, missing_left, sums,
                                    counts, left, gain_to_beat);
    };
    return improve_by_order(node, feature, missing_bin, present, counts, &best, cut_in);
  }

  bool next(double* axis) const {
    difference_of_left<V>(data, rule, node, best, sums, counts, axis);
    to_direction(D{}, rule.channel_weights, n_channels(), axis);
    return make_axis(rule.channel_weights, axis, n_channels());
  }

  void spreads(double* out) const {
    for (int64_t c = 0; c < n_channels(); ++c) out[c] = 0;
    for (int32_t i = 0; i < present.n; ++i) {
      const double* cell = sums + present.bins[i] * n_channels();
      const double weight = weight_of(rule, cell, counts[present.bins[i]]);
      if (!(weight > 0)) continue;
      for (int64_t c = 0; c < n_channels(); c += LANES) {
        const Lanes d = load(cell + c) * node.weight - weight * load(node.sums + c);
        add_to(out + c, load(rule.channel_weights + c) * (d * d) * (1 / weight));
      }
    }
  }
};

template <int V, class D, bool Extras>
Split best_ordered(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                   int32_t feature, const Present& present, const double* sums,
                   const uint32_t* counts, double* left) {
  MeanSteps<V, D, Extras> steps{data,    rule,    node,
                                feature, sums,    counts,
                                left,    present, {-__builtin_inf(), -1, BY_SET, 0, {}}};
  try_orders<MAX_CHANNELS>(steps, rule.channel_weights, steps.n_channels(), node.rows / present.n);
  return steps.best;
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
