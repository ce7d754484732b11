/* Graph passes, partitioners, and the selectors that partitioners may use. */
#ifndef MXOP_EXT_PARTITION_H_
#define MXOP_EXT_PARTITION_H_

#include "graph.h"

namespace mxnet {
namespace ext {

typedef MXReturnValue (*graphPass_t)(Graph* graph, const MXAttrs& options);

class CustomPass {
 public:
  CustomPass() : name("ERROR"), pass(nullptr) {}
  explicit CustomPass(const char* pass_name) : name(pass_name), pass(nullptr) {}
  CustomPass& setBody(graphPass_t fn) { return pass = fn, *this; }

  const char* name;
  graphPass_t pass;
};

/* Grows a subgraph from a node, one neighbour at a time. */
class CustomOpSelector {
 public:
  virtual ~CustomOpSelector() {}
  /* Whether a subgraph begins at this node. */
  virtual bool Select(int nodeID) = 0;
  /* Whether it goes on to an input, or to an output, of a node in it. */
  virtual bool SelectInput(int nodeID, int input_nodeID) = 0;
  virtual bool SelectOutput(int nodeID, int output_nodeID) = 0;
  /* Which of the nodes found stay. */
  virtual void Filter(const std::vector<int>& candidates, std::vector<int>* keep) {
    keep->insert(keep->end(), candidates.begin(), candidates.end());
  }
  /* Called between growing and filtering. */
  virtual void Reset() {}
};

/* Writes -1 (any subgraph) or a number (a subgraph of that number only) for each supported node; the rest stay at -2. */
typedef MXReturnValue (*supportedOps_t)(const Graph* graph, std::vector<int>* ids, const MXAttrs& options);
typedef MXReturnValue (*createSelector_t)(const Graph* graph, CustomOpSelector** sel_inst, const MXAttrs& options);
typedef MXReturnValue (*reviewSubgraph_t)(const Graph* subgraph, int subgraph_id, bool* accept, const MXAttrs& options,
                                          MXAttrs* attrs);

class CustomPartitioner {
 public:
  CustomPartitioner() : name("ERROR") {}
  explicit CustomPartitioner(const char* backend_name) : name(backend_name) {}

  CustomPartitioner& addStrategy(const char* prop_name, const char* sg_name) {
    strategies.push_back(prop_name);
    op_names.push_back(sg_name);
    return *this;
  }
  CustomPartitioner& setSupportedOps(const char* prop_name, supportedOps_t fn) {
    return supported_map[prop_name] = fn, *this;
  }
  CustomPartitioner& setCreateSelector(const char* prop_name, createSelector_t fn) {
    return selector_map[prop_name] = fn, *this;
  }
  CustomPartitioner& setReviewSubgraph(const char* prop_name, reviewSubgraph_t fn) {
    return review_map[prop_name] = fn, *this;
  }
  supportedOps_t getSupportedOps(int stg_id) const { return of(supported_map, stg_id); }
  createSelector_t getCreateSelector(int stg_id) const { return of(selector_map, stg_id); }
  reviewSubgraph_t getReviewSubgraph(int stg_id) const { return of(review_map, stg_id); }

  const char* name;
  std::map<std::string, supportedOps_t> supported_map;
  std::map<std::string, createSelector_t> selector_map;
  std::map<std::string, reviewSubgraph_t> review_map;
  std::vector<const char*> strategies;
  std::vector<const char*> op_names;

 private:
  template <typename F>
  F of(const std::map<std::string, F>& functions, int stg_id) const {
    const auto at = functions.find(strategies.at(static_cast<size_t>(stg_id)));
    return at == functions.end() ? nullptr : at->second;
  }
};

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_PARTITION_H_ */
