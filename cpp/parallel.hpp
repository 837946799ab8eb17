// Short-lived worker threads. They are joined before a call returns, so nothing survives into a
// forked child, and the caller looks for signals (Ctrl-C) every 50 ms while it waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace doseforest {

// Set when the user interrupts; long loops look at it between chunks of work.
using StopFlag = std::atomic<bool>;

// Calls body(item, worker, stop) for every item, worker < n_threads. To be called without the
// interpreter lock. Throws Interrupted when a signal handler raised, or what a worker threw.
// `brief` work (well under 50 ms) runs on the caller's thread and is not interruptible.
void parallel_for(
    int64_t n_items, int64_t n_threads, bool brief,
    const std::function<void(int64_t item, int64_t worker, const StopFlag& stop)>& body);

// A Python exception is already set.
struct Interrupted {};

}  // namespace doseforest
