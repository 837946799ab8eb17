// Prediction: rows fall down the trees and the sums of their leaves are averaged.
// Included by kernels.cpp only.

constexpr int64_t BLOCK_ROWS = 64;  // rows that visit a tree while its nodes are in the cache

template <bool Categories>
void average_leaves(const Leaves& leaves, const double* x, int64_t n_rows, int64_t n_features,
                    const Sampling* out_of_bag, const int64_t* row_ids, double* out,
                    int32_t* used) {
  const int64_t width = leaves.width;
  for (int64_t i = 0; i < n_rows * width; ++i) out[i] = 0;
  for (int64_t i = 0; i < n_rows; ++i) used[i] = 0;
  for (int64_t first = 0; first < n_rows; first += BLOCK_ROWS) {
    const int64_t end = first + BLOCK_ROWS < n_rows ? first + BLOCK_ROWS : n_rows;
    for (int64_t tree = 0; tree < leaves.n_trees; ++tree) {
      TreeStreams streams{};
      if (out_of_bag) streams = tree_streams(*out_of_bag, tree);
      for (int64_t row = first; row < end; ++row) {
        if (out_of_bag && copies(*out_of_bag, streams, row_ids[row]) > 0) continue;
        const int64_t leaf = leaf_of<Categories>(leaves.nodes, leaves.sets, leaves.roots[tree],
                                                 x + row * n_features);
        const double weight = leaves.weights[leaf];
        if (!(weight > 0)) continue;
        const float* sums = leaves.sums + leaf * width;
        double* total = out + row * width;
        for (int64_t c = 0; c < width; ++c) total[c] += static_cast<double>(sums[c]) / weight;
        ++used[row];
      }
    }
    for (int64_t row = first; row < end; ++row) {
      if (used[row] == 0) continue;
      for (int64_t c = 0; c < width; ++c) out[row * width + c] /= used[row];
    }
  }
}

void average(const Leaves& leaves, const double* x, int64_t n_rows, int64_t n_features,
             const Sampling* out_of_bag, const int64_t* row_ids, double* out, int32_t* used) {
  const auto kind = leaves.sets.words ? average_leaves<true> : average_leaves<false>;
  kind(leaves, x, n_rows, n_features, out_of_bag, row_ids, out, used);
}
