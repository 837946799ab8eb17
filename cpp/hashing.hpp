// All randomness is a hash of (seed, purpose, tree or node, row or feature): no state, so the
// same rows enter the same tree whatever the thread, the order, the partition or the engine.
// data/sampling.py holds the NumPy twin. Everything is `static`: see the note in layout.hpp.
#pragma once

#include "layout.hpp"

namespace doseforest {

enum Purpose : uint64_t {
  DRAW_BAG = 1,
  DRAW_ROW = 2,
  DRAW_HONEST = 3,
  DRAW_FEATURE = 4,
  // 5 (node keys), 6 (rows that place the bins) and 7 (folds) are drawn in Python, 1 there too.
};

constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15ull;

// The finaliser of splitmix64.
static inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The stream of one purpose and one owner (a tree, a bag, a node).
static inline uint64_t stream(uint64_t seed, Purpose purpose, uint64_t owner) {
  return mix(mix(seed + GOLDEN * purpose) + GOLDEN * owner);
}

static inline uint64_t draw(uint64_t stream_key, uint64_t item) {
  return mix(stream_key + GOLDEN * (item + 1));
}

// A uniform number in [0, 1) from the upper 53 bits.
static inline double uniform(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1.0p-53; }

// A Poisson(1) count by inversion.
static inline int poisson(double u) {
  double term = 0.36787944117144233;  // exp(-1)
  double total = term;
  int count = 0;
  while (u >= total && count < 16) {
    ++count;
    term /= count;
    total += term;
  }
  return count;
}

// The streams of one tree.
struct TreeStreams {
  uint64_t bag;
  uint64_t row;
  uint64_t honest;
};

static inline TreeStreams tree_streams(const Sampling& plan, int64_t tree) {
  const uint64_t owner = static_cast<uint64_t>(tree);
  const uint64_t bag = owner / static_cast<uint64_t>(plan.bag_size);
  // One split for the whole forest is the split of an owner that no tree has.
  const uint64_t honest_owner = plan.honesty == 2 ? ~0ull : owner;
  return {stream(plan.seed, DRAW_BAG, bag), stream(plan.seed, DRAW_ROW, owner),
          stream(plan.seed, DRAW_HONEST, honest_owner)};
}

// How many copies of a row the tree holds (0: the row is out of bag).
static inline int copies(const Sampling& plan, const TreeStreams& tree, int64_t row_id) {
  const uint64_t id = static_cast<uint64_t>(row_id);
  const double u = uniform(draw(tree.row, id));
  const int own = plan.bootstrap ? poisson(u) : u < plan.fraction;
  return plan.bag_size > 1 ? own * (uniform(draw(tree.bag, id)) < 0.5) : own;
}

static inline bool grows(const Sampling& plan, const TreeStreams& tree, int64_t row_id) {
  return plan.honesty == 0 ||
         uniform(draw(tree.honest, static_cast<uint64_t>(row_id))) < plan.growth_fraction;
}

static inline bool fills(const Sampling& plan, const TreeStreams& tree, int64_t row_id) {
  return plan.honesty == 0 || !grows(plan, tree, row_id);
}

}  // namespace doseforest
