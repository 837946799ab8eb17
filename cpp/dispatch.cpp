#include "dispatch.hpp"

#include <atomic>
#include <stdexcept>

namespace doseforest {

extern const Kernels kernels_baseline;
#ifdef HAVE_KERNELS_V3
extern const Kernels kernels_v3;

static bool runs_v3() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe") &&
         __builtin_cpu_supports("f16c");
}
#endif

static std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> builds;
#ifdef HAVE_KERNELS_V3
  if (runs_v3()) builds.push_back(&kernels_v3);
#endif
  builds.push_back(&kernels_baseline);
  return builds;
}

static std::atomic<const Kernels*>& chosen() {
  static std::atomic<const Kernels*> current{runnable().front()};
  return current;
}

const Kernels& kernels() { return *chosen().load(); }

std::vector<std::string> available_builds() {
  std::vector<std::string> names;
  for (const Kernels* build : runnable()) names.emplace_back(build->name);
  return names;
}

void choose_build(const std::string& name) {
  for (const Kernels* build : runnable()) {
    if (name == build->name) {
      chosen().store(build);
      return;
    }
  }
  throw std::invalid_argument("no kernel build named '" + name + "' runs on this machine");
}

}  // namespace doseforest
