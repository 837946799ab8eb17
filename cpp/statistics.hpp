// Split statistics besides the mean of curves. Included by kernels.cpp only, after scan.hpp.
//
// A judge is made for a node and tells the gain of a cut from the exact sums of the left child;
// those of the right child are what remains of the node's. Channels come in fields of `stride`
// channels each, and the weight of every point of a curve is the first field of the settings.

// The difference of two curves after D has added it up, to the gain n_L n_R / n_P * D.
template <class D>
inline double curve_gain(const SplitRule& rule, double size, double left_weight,
                         double node_weight) {
  double distance = size;
  if (rule.squared && !D::is_square) distance = size * size;
  if (!rule.squared && D::is_square) distance = __builtin_sqrt(size);
  return left_weight * (node_weight - left_weight) / node_weight * distance;
}

// Ratios of sums, and two forms of their derivative along the dose.
//   RATIO        fields: numerators N, denominators M. Curve N / M.
//   DIFFERENCES  the same fields. Curve: differences of N / M from dose to dose, per unit of dose.
//   DERIVATIVE   fields: N, M and their derivatives N', M'. Curve (N' M - N M') / M^2.
// Settings: point weights | least mean of M | 1 over the gap to the next dose (DIFFERENCES only).
// A dose counts only where M of both children is larger than its least mean times their weight.
template <class D, Statistic kind>
struct RatioJudge {
  const SplitRule& rule;
  const Totals& node;

  RatioJudge(const SplitRule& own_rule, const Totals& own_node) : rule(own_rule), node(own_node) {}

  static Lanes slope(Lanes n, Lanes m, Lanes dn, Lanes dm) { return (dn * m - n * dm) / (m * m); }

  // Curve of a left child less that of what remains.
  void differences(const double* left, double left_weight, double* out) const {
    const int64_t stride = rule.statistic.stride;
    const double* least = rule.statistic.settings + stride;
    const double right_weight = node.weight - left_weight;
    double seen[MAX_POINTS + LANES];
    for (int64_t c = 0; c < stride; c += LANES) {
      const Lanes n1 = load(left + c), n2 = load(node.sums + c) - n1;
      const Lanes m1 = load(left + stride + c), m2 = load(node.sums + stride + c) - m1;
      const Lanes lowest = load(least + c);
      const Lanes excess = smaller(m1 - lowest * left_weight, m2 - lowest * right_weight);
      Lanes difference;
      if constexpr (kind == Statistic::DERIVATIVE) {
        const double* dn = left + 2 * stride + c;
        const double* dm = left + 3 * stride + c;
        difference = slope(n1, m1, load(dn), load(dm)) -
                     slope(n2, m2, load(node.sums + 2 * stride + c) - load(dn),
                           load(node.sums + 3 * stride + c) - load(dm));
      } else {
        difference = (n1 * m2 - n2 * m1) / (m1 * m2);
      }
      store(out + c, where_positive(excess, difference));
      if constexpr (kind == Statistic::DIFFERENCES) store(seen + c, excess);
    }
    if constexpr (kind == Statistic::DIFFERENCES) {
      store(out + stride, Lanes{});
      store(seen + stride, Lanes{});
      for (int64_t c = 0; c < stride; c += LANES) {
        const Lanes step = load(out + c + 1) - load(out + c);
        const Lanes both = smaller(load(seen + c), load(seen + c + 1));
        store(out + c, where_positive(both, step * load(least + stride + c)));
      }
    }
  }

  double gain(const double* left, double left_weight) const {
    double own[MAX_POINTS + LANES];
    differences(left, left_weight, own);
    Lanes size{};
    for (int64_t c = 0; c < rule.statistic.stride; c += LANES) {
      size = D::add(size, load(own + c), load(rule.statistic.settings + c));
    }
    const double gain = curve_gain<D>(rule, D::fold(size), left_weight, node.weight);
    if (rule.positivity == Positivity::NONE) return gain;
    return gain + positivity_term(rule, node, left, left_weight);
  }
};

// Scores of a ridge regression of residuals on k functions B: with M and v a node's mean moments,
// A = M + diag(penalty) and beta = A^-1 v, a row's score is A^-1 B (e - B' beta), and its curve
// F A^-1 B (e - B' beta) for functions F at the doses where children are compared. The sum over a
// child is F A^-1 (v_child - M_child beta): linear in the channels, so nothing is relabelled.
// Channels: upper triangle of B B' by rows, then B e. Settings: point weights | penalty (k) | F',
// (k, stride). As in scan.hpp d = S_L n_P - n_L S_P, here of the channels before they are mapped.
template <class D>
struct ScoreJudge {
  const SplitRule& rule;
  const Totals& node;
  double beta[MAX_FUNCTIONS];
  double map[MAX_FUNCTIONS * MAX_SCORE_POINTS];  // F A^-1, transposed: (k, stride)

  ScoreJudge(const SplitRule& own_rule, const Totals& own_node) : rule(own_rule), node(own_node) {
    const int64_t k = rule.statistic.n_functions, stride = rule.statistic.stride;
    const double* penalty = rule.statistic.settings + stride;
    const double* functions = penalty + k;
    double matrix[MAX_FUNCTIONS * MAX_FUNCTIONS];
    const double* packed = node.sums;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = i; j < k; ++j) matrix[j * k + i] = *packed++ / node.weight;
      matrix[i * k + i] += penalty[i];
    }
    factorise(matrix, k);
    for (int64_t i = 0; i < k; ++i) beta[i] = packed[i] / node.weight;
    substitute(matrix, beta, k);
    for (int64_t p = 0; p < stride; ++p) {
      double column[MAX_FUNCTIONS];
      for (int64_t i = 0; i < k; ++i) column[i] = functions[i * stride + p];
      substitute(matrix, column, k);
      for (int64_t i = 0; i < k; ++i) map[i * stride + p] = column[i];
    }
  }

  // Mean curve of a left child less that of what remains, times both weights.
  void mapped(const double* left, double left_weight, double* out) const {
    const int64_t k = rule.statistic.n_functions, stride = rule.statistic.stride;
    const int64_t n_squares = k * (k + 1) / 2;
    double score[MAX_FUNCTIONS];
    const auto d = [&](int64_t c) { return left[c] * node.weight - left_weight * node.sums[c]; };
    for (int64_t i = 0; i < k; ++i) score[i] = d(n_squares + i);
    int64_t c = 0;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = i; j < k; ++j) {
        const double square = d(c++);
        score[i] -= square * beta[j];
        if (j > i) score[j] -= square * beta[i];
      }
    }
    for (int64_t p = 0; p < stride; p += LANES) {
      Lanes value{};
      for (int64_t i = 0; i < k; ++i) value = value + load(map + i * stride + p) * score[i];
      store(out + p, value);
    }
  }

  void differences(const double* left, double left_weight, double* out) const {
    mapped(left, left_weight, out);
    const double weights = left_weight * (node.weight - left_weight);
    for (int64_t p = 0; p < rule.statistic.stride; ++p) out[p] /= weights;
  }

  double gain(const double* left, double left_weight) const {
    double own[MAX_SCORE_POINTS];
    mapped(left, left_weight, own);
    Lanes size{};
    for (int64_t p = 0; p < rule.statistic.stride; p += LANES) {
      size = D::add(size, load(own + p), load(rule.statistic.settings + p));
    }
    return gain_of<D>(rule, D::fold(size), left_weight, node.weight);
  }
};

// best_cut of scan.hpp, judged by another statistic.
template <class Judge, class Order>
Cut best_cut_by(const Judge& judge, const TrainingRows& data, int32_t missing_bin, Order order,
                bool missing_left, const double* sums, const uint32_t* counts, double* left,
                double gain_to_beat) {
  const Totals& node = judge.node;
  const int32_t weight_channel = judge.rule.weight_channel;
  const int64_t n_channels = data.n_channels;
  Cut best{gain_to_beat, -1, 0};
  const Cuts cuts = admissible_cuts(counts, order, missing_left ? counts[missing_bin] : 0, node);
  if (cuts.first >= cuts.end) return best;
  for (int64_t c = 0; c < n_channels; c += LANES) {
    Lanes start = missing_left ? load(sums + missing_bin * n_channels + c) : Lanes{};
    for (int32_t b = 0; b < cuts.first; ++b) start = start + load(sums + order[b] * n_channels + c);
    store(left + c, start);
  }
  int64_t left_rows = cuts.rows_before;
  for (int32_t b = cuts.first; b < cuts.end; ++b) {
    const int32_t bin = order[b];
    if (counts[bin] == 0) continue;  // the cut before once more, and a gain is dear here
    left_rows += counts[bin];
    for (int64_t c = 0; c < n_channels; c += LANES)
      add_to(left + c, load(sums + bin * n_channels + c));
    const double left_weight =
        weight_channel >= 0 ? left[weight_channel] : static_cast<double>(left_rows);
    if (!(left_weight > 0 && left_weight < node.weight)) continue;
    const double gain = judge.gain(left, left_weight);
    if (gain > best.gain) best = {gain, b, left_rows};
  }
  return best;
}

// Cuts of a numeric feature with the missing values on one side.
template <class Judge>
void scan_direction_by(const Judge& judge, const TrainingRows& data, int32_t feature,
                       bool missing_left, const double* sums, const uint32_t* counts, double* left,
                       Split* best) {
  const int32_t n_bins = data.n_bins[feature];
  const Cut cut = best_cut_by(judge, data, n_bins, OwnOrder{n_bins}, missing_left, sums, counts,
                              left, best->gain);
  if (cut.place < 0) return;
  record_cut(feature, cut.place, cut.left_rows, missing_left, judge.node, counts, n_bins, cut.gain,
             best);
}

// In judged_categories.hpp.
template <class D, class Judge>
void scan_categories_by(const Judge& judge, const TrainingRows& data, int32_t feature,
                        const double* sums, const uint32_t* counts, double* left, Split* best);

template <class D, class Judge>
void scan_features_by(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
                      int64_t n_selected, const double* sums, const uint32_t* counts, Split* best) {
  alignas(CACHE_LINE) double left[MAX_CHANNELS];
  alignas(CACHE_LINE) double node_sums[MAX_CHANNELS];
  const int64_t n_channels = data.n_channels, first_cells = data.n_bins[features[0]] + 1;
  const Totals node = node_totals(rule, sums, counts, first_cells, n_channels, node_sums);
  if (!(node.weight > 0)) return;
  const Judge judge(rule, node);
  for (int64_t j = 0; j < n_selected; ++j) {
    const int64_t cells = data.n_bins[features[j]] + 1;
    if (data.categorical && data.categorical[features[j]]) {
      scan_categories_by<D>(judge, data, features[j], sums, counts, left, best);
    } else {
      scan_direction_by(judge, data, features[j], false, sums, counts, left, best);
      if (counts[cells - 1] > 0) {
        scan_direction_by(judge, data, features[j], true, sums, counts, left, best);
      }
    }
    sums += cells * n_channels;
    counts += cells;
  }
}

template <class D>
void scan_statistic_norm(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
                         int64_t n_selected, const double* sums, const uint32_t* counts,
                         Split* best) {
  const auto by = [&]<class Judge>() {
    scan_features_by<D, Judge>(data, rule, features, n_selected, sums, counts, best);
  };
  switch (rule.statistic.kind) {
    case Statistic::MEAN:
      return;
    case Statistic::RATIO:
      return by.template operator()<RatioJudge<D, Statistic::RATIO>>();
    case Statistic::DIFFERENCES:
      return by.template operator()<RatioJudge<D, Statistic::DIFFERENCES>>();
    case Statistic::DERIVATIVE:
      return by.template operator()<RatioJudge<D, Statistic::DERIVATIVE>>();
    case Statistic::SCORES:
      return by.template operator()<ScoreJudge<D>>();
  }
}

void scan_statistic(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
                    int64_t n_selected, const double* sums, const uint32_t* counts, Split* best) {
  switch (rule.norm) {
    case Norm::L1:
      return scan_statistic_norm<NormL1>(data, rule, features, n_selected, sums, counts, best);
    case Norm::L2:
      return scan_statistic_norm<NormL2>(data, rule, features, n_selected, sums, counts, best);
    case Norm::LINF:
      return scan_statistic_norm<NormLinf>(data, rule, features, n_selected, sums, counts, best);
  }
}
