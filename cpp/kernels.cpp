// The vectorised loops. This file is compiled once per instruction set (CMakeLists.txt), each time
// into an object of its own. Everything but the table is internal to the object: an inline function
// shared with another object could be linked in from the wrong build and crash an older machine.
// For the same reason no standard container or algorithm is used here.
#include "hashing.hpp"
#include "layout.hpp"
#include "traverse.hpp"

namespace doseforest {
namespace {

#include "lanes.hpp"

#include "accumulate.hpp"
#include "average.hpp"
#include "scan.hpp"
#include "score.hpp"
#include "symmetric_solve.hpp"

#include "statistics.hpp"

#include "category_axes.hpp"

#include "category_orders.hpp"

#include "categories.hpp"

#include "judged_categories.hpp"

// Common numbers of channels get code with the loop over channels unrolled into registers.
template <class Call>
void unrolled(int64_t n_channels, Call call) {
  switch (n_channels / LANES) {
    case 1:
      return call.template operator()<1>();
    case 2:
      return call.template operator()<2>();
    case 3:
      return call.template operator()<3>();
    case 4:
      return call.template operator()<4>();
    case 5:
      return call.template operator()<5>();
    case 6:
      return call.template operator()<6>();
    case 8:
      return call.template operator()<8>();
    default:
      return call.template operator()<0>();
  }
}

void accumulate_any(const TrainingRows& data, const uint32_t* rows, int64_t n_rows,
                    const int32_t* features, int64_t n_selected, double* sums, uint32_t* counts) {
  unrolled(data.n_channels, [&]<int V>() {
    for_bin_type(data, [&]<class Bin>() {
      accumulate<V, Bin>(data, rows, n_rows, features, n_selected, sums, counts);
    });
  });
}

template <class D>
void scan_norm(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
               int64_t n_selected, const double* sums, const uint32_t* counts, Split* best) {
  const bool extras = rule.weight_channel >= 0 || rule.positivity != Positivity::NONE;
  unrolled(data.n_channels, [&]<int V>() {
    if (extras) {
      scan_features<V, D, true>(data, rule, features, n_selected, sums, counts, best);
    } else {
      scan_features<V, D, false>(data, rule, features, n_selected, sums, counts, best);
    }
  });
}

void scan(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
          int64_t n_selected, const double* sums, const uint32_t* counts, Split* best) {
  if (rule.statistic.kind != Statistic::MEAN) {
    return scan_statistic(data, rule, features, n_selected, sums, counts, best);
  }
  switch (rule.norm) {
    case Norm::L1:
      return scan_norm<NormL1>(data, rule, features, n_selected, sums, counts, best);
    case Norm::L2:
      return scan_norm<NormL2>(data, rule, features, n_selected, sums, counts, best);
    case Norm::LINF:
      return scan_norm<NormLinf>(data, rule, features, n_selected, sums, counts, best);
  }
}

}  // namespace

#define TABLE_NAME_OF(build) kernels_##build
#define TABLE_NAME(build) TABLE_NAME_OF(build)
#define TEXT_OF(build) #build
#define TEXT(build) TEXT_OF(build)

extern const Kernels TABLE_NAME(KERNEL_BUILD);
const Kernels TABLE_NAME(KERNEL_BUILD) = {
    TEXT(KERNEL_BUILD), accumulate_any, subtract, scan, average, score};

}  // namespace doseforest
