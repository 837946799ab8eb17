// Four doubles at a time, as one register or two: the same arithmetic in the same order on every
// machine. Included by kernels.cpp only.

#if defined(__AVX__)

typedef double Lanes __attribute__((vector_size(8 * LANES)));
typedef double StoredLanes __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef float StoredFloats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

inline Lanes load(const double* from) { return *reinterpret_cast<const StoredLanes*>(from); }
inline void store(double* to, Lanes value) { *reinterpret_cast<StoredLanes*>(to) = value; }
inline Lanes widen(const float* from) {
  return __builtin_convertvector(*reinterpret_cast<const StoredFloats*>(from), Lanes);
}
inline Lanes larger(Lanes a, Lanes b) { return a < b ? b : a; }
inline Lanes where_positive(Lanes sign, Lanes value) { return sign > Lanes{} ? value : Lanes{}; }
inline double lane(Lanes value, int i) { return value[i]; }

#else

// Compilers spill vectors wider than a register lane by lane; a pair of halves stays in registers.
typedef double Half __attribute__((vector_size(16)));
typedef double StoredHalf __attribute__((vector_size(16), aligned(8), may_alias));
struct Lanes {
  Half low, high;
};

inline Lanes load(const double* from) {
  return {*reinterpret_cast<const StoredHalf*>(from),
          *reinterpret_cast<const StoredHalf*>(from + 2)};
}
inline void store(double* to, Lanes value) {
  *reinterpret_cast<StoredHalf*>(to) = value.low;
  *reinterpret_cast<StoredHalf*>(to + 2) = value.high;
}
inline Lanes widen(const float* from) { return {Half{from[0], from[1]}, Half{from[2], from[3]}}; }
inline Lanes operator+(Lanes a, Lanes b) { return {a.low + b.low, a.high + b.high}; }
inline Lanes operator-(Lanes a, Lanes b) { return {a.low - b.low, a.high - b.high}; }
inline Lanes operator-(Lanes a) { return {-a.low, -a.high}; }
inline Lanes operator*(Lanes a, Lanes b) { return {a.low * b.low, a.high * b.high}; }
inline Lanes operator/(Lanes a, Lanes b) { return {a.low / b.low, a.high / b.high}; }
inline Lanes operator*(Lanes a, double b) { return {a.low * b, a.high * b}; }
inline Lanes operator*(double a, Lanes b) { return b * a; }
inline Lanes larger(Lanes a, Lanes b) {
  return {a.low < b.low ? b.low : a.low, a.high < b.high ? b.high : a.high};
}
inline Lanes where_positive(Lanes sign, Lanes value) {
  return {sign.low > Half{} ? value.low : Half{}, sign.high > Half{} ? value.high : Half{}};
}
inline double lane(Lanes value, int i) { return i < 2 ? value.low[i] : value.high[i - 2]; }

#endif

inline Lanes size_of(Lanes value) { return larger(value, -value); }
inline Lanes smaller(Lanes a, Lanes b) { return -larger(-a, -b); }
inline void add_to(double* to, Lanes value) { store(to, load(to) + value); }
