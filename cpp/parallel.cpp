#include "parallel.hpp"

#include <Python.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace doseforest {

namespace {

constexpr auto SIGNAL_INTERVAL = std::chrono::milliseconds(50);

bool signal_raised() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

}  // namespace

void parallel_for(
    int64_t n_items, int64_t n_threads, bool brief,
    const std::function<void(int64_t item, int64_t worker, const StopFlag& stop)>& body) {
  StopFlag stop{false};
  if (brief) {
    for (int64_t item = 0; item < n_items; ++item) body(item, 0, stop);
    return;
  }

  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable finished;
  int64_t running = 0;

  const auto work = [&](int64_t worker) {
    try {
      for (int64_t item; !stop && (item = next.fetch_add(1)) < n_items;) body(item, worker, stop);
    } catch (...) {
      stop = true;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    --running;
    finished.notify_one();
  };

  const int64_t wanted = n_threads < n_items ? n_threads : n_items;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(wanted));
  bool interrupted = false;
  {
    std::unique_lock lock(mutex);
    for (int64_t worker = 0; worker < wanted; ++worker) {
      try {
        threads.emplace_back(work, worker);
        ++running;
      } catch (const std::system_error&) {
        if (worker == 0) throw;  // no thread at all; otherwise go on with those there are
        break;
      }
    }
    while (running > 0) {
      if (finished.wait_for(lock, SIGNAL_INTERVAL, [&] { return running == 0; })) break;
      lock.unlock();
      if (!interrupted && signal_raised()) {
        interrupted = true;
        stop = true;
      }
      lock.lock();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (interrupted) throw Interrupted{};
  if (failure) std::rethrow_exception(failure);
}

}  // namespace doseforest
