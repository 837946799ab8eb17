#include <algorithm>
#include <vector>

#include "dispatch.hpp"
#include "engine.hpp"
#include "hashing.hpp"
#include "parallel.hpp"
#include "traverse.hpp"

namespace doseforest {

namespace {

constexpr int64_t CHUNK_ROWS = 4096;
constexpr int64_t SCORED_ROWS = 256;     // a row visits hundreds of boosted trees
constexpr int64_t PREFETCH_ROWS = 24;    // rows between a prefetch and its use
constexpr int64_t BRIEF_WORK = 1 << 16;  // row visits that do not deserve a thread

// Number of edges below a value, by a search without branches to mispredict.
int64_t edges_below(const double* edges, int64_t n, double value) {
  const double* base = edges;
  while (n > 1) {
    const int64_t half = n / 2;
    base += half * static_cast<int64_t>(base[half - 1] < value);
    n -= half;
  }
  return base - edges + (n == 1 && *base < value);
}

// Calls visit(first, end) on chunks of rows, spread over threads.
template <class Visit>
void for_row_chunks(int64_t n_rows, int64_t work_per_row, int64_t n_threads, Visit visit) {
  const int64_t n_chunks = (n_rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
  parallel_for(n_chunks, n_threads, n_rows * work_per_row < BRIEF_WORK,
               [&](int64_t chunk, int64_t, const StopFlag&) {
                 visit(chunk * CHUNK_ROWS, std::min(n_rows, (chunk + 1) * CHUNK_ROWS));
               });
}

// Divides the rows [begin, end) by a split; `right` has room for all of them.
template <class Bin>
int64_t divide(const TrainingRows& data, uint32_t* rows, int64_t begin, int64_t end,
               const Split& split, std::vector<uint32_t>& right) {
  const Bin* column = static_cast<const Bin*>(data.bins) + split.feature;
  const Sides sides = sides_of(split, data.n_bins[split.feature]);
  int64_t n_left = begin, n_right = 0;
  for (int64_t i = begin; i < end; ++i) {  // both stores, no branch: directions are random
    if (i + PREFETCH_ROWS < end) {
      __builtin_prefetch(column + rows[i + PREFETCH_ROWS] * data.n_features);
    }
    const uint32_t row = rows[i];
    const bool left = sides.left(column[row * data.n_features]);
    rows[n_left] = row;
    right[static_cast<size_t>(n_right)] = row;
    n_left += left;
    n_right += !left;
  }
  std::copy_n(right.begin(), n_right, rows + n_left);
  return n_left;
}

// Lists the rows [first, end) that a tree grows by, or fills its leaves with; returns how many.
// Every row is stored and the place moves on if it was drawn: branches would be guessed wrong.
int64_t list_rows(const Sampling& plan, const TreeStreams& tree, bool growing, const int64_t* ids,
                  int64_t first, int64_t end, uint32_t* listed) {
  int64_t n = 0;
  for (int64_t row = first; row < end; ++row) {
    const bool side = plan.honesty == 0 || grows(plan, tree, ids[row]) == growing;
    listed[n] = static_cast<uint32_t>(row);
    n += side & (copies(plan, tree, ids[row]) > 0);
  }
  return n;
}

// Calls visit(rows, n) on the drawn rows of one tree, chunk by chunk, until told to stop.
template <class Visit>
void for_drawn_rows(const Sampling& plan, const TreeStreams& tree, bool growing, const int64_t* ids,
                    int64_t n_rows, const StopFlag& stop, Visit visit) {
  uint32_t listed[CHUNK_ROWS];
  for (int64_t first = 0; first < n_rows && !stop; first += CHUNK_ROWS) {
    const int64_t end = std::min(n_rows, first + CHUNK_ROWS);
    visit(listed, list_rows(plan, tree, growing, ids, first, end, listed));
  }
}

}  // namespace

void partition(const TrainingRows& data, uint32_t* rows, const int64_t* ranges, const Split* splits,
               int64_t n_nodes, int64_t n_threads, int64_t* middles) {
  int64_t work = 0;
  for (int64_t node = 0; node < n_nodes; ++node) work += ranges[2 * node + 1] - ranges[2 * node];
  std::vector<std::vector<uint32_t>> buffers(static_cast<size_t>(n_threads));
  parallel_for(n_nodes, n_threads, work < BRIEF_WORK,
               [&](int64_t node, int64_t worker, const StopFlag&) {
                 const int64_t begin = ranges[2 * node], end = ranges[2 * node + 1];
                 std::vector<uint32_t>& right = buffers[static_cast<size_t>(worker)];
                 if (right.size() < static_cast<size_t>(end - begin))
                   right.resize(static_cast<size_t>(end - begin));
                 for_bin_type(data, [&]<class Bin>() {
                   middles[node] = divide<Bin>(data, rows, begin, end, splits[node], right);
                 });
               });
}

void draw_rows(const Sampling& plan, const int64_t* trees, int64_t n_trees, const int64_t* ids,
               int64_t n_rows, int64_t n_threads, const int64_t* starts, uint32_t* rows,
               int64_t* counts) {
  parallel_for(n_trees, n_threads, n_trees * n_rows < BRIEF_WORK,
               [&](int64_t t, int64_t, const StopFlag& stop) {
                 const TreeStreams streams = tree_streams(plan, trees[t]);
                 uint32_t* out = rows ? rows + starts[t] : nullptr;
                 int64_t count = 0;
                 for_drawn_rows(plan, streams, true, ids, n_rows, stop,
                                [&](const uint32_t* drawn, int64_t n) {
                                  if (!plan.bootstrap) {
                                    if (out) std::copy_n(drawn, n, out + count);
                                    count += n;
                                    return;
                                  }
                                  for (int64_t i = 0; i < n; ++i) {
                                    const int c = copies(plan, streams, ids[drawn[i]]);
                                    if (out) std::fill_n(out + count, c, drawn[i]);
                                    count += c;
                                  }
                                });
                 counts[t] = count;
               });
}

void fill_leaves(const Sampling& plan, const int64_t* trees, const int64_t* roots, int64_t n_trees,
                 const Node* nodes, CategorySets sets, const TrainingRows& data,
                 const float* row_weights, const int64_t* ids, int64_t n_rows, int64_t n_threads,
                 double* sums, double* weights) {
  parallel_for(n_trees, n_threads, n_trees * n_rows < BRIEF_WORK,
               [&](int64_t t, int64_t, const StopFlag& stop) {
                 const TreeStreams streams = tree_streams(plan, trees[t]);
                 const auto fill = [&](int64_t row) {
                   const int n_copies = plan.bootstrap ? copies(plan, streams, ids[row]) : 1;
                   const int64_t leaf = leaf_of_row(nodes, sets, roots[t], data, row);
                   const float* values = data.channels + row * data.n_channels;
                   double* sum = sums + leaf * data.n_channels;
                   for (int64_t c = 0; c < data.n_channels; ++c)
                     sum[c] += n_copies * static_cast<double>(values[c]);
                   weights[leaf] +=
                       row_weights ? n_copies * static_cast<double>(row_weights[row]) : n_copies;
                 };
                 for_drawn_rows(plan, streams, false, ids, n_rows, stop,
                                [&](const uint32_t* drawn, int64_t n) {
                                  for (int64_t i = 0; i < n; ++i) fill(drawn[i]);
                                });
               });
}

void route_bins(const Sampling& plan, const int64_t* trees, const int64_t* roots, int64_t n_trees,
                const Node* nodes, CategorySets sets, const TrainingRows& data, const int64_t* ids,
                int64_t n_rows, int64_t n_threads, int32_t* leaves, uint8_t* copies_out) {
  for_row_chunks(n_rows, n_trees, n_threads, [&](int64_t first, int64_t end) {
    for (int64_t t = 0; t < n_trees; ++t) {
      const TreeStreams streams = tree_streams(plan, trees[t]);
      for (int64_t row = first; row < end; ++row) {
        const int n = fills(plan, streams, ids[row]) ? copies(plan, streams, ids[row]) : 0;
        copies_out[row * n_trees + t] = static_cast<uint8_t>(n);
        leaves[row * n_trees + t] = n == 0 ? -1 : leaf_of_row(nodes, sets, roots[t], data, row);
      }
    }
  });
}

namespace {

template <bool Categories>
void route_rows(const Leaves& forest, const double* x, int64_t n_rows, int64_t n_features,
                int64_t n_threads, int32_t* leaves) {
  for_row_chunks(n_rows, forest.n_trees, n_threads, [&](int64_t first, int64_t end) {
    for (int64_t t = 0; t < forest.n_trees; ++t) {
      for (int64_t row = first; row < end; ++row) {
        leaves[row * forest.n_trees + t] =
            leaf_of<Categories>(forest.nodes, forest.sets, forest.roots[t], x + row * n_features);
      }
    }
  });
}

}  // namespace

void route(const Leaves& forest, const double* x, int64_t n_rows, int64_t n_features,
           int64_t n_threads, int32_t* leaves) {
  const auto kind = forest.sets.words ? route_rows<true> : route_rows<false>;
  kind(forest, x, n_rows, n_features, n_threads, leaves);
}

void average_rows(const Leaves& forest, const double* x, int64_t n_rows, int64_t n_features,
                  const Sampling* out_of_bag, const int64_t* row_ids, int64_t n_threads,
                  double* out, int32_t* used) {
  for_row_chunks(n_rows, forest.n_trees, n_threads, [&](int64_t first, int64_t end) {
    kernels().average(forest, x + first * n_features, end - first, n_features, out_of_bag,
                      row_ids ? row_ids + first : nullptr, out + first * forest.width,
                      used + first);
  });
}

void score_rows(const Ensemble& trees, const double* x, int64_t n_rows, const double* doses,
                bool shared_doses, int64_t n_doses, int64_t n_threads, double* out) {
  const int64_t stride = shared_doses ? 0 : n_doses;
  const int64_t n_chunks = (n_rows + SCORED_ROWS - 1) / SCORED_ROWS;
  parallel_for(n_chunks, n_threads, n_rows * n_doses * trees.n_trees < BRIEF_WORK,
               [&](int64_t chunk, int64_t, const StopFlag&) {
                 const int64_t first = chunk * SCORED_ROWS;
                 kernels().score(trees, x + first * trees.n_features,
                                 std::min(SCORED_ROWS, n_rows - first), doses + first * stride,
                                 stride, n_doses, out + first * n_doses);
               });
}

template <class Bin>
void bin_values(const double* x, int64_t n_rows, int64_t n_features, const double* edges,
                const int64_t* edge_starts, int64_t n_threads, Bin* out) {
  for_row_chunks(n_rows, n_features, n_threads, [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      for (int64_t f = 0; f < n_features; ++f) {
        const double* own = edges + edge_starts[f];
        const double* last = edges + edge_starts[f + 1];
        const double value = x[row * n_features + f];
        const int64_t bin = value != value ? last - own + 1 : edges_below(own, last - own, value);
        out[row * n_features + f] = static_cast<Bin>(bin);
      }
    }
  });
}

template void bin_values(const double*, int64_t, int64_t, const double*, const int64_t*, int64_t,
                         uint8_t*);
template void bin_values(const double*, int64_t, int64_t, const double*, const int64_t*, int64_t,
                         uint16_t*);

}  // namespace doseforest
