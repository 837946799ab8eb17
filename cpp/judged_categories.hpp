// The search over categories for statistics other than means; the rules are those of
// categories.hpp. Included by kernels.cpp only, after it.
//
// A category's curve is compared with that of the other rows: times their weight, this is its
// difference from the node's curve where curves are means, and near it elsewhere.

template <class Judge>
inline void offset_of(const Judge& judge, const double* cell, double weight, double* out) {
  judge.differences(cell, weight, out);
  const double others = judge.node.weight - weight;
  for (int64_t p = 0; p < judge.rule.statistic.stride; ++p) out[p] *= others;
}

// Weight of a category, 0 where there are no other rows to compare it with.
template <class Judge>
inline double compared_weight(const Judge& judge, const double* cell, int64_t rows) {
  const double weight = weight_of(judge.rule, cell, rows);
  return weight > 0 && weight < judge.node.weight ? weight : 0.0;
}

inline double product(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t p = 0; p < n; ++p) total += a[p] * b[p];
  return total;
}

template <class Judge>
bool principal_axis_by(const Judge& judge, const Present& present, const double* sums,
                       const uint32_t* counts, int64_t n_channels, double* axis) {
  const int64_t n_points = judge.rule.statistic.stride;
  const double* weights = judge.rule.statistic.settings;
  double own[MAX_POINTS + LANES], next[MAX_POINTS];
  double farthest = 0;
  for (int32_t i = 0; i < present.n; ++i) {
    const double* cell = sums + present.bins[i] * n_channels;
    const double weight = compared_weight(judge, cell, counts[present.bins[i]]);
    if (weight == 0) continue;
    offset_of(judge, cell, weight, own);
    double spread = 0;
    for (int64_t p = 0; p < n_points; ++p) spread += own[p] * own[p] * weights[p];
    if (!(spread * weight > farthest)) continue;
    farthest = spread * weight;
    for (int64_t p = 0; p < n_points; ++p) axis[p] = own[p];
  }
  if (farthest == 0 || !make_axis(weights, axis, n_points)) return false;
  for (int step = 0; step < POWER_STEPS; ++step) {
    for (int64_t p = 0; p < n_points; ++p) next[p] = 0;
    for (int32_t i = 0; i < present.n; ++i) {
      const double* cell = sums + present.bins[i] * n_channels;
      const double weight = compared_weight(judge, cell, counts[present.bins[i]]);
      if (weight == 0) continue;
      offset_of(judge, cell, weight, own);
      const double score = weight * product(own, axis, n_points);
      for (int64_t p = 0; p < n_points; ++p) next[p] += own[p] * score;
    }
    if (!make_axis(weights, next, n_points)) return true;
    for (int64_t p = 0; p < n_points; ++p) axis[p] = next[p];
  }
  return true;
}

template <class Judge>
void sort_along_by(const Judge& judge, const double* axis, const double* sums,
                   const uint32_t* counts, int64_t n_channels, Present* present) {
  double score[MAX_BINS], own[MAX_POINTS + LANES];
  for (int32_t i = 0; i < present->n; ++i) {
    const int32_t bin = present->bins[i];
    const double* cell = sums + bin * n_channels;
    const double weight = compared_weight(judge, cell, counts[bin]);
    score[bin] = 0;
    if (weight == 0) continue;
    offset_of(judge, cell, weight, own);
    score[bin] = product(own, axis, judge.rule.statistic.stride);
  }
  sort_bins(score, present);
}

// The steps of category_orders.hpp for another statistic.
template <class D, class Judge>
struct JudgedSteps {
  const Judge& judge;
  const TrainingRows& data;
  int32_t feature;
  const double* sums;
  const uint32_t* counts;
  double* left;  // scratch
  Present present;
  Split best;

  int64_t n_points() const { return judge.rule.statistic.stride; }
  const double* weights() const { return judge.rule.statistic.settings; }

  bool principal(double* axis) const {
    return principal_axis_by(judge, present, sums, counts, data.n_channels, axis);
  }

  [[gnu::noinline]] bool improve(const double* axis) {
    if (axis) sort_along_by(judge, axis, sums, counts, data.n_channels, &present);
    const int32_t missing_bin = data.n_bins[feature];
    const auto cut_in = [&](ListedOrder order, bool missing_left, double gain_to_beat) {
      return best_cut_by(judge, data, missing_bin, order, missing_left, sums, counts, left,
                         gain_to_beat);
    };
    return improve_by_order(judge.node, feature, missing_bin, present, counts, &best, cut_in);
  }

  bool next(double* axis) const {
    const int64_t rows =
        add_up_left(best, data.n_bins[feature], sums, counts, data.n_channels, left);
    judge.differences(left, weight_of(judge.rule, left, rows), axis);
    to_direction(D{}, weights(), n_points(), axis);
    return make_axis(weights(), axis, n_points());
  }

  void spreads(double* out) const {
    double own[MAX_POINTS + LANES];
    for (int64_t p = 0; p < n_points(); ++p) out[p] = 0;
    for (int32_t i = 0; i < present.n; ++i) {
      const double* cell = sums + present.bins[i] * data.n_channels;
      const double weight = compared_weight(judge, cell, counts[present.bins[i]]);
      if (weight == 0) continue;
      offset_of(judge, cell, weight, own);
      for (int64_t p = 0; p < n_points(); ++p) out[p] += weight * weights()[p] * own[p] * own[p];
    }
  }
};

template <class D, class Judge>
Split best_ordered_by(const Judge& judge, const TrainingRows& data, int32_t feature,
                      const Present& present, const double* sums, const uint32_t* counts,
                      double* left) {
  JudgedSteps<D, Judge> steps{judge,  data, feature, sums,
                              counts, left, present, {-__builtin_inf(), -1, BY_SET, 0, {}}};
  try_orders<MAX_POINTS>(steps, steps.weights(), steps.n_points(), judge.node.rows / present.n);
  return steps.best;
}

// Improves `best` by the best set of categories of one feature.
template <class D, class Judge>
void scan_categories_by(const Judge& judge, const TrainingRows& data, int32_t feature,
                        const double* sums, const uint32_t* counts, double* left, Split* best) {
  const int32_t n_bins = data.n_bins[feature];
  const Present present = bins_with_rows(counts, n_bins);
  const auto gain = [&](const double* own, int64_t rows) {
    const double weight = weight_of(judge.rule, own, rows);
    return weight > 0 && weight < judge.node.weight ? judge.gain(own, weight) : -__builtin_inf();
  };
  const Split own =
      present.n <= MAX_ENUMERATED
          ? best_subset<0>(data, judge.node, feature, present, sums, counts, left, gain)
          : best_ordered_by<D>(judge, data, feature, present, sums, counts, left);
  take_if_better(own, counts, n_bins, best);
}
