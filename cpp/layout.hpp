// The records that the compiled parts hand to each other. Plain data, no behaviour: kernels.cpp is
// compiled once per instruction set, so nothing here may bring inline code with external linkage.
#pragma once

#include <cstdint>

namespace doseforest {

// One node of a finished forest, 16 bytes; NODE_DTYPE in dtypes.py is its twin.
struct Node {
  double threshold;  // a raw value goes left when value <= threshold; categorical: row of its set
  int32_t left;      // split: index of the left child, the right one follows it; leaf: leaf number
  uint16_t feature;
  uint8_t bin;  // a binned value goes left when bin <= this
  uint8_t flags;
};
static_assert(sizeof(Node) == 16);

// ZERO_MISSING, in boosted trees only: zero counts as a missing value. CATEGORICAL, in forests of
// curves only: the bins of a set go left.
enum NodeFlag : uint8_t { LEAF = 1, MISSING_LEFT = 2, ZERO_MISSING = 4, CATEGORICAL = 8 };

constexpr int32_t MAX_BINS = 1023;  // of categories: ten bits, less one code for missing values
constexpr int SET_WORDS = 4;        // a set of bins is 256 bits,
constexpr int MAX_SET_WORDS = 16;   // or 1,024 in forests with a feature of more categories

// The training rows as the kernels read them.
struct TrainingRows {
  const void* bins;  // (n_rows, n_features); bin n_bins[f] of feature f holds its missing values
  const float* channels;  // (n_rows, n_channels), rounded to the exact grid, zero in the padding
  const int32_t* n_bins;  // (n_features,), without the bin for missing values
  int64_t n_features;
  int64_t n_channels;          // a multiple of LANES
  bool wide;                   // bins are uint16_t, not uint8_t
  const uint8_t* categorical;  // (n_features,): whether bins are categories; null: none are
};

// Sets of the categorical nodes of a forest.
struct CategorySets {
  const uint64_t* words;  // (n_sets, n_words); null: there are none
  int64_t n_words;        // SET_WORDS or MAX_SET_WORDS
};

constexpr int64_t MAX_CHANNELS = 1024;
constexpr int LANES = 4;  // doubles per vector; the order of every reduction is fixed by it

// The norm of the difference of two mean curves, over the channels with a weight.
enum class Norm : int32_t { L1 = 0, L2 = 1, LINF = 2 };

// How the treatment's spread inside a node enters the gain (the term zeta * sigma of GCF Eq. 2).
enum class Positivity : int32_t { NONE = 0, CONDITIONAL = 1, MIXTURE = 2 };

// What the sums of a node are read as: the mean of its rows' curves, or one of statistics.hpp.
enum class Statistic : int32_t { MEAN = 0, RATIO = 1, DIFFERENCES = 2, DERIVATIVE = 3, SCORES = 4 };

constexpr int64_t MAX_POINTS = 512;        // of a curve that is no mean
constexpr int64_t MAX_FUNCTIONS = 16;      // of the dose, in scores
constexpr int64_t MAX_SCORE_POINTS = 128;  // doses at which scores are compared

// What the other statistics need on top of a rule; statistics.hpp tells what the settings are.
struct StatisticLayout {
  Statistic kind;
  int64_t stride;       // points of a curve, in whole vectors
  int64_t n_functions;  // of scores
  const double* settings;
};

struct SplitRule {
  const double*
      channel_weights;  // (n_channels,): quadrature weights (L1, L2) or ones (LINF); 0 elsewhere
  Norm norm;
  bool squared;  // the distance is the norm squared
  Positivity positivity;
  int32_t weight_channel;  // channel of the row weights; -1: every row weighs 1
  int32_t spread_channel;  // first channel of the positivity term; -1: none
  double zeta;             // already in the units of the gain
  int64_t min_rows;        // smallest child, in rows
  double min_fraction;     // smallest child, as a share of the node's rows
  StatisticLayout statistic;
};

struct Split {
  double gain;  // -inf: no admissible split
  int32_t feature;
  int32_t bin;  // BY_SET: the bins of the set go left
  int32_t missing_left;
  uint64_t left_bins[MAX_SET_WORDS];
};
constexpr int32_t BY_SET = -1;

// How a forest draws rows; see hashing.hpp for the rules. SamplingPlan in data/sampling.py is its
// twin.
struct Sampling {
  uint64_t seed;
  double fraction;         // share of rows in a tree (of the bag's half when bags are on)
  double growth_fraction;  // share of a tree's rows that grow it, the rest fill its leaves
  int64_t bag_size;        // trees that share one half-sample; 1: no bags
  int32_t bootstrap;       // 1: Poisson(1) copies of each row
  int32_t honesty;         // 0: none, 1: a split per tree, 2: one split for the forest
};

// The leaves of a forest and what was summed in them.
struct Leaves {
  const Node* nodes;     // (n_nodes,), tree after tree
  const int64_t* roots;  // (n_trees,)
  const float* sums;     // (n_leaves, width)
  const float* weights;  // (n_leaves,); 0: an empty tree
  int64_t n_trees;
  int64_t width;
  CategorySets sets;
};

// Boosted trees of covariates and a dose, whose leaves are lines in them; TreeEnsemble in
// nuisance/outcome/tree_ensemble.py is its twin.
struct Ensemble {
  const Node* nodes;                // (n_nodes,), tree after tree; feature n_features is the dose
  const int64_t* roots;             // (n_trees,)
  const double* leaf_values;        // (n_leaves,), where one of the leaf's covariates is missing
  const double* leaf_constants;     // (n_leaves,)
  const double* leaf_slopes;        // (n_leaves,), by the dose
  const int64_t* term_starts;       // (n_leaves + 1,)
  const int32_t* term_features;     // (n_terms,), below n_features
  const double* term_coefficients;  // (n_terms,)
  int64_t n_trees;
  int64_t n_features;  // without the dose
};

// One build of the vectorised kernels.
struct Kernels {
  const char* name;

  // Adds the channels of `rows` to the cells of a histogram, feature after feature.
  void (*accumulate)(const TrainingRows& data, const uint32_t* rows, int64_t n_rows,
                     const int32_t* features, int64_t n_selected,
                     double* sums,       // IN/OUT (n_cells, n_channels)
                     uint32_t* counts);  // IN/OUT (n_cells,)

  // out = parent - child, cell by cell.
  void (*subtract)(const double* parent_sums, const uint32_t* parent_counts,
                   const double* child_sums, const uint32_t* child_counts, int64_t n_cells,
                   int64_t n_channels, double* out_sums, uint32_t* out_counts);

  // Improves `best` by the best split over the features of a histogram.
  void (*scan)(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
               int64_t n_selected, const double* sums, const uint32_t* counts, Split* best);

  // Mean over trees of the leaf means that each row of x falls into; empty trees do not count.
  void (*average)(const Leaves& leaves, const double* x, int64_t n_rows, int64_t n_features,
                  const Sampling* out_of_bag,  // null: every tree counts
                  const int64_t* row_ids,
                  double* out,     // OUT (n_rows, width)
                  int32_t* used);  // OUT (n_rows,): trees behind a row

  // Sum over boosted trees for each row at each of its doses.
  void (*score)(const Ensemble& trees, const double* x, int64_t n_rows,
                const double* doses,  // ascending in each row
                int64_t dose_stride,  // 0: one row of doses serves all
                int64_t n_doses,
                double* out);  // OUT (n_rows, n_doses)
};

}  // namespace doseforest
