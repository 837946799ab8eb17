#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "dispatch.hpp"
#include "engine.hpp"
#include "hashing.hpp"
#include "parallel.hpp"

namespace doseforest {

namespace {

// Two tiles (a node and its sibling) and the rows on their way should share a core's cache.
constexpr int64_t TILE_BYTES = 192 * 1024;
constexpr int64_t CHUNK_ROWS = 1 << 16;  // rows between two looks at the stop flag
constexpr int64_t ITEMS_PER_THREAD = 4;  // below this many families a thread, share features
constexpr int64_t BRIEF_WORK = 1 << 19;  // additions that do not deserve a thread

// A histogram of some features, wherever it lives.
struct Histogram {
  double* sums;
  uint32_t* counts;
};

struct Tile {
  const int32_t* features;
  int64_t n_features;
  int64_t first_cell;  // counted from the first selected feature
  int64_t n_cells;
};

Histogram at(const HistogramPool& pool, int64_t slot, int64_t n_channels, int64_t first_cell) {
  const int64_t cell = slot * pool.slot_cells + first_cell;
  return {pool.sums + cell * n_channels, pool.counts + cell};
}

// Calls visit(tile) for stretches of features whose histogram fits a tile.
template <class Visit>
void for_tiles(const TrainingRows& data, const int32_t* features, int64_t begin, int64_t end,
               Visit visit) {
  const int64_t cell_bytes = data.n_channels * 8 + 4;
  int64_t cell = 0;
  for (int64_t j = 0; j < begin; ++j) cell += data.n_bins[features[j]] + 1;
  for (int64_t j = begin; j < end;) {
    Tile tile{features + j, 0, cell, 0};
    while (j < end) {
      const int64_t cells = data.n_bins[features[j]] + 1;
      if (tile.n_features > 0 && (tile.n_cells + cells) * cell_bytes > TILE_BYTES) break;
      tile.n_cells += cells;
      ++tile.n_features;
      ++j;
    }
    cell += tile.n_cells;
    visit(tile);
  }
}

void build(const TrainingRows& data, const uint32_t* rows, int64_t begin, int64_t end,
           const Tile& tile, const Histogram& out, const StopFlag& stop) {
  std::memset(out.sums, 0, sizeof(double) * tile.n_cells * data.n_channels);
  std::memset(out.counts, 0, sizeof(uint32_t) * tile.n_cells);
  for (int64_t first = begin; first < end && !stop; first += CHUNK_ROWS) {
    const int64_t n = std::min(CHUNK_ROWS, end - first);
    kernels().accumulate(data, rows + first, n, tile.features, tile.n_features, out.sums,
                         out.counts);
  }
}

// A cache line: a histogram that starts inside one has every vector of four cross into the next.
struct alignas(64) CacheLine {
  double values[8];
};

// Memory of one worker for the tiles that are not kept in the pool.
struct Scratch {
  std::vector<CacheLine> sums;
  std::vector<uint32_t> counts;

  Histogram histogram(int64_t n_cells, int64_t n_channels) {
    const auto cells = static_cast<size_t>(n_cells);
    if (counts.size() < cells) {
      counts.resize(cells);
      sums.resize((cells * static_cast<size_t>(n_channels) + 7) / 8);
    }
    return {reinterpret_cast<double*>(sums.data()), counts.data()};
  }
};

constexpr Split NO_SPLIT{-std::numeric_limits<double>::infinity(), -1, 0, 0, {}};

// Puts a split behind those of the same gain: offered in the order of features, ties keep it.
void offer(const Split& split, Split* best, int64_t n_candidates) {
  for (int64_t i = 0; i < n_candidates; ++i) {
    if (split.gain > best[i].gain) {
      std::copy_backward(best + i, best + n_candidates - 1, best + n_candidates);
      best[i] = split;
      return;
    }
  }
}

// Offers the splits of some features of a histogram; where one is wanted, the kernel keeps it.
void scan_candidates(const TrainingRows& data, const SplitRule& rule, const int32_t* features,
                     int64_t n_features, const Histogram& histogram, int64_t n_candidates,
                     Split* best) {
  if (n_candidates == 1) {
    kernels().scan(data, rule, features, n_features, histogram.sums, histogram.counts, best);
    return;
  }
  int64_t cell = 0;
  for (int64_t j = 0; j < n_features; ++j) {
    Split own = NO_SPLIT;
    kernels().scan(data, rule, features + j, 1, histogram.sums + cell * data.n_channels,
                   histogram.counts + cell, &own);
    offer(own, best, n_candidates);
    cell += data.n_bins[features[j]] + 1;
  }
}

// A share of the features of one family: the unit of work.
struct Item {
  int64_t family;
  int64_t begin, end;
  Split *left, *right;  // n_candidates of each child, by gain and then by feature
};

const int32_t* features_of(const SelectedFeatures& selected, int64_t node) {
  return selected.features + (selected.shared ? 0 : node * selected.n_selected);
}

class Searcher {
 public:
  Searcher(const TrainingRows& data, const SplitRule& rule, const uint32_t* rows,
           const SelectedFeatures& selected, const HistogramPool& pool, int64_t n_candidates)
      : data_(data),
        rule_(rule),
        rows_(rows),
        selected_(selected),
        pool_(pool),
        n_candidates_(n_candidates) {}

  void run(const Family& family, const Item& item, Scratch (&scratch)[2],
           const StopFlag& stop) const {
    if (family.parent_slot >= 0) {
      search_pair(family, item, scratch, stop);
      return;
    }
    if (family.left >= 0) {
      search_one(family.start, family.middle, family.left, family.left_slot, item, item.left,
                 scratch[0], stop);
    }
    if (family.right >= 0) {
      search_one(family.middle, family.end, family.right, family.right_slot, item, item.right,
                 scratch[1], stop);
    }
  }

 private:
  Histogram place(int64_t slot, const Tile& tile, Scratch& scratch) const {
    return slot >= 0 ? at(pool_, slot, data_.n_channels, tile.first_cell)
                     : scratch.histogram(tile.n_cells, data_.n_channels);
  }

  void scan(const Tile& tile, const Histogram& histogram, Split* best) const {
    scan_candidates(data_, rule_, tile.features, tile.n_features, histogram, n_candidates_, best);
  }

  void search_one(int64_t begin, int64_t end, int64_t node, int64_t slot, const Item& item,
                  Split* best, Scratch& scratch, const StopFlag& stop) const {
    for_tiles(data_, features_of(selected_, node), item.begin, item.end, [&](const Tile& tile) {
      const Histogram own = place(slot, tile, scratch);
      build(data_, rows_, begin, end, tile, own, stop);
      if (!stop) scan(tile, own, best);
    });
  }

  // The smaller child is built, the larger is what remains of the parent. Sums are exact, so this
  // gives the bits of building both.
  void search_pair(const Family& family, const Item& item, Scratch (&scratch)[2],
                   const StopFlag& stop) const {
    const bool left_small = family.middle - family.start <= family.end - family.middle;
    const int64_t begin = left_small ? family.start : family.middle;
    const int64_t end = left_small ? family.middle : family.end;
    const int64_t small_slot = left_small ? family.left_slot : family.right_slot;
    const int64_t large_slot = left_small ? family.right_slot : family.left_slot;
    const int64_t node = family.left >= 0 ? family.left : family.right;
    for_tiles(data_, features_of(selected_, node), item.begin, item.end, [&](const Tile& tile) {
      const Histogram parent = at(pool_, family.parent_slot, data_.n_channels, tile.first_cell);
      const Histogram small = place(small_slot, tile, scratch[0]);
      const Histogram large = place(large_slot, tile, scratch[1]);
      build(data_, rows_, begin, end, tile, small, stop);
      if (stop) return;
      kernels().subtract(parent.sums, parent.counts, small.sums, small.counts, tile.n_cells,
                         data_.n_channels, large.sums, large.counts);
      if (family.left >= 0) scan(tile, left_small ? small : large, item.left);
      if (family.right >= 0) scan(tile, left_small ? large : small, item.right);
    });
  }

  const TrainingRows& data_;
  const SplitRule& rule_;
  const uint32_t* rows_;
  const SelectedFeatures& selected_;
  const HistogramPool& pool_;
  const int64_t n_candidates_;
};

}  // namespace

void search(const TrainingRows& data, const SplitRule& rule, const uint32_t* rows,
            const Family* families, int64_t n_families, const SelectedFeatures& selected,
            const HistogramPool& pool, int64_t n_threads, int64_t n_candidates, Split* best) {
  int64_t shares = 1;
  if (n_threads > 1 && n_families < ITEMS_PER_THREAD * n_threads) {
    shares =
        std::min(selected.n_selected, (ITEMS_PER_THREAD * n_threads + n_families - 1) / n_families);
  }
  std::vector<Split> found(static_cast<size_t>(2 * n_families * shares * n_candidates), NO_SPLIT);
  Split* next = found.data();
  std::vector<Item> items;
  int64_t work = 0;
  for (int64_t f = 0; f < n_families; ++f) {
    work += (families[f].end - families[f].start + 64) * selected.n_selected * data.n_channels;
    for (int64_t s = 0; s < shares; ++s) {
      items.push_back({f, s * selected.n_selected / shares, (s + 1) * selected.n_selected / shares,
                       next, next + n_candidates});
      next += 2 * n_candidates;
    }
  }
  const Searcher searcher(data, rule, rows, selected, pool, n_candidates);
  std::vector<Scratch[2]> scratch(static_cast<size_t>(n_threads));
  parallel_for(static_cast<int64_t>(items.size()), n_threads, work < BRIEF_WORK,
               [&](int64_t i, int64_t worker, const StopFlag& stop) {
                 const Item& item = items[static_cast<size_t>(i)];
                 searcher.run(families[item.family], item, scratch[static_cast<size_t>(worker)],
                              stop);
               });
  for (const Item& item : items) {  // in the order of features, so ties go to the lowest
    const Family& family = families[item.family];
    for (int64_t i = 0; i < n_candidates; ++i) {
      if (family.left >= 0) {
        offer(item.left[i], best + family.left * n_candidates, n_candidates);
      }
      if (family.right >= 0) {
        offer(item.right[i], best + family.right * n_candidates, n_candidates);
      }
    }
  }
}

void histograms(const TrainingRows& data, const uint32_t* rows, const int64_t* ranges,
                int64_t n_nodes, const SelectedFeatures& selected, const HistogramPool& out,
                int64_t n_threads) {
  parallel_for(n_nodes, n_threads, false, [&](int64_t node, int64_t, const StopFlag& stop) {
    for_tiles(data, features_of(selected, node), 0, selected.n_selected, [&](const Tile& tile) {
      build(data, rows, ranges[2 * node], ranges[2 * node + 1], tile,
            at(out, node, data.n_channels, tile.first_cell), stop);
    });
  });
}

void scan_histograms(const TrainingRows& data, const SplitRule& rule, int64_t n_nodes,
                     const SelectedFeatures& selected, const HistogramPool& pool, int64_t n_threads,
                     int64_t n_candidates, Split* best) {
  parallel_for(n_nodes, n_threads, false, [&](int64_t node, int64_t, const StopFlag&) {
    scan_candidates(data, rule, features_of(selected, node), selected.n_selected,
                    at(pool, node, data.n_channels, 0), n_candidates, best + node * n_candidates);
  });
}

void select_features(uint64_t seed, const uint64_t* keys, int64_t n_nodes, int64_t n_features,
                     int64_t n_selected, int64_t n_threads, int32_t* out) {
  std::vector<std::vector<std::pair<uint64_t, int32_t>>> buffers(static_cast<size_t>(n_threads));
  parallel_for(n_nodes, n_threads, n_nodes * n_features < BRIEF_WORK,
               [&](int64_t node, int64_t worker, const StopFlag&) {
                 auto& drawn = buffers[static_cast<size_t>(worker)];
                 drawn.resize(static_cast<size_t>(n_features));
                 const uint64_t key = stream(seed, DRAW_FEATURE, keys[node]);
                 for (int64_t f = 0; f < n_features; ++f) {
                   drawn[static_cast<size_t>(f)] = {draw(key, static_cast<uint64_t>(f)),
                                                    static_cast<int32_t>(f)};
                 }
                 std::nth_element(drawn.begin(), drawn.begin() + (n_selected - 1), drawn.end());
                 int32_t* own = out + node * n_selected;
                 for (int64_t j = 0; j < n_selected; ++j) {
                   own[j] = drawn[static_cast<size_t>(j)].second;
                 }
                 std::sort(own, own + n_selected);
               });
}

}  // namespace doseforest
