// Graph passes: one that changes nothing, one that exchanges operators, ones that add parameters, ones that fail.
#include <iostream>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

MXReturnValue myPass(mxnet::ext::Graph* g, const std::unordered_map<std::string, std::string>& options) {
  for (const auto& kv : options) std::cout << "option: " << kv.first << " ==> " << kv.second << std::endl;
  g->print();
  return MX_SUCCESS;
}
REGISTER_PASS(myPass).setBody(myPass);

MXReturnValue jsonPass(mxnet::ext::Graph* g, const std::unordered_map<std::string, std::string>& options) {
  // a graph out of the JSON of a graph is the same graph
  JsonVal json = JsonVal::parse(g->toString());
  if (json.type != MAP || json.map.count(JsonVal("nodes")) == 0) {
    MX_ERROR_MSG << "no nodes";
    return MX_FAIL;
  }
  mxnet::ext::Graph* again = mxnet::ext::Graph::fromJson(json);
  const bool same = again->toString() == g->toString() && JsonVal::parse(json.dump()).toString() == json.toString();
  delete again;
  if (!same) {
    MX_ERROR_MSG << "the graph is another one now";
    return MX_FAIL;
  }
  std::vector<Node*> order = g->topological_sort();
  std::unordered_set<Node*> seen;
  for (size_t i = order.size(); i-- > 0;) {
    for (const NodeEntry& input : order[i]->inputs)
      if (seen.count(input.node) == 0) throw std::runtime_error("not in order");
    seen.insert(order[i]);
  }
  std::cout << "version " << g->getAttr("attrs").toString() << std::endl;
  return seen.size() == g->size() ? MX_SUCCESS : MX_FAIL;
}
REGISTER_PASS(jsonPass).setBody(jsonPass);

MXReturnValue exchange(mxnet::ext::Graph* g, const Options& options) {
  for (size_t i = 0; i < g->size(); i++)
    if (g->getNode(i)->op == options.at("from")) g->getNode(i)->op = options.at("to");
  return MX_SUCCESS;
}
REGISTER_PASS(exchange).setBody(exchange);

// every variable that is given becomes twice itself, a new parameter
MXReturnValue fold(mxnet::ext::Graph* g, const Options&) {
  for (Node* input : g->inputs) {
    if (input->tensor == nullptr) continue;
    MXTensor* old = input->tensor;
    input->name += "_twice";
    input->alloc_arg(old->shape, old->ctx, old->dtype);
    for (int64_t i = 0; i < old->size(); i++) input->tensor->data<float>()[i] = 2 * old->data<float>()[i];
  }
  return MX_SUCCESS;
}
REGISTER_PASS(fold).setBody(fold);

MXReturnValue fails(mxnet::ext::Graph* g, const Options& options) {
  const std::string how = options.count("how") ? options.at("how") : "";
  if (how == "throw") throw std::runtime_error("no pass today");
  if (how == "fail") MX_ERROR_MSG << "a reason";
  if (how == "unknown") g->getNode(1)->op = "no_such_operator";
  if (how == "cut") g->getNode(g->size() - 1)->inputs.clear();
  if (how == "cycle") {
    Node* last = g->getNode(g->size() - 1);
    last->inputs[0].node->inputs[0] = {last, 0};
  }
  if (how == "node") g->getNode(1000);
  if (how == "alloc") g->getNode(0)->alloc_arg({-1}, MXContext::CPU(), kFloat32);
  if (how == "type") g->getNode(0)->alloc_arg({1}, MXContext::CPU(), kUNSET);
  if (how == "no heads") g->outputs.clear();
  return how == "fail" ? MX_FAIL : MX_SUCCESS;
}
REGISTER_PASS(fails).setBody(fails);

MXReturnValue initialize(int) { return MX_SUCCESS; }
