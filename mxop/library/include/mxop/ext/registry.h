/* REGISTER_OP, REGISTER_PASS, REGISTER_PARTITIONER: what a library announces while it is being loaded. */
#ifndef MXOP_EXT_REGISTRY_H_
#define MXOP_EXT_REGISTRY_H_

#include "op.h"
#include "partition.h"

namespace mxnet {
namespace ext {

template <class T>
class Registry {
 public:
  PRIVATE_SYMBOL static Registry* get() {
    static Registry* all = new Registry(); /* never destroyed: operators may run while the process ends */
    return all;
  }
  T& add(const char* name) {
    entries_.push_back(new T(name));
    return *entries_.back();
  }
  int size() const { return static_cast<int>(entries_.size()); }
  T& get(int idx) { return *entries_.at(static_cast<size_t>(idx)); }

 private:
  Registry() {}
  std::vector<T*> entries_;
};

}  // namespace ext
}  // namespace mxnet

#define MX_STR_CONCAT_(a, b) a##b
#define MX_STR_CONCAT(a, b) MX_STR_CONCAT_(a, b)
#define MX_STRINGIFY(x) #x
#define MX_TOSTRING(x) MX_STRINGIFY(x)

#if defined(__GNUC__)
#define MXOP_UNUSED __attribute__((unused))
#else
#define MXOP_UNUSED
#endif

/* The variable's name must be new each time, in every file; its value is what the chain of set... calls returns. */
#define MXOP_REGISTER(Type, Kind, Name)                                                                     \
  static MXOP_UNUSED mxnet::ext::Type& MX_STR_CONCAT(MXNet_##Kind##_, MX_STR_CONCAT(Name##_, __COUNTER__)) = \
      mxnet::ext::Registry<mxnet::ext::Type>::get()->add(MX_TOSTRING(Name))

#define REGISTER_OP(Name) MXOP_REGISTER(CustomOp, CustomOp, Name)
#define REGISTER_PARTITIONER(Name) MXOP_REGISTER(CustomPartitioner, CustomSubProp, Name)
#define REGISTER_PASS(Name) MXOP_REGISTER(CustomPass, CustomPass, Name)

#endif /* MXOP_EXT_REGISTRY_H_ */
