// The steps of growth and prediction that visit rows. Each spreads over threads and gives the same
// bits for any number of them.
#pragma once

#include <cstdint>

#include "layout.hpp"

namespace doseforest {

// Two sibling nodes on one stretch of the row list (a root is a lone left child); LocalEngine in
// engine/growth/local_engine.py lays them out. A slot is a place in the histogram pool.
struct Family {
  int64_t start, middle, end;     // left child: [start, middle), right child: [middle, end)
  int64_t left, right;            // place of each child's result; -1: not searched
  int64_t parent_slot;            // histogram of the two together; -1: not kept
  int64_t left_slot, right_slot;  // where to keep the children's histograms; -1: nowhere
};

struct HistogramPool {
  double* sums;      // (n_slots, slot_cells, n_channels)
  uint32_t* counts;  // (n_slots, slot_cells)
  int64_t slot_cells;
};

constexpr int64_t MAX_CANDIDATES = 8;  // splits of a node to choose from, one per feature

struct SelectedFeatures {
  const int32_t* features;  // (n_nodes or 1, n_selected), ascending in each row
  int64_t n_selected;
  bool shared;  // one row serves every node
};

// Best splits of each searched node: histogram and scan in one go, a tile of features at a time.
void search(const TrainingRows& data, const SplitRule& rule, const uint32_t* rows,
            const Family* families, int64_t n_families, const SelectedFeatures& selected,
            const HistogramPool& pool, int64_t n_threads, int64_t n_candidates,
            Split* best);  // IN/OUT, n_candidates per result, by gain and then by feature

// Histograms of nodes, written out: what a distributed engine sums and a user's distance sees.
void histograms(const TrainingRows& data, const uint32_t* rows, const int64_t* ranges,
                int64_t n_nodes, const SelectedFeatures& selected, const HistogramPool& out,
                int64_t n_threads);

// Best splits of each written-out histogram.
void scan_histograms(const TrainingRows& data, const SplitRule& rule, int64_t n_nodes,
                     const SelectedFeatures& selected, const HistogramPool& pool, int64_t n_threads,
                     int64_t n_candidates, Split* best);

// Sums of channels over the rows that a split of each node sends to either side.
void child_sums(const TrainingRows& data, const uint32_t* rows, const int64_t* ranges,
                const Split* splits, int64_t n_nodes, int64_t n_threads,
                double* sums);  // OUT (n_nodes, 2, n_channels)

// The n_selected features with the smallest hashes of each node's key, ascending.
void select_features(uint64_t seed, const uint64_t* keys, int64_t n_nodes, int64_t n_features,
                     int64_t n_selected, int64_t n_threads, int32_t* out);

// Moves the rows that go left to the front of each node's range, keeping their order.
void partition(const TrainingRows& data, uint32_t* rows, const int64_t* ranges, const Split* splits,
               int64_t n_nodes, int64_t n_threads, int64_t* middles);

// Rows that grow the trees, with copies. With `rows` null only the numbers per tree are counted.
void draw_rows(const Sampling& plan, const int64_t* trees, int64_t n_trees, const int64_t* ids,
               int64_t n_rows, int64_t n_threads, const int64_t* starts, uint32_t* rows,
               int64_t* counts);

// Sums of the leaf channels and of the weights over the rows that fill each leaf.
void fill_leaves(const Sampling& plan, const int64_t* trees, const int64_t* roots, int64_t n_trees,
                 const Node* nodes, CategorySets sets, const TrainingRows& data,
                 const float* row_weights, const int64_t* ids, int64_t n_rows, int64_t n_threads,
                 double* sums,      // IN/OUT (n_leaves, n_channels)
                 double* weights);  // IN/OUT (n_leaves,)

// Leaf and copies of every (row, tree); leaf -1 where the row does not fill the tree's leaves.
void route_bins(const Sampling& plan, const int64_t* trees, const int64_t* roots, int64_t n_trees,
                const Node* nodes, CategorySets sets, const TrainingRows& data, const int64_t* ids,
                int64_t n_rows, int64_t n_threads, int32_t* leaves, uint8_t* copies_out);

void route(const Leaves& forest, const double* x, int64_t n_rows, int64_t n_features,
           int64_t n_threads, int32_t* leaves);

void average_rows(const Leaves& forest, const double* x, int64_t n_rows, int64_t n_features,
                  const Sampling* out_of_bag, const int64_t* row_ids, int64_t n_threads,
                  double* out, int32_t* used);

// Sum over boosted trees for each row at each dose; the doses ascend in each row, and with
// `shared_doses` there is one row of them.
void score_rows(const Ensemble& trees, const double* x, int64_t n_rows, const double* doses,
                bool shared_doses, int64_t n_doses, int64_t n_threads, double* out);

// Bins of raw values: the number of edges below the value; NaN goes to the bin after the last. Bin:
// uint8_t or uint16_t.
template <class Bin>
void bin_values(const double* x, int64_t n_rows, int64_t n_features, const double* edges,
                const int64_t* edge_starts, int64_t n_threads, Bin* out);

// Ridge solutions of (M + diag(penalty)) b = v for packed moments; M by rows of its upper triangle.
void solve_moments(const double* moments, int64_t n_rows, int64_t n_coefficients,
                   const double* penalty, bool shared_penalty, int64_t n_threads, double* out);

}  // namespace doseforest
