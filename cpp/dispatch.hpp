// The kernel build in use: the best one that this processor runs.
#pragma once

#include <string>
#include <vector>

#include "layout.hpp"

namespace doseforest {

const Kernels& kernels();
std::vector<std::string> available_builds();
void choose_build(const std::string& name);  // throws std::invalid_argument

}  // namespace doseforest
