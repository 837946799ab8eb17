// Walks from a root to a leaf. `static`: see the note in layout.hpp.
#pragma once

#include "layout.hpp"

namespace doseforest {

// The leaf of a row of raw values; NaN is a missing value.
static inline int32_t leaf_of(const Node* nodes, int64_t root, const double* x) {
  const Node* node = nodes + root;
  while (!(node->flags & LEAF)) {
    const double value = x[node->feature];
    const bool left = value <= node->threshold || (value != value && (node->flags & MISSING_LEFT));
    node = nodes + node->left + !left;
  }
  return node->left;
}

static inline bool goes_left(int32_t bin, int32_t split_bin, bool missing_left,
                             int32_t missing_bin) {
  return bin == missing_bin ? missing_left : bin <= split_bin;
}

// The leaf of a row of binned values.
static inline int32_t leaf_of_bins(const Node* nodes, int64_t root, const uint8_t* bins,
                                   const int32_t* n_bins) {
  const Node* node = nodes + root;
  while (!(node->flags & LEAF)) {
    const bool left = goes_left(bins[node->feature], node->bin, node->flags & MISSING_LEFT,
                                n_bins[node->feature]);
    node = nodes + node->left + !left;
  }
  return node->left;
}

}  // namespace doseforest
