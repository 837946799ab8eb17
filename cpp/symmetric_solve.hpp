// A b = v for small symmetric A, by an LDL' factorisation without pivoting. Included inside an
// unnamed namespace, see the note in layout.hpp.

// Channels are float32: a pivot this small against its diagonal is their rounding.
constexpr double SINGULAR = 1e-6;

// In place; A is (k, k), its lower triangle read. A pivot of 0 marks a direction without
// information.
inline void factorise(double* a, int64_t k) {
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
}

// In place; a direction without information gets the coefficient 0.
inline void substitute(const double* factor, double* b, int64_t k) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t m = 0; m < i; ++m) b[i] -= factor[i * k + m] * b[m];
  }
  for (int64_t i = 0; i < k; ++i) b[i] = factor[i * k + i] > 0 ? b[i] / factor[i * k + i] : 0;
  for (int64_t i = k - 1; i >= 0; --i) {
    if (!(factor[i * k + i] > 0)) {
      b[i] = 0;
      continue;
    }
    for (int64_t m = i + 1; m < k; ++m) b[i] -= factor[m * k + i] * b[m];
  }
}
