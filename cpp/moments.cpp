#include <cmath>
#include <vector>

#include "engine.hpp"
#include "parallel.hpp"

namespace doseforest {

namespace {

constexpr int64_t CHUNK_ROWS = 1024;
// Leaf sums are float32: a pivot this small against its diagonal is their rounding.
constexpr double SINGULAR = 1e-6;

// Solves A b = v by an LDL' factorisation without pivoting, in place; A is symmetric, (k, k), its
// lower triangle read. A direction without information gets the coefficient 0.
void solve_symmetric(double* a, double* b, int64_t k) {
  for (int64_t j = 0; j < k; ++j) {
    double pivot = a[j * k + j];
    const double diagonal = pivot;
    for (int64_t m = 0; m < j; ++m) pivot -= a[j * k + m] * a[j * k + m] * a[m * k + m];
    const bool informative = pivot > SINGULAR * diagonal;
    a[j * k + j] = informative ? pivot : 0;
    for (int64_t i = j + 1; i < k; ++i) {
      double value = a[i * k + j];
      for (int64_t m = 0; m < j; ++m) value -= a[i * k + m] * a[j * k + m] * a[m * k + m];
      a[i * k + j] = informative ? value / pivot : 0;
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t m = 0; m < i; ++m) b[i] -= a[i * k + m] * b[m];
  }
  for (int64_t i = 0; i < k; ++i) b[i] = a[i * k + i] > 0 ? b[i] / a[i * k + i] : 0;
  for (int64_t i = k - 1; i >= 0; --i) {
    if (!(a[i * k + i] > 0)) {
      b[i] = 0;
      continue;
    }
    for (int64_t m = i + 1; m < k; ++m) b[i] -= a[m * k + i] * b[m];
  }
}

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
      solve_symmetric(matrix.data(), solution, k);
    }
  });
}

}  // namespace doseforest
