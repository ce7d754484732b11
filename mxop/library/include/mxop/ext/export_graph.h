/* Passes and partitioners as tables of the C ABI. */
#ifndef MXOP_EXT_EXPORT_GRAPH_H_
#define MXOP_EXT_EXPORT_GRAPH_H_

#include "registry.h"

namespace mxnet {
namespace ext {
namespace detail PRIVATE_SYMBOL {

typedef std::unordered_map<std::string, MXTensor> Params;

inline MXAttrs options_of(const MXOPGraph* given) {
  MXAttrs options;
  for (int32_t i = 0; i < given->n_options; ++i) options[given->options[i].key] = given->options[i].value;
  return options;
}

/* The graph that a function is given, with its parameters. */
struct GivenGraph {
  Params args, aux;
  PassResource resource;
  std::unique_ptr<Graph> graph;

  explicit GivenGraph(const MXOPGraph* given) : resource(given) {
    JsonVal json = JsonVal::parse(given->json);
    if (json.type == ERR) throw std::runtime_error("the graph's JSON cannot be read");
    graph.reset(Graph::fromJson(json));
    read(given->n_args, given->args, &args);
    read(given->n_aux, given->aux, &aux);
    graph->_setParams(&args, &aux);
    if (given->new_param != nullptr) graph->_setPassResource(&resource);
  }
  static void read(int32_t n, const MXOPParam* from, Params* params) {
    for (int32_t i = 0; i < n; ++i) {
      const MXOPTensor& t = *from[i].tensor;
      (*params)[from[i].name] = MXTensor(t.data, std::vector<int64_t>(t.shape, t.shape + t.ndim),
                                         static_cast<MXDType>(t.dtype), static_cast<size_t>(t.version),
                                         MXContext(t.device_type == MXOP_GPU ? "gpu" : "cpu", t.device_id));
    }
  }
};

/* ---- passes ---------------------------------------------------------------------------------------------------- */

inline int run_pass(const MXOPPass* self, const MXOPGraph* given, MXOPText put, void* sink) noexcept {
  return guarded([&] {
    GivenGraph input(given);
    const MXReturnValue done = static_cast<const CustomPass*>(self->user)->pass(input.graph.get(), options_of(given));
    if (done != MX_SUCCESS) return done;
    const std::string json = input.graph->toString();
    put(sink, json.data(), static_cast<int64_t>(json.size()));
    return MX_SUCCESS;
  });
}

struct PassTable {
  typedef CustomPass Entry;
  MXOPPass table;
  explicit PassTable(CustomPass* pass) : table() {
    table.struct_size = sizeof(table);
    table.name = pass->name;
    table.user = pass;
    if (pass->pass != nullptr) table.run = run_pass;
  }
};

/* ---- partitioners ---------------------------------------------------------------------------------------------- */

struct Strategy { /* what a MXOPStrategy's `user` is */
  supportedOps_t supported;
  createSelector_t create;
  reviewSubgraph_t review;
};

inline const Strategy& strategy_of(const MXOPStrategy* self) { return *static_cast<const Strategy*>(self->user); }

inline int supported(const MXOPStrategy* self, const MXOPGraph* given, int32_t n_nodes, int32_t* ids) noexcept {
  return guarded([&] {
    GivenGraph input(given);
    std::vector<int> found(static_cast<size_t>(n_nodes), -2);
    if (strategy_of(self).supported(input.graph.get(), &found, options_of(given)) != MX_SUCCESS) return MX_FAIL;
    if (found.size() != static_cast<size_t>(n_nodes)) throw std::runtime_error("it changed the number of ids");
    std::copy(found.begin(), found.end(), ids);
    return MX_SUCCESS;
  });
}

struct Selector { /* the user's selector may keep a pointer to the graph */
  GivenGraph input;
  std::unique_ptr<CustomOpSelector> chosen;
  explicit Selector(const MXOPGraph* given) : input(given) {}
};

inline CustomOpSelector& selector_of(void* selector) { return *static_cast<Selector*>(selector)->chosen; }

inline int create_selector(const MXOPStrategy* self, const MXOPGraph* given, void** selector) noexcept {
  return guarded([&] {
    std::unique_ptr<Selector> made(new Selector(given));
    CustomOpSelector* chosen = nullptr;
    const MXReturnValue done = strategy_of(self).create(made->input.graph.get(), &chosen, options_of(given));
    made->chosen.reset(chosen);
    if (done != MX_SUCCESS) return done;
    if (chosen == nullptr) throw std::runtime_error("createSelector returned no object");
    *selector = made.release();
    return MX_SUCCESS;
  });
}

template <typename Question>
inline int ask(Question question) noexcept {
  bool answer = false;
  return guarded([&] { return answer = question(), MX_SUCCESS; }) != 0 ? -1 : answer;
}

inline int select(void* selector, int32_t node) noexcept {
  return ask([&] { return selector_of(selector).Select(node); });
}
inline int select_input(void* selector, int32_t node, int32_t input) noexcept {
  return ask([&] { return selector_of(selector).SelectInput(node, input); });
}
inline int select_output(void* selector, int32_t node, int32_t output) noexcept {
  return ask([&] { return selector_of(selector).SelectOutput(node, output); });
}
inline int reset(void* selector) noexcept {
  return guarded([&] { return selector_of(selector).Reset(), MX_SUCCESS; });
}
inline int filter(void* selector, int32_t n, const int32_t* candidates, int32_t capacity, int32_t* keep,
                  int32_t* n_keep) noexcept {
  return guarded([&] {
    std::vector<int> kept;
    selector_of(selector).Filter(std::vector<int>(candidates, candidates + n), &kept);
    if (kept.size() > static_cast<size_t>(capacity)) throw std::runtime_error("Filter keeps more nodes than there were");
    std::copy(kept.begin(), kept.end(), keep);
    *n_keep = static_cast<int32_t>(kept.size());
    return MX_SUCCESS;
  });
}
inline void destroy_selector(void* selector) noexcept {
  guarded([&] { return delete static_cast<Selector*>(selector), MX_SUCCESS; });
}

inline int review(const MXOPStrategy* self, const MXOPGraph* given, int32_t id, int32_t* accept, MXOPText put,
                  void* sink) noexcept {
  return guarded([&] {
    GivenGraph input(given);
    bool accepted = true;
    MXAttrs attrs;
    if (strategy_of(self).review(input.graph.get(), id, &accepted, options_of(given), &attrs) != MX_SUCCESS) return MX_FAIL;
    *accept = accepted;
    std::string text;
    for (const std::pair<const std::string, std::string>& pair : attrs)
      (((text += pair.first) += '\0') += pair.second) += '\0';
    put(sink, text.data(), static_cast<int64_t>(text.size()));
    return MX_SUCCESS;
  });
}

struct PartitionerTable {
  typedef CustomPartitioner Entry;
  MXOPPartitioner table;
  std::vector<std::unique_ptr<Strategy>> functions;
  std::vector<std::unique_ptr<MXOPStrategy>> strategies;
  std::vector<const MXOPStrategy*> list;

  explicit PartitionerTable(CustomPartitioner* entry) : table() {
    for (size_t i = 0; i < entry->strategies.size(); ++i) {
      const int at = static_cast<int>(i);
      functions.emplace_back(
          new Strategy{entry->getSupportedOps(at), entry->getCreateSelector(at), entry->getReviewSubgraph(at)});
      strategies.emplace_back(new MXOPStrategy());
      MXOPStrategy& one = *strategies.back();
      one.struct_size = sizeof(one);
      one.name = entry->strategies[i];
      one.subgraph_op = entry->op_names[i];
      one.user = functions.back().get();
      if (functions.back()->supported != nullptr) one.supported = supported;
      if (functions.back()->create != nullptr) {
        one.create_selector = create_selector;
        one.select = select;
        one.select_input = select_input;
        one.select_output = select_output;
        one.filter = filter;
        one.reset = reset;
        one.destroy_selector = destroy_selector;
      }
      if (functions.back()->review != nullptr) one.review = review;
      list.push_back(&one);
    }
    table.struct_size = sizeof(table);
    table.n_strategies = static_cast<int32_t>(list.size());
    table.name = entry->name;
    table.strategies = list.data();
  }
};

}  // namespace detail
}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_EXPORT_GRAPH_H_ */
