// Histogram accumulation: the loop that visits rows. Included by kernels.cpp only.

constexpr int64_t PREFETCH_ROWS = 16;  // rows between a prefetch and its use
constexpr uintptr_t CACHE_LINE = 64;

// All cache lines of some bytes, the one that a row ends in included.
inline void prefetch(const void* start, int64_t n_bytes) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(start);
  for (uintptr_t line = first / CACHE_LINE; line <= (first + n_bytes - 1) / CACHE_LINE; ++line) {
    __builtin_prefetch(reinterpret_cast<const void*>(line * CACHE_LINE));
  }
}

// First cell of each selected feature, laid out one after another.
inline void cell_starts(const TrainingRows& data, const int32_t* features, int64_t n_selected,
                        int64_t* starts) {
  int64_t cell = 0;
  for (int64_t j = 0; j < n_selected; ++j) {
    starts[j] = cell;
    cell += data.n_bins[features[j]] + 1;
  }
}

constexpr int64_t MAX_FEATURES_AT_ONCE = 256;  // keeps the cell starts on the stack

// V vectors of channels per row; V = 0 reads the number from the data.
template <int V, class Bin>
void accumulate_features(const TrainingRows& data, const uint32_t* rows, int64_t n_rows,
                         const int32_t* features, int64_t n_selected, double* sums,
                         uint32_t* counts) {
  int64_t starts[MAX_FEATURES_AT_ONCE];
  cell_starts(data, features, n_selected, starts);
  const int64_t n_features = data.n_features;
  const int64_t n_channels = V ? V * LANES : data.n_channels;
  for (int64_t i = 0; i < n_rows; ++i) {
    if (i + PREFETCH_ROWS < n_rows) {
      const int64_t ahead = rows[i + PREFETCH_ROWS];
      prefetch(bins_of<Bin>(data, ahead), n_features * sizeof(Bin));
      prefetch(data.channels + ahead * n_channels, n_channels * 4);
    }
    const int64_t row = rows[i];
    const Bin* bins = bins_of<Bin>(data, row);
    const float* values = data.channels + row * n_channels;
    if constexpr (V > 0) {
      Lanes value[V];
      for (int v = 0; v < V; ++v) value[v] = widen(values + v * LANES);
      for (int64_t j = 0; j < n_selected; ++j) {
        const int64_t cell = starts[j] + bins[features[j]];
        double* sum = sums + cell * n_channels;
        ++counts[cell];
        for (int v = 0; v < V; ++v) add_to(sum + v * LANES, value[v]);
      }
    } else {
      for (int64_t j = 0; j < n_selected; ++j) {
        const int64_t cell = starts[j] + bins[features[j]];
        double* sum = sums + cell * n_channels;
        ++counts[cell];
        for (int64_t c = 0; c < n_channels; c += LANES) add_to(sum + c, widen(values + c));
      }
    }
  }
}

template <int V, class Bin>
void accumulate(const TrainingRows& data, const uint32_t* rows, int64_t n_rows,
                const int32_t* features, int64_t n_selected, double* sums, uint32_t* counts) {
  for (int64_t first = 0; first < n_selected; first += MAX_FEATURES_AT_ONCE) {
    const int64_t some =
        n_selected - first < MAX_FEATURES_AT_ONCE ? n_selected - first : MAX_FEATURES_AT_ONCE;
    accumulate_features<V, Bin>(data, rows, n_rows, features + first, some, sums, counts);
    for (int64_t j = first; j < first + some; ++j) {
      const int64_t cells = data.n_bins[features[j]] + 1;
      sums += cells * data.n_channels;
      counts += cells;
    }
  }
}

void subtract(const double* parent_sums, const uint32_t* parent_counts, const double* child_sums,
              const uint32_t* child_counts, int64_t n_cells, int64_t n_channels, double* out_sums,
              uint32_t* out_counts) {
  for (int64_t i = 0; i < n_cells * n_channels; i += LANES) {
    store(out_sums + i, load(parent_sums + i) - load(child_sums + i));
  }
  for (int64_t i = 0; i < n_cells; ++i) out_counts[i] = parent_counts[i] - child_counts[i];
}
