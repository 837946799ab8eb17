#include <vector>

#include "engine.hpp"
#include "parallel.hpp"

namespace doseforest {

namespace {

constexpr int64_t CHUNK_ROWS = 1024;

#include "symmetric_solve.hpp"

}  // namespace

void solve_moments(const double* moments, int64_t n_rows, int64_t n_coefficients,
                   const double* penalty, bool shared_penalty, int64_t n_threads, double* out) {
  const int64_t k = n_coefficients;
  const int64_t width = k * (k + 1) / 2 + k;
  const int64_t n_chunks = (n_rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
  parallel_for(n_chunks, n_threads, n_chunks == 1, [&](int64_t chunk, int64_t, const StopFlag&) {
    std::vector<double> matrix(static_cast<size_t>(k * k));
    const int64_t end = (chunk + 1) * CHUNK_ROWS < n_rows ? (chunk + 1) * CHUNK_ROWS : n_rows;
    for (int64_t row = chunk * CHUNK_ROWS; row < end; ++row) {
      const double* packed = moments + row * width;
      const double* ridge = penalty + (shared_penalty ? 0 : row * k);
      double* solution = out + row * k;
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = i; j < k; ++j) matrix[static_cast<size_t>(j * k + i)] = *packed++;
        matrix[static_cast<size_t>(i * k + i)] += ridge[i];
      }
      for (int64_t i = 0; i < k; ++i) solution[i] = packed[i];
      factorise(matrix.data(), k);
      substitute(matrix.data(), solution, k);
    }
  });
}

}  // namespace doseforest
