// Boosted trees: sums over trees of what their leaves say along a curve of doses. A row falls down
// a tree once with all its doses, and the doses part only where the tree splits on them.
// Included by kernels.cpp only.

constexpr int64_t FALLING_ROWS = 8;  // rows that fall down a tree together
constexpr double ZERO = 1e-35f;      // LightGBM's: values no larger count as zero

// NaN is a missing value. No branch: which way a row falls is for no processor to guess.
inline bool falls_left(const Node& node, double value) {
  return value != value ? (node.flags & MISSING_LEFT) != 0 : value <= node.threshold;
}

// The same where zero may be a missing value too.
inline bool falls_left_with_zeros(const Node& node, double value) {
  const bool missing = (node.flags & ZERO_MISSING) && value >= -ZERO && value <= ZERO;
  return missing ? (node.flags & MISSING_LEFT) != 0 : falls_left(node, value);
}

// How many of the ascending doses are at or below a threshold.
inline int64_t count_at_most(const double* doses, int64_t n, double threshold) {
  int64_t low = 0;
  while (low < n) {
    const int64_t middle = low + (n - low) / 2;
    if (doses[middle] <= threshold) {
      low = middle + 1;
    } else {
      n = middle;
    }
  }
  return low;
}

// Adds the line of a leaf at some doses; a row without one of the leaf's covariates gets its mean.
inline void add_leaf(const Ensemble& trees, int64_t leaf, const double* x, const double* doses,
                     int64_t n_doses, double* out) {
  double level = trees.leaf_constants[leaf];
  double slope = trees.leaf_slopes[leaf];
  for (int64_t term = trees.term_starts[leaf]; term < trees.term_starts[leaf + 1]; ++term) {
    const double value = x[trees.term_features[term]];
    if (value != value) {
      level = trees.leaf_values[leaf];
      slope = 0;
      break;
    }
    level += trees.term_coefficients[term] * value;
  }
  for (int64_t k = 0; k < n_doses; ++k) out[k] += level + slope * doses[k];
}

// Adds what a tree says of one row from a node on, at the doses [first, end).
void add_tree(const Ensemble& trees, const Node* node, const double* x, const double* doses,
              int64_t first, int64_t end, double* out) {
  while (!(node->flags & LEAF)) {
    const Node* left = trees.nodes + node->left;
    if (node->feature < trees.n_features) {
      node = left + !falls_left_with_zeros(*node, x[node->feature]);
      continue;
    }
    int64_t middle;
    if (end - first == 1) {
      middle = first + falls_left_with_zeros(*node, doses[first]);
    } else if (node->flags & ZERO_MISSING) {  // what goes left need not be one stretch
      for (int64_t k = first; k < end; ++k) {
        add_tree(trees, left + !falls_left_with_zeros(*node, doses[k]), x, doses, k, k + 1, out);
      }
      return;
    } else {
      middle = first + count_at_most(doses + first, end - first, node->threshold);
    }
    // The shorter part goes by a call, the longer one stays: as few calls are ever open as it takes
    // to halve the doses down to one, however deep the tree.
    const bool stay_left = middle - first >= end - middle;
    if (stay_left) {
      if (middle < end) add_tree(trees, left + 1, x, doses, middle, end, out);
      end = middle;
    } else {
      if (first < middle) add_tree(trees, left, x, doses, first, middle, out);
      first = middle;
    }
    node = left + !stay_left;
  }
  add_leaf(trees, node->left, x, doses + first, end - first, out + first);
}

// Moves each of `n` rows down a tree to its leaf or to the first split on the dose. Step by step
// for all of them: the rows do not wait for each other's memory.
inline void fall(const Ensemble& trees, const double* x, int n, int64_t* at) {
  for (bool moving = trees.n_features > 0; moving;) {
    moving = false;
    for (int row = 0; row < n; ++row) {
      const Node& node = trees.nodes[at[row]];
      const bool stays =
          ((node.flags & (LEAF | ZERO_MISSING)) != 0) | (node.feature >= trees.n_features);
      const double value = x[row * trees.n_features + (stays ? 0 : node.feature)];
      at[row] = stays ? at[row] : node.left + !falls_left(node, value);
      moving |= !stays;
    }
  }
}

void score(const Ensemble& trees, const double* x, int64_t n_rows, const double* doses,
           int64_t dose_stride, int64_t n_doses, double* out) {
  for (int64_t i = 0; i < n_rows * n_doses; ++i) out[i] = 0;
  if (n_doses == 0) return;
  for (int64_t first = 0; first < n_rows; first += BLOCK_ROWS) {
    const int64_t end = first + BLOCK_ROWS < n_rows ? first + BLOCK_ROWS : n_rows;
    for (int64_t tree = 0; tree < trees.n_trees; ++tree) {
      for (int64_t own = first; own < end; own += FALLING_ROWS) {
        const int n = static_cast<int>(own + FALLING_ROWS < end ? FALLING_ROWS : end - own);
        int64_t at[FALLING_ROWS];
        for (int i = 0; i < n; ++i) at[i] = trees.roots[tree];
        fall(trees, x + own * trees.n_features, n, at);
        for (int i = 0; i < n; ++i) {
          const int64_t row = own + i;
          add_tree(trees, trees.nodes + at[i], x + row * trees.n_features,
                   doses + row * dose_stride, 0, n_doses, out + row * n_doses);
        }
      }
    }
  }
}
