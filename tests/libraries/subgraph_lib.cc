// An operator that runs subgraphs of exp and log itself, and two partitioners that make it of them.
#include <math.h>

#include <algorithm>
#include <iostream>

#include "mxnet/lib_api.h"

using namespace mxnet::ext;

MXReturnValue apply(float (*function)(float), MXTensor* in, MXTensor* out) {
  for (int64_t i = 0; i < in->size(); i++) out->data<float>()[i] = function(in->data<float>()[i]);
  return MX_SUCCESS;
}

// run a subgraph node by node
MXReturnValue myExecutor(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs, mxnet::ext::Graph* subgraph) {
  std::cout << "Info: subgraph is: " << std::endl;
  subgraph->print();
  size_t input_cnt = 0;
  std::vector<void*> to_free;
  std::vector<MXTensor*> results;
  for (size_t i = 0; i < subgraph->size(); i++) {
    mxnet::ext::Node* node = subgraph->getNode(i);
    if (node->op.compare("null") == 0) {
      node->tensor = &inputs->at(input_cnt++);
    } else if (node->op.compare("exp") == 0 || node->op.compare("log") == 0) {
      MXTensor* input = node->inputs.at(0).node->tensor;
      MXTensor tmp(malloc(input->size() * sizeof(float)), input->shape, input->dtype, 0, MXContext::CPU(0), kDefaultStorage);
      to_free.push_back(tmp.data_ptr);
      apply(node->op == "exp" ? expf : logf, input, &tmp);
      results.push_back(new MXTensor(tmp));
      node->tensor = results.back();
    } else {
      MX_ERROR_MSG << "Error! Unsupported op '" << node->op << "' found in myExecutor";
      return MX_FAIL;
    }
  }
  for (size_t j = 0; j < subgraph->outputs.size(); j++) {
    MXTensor* result = subgraph->outputs[j].node->tensor;
    memcpy(outputs->at(j).data<float>(), result->data<float>(), sizeof(float) * outputs->at(j).size());
  }
  // what a pass has added goes on top
  for (; input_cnt < inputs->size(); input_cnt++)
    for (int64_t i = 0; i < outputs->at(0).size(); i++)
      outputs->at(0).data<float>()[i] += 100 * inputs->at(input_cnt).data<float>()[0];
  for (void* ptr : to_free) free(ptr);
  for (MXTensor* result : results) delete result;
  return MX_SUCCESS;
}

class MyStatefulOp : public CustomStatefulOp {
 public:
  explicit MyStatefulOp(std::string json, const std::unordered_map<std::string, std::string>& attrs) : attrs_(attrs) {
    for (const auto& kv : attrs) std::cout << "subgraphOp attributes: " << kv.first << " ==> " << kv.second << std::endl;
    subgraph_ = mxnet::ext::Graph::fromString(json);
  }
  ~MyStatefulOp() { delete subgraph_; }

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs, const OpResource& op_res) override {
    return myExecutor(inputs, outputs, subgraph_);
  }

 private:
  mxnet::ext::Graph* subgraph_;
  const std::unordered_map<std::string, std::string> attrs_;
};

MXReturnValue createOpState(const std::unordered_map<std::string, std::string>& attrs,
                            const MXContext& ctx,
                            const std::vector<std::vector<unsigned int>>& in_shapes,
                            const std::vector<int> in_types,
                            CustomStatefulOp** op_inst) {
  std::string serialized_subgraph = "[empty]";
  if (attrs.count(MX_STR_SUBGRAPH_SYM_JSON)) {
    serialized_subgraph = attrs.at(MX_STR_SUBGRAPH_SYM_JSON);
  }
  std::unordered_map<std::string, std::string> attrs_cpy = attrs;
  attrs_cpy.erase(MX_STR_SUBGRAPH_SYM_JSON);
  *op_inst = CustomStatefulOp::create<MyStatefulOp>(serialized_subgraph, attrs_cpy);
  std::cout << "Info: stateful operator created" << std::endl;
  return MX_SUCCESS;
}

REGISTER_OP(_custom_subgraph_op).setIsSubgraphOp().setCreateOpState(createOpState, "cpu");

const std::vector<std::string> op_names({"exp", "log"});

MXReturnValue mySupportedOps(const mxnet::ext::Graph* graph,
                             std::vector<int>* ids,
                             const std::unordered_map<std::string, std::string>& options) {
  for (const auto& kv : options) std::cout << "option: " << kv.first << " ==> " << kv.second << std::endl;
  for (size_t i = 0; i < graph->size(); i++) {
    const mxnet::ext::Node* node = graph->getNode(i);
    int dtype = -1;
    if (node->attrs.count(MX_STR_DTYPE) > 0) dtype = std::stoi(getDtypeAt(node->attrs.at(MX_STR_DTYPE), 0));
    if (node->attrs.count(MX_STR_SHAPE) > 0)
      std::cout << "shape of " << node->name << ": " << getShapeAt(node->attrs.at(MX_STR_SHAPE), 0) << std::endl;
    if ((dtype == kFloat32 && options.count("reqFloat") > 0) || options.count("reqFloat") == 0) {
      if (std::find(op_names.begin(), op_names.end(), node->op) != op_names.end()) {
        ids->at(i) = options.count("colour") > 0 ? (node->op == "exp" ? 1 : 2) : -1;
      }
    }
  }
  return MX_SUCCESS;
}

MXReturnValue myReviewSubgraph(const mxnet::ext::Graph* subgraph,
                               int subgraph_id,
                               bool* accept,
                               const std::unordered_map<std::string, std::string>& options,
                               std::unordered_map<std::string, std::string>* attrs) {
  std::string sg = subgraph->toString();
  std::cout << "subgraph " << subgraph_id << ": " << std::endl << sg << std::endl;
  for (const mxnet::ext::Node* input : subgraph->inputs)
    std::cout << "input " << input->name << " known: " << (input->tensor != nullptr) << std::endl;
  if (options.count("reject") > 0 && options.at("reject").compare("True") == 0) {
    *accept = false;
    std::cout << "rejecting subgraph" << std::endl;
  } else {
    *accept = true;
    std::cout << "accepting subgraph" << std::endl;
    attrs->emplace("myKey", "myVal");
  }
  return MX_SUCCESS;
}

REGISTER_PARTITIONER(myProp)
    .addStrategy("strategy1", "_custom_subgraph_op")
    .setSupportedOps("strategy1", mySupportedOps)
    .setReviewSubgraph("strategy1", myReviewSubgraph);

class MySelector : public CustomOpSelector {
 public:
  MySelector(const mxnet::ext::Graph* graph, const std::unordered_map<std::string, std::string>& options)
      : graph_(graph), options_(options) {}
  bool chooseNode(int nodeID) {
    const mxnet::ext::Node* node = graph_->getNode(nodeID);
    return std::find(op_names.begin(), op_names.end(), node->op) != op_names.end();
  }
  virtual bool Select(int nodeID) { return chooseNode(nodeID); }
  virtual bool SelectInput(int nodeID, int input_nodeID) { return chooseNode(input_nodeID); }
  virtual bool SelectOutput(int nodeID, int output_nodeID) { return chooseNode(output_nodeID); }
  virtual void Filter(const std::vector<int>& candidates, std::vector<int>* keep) {
    if (options_.count("throw") > 0) throw std::runtime_error("no filter today");
    const size_t most = options_.count("most") > 0 ? std::stoul(options_.at("most")) : candidates.size();
    keep->insert(keep->end(), candidates.begin(), candidates.begin() + std::min(most, candidates.size()));
  }
  virtual void Reset() {}

 private:
  const mxnet::ext::Graph* graph_;
  const std::unordered_map<std::string, std::string> options_;
};

MXReturnValue createSelector(const mxnet::ext::Graph* graph,
                             CustomOpSelector** sel_inst,
                             const std::unordered_map<std::string, std::string>& options) {
  *sel_inst = new MySelector(graph, options);
  return MX_SUCCESS;
}

REGISTER_PARTITIONER(mySelect)
    .addStrategy("strategy1", "_custom_subgraph_op")
    .setCreateSelector("strategy1", createSelector)
    .setReviewSubgraph("strategy1", myReviewSubgraph);

MXReturnValue addInputPass(mxnet::ext::Graph* graph, const std::unordered_map<std::string, std::string>& options) {
  for (size_t i = 0; i < graph->size(); i++) {
    mxnet::ext::Node* n = graph->getNode(i);
    if (n->op.compare("_custom_subgraph_op") == 0) {
      n->attrs[MX_STR_EXTRA_INPUTS] = std::to_string(1);
      mxnet::ext::Node* input = graph->addNode(n->name + "_input", "null");
      graph->inputs.push_back(input);
      input->outputs.push_back({n, static_cast<int>(n->inputs.size())});
      n->inputs.push_back({input, 0});
      input->alloc_arg({1}, MXContext::CPU(0), kFloat32);
      input->tensor->data<float>()[0] = 7;
    }
  }
  return MX_SUCCESS;
}

REGISTER_PASS(addInputPass).setBody(addInputPass);

MXReturnValue initialize(int version) {
  if (version >= 10700) {
    std::cout << "MXNet version " << version << " supported" << std::endl;
    return MX_SUCCESS;
  }
  MX_ERROR_MSG << "MXNet version " << version << " not supported by custom library" << std::endl;
  return MX_FAIL;
}
