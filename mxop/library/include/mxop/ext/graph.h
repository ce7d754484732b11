/* Graphs, as passes and partitioners see them: nodes with inputs, outputs and attributes, read from and written to JSON. */
#ifndef MXOP_EXT_GRAPH_H_
#define MXOP_EXT_GRAPH_H_

#include <memory>

#include "json.h"
#include "tensor.h"

namespace mxnet {
namespace ext {

/* Makes new arguments and auxiliary states while a pass runs. */
class PassResource {
 public:
  explicit PassResource(const MXOPGraph* graph) : graph_(graph) {}
  MXTensor* alloc_arg(const std::string& name, const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype) const {
    return alloc(name, shape, ctx, dtype, 0);
  }
  MXTensor* alloc_aux(const std::string& name, const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype) const {
    return alloc(name, shape, ctx, dtype, 1);
  }

 private:
  MXTensor* alloc(const std::string& name, const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype,
                  int is_aux) const {
    const MXOPTensor* made = nullptr;
    if (graph_->new_param != nullptr)
      made = graph_->new_param(graph_->call, name.c_str(), static_cast<int32_t>(shape.size()), shape.data(), dtype,
                               ctx.dev_type == "gpu" ? MXOP_GPU : MXOP_CPU, ctx.dev_id, is_aux);
    if (made == nullptr) throw std::runtime_error("no new parameter '" + name + "' can be made here");
    tensors_.emplace_back(new MXTensor(made->data, shape, dtype, 0, ctx));
    return tensors_.back().get();
  }
  const MXOPGraph* graph_;
  mutable std::vector<std::unique_ptr<MXTensor>> tensors_;
};

class Node;
class Graph;

/* An input (the node that makes it, which of its outputs) or a use (the node that takes it, as which of its inputs). */
struct NodeEntry {
  Node* node;
  int entry;
};

class Node {
 public:
  Node() : tensor(nullptr), res_(nullptr) {}

  void _setPassResource(PassResource* res) { res_ = res; }

  /* Make this variable a new argument, or auxiliary state, that the graph brings along. */
  void alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype) {
    tensor = resource().alloc_arg(name, shape, ctx, dtype);
  }
  void alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype) {
    tensor = resource().alloc_aux(name, shape, ctx, dtype);
  }

  std::string op; /* "null" for variables */
  std::string name;
  MXTensor* tensor; /* of variables, where it is known */
  std::vector<NodeEntry> inputs;
  std::vector<NodeEntry> outputs;
  std::vector<Graph*> subgraphs;
  std::unordered_map<std::string, std::string> attrs;

 private:
  const PassResource& resource() const {
    if (res_ == nullptr) throw std::runtime_error("node '" + name + "': parameters can be made in graph passes only");
    return *res_;
  }
  PassResource* res_;
};

class Graph {
 public:
  Graph() : res_(nullptr) {}
  ~Graph() {
    for (Node* node : nodes_) delete node;
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  static Graph* fromString(const std::string& json) { return fromJson(JsonVal::parse(json)); }
  static Graph* fromJson(JsonVal val);
  JsonVal toJson() const;
  std::string toString() const { return toJson().dump(); }

  /* Visit `n` after everything that uses it. */
  void _dfs_util(Node* n, std::unordered_set<Node*>* to_visit, std::function<void(Node*)> handler) const {
    to_visit->erase(n);
    for (const NodeEntry& use : n->outputs)
      if (to_visit->count(use.node) != 0) _dfs_util(use.node, to_visit, handler);
    handler(n);
  }

  /* Visit all nodes, each after those that use its outputs. */
  void DFS(std::function<void(Node*)> handler) const {
    std::unordered_set<Node*> to_visit(nodes_.begin(), nodes_.end());
    for (const std::vector<Node*>& starts : {inputs, nodes_})
      for (size_t i = starts.size(); i-- > 0;) /* from the last, so that going backwards has them in order */
        if (to_visit.count(starts[i]) != 0) _dfs_util(starts[i], &to_visit, handler);
  }

  /* All nodes in the order of DFS, as in MXNet: results first, so that going backwards is the order of execution. */
  std::vector<Node*> topological_sort() const {
    std::vector<Node*> sorted;
    sorted.reserve(nodes_.size());
    DFS([&](Node* n) { sorted.push_back(n); });
    return sorted;
  }

  void print(int indent = 0) const;

  Node* addNode(const std::string& name, const std::string& op) {
    nodes_.push_back(new Node());
    nodes_.back()->name = name;
    nodes_.back()->op = op;
    nodes_.back()->_setPassResource(res_);
    return nodes_.back();
  }

  Node* getNode(size_t idx) { return nodes_.at(idx); }
  const Node* getNode(size_t idx) const { return nodes_.at(idx); }
  const JsonVal& getAttr(const std::string& key) const { return attrs.at(key); }
  size_t size() const { return nodes_.size(); }

  void _setPassResource(PassResource* res) {
    res_ = res;
    for (Node* node : nodes_) node->_setPassResource(res);
  }

  void _setParams(std::unordered_map<std::string, MXTensor>* args, std::unordered_map<std::string, MXTensor>* aux) {
    for (Node* node : inputs)
      for (std::unordered_map<std::string, MXTensor>* params : {args, aux})
        if (params->count(node->name) != 0) node->tensor = &params->at(node->name);
  }

  std::vector<Node*> inputs;
  std::vector<NodeEntry> outputs;
  std::map<std::string, JsonVal> attrs; /* whatever else the JSON says about the graph */

 private:
  static const JsonVal* find(const JsonVal& map, const char* key, JsonType type) {
    const auto at = map.map.find(JsonVal(std::string(key)));
    return at == map.map.end() || at->second.type != type ? nullptr : &at->second;
  }
  Node* node_at(const JsonVal& reference, size_t limit) const {
    const bool whole = reference.type == LIST && !reference.list.empty() && reference.list[0].type == NUM;
    const int id = whole ? reference.list[0].num : reference.type == NUM ? reference.num : -1;
    if (id < 0 || static_cast<size_t>(id) >= limit) throw std::runtime_error("graph JSON: there is no node " + reference.dump());
    return nodes_[static_cast<size_t>(id)];
  }
  static int entry_of(const JsonVal& reference) { return reference.list.size() > 1 ? reference.list[1].num : 0; }
  void read_node(const JsonVal& val);
  std::vector<const Node*> in_order() const;

  std::vector<Node*> nodes_;
  std::vector<std::unique_ptr<Graph>> subgraphs_;
  PassResource* res_;
};

inline void Graph::read_node(const JsonVal& val) {
  const JsonVal *op = find(val, "op", STR), *name = find(val, "name", STR), *from = find(val, "inputs", LIST);
  if (op == nullptr || name == nullptr) throw std::runtime_error("graph JSON: a node has no op or no name");
  const size_t before = nodes_.size();
  Node* node = addNode(name->str, op->str);
  if (from != nullptr)
    for (const JsonVal& reference : from->list) {
      Node* source = node_at(reference, before);
      const int entry = entry_of(reference);
      source->outputs.push_back({node, static_cast<int>(node->inputs.size())});
      node->inputs.push_back({source, entry});
    }
  for (const char* key : {"param", "attr", "attrs"}) /* the names it had over the years */
    if (const JsonVal* found = find(val, key, MAP))
      for (const std::pair<const JsonVal, JsonVal>& pair : found->map)
        node->attrs[pair.first.str] = pair.second.type == STR ? pair.second.str : pair.second.dump();
  if (const JsonVal* found = find(val, "subgraphs", LIST))
    for (const JsonVal& subgraph : found->list) {
      subgraphs_.emplace_back(fromJson(subgraph));
      node->subgraphs.push_back(subgraphs_.back().get());
    }
}

inline Graph* Graph::fromJson(JsonVal val) {
  std::unique_ptr<Graph> graph(new Graph());
  const JsonVal* nodes = find(val, "nodes", LIST);
  if (nodes == nullptr) throw std::runtime_error("graph JSON: it has no nodes");
  for (const JsonVal& node : nodes->list) graph->read_node(node);
  if (const JsonVal* found = find(val, "arg_nodes", LIST))
    for (const JsonVal& reference : found->list) graph->inputs.push_back(graph->node_at(reference, graph->size()));
  if (const JsonVal* found = find(val, "heads", LIST))
    for (const JsonVal& reference : found->list)
      graph->outputs.push_back({graph->node_at(reference, graph->size()), entry_of(reference)});
  for (const std::pair<const JsonVal, JsonVal>& pair : val.map)
    if (pair.first.str != "nodes" && pair.first.str != "arg_nodes" && pair.first.str != "heads" &&
        pair.first.str != "node_row_ptr")
      graph->attrs[pair.first.str] = pair.second;
  return graph.release();
}

/* The nodes as they were added, but each after its inputs. */
inline std::vector<const Node*> Graph::in_order() const {
  std::vector<const Node*> order;
  std::unordered_map<const Node*, size_t> visited; /* how many inputs were looked at */
  for (const Node* start : nodes_) {
    std::vector<const Node*> pending;
    if (visited.emplace(start, 0).second) pending.push_back(start);
    while (!pending.empty()) {
      const Node* node = pending.back();
      size_t& at = visited[node];
      if (at >= node->inputs.size()) {
        at = static_cast<size_t>(-1); /* done */
        order.push_back(node);
        pending.pop_back();
        continue;
      }
      const Node* input = node->inputs[at++].node;
      const auto known = visited.emplace(input, 0);
      if (known.second)
        pending.push_back(input);
      else if (known.first->second != static_cast<size_t>(-1))
        throw std::runtime_error("the graph has a cycle through node '" + input->name + "'");
    }
  }
  return order;
}

inline JsonVal Graph::toJson() const {
  const auto text = [](const std::string& s) { return JsonVal(s); };
  const auto list = [](std::initializer_list<int> numbers) {
    JsonVal result(LIST);
    for (int number : numbers) result.list.push_back(JsonVal(number));
    return result;
  };
  const std::vector<const Node*> order = in_order();
  std::unordered_map<const Node*, int> ids;
  for (const Node* node : order) ids.emplace(node, static_cast<int>(ids.size()));
  const auto entry = [&](const NodeEntry& e) { return list({ids.at(e.node), e.entry, 0}); };

  JsonVal result(MAP), nodes(LIST), arg_nodes(LIST), heads(LIST), row_ptr(LIST);
  for (const Node* node : order) {
    JsonVal one(MAP), inputs_(LIST);
    one.map[text("op")] = text(node->op);
    one.map[text("name")] = text(node->name);
    for (const NodeEntry& input : node->inputs) inputs_.list.push_back(entry(input));
    one.map[text("inputs")] = inputs_;
    if (!node->attrs.empty()) {
      JsonVal found(MAP);
      for (const std::pair<const std::string, std::string>& pair : node->attrs)
        found.map[text(pair.first)] = text(pair.second);
      one.map[text("attrs")] = found;
    }
    if (!node->subgraphs.empty()) {
      JsonVal found(LIST);
      for (const Graph* subgraph : node->subgraphs) found.list.push_back(subgraph->toJson());
      one.map[text("subgraphs")] = found;
    }
    row_ptr.list.push_back(JsonVal(static_cast<int>(nodes.list.size())));
    nodes.list.push_back(one);
  }
  row_ptr.list.push_back(JsonVal(static_cast<int>(nodes.list.size())));
  for (const Node* node : inputs) arg_nodes.list.push_back(JsonVal(ids.at(node)));
  for (const NodeEntry& output : outputs) heads.list.push_back(entry(output));
  for (const std::pair<const std::string, JsonVal>& pair : attrs) result.map[text(pair.first)] = pair.second;
  result.map[text("nodes")] = nodes;
  result.map[text("arg_nodes")] = arg_nodes;
  result.map[text("heads")] = heads;
  result.map[text("node_row_ptr")] = row_ptr;
  return result;
}

inline void Graph::print(int indent) const {
  const std::string space(static_cast<size_t>(indent), ' ');
  std::cout << space << "########### Graph #############" << std::endl;
  std::cout << space << "attributes:" << std::endl;
  for (const std::pair<const std::string, JsonVal>& pair : attrs)
    std::cout << space << "  " << pair.first << " : " << pair.second.toString() << std::endl;
  std::cout << space << "inputs:" << std::endl;
  for (const Node* node : inputs) std::cout << space << "  " << node->name << std::endl;
  std::cout << space << "outputs:" << std::endl;
  for (const NodeEntry& output : outputs)
    std::cout << space << "  " << output.node->name << "[" << output.entry << "]" << std::endl;
  std::cout << space << "nodes:" << std::endl;
  const std::vector<Node*> sorted = topological_sort();
  for (size_t i = sorted.size(); i-- > 0;) {
    std::cout << space << "  " << sorted[i]->op << " " << sorted[i]->name << "(";
    for (const NodeEntry& input : sorted[i]->inputs) std::cout << " " << input.node->name << "[" << input.entry << "]";
    std::cout << " )" << std::endl;
    for (const std::pair<const std::string, std::string>& pair : sorted[i]->attrs)
      std::cout << space << "    " << pair.first << " : " << pair.second << std::endl;
    for (const Graph* subgraph : sorted[i]->subgraphs) subgraph->print(indent + 4);
  }
  std::cout << space << "###############################" << std::endl;
}

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_GRAPH_H_ */
