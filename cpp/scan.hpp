// The split search: prefix sums over the bins of a feature and the gain of every cut.
// Included by kernels.cpp only.
//
// For a node P with children L and R the gain is n_L n_R / n_P * D(mean_L, mean_R) (GCF Eq. 2).
// With d = S_L n_P - n_L S_P the difference of the means is d n_P / (n_P n_L n_R), hence
//   D a norm:          gain = |d| / n_P
//   D a norm squared:  gain = |d|^2 / (n_P n_L n_R).
// Both products of d are rounded once, so d is exactly zero when the curves of a node are equal.

struct NormL1 {
  static constexpr bool is_square = false;
  static Lanes add(Lanes total, Lanes d, Lanes weight) { return total + weight * size_of(d); }
  static double fold(Lanes t) { return (lane(t, 0) + lane(t, 1)) + (lane(t, 2) + lane(t, 3)); }
};
struct NormL2 {  // adds up the square of the norm
  static constexpr bool is_square = true;
  static Lanes add(Lanes total, Lanes d, Lanes weight) { return total + weight * (d * d); }
  static double fold(Lanes t) { return NormL1::fold(t); }
};
struct NormLinf {
  static constexpr bool is_square = false;
  static Lanes add(Lanes total, Lanes d, Lanes weight) {
    return larger(total, weight * size_of(d));
  }
  static double fold(Lanes t) {
    const double a = lane(t, 0) < lane(t, 1) ? lane(t, 1) : lane(t, 0);
    const double b = lane(t, 2) < lane(t, 3) ? lane(t, 3) : lane(t, 2);
    return a < b ? b : a;
  }
};

// What is known of the node before any cut.
struct Totals {
  const double* sums;  // (n_channels,)
  int64_t rows;
  double weight;
  int64_t min_rows;  // smallest admissible child
};

inline int64_t smallest_child(const SplitRule& rule, int64_t n_rows) {
  // 0.07 * 100 rounds to more than 7: a share is rounded up, rounding errors are not.
  const double share = rule.min_fraction * static_cast<double>(n_rows) * (1 - 1e-12);
  int64_t by_fraction = static_cast<int64_t>(share);
  if (static_cast<double>(by_fraction) < share) ++by_fraction;
  const int64_t rows = by_fraction < rule.min_rows ? rule.min_rows : by_fraction;
  return rows < 1 ? 1 : rows;
}

// Spread of the treatment in a child from its mean moments: a mean conditional variance, or the
// variance of the mixture of the rows' densities (the published reading).
inline double spread(const SplitRule& rule, double first_sum, double second_sum, double weight) {
  const double first = first_sum / weight;
  if (rule.positivity == Positivity::CONDITIONAL) return first;
  const double variance = second_sum / weight - first * first;
  return variance > 0 ? variance : 0.0;
}

// zeta * sigma: the smaller of the two children's spreads, so that both keep a varied treatment.
inline double positivity_term(const SplitRule& rule, const Totals& node, const double* left,
                              double left_weight) {
  const int32_t first = rule.spread_channel;
  const int32_t second = rule.positivity == Positivity::MIXTURE ? first + 1 : first;
  const double a = spread(rule, left[first], left[second], left_weight);
  const double b = spread(rule, node.sums[first] - left[first], node.sums[second] - left[second],
                          node.weight - left_weight);
  return rule.zeta * (a < b ? a : b);
}

template <class D>
inline double gain_of(const SplitRule& rule, double size, double left_weight, double node_weight) {
  if (!rule.squared) return (D::is_square ? __builtin_sqrt(size) : size) / node_weight;
  const double right_weight = node_weight - left_weight;
  return (D::is_square ? size : size * size) / (node_weight * left_weight * right_weight);
}

// The bins of a feature in the order in which they are cut: their own, or that of a list.
struct OwnOrder {
  int32_t n_bins;
  int32_t operator[](int32_t place) const { return place; }
};
struct ListedOrder {
  int32_t n_bins;
  const uint16_t* bins;
  int32_t operator[](int32_t place) const { return bins[place]; }
};

// The places after which a cut leaves both children large enough: they follow on each other.
struct Cuts {
  int32_t first, end;
  int64_t rows_before;  // rows on the left of the first cut, without its own bin
};

template <class Order>
inline Cuts admissible_cuts(const uint32_t* counts, Order order, int64_t start_rows,
                            const Totals& node) {
  Cuts cuts{0, order.n_bins, start_rows};
  while (cuts.first < cuts.end && cuts.rows_before + counts[order[cuts.first]] < node.min_rows) {
    cuts.rows_before += counts[order[cuts.first++]];
  }
  int64_t right_rows = node.rows - start_rows;  // of the cut after the last bin: missing values
  for (int32_t b = 0; b < order.n_bins; ++b) right_rows -= counts[order[b]];
  while (cuts.end > cuts.first && right_rows < node.min_rows) {
    right_rows += counts[order[--cuts.end]];
  }
  return cuts;
}

// No row of the node lies between the two children: cut half-way through the empty bins, or,
// when only missing values are on the right, above them all.
inline void record_cut(int32_t feature, int32_t chosen, int64_t left_rows, bool missing_left,
                       const Totals& node, const uint32_t* counts, int32_t n_bins, double gain,
                       Split* best) {
  int32_t next = chosen + 1;
  while (next < n_bins && counts[next] == 0) ++next;
  best->gain = gain;
  best->feature = feature;
  best->bin = next < n_bins ? (chosen + next - 1) / 2 : n_bins - 1;
  best->missing_left = counts[n_bins] ? missing_left : 2 * left_rows >= node.rows;
}

struct Cut {
  double gain;
  int32_t place;  // the last bin on the left; -1: no cut beats the gain to beat
  int64_t left_rows;
};

// The best cut of one feature with the missing values on one side. V as in accumulate.hpp; Extras:
// rows have weights or the gain has a positivity term. `left` is scratch of n_channels doubles.
// Empty bins are not skipped: they repeat the cut before them, which never improves on it, and
// a test for them costs more than it saves.
template <int V, class D, bool Extras, class Order>
inline Cut best_cut(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                    int32_t missing_bin, Order order, bool missing_left, const double* sums,
                    const uint32_t* counts, double* left, double gain_to_beat) {
  Cut best{gain_to_beat, -1, 0};
  const Cuts cuts = admissible_cuts(counts, order, missing_left ? counts[missing_bin] : 0, node);
  if (cuts.first >= cuts.end) return best;
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  for (int64_t c = 0; c < n_channels; c += LANES) {
    Lanes start = missing_left ? load(sums + missing_bin * n_channels + c) : Lanes{};
    for (int32_t b = 0; b < cuts.first; ++b) start = start + load(sums + order[b] * n_channels + c);
    store(left + c, start);
  }

  const double node_weight = node.weight;
  int64_t left_rows = cuts.rows_before;
  for (int32_t b = cuts.first; b < cuts.end; ++b) {
    const double* cell = sums + order[b] * n_channels;
    left_rows += counts[order[b]];
    double left_weight = static_cast<double>(left_rows);
    if (Extras && rule.weight_channel >= 0) {
      left_weight = left[rule.weight_channel] + cell[rule.weight_channel];
    }
    Lanes size{};
    for (int64_t c = 0; c < n_channels; c += LANES) {
      const Lanes here = load(left + c) + load(cell + c);
      store(left + c, here);
      const Lanes d = here * node_weight - left_weight * load(node.sums + c);
      size = D::add(size, d, load(rule.channel_weights + c));
    }
    if (Extras && !(left_weight > 0 && left_weight < node_weight)) continue;
    double gain = gain_of<D>(rule, D::fold(size), left_weight, node_weight);
    if (Extras && rule.positivity != Positivity::NONE) {
      gain += positivity_term(rule, node, left, left_weight);
    }
    if (gain > best.gain) best = {gain, b, left_rows};
  }
  return best;
}

// Totals of a node from the cells of one feature: every feature adds up to the same, exactly.
inline Totals node_totals(const SplitRule& rule, const double* sums, const uint32_t* counts,
                          int64_t n_cells, int64_t n_channels, double* node_sums) {
  Totals node{node_sums, 0, 0, 0};
  for (int64_t c = 0; c < n_channels; ++c) node_sums[c] = 0;
  for (int64_t cell = 0; cell < n_cells; ++cell) {
    for (int64_t c = 0; c < n_channels; c += LANES) {
      add_to(node_sums + c, load(sums + cell * n_channels + c));
    }
    node.rows += counts[cell];
  }
  node.weight =
      rule.weight_channel >= 0 ? node_sums[rule.weight_channel] : static_cast<double>(node.rows);
  node.min_rows = smallest_child(rule, node.rows);
  return node;
}

// Cuts of a numeric feature with the missing values on one side.
template <int V, class D, bool Extras>
void scan_direction(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                    int32_t feature, bool missing_left, const double* sums, const uint32_t* counts,
                    double* left, Split* best) {
  const int32_t n_bins = data.n_bins[feature];
  const Cut cut = best_cut<V, D, Extras>(data, rule, node, n_bins, OwnOrder{n_bins}, missing_left,
                                         sums, counts, left, best->gain);
  if (cut.place < 0) return;
  record_cut(feature, cut.place, cut.left_rows, missing_left, node, counts, n_bins, cut.gain, best);
}

// In categories.hpp.
template <int V, class D, bool Extras>
void scan_categories(const TrainingRows& data, const SplitRule& rule, const Totals& node,
                     int32_t feature, const double* sums, const uint32_t* counts, double* left,
                     Split* best);

template <int V, class D, bool Extras>
void scan_features(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
                   int64_t n_selected, const double* sums, const uint32_t* counts, Split* best) {
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  alignas(CACHE_LINE) double left[MAX_CHANNELS];
  alignas(CACHE_LINE) double node_sums[MAX_CHANNELS];
  const int64_t first_cells = data.n_bins[features[0]] + 1;
  const Totals node = node_totals(rule, sums, counts, first_cells, n_channels, node_sums);
  if (!(node.weight > 0)) return;
  for (int64_t j = 0; j < n_selected; ++j) {
    const int64_t cells = data.n_bins[features[j]] + 1;
    if (data.categorical && data.categorical[features[j]]) {
      scan_categories<V, D, Extras>(data, rule, node, features[j], sums, counts, left, best);
    } else {
      scan_direction<V, D, Extras>(data, rule, node, features[j], false, sums, counts, left, best);
      if (counts[cells - 1] > 0) {
        scan_direction<V, D, Extras>(data, rule, node, features[j], true, sums, counts, left, best);
      }
    }
    sums += cells * n_channels;
    counts += cells;
  }
}
