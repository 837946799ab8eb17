// Walks from a root to a leaf. `static`: see the note in layout.hpp.
#pragma once

#include "layout.hpp"

namespace doseforest {

static inline bool in_set(const uint64_t* set, int32_t bin) {
  return (set[bin >> 6] >> (bin & 63)) & 1;
}

static inline const uint64_t* set_of(const Node& node, CategorySets sets) {
  return sets.words + sets.n_words * static_cast<int64_t>(node.threshold);
}

// The bin of a category's code: the rarest share the last, before the bit of the missing values.
static inline int32_t bin_of_code(double code, CategorySets sets) {
  const int32_t last = static_cast<int32_t>(64 * sets.n_words - 2);
  return code < last ? static_cast<int32_t>(code) : last;
}

// The leaf of a row of raw values; NaN is a missing value. Categories: some nodes may have sets.
template <bool Categories>
static inline int32_t leaf_of(const Node* nodes, CategorySets sets, int64_t root, const double* x) {
  const Node* node = nodes + root;
  while (!(node->flags & LEAF)) {
    const double value = x[node->feature];
    bool left = value <= node->threshold || (value != value && (node->flags & MISSING_LEFT));
    if (Categories && (node->flags & CATEGORICAL) && value == value) {
      left = in_set(set_of(*node, sets), bin_of_code(value, sets));
    }
    node = nodes + node->left + !left;
  }
  return node->left;
}

static inline bool goes_left(int32_t bin, int32_t split_bin, bool missing_left,
                             int32_t missing_bin) {
  return bin == missing_bin ? missing_left : bin <= split_bin;
}

// The side of a split that a bin falls on, the bin of the missing values among them.
struct Sides {
  bool by_set;
  int32_t bin;
  bool missing_left;
  int32_t missing_bin;
  uint64_t set[MAX_SET_WORDS];  // with the bin of the missing values in it

  bool left(int32_t own) const {
    return by_set ? in_set(set, own) : goes_left(own, bin, missing_left, missing_bin);
  }
};

static inline Sides sides_of(const Split& split, int32_t missing_bin) {
  Sides sides{split.bin == BY_SET, split.bin, split.missing_left != 0, missing_bin, {}};
  for (int word = 0; word < MAX_SET_WORDS; ++word) sides.set[word] = split.left_bins[word];
  if (split.missing_left) sides.set[missing_bin >> 6] |= uint64_t{1} << (missing_bin & 63);
  return sides;
}

// Bins of a training row.
template <class Bin>
static inline const Bin* bins_of(const TrainingRows& data, int64_t row) {
  return static_cast<const Bin*>(data.bins) + row * data.n_features;
}

// Calls with the type of the bins.
template <class Call>
static inline void for_bin_type(const TrainingRows& data, Call call) {
  if (data.wide) {
    call.template operator()<uint16_t>();
  } else {
    call.template operator()<uint8_t>();
  }
}

// The leaf of a row of binned values; without sets no node is categorical.
template <class Bin>
static inline int32_t leaf_of_bins(const Node* nodes, CategorySets sets, int64_t root,
                                   const Bin* bins, const int32_t* n_bins) {
  const Node* node = nodes + root;
  while (!(node->flags & LEAF)) {
    const int32_t bin = bins[node->feature], missing_bin = n_bins[node->feature];
    bool left = goes_left(bin, node->bin, node->flags & MISSING_LEFT, missing_bin);
    if (sets.words && (node->flags & CATEGORICAL) && bin != missing_bin) {
      left = in_set(set_of(*node, sets), bin);
    }
    node = nodes + node->left + !left;
  }
  return node->left;
}

// The leaf of a training row.
static inline int32_t leaf_of_row(const Node* nodes, CategorySets sets, int64_t root,
                                  const TrainingRows& data, int64_t row) {
  return data.wide ? leaf_of_bins(nodes, sets, root, bins_of<uint16_t>(data, row), data.n_bins)
                   : leaf_of_bins(nodes, sets, root, bins_of<uint8_t>(data, row), data.n_bins);
}

}  // namespace doseforest
