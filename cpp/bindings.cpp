// The Python face of the compiled core. Arrays arrive checked for type, shape and layout here;
// what their values mean is checked by the Python callers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "dispatch.hpp"
#include "engine.hpp"
#include "parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace doseforest;

namespace {

template <class T, int D>
using In = nb::ndarray<const T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <class T, int D>
using Out = nb::ndarray<T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;

int64_t rows_of(const auto& array) { return static_cast<int64_t>(array.shape(0)); }
int64_t columns_of(const auto& array) { return static_cast<int64_t>(array.shape(1)); }

// An array argument is taken as it is: a converted copy of an output would swallow the result.
auto array(const char* name) { return nb::arg(name).noconvert(); }

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Bins of rows: uint8, or uint16 where a feature has more than 255 categories.
using Bins = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using WritableBins = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;

bool is_wide(const auto& bins) {
  const bool wide = bins.dtype() == nb::dtype<uint16_t>();
  require(wide || bins.dtype() == nb::dtype<uint8_t>(), "bins must be uint8 or uint16");
  return wide;
}

TrainingRows binned_rows(const Bins& bins, const In<int32_t, 1>& n_bins) {
  require(columns_of(bins) == rows_of(n_bins),
          "bins and n_bins have different numbers of features");
  const int32_t most = is_wide(bins) ? MAX_BINS : UINT8_MAX;
  for (int64_t f = 0; f < rows_of(n_bins); ++f) {
    require(n_bins(f) >= 0 && n_bins(f) <= most, "more bins than their type holds");
  }
  return {bins.data(), nullptr, n_bins.data(), columns_of(bins), 0, is_wide(bins), nullptr};
}

TrainingRows training_rows(const Bins& bins, const In<float, 2>& channels,
                           const In<int32_t, 1>& n_bins) {
  require(rows_of(bins) == rows_of(channels), "bins and channels have different numbers of rows");
  TrainingRows data = binned_rows(bins, n_bins);
  data.channels = channels.data();
  data.n_channels = columns_of(channels);
  return data;
}

// Marks of the features whose bins are categories; null where there are none.
const uint8_t* categorical_of(const std::optional<In<uint8_t, 1>>& marks, const TrainingRows& data,
                              int64_t set_words) {
  if (!marks) return nullptr;
  require(rows_of(*marks) == data.n_features, "one mark per feature");
  require(set_words > 0, "categories need a set per split");
  for (int64_t f = 0; f < data.n_features; ++f) {
    require((*marks)(f) == 0 || data.n_bins[f] < 64 * set_words, "too many categories");
  }
  return marks->data();
}

// Whether every bin, that of the missing values included, has its bit in a set.
void require_bits(const TrainingRows& data, int64_t set_words) {
  for (int64_t f = 0; f < data.n_features; ++f) {
    require(set_words == 0 || data.n_bins[f] < 64 * set_words, "sets are too small for the bins");
  }
}

// Sets of the categorical nodes; null where there are none.
using Sets = std::optional<In<uint64_t, 2>>;
CategorySets sets_of(const Sets& sets) {
  if (!sets) return {nullptr, 0};
  require(columns_of(*sets) == SET_WORDS || columns_of(*sets) == MAX_SET_WORDS,
          "sets must have 4 or 16 words each");
  return {sets->data(), columns_of(*sets)};
}

const Node* nodes_of(const In<uint8_t, 1>& bytes) {
  require(bytes.shape(0) % sizeof(Node) == 0, "nodes are not whole records");
  return reinterpret_cast<const Node*>(bytes.data());
}

// Splits cross the border as arrays of gains, cuts and sets.
struct SplitColumns {
  Out<double, 1> gain;
  Out<int32_t, 2> cut;    // (n, 3): feature, bin, missing_left
  Out<uint64_t, 2> sets;  // (n, 4 or 16), or (n, 0) where no feature is categorical
};

std::vector<Split> read_splits(const SplitColumns& columns) {
  require(columns.cut.shape(0) == columns.gain.shape(0) && columns.cut.shape(1) == 3,
          "cuts must have one row of 3 per gain");
  const size_t words = columns.sets.shape(1);
  require(columns.sets.shape(0) == columns.gain.shape(0) &&
              (words == SET_WORDS || words == MAX_SET_WORDS || words == 0),
          "sets must have one row of 4, 16 or no words per gain");
  std::vector<Split> splits(columns.gain.shape(0));
  for (size_t i = 0; i < splits.size(); ++i) {
    const int32_t* cut = columns.cut.data() + 3 * i;
    splits[i] = {columns.gain.data()[i], cut[0], cut[1], cut[2], {}};
    std::copy_n(columns.sets.data() + words * i, words, splits[i].left_bins);
  }
  return splits;
}

void write_splits(const std::vector<Split>& splits, const SplitColumns& columns) {
  for (size_t i = 0; i < splits.size(); ++i) {
    columns.gain.data()[i] = splits[i].gain;
    int32_t* cut = columns.cut.data() + 3 * i;
    cut[0] = splits[i].feature;
    cut[1] = splits[i].bin;
    cut[2] = splits[i].missing_left;
    const size_t words = columns.sets.shape(1);
    std::copy_n(splits[i].left_bins, words, columns.sets.data() + words * i);
  }
}

// Nodes behind a list that has n_candidates splits for each.
int64_t n_searched(const std::vector<Split>& splits, int64_t n_candidates) {
  const int64_t n_splits = static_cast<int64_t>(splits.size());
  require(n_candidates >= 1 && n_candidates <= MAX_CANDIDATES && n_splits % n_candidates == 0,
          "1 to MAX_CANDIDATES splits per node");
  return n_splits / n_candidates;
}

SelectedFeatures selected_features(const In<int32_t, 2>& features, int64_t n_nodes) {
  const bool shared = rows_of(features) == 1 && n_nodes != 1;
  require(shared || rows_of(features) >= n_nodes, "one row of features per node, or one for all");
  return {features.data(), columns_of(features), shared};
}

void require_cells(const In<int32_t, 2>& features, const TrainingRows& data, int64_t n_cells) {
  for (int64_t node = 0; node < rows_of(features); ++node) {
    int64_t cells = 0;
    for (int64_t j = 0; j < columns_of(features); ++j) {
      const int32_t feature = features(node, j);
      require(feature >= 0 && feature < data.n_features, "a selected feature does not exist");
      cells += data.n_bins[feature] + 1;
    }
    require(cells <= n_cells, "histograms have too few cells for the selected features");
  }
}

HistogramPool histogram_pool(const Out<double, 3>& sums, const Out<uint32_t, 2>& counts,
                             const TrainingRows& data) {
  require(sums.shape(0) == counts.shape(0) && sums.shape(1) == counts.shape(1) &&
              static_cast<int64_t>(sums.shape(2)) == data.n_channels &&
              data.n_channels % LANES == 0 && data.n_channels <= MAX_CHANNELS,
          "histogram sums and counts do not fit each other or the channels");
  return {sums.data(), counts.data(), static_cast<int64_t>(sums.shape(1))};
}

// Owns what a SplitRule points to.
struct RuleHolder {
  In<double, 1> channel_weights;
  std::optional<In<double, 1>> settings;
  SplitRule rule;
};

// Settings and channels that a statistic reads; see statistics.hpp.
void require_layout(const RuleHolder& holder) {
  const StatisticLayout& layout = holder.rule.statistic;
  if (layout.kind == Statistic::MEAN) return;
  const bool scores = layout.kind == Statistic::SCORES;
  const int64_t k = layout.n_functions;
  require(layout.stride > 0 && layout.stride % LANES == 0 &&
              layout.stride <= (scores ? MAX_SCORE_POINTS : MAX_POINTS),
          "points of a curve must come in whole vectors, and not too many");
  require(!scores || (k > 0 && k <= MAX_FUNCTIONS), "scores need 1 to MAX_FUNCTIONS functions");
  int64_t n_settings = (layout.kind == Statistic::DIFFERENCES ? 3 : 2) * layout.stride;
  int64_t n_channels = (layout.kind == Statistic::DERIVATIVE ? 4 : 2) * layout.stride;
  if (scores) {
    n_settings = layout.stride + k + k * layout.stride;
    n_channels = k * (k + 1) / 2 + k;
  }
  require(holder.settings && rows_of(*holder.settings) == n_settings,
          "settings do not fit the statistic");
  require(rows_of(holder.channel_weights) >= n_channels, "too few channels for the statistic");
}

// Runs without the interpreter lock; a signal handler's exception goes on as it is.
template <class Work>
void unlocked(Work work) {
  try {
    const nb::gil_scoped_release release;
    work();
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled kernels of doseforest.";
  m.attr("LANES") = LANES;
  m.attr("MAX_CHANNELS") = MAX_CHANNELS;
  m.attr("MAX_CANDIDATES") = MAX_CANDIDATES;
  m.attr("MAX_FUNCTIONS") = MAX_FUNCTIONS;
  m.attr("MAX_SCORE_POINTS") = MAX_SCORE_POINTS;

  m.def("available_builds", &available_builds);
  m.def("current_build", [] { return std::string(kernels().name); });
  m.def("choose_build", &choose_build, "name"_a);

  nb::class_<RuleHolder>(m, "SplitRule")
      .def(
          "__init__",
          [](RuleHolder* self, In<double, 1> channel_weights, int norm, bool squared,
             int positivity, int weight_channel, int spread_channel, double zeta, int64_t min_rows,
             double min_fraction, int statistic, int64_t stride, int64_t n_functions,
             std::optional<In<double, 1>> settings) {
            new (self) RuleHolder{channel_weights,
                                  settings,
                                  {channel_weights.data(),
                                   static_cast<Norm>(norm),
                                   squared,
                                   static_cast<Positivity>(positivity),
                                   weight_channel,
                                   spread_channel,
                                   zeta,
                                   min_rows,
                                   min_fraction,
                                   {static_cast<Statistic>(statistic), stride, n_functions,
                                    settings ? settings->data() : nullptr}}};
            require_layout(*self);
          },
          nb::kw_only(), "channel_weights"_a, "norm"_a, "squared"_a, "positivity"_a,
          "weight_channel"_a, "spread_channel"_a, "zeta"_a, "min_rows"_a, "min_fraction"_a,
          "statistic"_a = 0, "stride"_a = 0, "n_functions"_a = 0, "settings"_a = nb::none());

  nb::class_<Sampling>(m, "Sampling")
      .def(
          "__init__",
          [](Sampling* self, uint64_t seed, double fraction, double growth_fraction,
             int64_t bag_size, bool bootstrap, int honesty) {
            new (self) Sampling{seed, fraction, growth_fraction, bag_size, bootstrap, honesty};
          },
          nb::kw_only(), "seed"_a, "fraction"_a, "growth_fraction"_a, "bag_size"_a, "bootstrap"_a,
          "honesty"_a);

  m.def(
      "search",
      [](Bins bins, In<float, 2> channels, In<int32_t, 1> n_bins, const RuleHolder& holder,
         In<uint32_t, 1> rows, In<int64_t, 2> families, In<int32_t, 2> features,
         Out<double, 3> pool_sums, Out<uint32_t, 2> pool_counts, int64_t n_threads,
         Out<double, 1> gain, Out<int32_t, 2> cut, Out<uint64_t, 2> sets,
         std::optional<In<uint8_t, 1>> categorical, int64_t n_candidates) {
        TrainingRows data = training_rows(bins, channels, n_bins);
        data.categorical = categorical_of(categorical, data, columns_of(sets));
        require(families.shape(1) * 8 == sizeof(Family), "families are not whole records");
        require(rows_of(holder.channel_weights) == data.n_channels, "one weight per channel");
        const HistogramPool pool = histogram_pool(pool_sums, pool_counts, data);
        const SplitColumns columns{gain, cut, sets};
        std::vector<Split> best = read_splits(columns);
        const SelectedFeatures selected =
            selected_features(features, n_searched(best, n_candidates));
        unlocked([&] {
          search(data, holder.rule, rows.data(), reinterpret_cast<const Family*>(families.data()),
                 rows_of(families), selected, pool, n_threads, n_candidates, best.data());
        });
        write_splits(best, columns);
      },
      array("bins"), array("channels"), array("n_bins"), "rule"_a, array("rows"), array("families"),
      array("features"), array("pool_sums"), array("pool_counts"), "n_threads"_a, array("gain"),
      array("cut"), array("sets"), array("categorical").none(), "n_candidates"_a = 1);

  m.def(
      "histograms",
      [](Bins bins, In<float, 2> channels, In<int32_t, 1> n_bins, In<uint32_t, 1> rows,
         In<int64_t, 2> ranges, In<int32_t, 2> features, int64_t n_threads, Out<double, 3> sums,
         Out<uint32_t, 2> counts) {
        const TrainingRows data = training_rows(bins, channels, n_bins);
        const HistogramPool pool = histogram_pool(sums, counts, data);
        const SelectedFeatures selected = selected_features(features, rows_of(ranges));
        require(rows_of(sums) == rows_of(ranges), "one histogram per range");
        require_cells(features, data, columns_of(sums));
        unlocked([&] {
          histograms(data, rows.data(), ranges.data(), rows_of(ranges), selected, pool, n_threads);
        });
      },
      array("bins"), array("channels"), array("n_bins"), array("rows"), array("ranges"),
      array("features"), "n_threads"_a, array("sums"), array("counts"));

  m.def(
      "scan_histograms",
      [](In<int32_t, 1> n_bins, const RuleHolder& holder, In<int32_t, 2> features,
         Out<double, 3> sums, Out<uint32_t, 2> counts, int64_t n_threads, Out<double, 1> gain,
         Out<int32_t, 2> cut, Out<uint64_t, 2> sets, std::optional<In<uint8_t, 1>> categorical,
         int64_t n_candidates) {
        TrainingRows data{
            nullptr, nullptr, n_bins.data(), rows_of(n_bins), static_cast<int64_t>(sums.shape(2)),
            false,   nullptr};
        data.categorical = categorical_of(categorical, data, columns_of(sets));
        const HistogramPool pool = histogram_pool(sums, counts, data);
        const SplitColumns columns{gain, cut, sets};
        std::vector<Split> best = read_splits(columns);
        require(n_searched(best, n_candidates) == rows_of(sums), "one node per histogram");
        require(rows_of(holder.channel_weights) == data.n_channels, "one weight per channel");
        require_cells(features, data, columns_of(sums));
        const SelectedFeatures selected = selected_features(features, rows_of(sums));
        unlocked([&] {
          scan_histograms(data, holder.rule, rows_of(sums), selected, pool, n_threads, n_candidates,
                          best.data());
        });
        write_splits(best, columns);
      },
      array("n_bins"), "rule"_a, array("features"), array("sums"), array("counts"), "n_threads"_a,
      array("gain"), array("cut"), array("sets"), array("categorical").none(),
      "n_candidates"_a = 1);

  m.def(
      "child_sums",
      [](Bins bins, In<float, 2> channels, In<int32_t, 1> n_bins, In<uint32_t, 1> rows,
         In<int64_t, 2> ranges, Out<double, 1> gain, Out<int32_t, 2> cut, Out<uint64_t, 2> sets,
         int64_t n_threads, Out<double, 3> sums) {
        const TrainingRows data = training_rows(bins, channels, n_bins);
        const std::vector<Split> splits = read_splits({gain, cut, sets});
        require_bits(data, columns_of(sets));
        require(rows_of(ranges) == static_cast<int64_t>(splits.size()) &&
                    rows_of(sums) == rows_of(ranges) && sums.shape(1) == 2 &&
                    static_cast<int64_t>(sums.shape(2)) == data.n_channels,
                "one split and two rows of sums per range");
        unlocked([&] {
          child_sums(data, rows.data(), ranges.data(), splits.data(), rows_of(ranges), n_threads,
                     sums.data());
        });
      },
      array("bins"), array("channels"), array("n_bins"), array("rows"), array("ranges"),
      array("gain"), array("cut"), array("sets"), "n_threads"_a, array("sums"));

  m.def(
      "select_features",
      [](uint64_t seed, In<uint64_t, 1> keys, int64_t n_features, int64_t n_threads,
         Out<int32_t, 2> out) {
        require(
            rows_of(out) == rows_of(keys) && columns_of(out) <= n_features && columns_of(out) > 0,
            "one row of at most n_features features per key");
        unlocked([&] {
          select_features(seed, keys.data(), rows_of(keys), n_features, columns_of(out), n_threads,
                          out.data());
        });
      },
      "seed"_a, array("keys"), "n_features"_a, "n_threads"_a, array("out"));

  m.def(
      "partition",
      [](Bins bins, In<int32_t, 1> n_bins, Out<uint32_t, 1> rows, In<int64_t, 2> ranges,
         Out<double, 1> gain, Out<int32_t, 2> cut, Out<uint64_t, 2> sets, int64_t n_threads,
         Out<int64_t, 1> middles) {
        const TrainingRows data = binned_rows(bins, n_bins);
        const std::vector<Split> splits = read_splits({gain, cut, sets});
        require_bits(data, columns_of(sets));
        require(rows_of(ranges) == static_cast<int64_t>(splits.size()) &&
                    rows_of(middles) == rows_of(ranges),
                "one split and one middle per range");
        unlocked([&] {
          partition(data, rows.data(), ranges.data(), splits.data(), rows_of(ranges), n_threads,
                    middles.data());
        });
      },
      array("bins"), array("n_bins"), array("rows"), array("ranges"), array("gain"), array("cut"),
      array("sets"), "n_threads"_a, array("middles"));

  m.def(
      "count_rows",
      [](const Sampling& plan, In<int64_t, 1> trees, In<int64_t, 1> ids, int64_t n_threads,
         Out<int64_t, 1> counts) {
        require(rows_of(counts) == rows_of(trees), "one count per tree");
        unlocked([&] {
          draw_rows(plan, trees.data(), rows_of(trees), ids.data(), rows_of(ids), n_threads,
                    nullptr, nullptr, counts.data());
        });
      },
      "plan"_a, array("trees"), array("ids"), "n_threads"_a, array("counts"));

  m.def(
      "draw_rows",
      [](const Sampling& plan, In<int64_t, 1> trees, In<int64_t, 1> ids, int64_t n_threads,
         In<int64_t, 1> starts, Out<uint32_t, 1> rows) {
        require(rows_of(starts) == rows_of(trees), "one start per tree");
        std::vector<int64_t> counts(trees.shape(0));
        unlocked([&] {
          draw_rows(plan, trees.data(), rows_of(trees), ids.data(), rows_of(ids), n_threads,
                    starts.data(), rows.data(), counts.data());
        });
      },
      "plan"_a, array("trees"), array("ids"), "n_threads"_a, array("starts"), array("rows"));

  m.def(
      "fill_leaves",
      [](const Sampling& plan, In<int64_t, 1> trees, In<int64_t, 1> roots, In<uint8_t, 1> nodes,
         Sets sets, Bins bins, In<float, 2> channels, In<int32_t, 1> n_bins,
         std::optional<In<float, 1>> row_weights, In<int64_t, 1> ids, int64_t n_threads,
         Out<double, 2> sums, Out<double, 1> weights) {
        const TrainingRows data = training_rows(bins, channels, n_bins);
        require_bits(data, sets_of(sets).n_words);
        require(columns_of(sums) == data.n_channels && rows_of(sums) == rows_of(weights),
                "leaf sums do not fit the channels");
        require(rows_of(trees) == rows_of(roots) && rows_of(ids) == rows_of(bins) &&
                    (!row_weights || rows_of(*row_weights) == rows_of(bins)),
                "trees and roots, or rows, ids and weights, do not fit");
        unlocked([&] {
          fill_leaves(plan, trees.data(), roots.data(), rows_of(trees), nodes_of(nodes),
                      sets_of(sets), data, row_weights ? row_weights->data() : nullptr, ids.data(),
                      rows_of(ids), n_threads, sums.data(), weights.data());
        });
      },
      "plan"_a, array("trees"), array("roots"), array("nodes"), array("sets").none(), array("bins"),
      array("channels"), array("n_bins"), array("row_weights").none(), array("ids"), "n_threads"_a,
      array("sums"), array("weights"));

  m.def(
      "route_bins",
      [](const Sampling& plan, In<int64_t, 1> trees, In<int64_t, 1> roots, In<uint8_t, 1> nodes,
         Sets sets, Bins bins, In<int32_t, 1> n_bins, In<int64_t, 1> ids, int64_t n_threads,
         Out<int32_t, 2> leaves, Out<uint8_t, 2> copies) {
        const TrainingRows data = binned_rows(bins, n_bins);
        require_bits(data, sets_of(sets).n_words);
        require(rows_of(trees) == rows_of(roots) && rows_of(ids) == rows_of(bins) &&
                    rows_of(leaves) == rows_of(bins) && columns_of(leaves) == rows_of(roots) &&
                    rows_of(copies) == rows_of(bins) && columns_of(copies) == rows_of(roots),
                "rows, trees and outputs do not fit");
        unlocked([&] {
          route_bins(plan, trees.data(), roots.data(), rows_of(roots), nodes_of(nodes),
                     sets_of(sets), data, ids.data(), rows_of(bins), n_threads, leaves.data(),
                     copies.data());
        });
      },
      "plan"_a, array("trees"), array("roots"), array("nodes"), array("sets").none(), array("bins"),
      array("n_bins"), array("ids"), "n_threads"_a, array("leaves"), array("copies"));

  m.def(
      "route",
      [](In<int64_t, 1> roots, In<uint8_t, 1> nodes, Sets sets, In<double, 2> x, int64_t n_threads,
         Out<int32_t, 2> leaves) {
        const Leaves forest{nodes_of(nodes), roots.data(), nullptr, nullptr, rows_of(roots), 0,
                            sets_of(sets)};
        require(rows_of(leaves) == rows_of(x) && columns_of(leaves) == forest.n_trees,
                "one leaf per row and tree");
        unlocked(
            [&] { route(forest, x.data(), rows_of(x), columns_of(x), n_threads, leaves.data()); });
      },
      array("roots"), array("nodes"), array("sets").none(), array("x"), "n_threads"_a,
      array("leaves"));

  m.def(
      "average",
      [](In<int64_t, 1> roots, In<uint8_t, 1> nodes, Sets sets, In<float, 2> leaf_sums,
         In<float, 1> leaf_weights, In<double, 2> x, const Sampling* out_of_bag,
         std::optional<In<int64_t, 1>> row_ids, int64_t n_threads, Out<double, 2> out,
         Out<int32_t, 1> used) {
        const Leaves forest{nodes_of(nodes),     roots.data(),   leaf_sums.data(),
                            leaf_weights.data(), rows_of(roots), columns_of(leaf_sums),
                            sets_of(sets)};
        require(rows_of(out) == rows_of(x) && columns_of(out) == forest.width &&
                    rows_of(used) == rows_of(x),
                "output does not fit the rows and the leaf channels");
        require(!out_of_bag || (row_ids && rows_of(*row_ids) == rows_of(x)),
                "out-of-bag averages need one row id per row");
        unlocked([&] {
          average_rows(forest, x.data(), rows_of(x), columns_of(x), out_of_bag,
                       row_ids ? row_ids->data() : nullptr, n_threads, out.data(), used.data());
        });
      },
      array("roots"), array("nodes"), array("sets").none(), array("leaf_sums"),
      array("leaf_weights"), array("x"), "out_of_bag"_a.none(), array("row_ids").none(),
      "n_threads"_a, array("out"), array("used"));

  m.def(
      "score",
      [](In<int64_t, 1> roots, In<uint8_t, 1> nodes, In<double, 1> leaf_values,
         In<double, 1> leaf_constants, In<double, 1> leaf_slopes, In<int64_t, 1> term_starts,
         In<int32_t, 1> term_features, In<double, 1> term_coefficients, In<double, 2> x,
         In<double, 2> doses, int64_t n_threads, Out<double, 2> out) {
        const Ensemble trees{
            nodes_of(nodes),    roots.data(),       leaf_values.data(),   leaf_constants.data(),
            leaf_slopes.data(), term_starts.data(), term_features.data(), term_coefficients.data(),
            rows_of(roots),     columns_of(x)};
        require(rows_of(leaf_constants) == rows_of(leaf_values) &&
                    rows_of(leaf_slopes) == rows_of(leaf_values) &&
                    rows_of(term_starts) == rows_of(leaf_values) + 1 &&
                    rows_of(term_coefficients) == rows_of(term_features),
                "leaves and their terms do not fit");
        const bool shared = rows_of(doses) == 1;
        require(shared || rows_of(doses) == rows_of(x), "one row of doses per row, or one for all");
        require(rows_of(out) == rows_of(x) && columns_of(out) == columns_of(doses),
                "one result per row and dose");
        unlocked([&] {
          score_rows(trees, x.data(), rows_of(x), doses.data(), shared, columns_of(doses),
                     n_threads, out.data());
        });
      },
      array("roots"), array("nodes"), array("leaf_values"), array("leaf_constants"),
      array("leaf_slopes"), array("term_starts"), array("term_features"),
      array("term_coefficients"), array("x"), array("doses"), "n_threads"_a, array("out"));

  m.def(
      "bin_values",
      [](In<double, 2> x, In<double, 1> edges, In<int64_t, 1> edge_starts, int64_t n_threads,
         WritableBins out) {
        require(rows_of(edge_starts) == columns_of(x) + 1 && rows_of(out) == rows_of(x) &&
                    columns_of(out) == columns_of(x),
                "one stretch of edges per feature, one bin per value");
        const bool wide = is_wide(out);
        unlocked([&] {
          const auto bin = [&](auto* bins) {
            bin_values(x.data(), rows_of(x), columns_of(x), edges.data(), edge_starts.data(),
                       n_threads, bins);
          };
          wide ? bin(static_cast<uint16_t*>(out.data())) : bin(static_cast<uint8_t*>(out.data()));
        });
      },
      array("x"), array("edges"), array("edge_starts"), "n_threads"_a, array("out"));

  m.def(
      "solve_moments",
      [](In<double, 2> moments, In<double, 2> penalty, int64_t n_threads, Out<double, 2> out) {
        const int64_t k = columns_of(out);
        require(columns_of(moments) == k * (k + 1) / 2 + k && rows_of(out) == rows_of(moments) &&
                    columns_of(penalty) == k,
                "moments, penalty and output do not fit");
        const bool shared = rows_of(penalty) == 1;
        require(shared || rows_of(penalty) == rows_of(moments),
                "one penalty per row, or one for all");
        unlocked([&] {
          solve_moments(moments.data(), rows_of(moments), k, penalty.data(), shared, n_threads,
                        out.data());
        });
      },
      array("moments"), array("penalty"), "n_threads"_a, array("out"));
}
