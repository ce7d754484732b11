/* What mxop provides while an operator runs: memory, random number generators, the GPU's stream. */
#ifndef MXOP_EXT_RESOURCE_H_
#define MXOP_EXT_RESOURCE_H_

#include <memory>
#include <mutex>

#include "error.h"
#include "tensor.h"

namespace mxnet {
namespace ext {

#if defined(__NVCC__)
typedef cudaStream_t mx_stream_t;
typedef curandStatePhilox4_32_10_t mx_gpu_rand_t;
#else
typedef void* mx_stream_t;
typedef void* mx_gpu_rand_t;
#endif
typedef std::mt19937 mx_cpu_rand_t;

#define MX_NUM_CPU_RANDOM_STATES 1024
#define MX_NUM_GPU_RANDOM_STATES 32768

/* Generators for one running call.  Sets are reused: the lowest free one is taken, so that a program that calls
 * from one thread draws the same numbers after the same mx.random.seed. */
struct RandomSet {
  bool busy = false;
  bool seeded = false;
  uint64_t version = 0;
  std::vector<mx_cpu_rand_t> engines;

  void seed(uint64_t seed, uint64_t seed_version, uint64_t ordinal) {
    if (seeded && version == seed_version) return;
    engines.resize(MX_NUM_CPU_RANDOM_STATES + 1); /* MXNet's documentation lets users index the end */
    uint64_t mixed = seed ^ (ordinal << 40);
    for (mx_cpu_rand_t& engine : engines) { /* splitmix64 */
      uint64_t z = (mixed += UINT64_C(0x9E3779B97F4A7C15));
      z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
      z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
      engine.seed(static_cast<mx_cpu_rand_t::result_type>(z >> 32));
    }
    seeded = true;
    version = seed_version;
  }
};

namespace detail PRIVATE_SYMBOL {

class RandomSets {
 public:
  static RandomSets& get() {
    static RandomSets* sets = new RandomSets(); /* never destroyed: calls may run while the process ends */
    return *sets;
  }
  RandomSet* take(uint64_t seed, uint64_t version) {
    RandomSet* found = nullptr;
    size_t ordinal = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      while (ordinal < sets_.size() && sets_[ordinal]->busy) ++ordinal;
      if (ordinal == sets_.size()) sets_.emplace_back(new RandomSet());
      found = sets_[ordinal].get();
      found->busy = true;
    }
    found->seed(seed, version, ordinal);
    return found;
  }
  void give_back(RandomSet* set) {
    std::lock_guard<std::mutex> lock(mutex_);
    set->busy = false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RandomSet>> sets_;
};

}  // namespace detail

class OpResource {
 public:
  explicit OpResource(const MXOPRun* run) : run_(run) {}
  OpResource(const OpResource& other) : run_(other.run_) {} /* with random numbers of its own */
  OpResource& operator=(const OpResource&) = delete;
  ~OpResource() {
    if (random_ != nullptr) detail::RandomSets::get().give_back(random_);
  }

  /* Memory until the operator returns.  (MXNet's sizes are int; these are int64_t.) */
  void* alloc_cpu(int64_t size) const { return alloc(size, MXOP_CPU); }
  void* alloc_gpu(int64_t size) const { return alloc(size, MXOP_GPU); }

  void alloc_sparse(MXSparse*, int, int, int = 0) const {
    throw std::runtime_error("alloc_sparse: mxop has dense arrays only");
  }

  inline mx_stream_t get_cuda_stream() const { return static_cast<mx_stream_t>(run_->stream); }

  /* MX_NUM_CPU_RANDOM_STATES generators, seeded by mx.random.seed, for this call alone. */
  mx_cpu_rand_t* get_cpu_rand_states() const {
    if (random_ == nullptr) random_ = detail::RandomSets::get().take(run_->seed, run_->seed_version);
    return random_->engines.data();
  }

  /* mxop compiles no CUDA code, so there are none: a library keeps its own. */
  inline mx_gpu_rand_t* get_gpu_rand_states() const { return nullptr; }

  /* Whether the call is made in training mode (not in MXNet's header). */
  bool is_train() const { return (run_->flags & MXOP_RUN_TRAINING) != 0; }

 private:
  void* alloc(int64_t size, int device) const {
    const MXOPHost* host = detail::host();
    if (size < 0) throw std::runtime_error("OpResource: " + std::to_string(size) + " bytes were asked for");
    void* memory = host->alloc(run_->call, size, device);
    if (memory == nullptr) throw std::runtime_error("OpResource: no memory for " + std::to_string(size) + " bytes");
    return memory;
  }

  const MXOPRun* run_;
  mutable RandomSet* random_ = nullptr;
};

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_RESOURCE_H_ */
