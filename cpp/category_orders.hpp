// The orders in which many categories are cut. Included by kernels.cpp only, before categories.hpp.
//
// The norm of a difference is its product with some direction, and in the order along that there is
// a cut no worse: from any cut there is a way on. It starts at the principal axis of the
// categories' mean curves, and once more at the best of the orders by single points and by their
// mean, which are those that a target encoding would give.
//
// `steps` knows the categories of a node and the best cut so far:
//   principal(axis)  writes the principal axis of the categories' curves; false: all are equal
//   improve(axis)    cuts in the order along an axis (null: in that of the bins); true: better
//   next(axis)       writes the axis of the best cut's own difference; false: it has none
//   spreads(out)     writes how much the categories differ at each point

constexpr int MAX_ORDERS = 4;             // in a row, each from the cut before
constexpr int64_t MAX_POINT_ORDERS = 16;  // by single points of the curves

// Goes on from a cut as long as that helps.
template <class Steps>
void follow(Steps& steps, bool improved, double* axis) {
  for (int orders = 1; orders < MAX_ORDERS && improved && steps.next(axis); ++orders) {
    improved = steps.improve(axis);
  }
}

// The point with the largest spread, the first of several, or -1; it is taken out.
inline int64_t take_widest(double* spreads, int64_t n_points) {
  int64_t widest = -1;
  double largest = 0;
  for (int64_t p = 0; p < n_points; ++p) {
    if (!(spreads[p] > largest)) continue;
    largest = spreads[p];
    widest = p;
  }
  if (widest >= 0) spreads[widest] = 0;
  return widest;
}

// `weights` are those of the points, 0 where one does not count; there are at most MOST_POINTS.
// There are no more orders by points than categories have rows on average: in small nodes, where
// they would take most of the time, the order of categories is little but noise.
template <int MOST_POINTS, class Steps>
void try_orders(Steps& steps, const double* weights, int64_t n_points, int64_t rows_per_category) {
  alignas(CACHE_LINE) double axis[MOST_POINTS + LANES];
  alignas(CACHE_LINE) double spreads[MOST_POINTS];
  if (!steps.principal(axis)) {
    steps.improve(nullptr);
    return;
  }
  follow(steps, steps.improve(axis), axis);
  if (rows_per_category < 2) return;
  steps.spreads(spreads);
  int64_t point = take_widest(spreads, n_points);
  int64_t second = take_widest(spreads, n_points);
  if (second < 0) return;  // one point: every order is that of its means
  for (int64_t p = 0; p < n_points; ++p) axis[p] = weights[p] > 0 ? 1.0 : 0.0;
  bool improved = steps.improve(axis);
  const int64_t most =
      rows_per_category - 1 < MAX_POINT_ORDERS ? rows_per_category - 1 : MAX_POINT_ORDERS;
  for (int64_t orders = 0; orders < most && point >= 0; ++orders) {
    for (int64_t p = 0; p < n_points; ++p) axis[p] = p == point ? 1.0 : 0.0;
    improved = steps.improve(axis) || improved;
    point = second;
    second = take_widest(spreads, n_points);
  }
  follow(steps, improved, axis);
}
