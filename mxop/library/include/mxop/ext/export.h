/* The library's entry point: the registered operators, passes and partitioners as tables of the C ABI. */
#ifndef MXOP_EXT_EXPORT_H_
#define MXOP_EXT_EXPORT_H_

#include "export_graph.h"
#include "export_op.h"

#if defined(_WIN32)
#define MXOP_ENTRY extern "C" __declspec(dllexport) inline
#else
#define MXOP_ENTRY extern "C" __attribute__((visibility("default"), used)) inline
#endif

/* Written by the user: whether the library can work with this version of MXNet's API (10901 for 1.9.1).  Hidden, so that
 * it is never taken for another library's; it may also be missing, where the linker can express that. */
#if defined(_WIN32)
extern "C" mxnet::ext::MXReturnValue initialize(int version);
#elif defined(__APPLE__)
extern "C" __attribute__((visibility("hidden"), weak_import)) mxnet::ext::MXReturnValue initialize(int version);
#else
extern "C" __attribute__((visibility("hidden"), weak)) mxnet::ext::MXReturnValue initialize(int version);
#endif

namespace mxnet {
namespace ext {
namespace detail PRIVATE_SYMBOL {

inline int call_initialize(int32_t version) noexcept;

/* All tables; made once and kept. */
struct Tables {
  std::vector<std::unique_ptr<OpTable>> operators;
  std::vector<std::unique_ptr<PassTable>> passes;
  std::vector<std::unique_ptr<PartitionerTable>> partitioners;
  std::vector<const MXOPOperator*> operator_list;
  std::vector<const MXOPPass*> pass_list;
  std::vector<const MXOPPartitioner*> partitioner_list;
  MXOPLibrary library;

  Tables() : library() { read(); }

  void read() {
    for (int i = 0; i < Registry<CustomOp>::get()->size(); ++i) {
      const CustomOp& op = Registry<CustomOp>::get()->get(i);
      if (!op.problem.empty()) throw std::runtime_error("operator " + std::string(op.name) + ": " + op.problem);
    }
    fill(&operators, &operator_list);
    fill(&passes, &pass_list);
    fill(&partitioners, &partitioner_list);
    describe();
  }

  void describe() {
    library.struct_size = sizeof(library);
    library.abi_version = MXOP_ABI_VERSION;
    library.required = (operators.empty() ? 0 : MXOP_FEATURE_OPERATORS) | (passes.empty() ? 0 : MXOP_FEATURE_PASSES) |
                       (partitioners.empty() ? 0 : MXOP_FEATURE_PARTITIONERS);
#if defined(__VERSION__)
    library.compiler = __VERSION__;
#endif
    library.n_operators = static_cast<int32_t>(operator_list.size());
    library.n_passes = static_cast<int32_t>(pass_list.size());
    library.n_partitioners = static_cast<int32_t>(partitioner_list.size());
    library.operators = operator_list.data();
    library.passes = pass_list.data();
    library.partitioners = partitioner_list.data();
    library.initialize = call_initialize;
  }

  template <class Table, class Pointer>
  static void fill(std::vector<std::unique_ptr<Table>>* tables, std::vector<Pointer>* list) {
    Registry<typename Table::Entry>* registry = Registry<typename Table::Entry>::get();
    for (int i = static_cast<int>(tables->size()); i < registry->size(); ++i) {
      tables->emplace_back(new Table(&registry->get(i))); /* its address is given away */
      list->push_back(&tables->back()->table);
    }
  }
};

inline Tables*& tables() {
  static Tables* made = nullptr;
  return made;
}

inline int call_initialize(int32_t version) noexcept {
  MXReturnValue (*function)(int) = initialize;
  if (function == nullptr) return 0;
  return guarded([&] {
    const MXReturnValue done = function(version);
    tables()->read(); /* it may have registered more */
    return done;
  });
}

inline const MXOPLibrary* enter(const MXOPHost* offered) {
  host() = offered;
  if (tables() == nullptr && guarded([&] { return tables() = new Tables(), MX_SUCCESS; }) != 0) return nullptr;
  return &tables()->library;
}

}  // namespace detail
}  // namespace ext
}  // namespace mxnet

MXOP_ENTRY const MXOPLibrary* mxop_library_v1(const MXOPHost* host) { return mxnet::ext::detail::enter(host); }

#endif /* MXOP_EXT_EXPORT_H_ */
