/* An operator as a table of the C ABI: the functions here are called by mxop, and call the user's. */
#ifndef MXOP_EXT_EXPORT_OP_H_
#define MXOP_EXT_EXPORT_OP_H_

#include "registry.h"

namespace mxnet {
namespace ext {
namespace detail PRIVATE_SYMBOL {

inline const CustomOp& op_of(const MXOPOperator* self) { return *static_cast<const CustomOp*>(self->user); }

/* The parameters of a call, parsed into a map once, and kept as long as mxop keeps them. */
struct Bound {
  MXAttrs attrs;
};

inline const MXAttrs& attrs_of(void* bound) { return static_cast<Bound*>(bound)->attrs; }

inline MXReturnValue complain(const std::string& text) {
  MXerrorMsgs::get()->add("", 0).str(text);
  return MX_FAIL;
}

/* ---- parameters ------------------------------------------------------------------------------------------------ */

inline int bind(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                int32_t* n_outputs) noexcept {
  return guarded([&] {
    const CustomOp& op = op_of(self);
    std::unique_ptr<Bound> made(new Bound());
    for (int32_t i = 0; i < n_attrs; ++i) made->attrs[attrs[i].key] = attrs[i].value;
    int inputs = op.isSGop ? -1 : 1, outputs = op.isSGop ? -1 : 1;
    if (op.parse_attrs != nullptr && op.parse_attrs(made->attrs, &inputs, &outputs) != MX_SUCCESS) return MX_FAIL;
    *n_inputs = inputs;
    *n_outputs = outputs;
    *bound = made.release();
    return MX_SUCCESS;
  });
}

inline void unbind(const MXOPOperator*, void* bound) noexcept { delete static_cast<Bound*>(bound); }

/* ---- inference ------------------------------------------------------------------------------------------------- */

typedef std::function<MXReturnValue(const MXAttrs&, std::vector<int>*, std::vector<int>*)> InferCodes;

inline MXReturnValue infer_codes(const InferCodes& function, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                                 int32_t* outputs) {
  std::vector<int> ins(inputs, inputs + n_inputs), outs(outputs, outputs + n_outputs);
  if (function(attrs_of(bound), &ins, &outs) != MX_SUCCESS) return MX_FAIL;
  if (ins.size() != static_cast<size_t>(n_inputs) || outs.size() != static_cast<size_t>(n_outputs))
    return complain("it changed the number of inputs or outputs");
  std::copy(ins.begin(), ins.end(), inputs);
  std::copy(outs.begin(), outs.end(), outputs);
  return MX_SUCCESS;
}

inline int infer_type(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                      int32_t* outputs) noexcept {
  return guarded([&] { return infer_codes(op_of(self).infer_type, bound, n_inputs, inputs, n_outputs, outputs); });
}

inline int infer_storage(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                         int32_t* outputs) noexcept {
  return guarded([&] { return infer_codes(op_of(self).infer_storage_type, bound, n_inputs, inputs, n_outputs, outputs); });
}

/* How unknown dimensions and ranks are written in vectors of each type of dimension. */
template <typename Dim>
struct ShapeForm;

template <>
struct ShapeForm<unsigned int> {
  static unsigned int unknown_dim() { return 0; }
  static void set_unknown_rank(std::vector<unsigned int>* shape) { shape->clear(); }
  static bool unknown_rank(const std::vector<unsigned int>& shape, bool scalars) { return shape.empty() && !scalars; }
  static unsigned int to(int64_t dim) {
    if (dim > INT64_C(0xFFFFFFFF))
      throw std::runtime_error("a dimension of " + std::to_string(dim) +
                               " does not fit unsigned int: let setInferShape have a function over int64_t shapes");
    return static_cast<unsigned int>(dim);
  }
  static int64_t from(unsigned int dim) {
    if (dim > 0xFFFFFF00u) throw std::runtime_error("it inferred a negative dimension, " + std::to_string(int32_t(dim)));
    return static_cast<int64_t>(dim);
  }
};

template <>
struct ShapeForm<int64_t> {
  static int64_t unknown_dim() { return kUnknownDim; }
  static void set_unknown_rank(std::vector<int64_t>* shape) { shape->assign(1, kUnknownRank); }
  static bool unknown_rank(const std::vector<int64_t>& shape, bool) {
    return shape.size() == 1 && shape[0] == kUnknownRank;
  }
  static int64_t to(int64_t dim) { return dim; }
  static int64_t from(int64_t dim) { return dim; }
};

inline bool complete(int32_t n, const MXOPShape* shapes) {
  for (int32_t i = 0; i < n; ++i) {
    if (shapes[i].ndim < 0) return false;
    for (int32_t k = 0; k < shapes[i].ndim; ++k)
      if (shapes[i].dims[k] < 0) return false;
  }
  return true;
}

template <typename Dim>
inline std::vector<std::vector<Dim>> to_vectors(int32_t n, const MXOPShape* shapes) {
  typedef ShapeForm<Dim> Form;
  std::vector<std::vector<Dim>> result(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) {
    std::vector<Dim>& one = result[static_cast<size_t>(i)];
    one.assign(16, 0); /* users index shapes that are not known yet: let them read zeros */
    one.clear();
    if (shapes[i].ndim < 0) Form::set_unknown_rank(&one);
    for (int32_t k = 0; k < shapes[i].ndim; ++k)
      one.push_back(shapes[i].dims[k] < 0 ? Form::unknown_dim() : Form::to(shapes[i].dims[k]));
  }
  return result;
}

template <typename Dim>
inline void from_vectors(const std::vector<std::vector<Dim>>& vectors, bool literal, bool scalars, MXOPShape* shapes) {
  typedef ShapeForm<Dim> Form;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const std::vector<Dim>& one = vectors[i];
    if (Form::unknown_rank(one, scalars)) {
      shapes[i].ndim = -1;
      continue;
    }
    if (one.size() > static_cast<size_t>(shapes[i].capacity))
      throw std::runtime_error("it inferred a shape of " + std::to_string(one.size()) + " dimensions");
    shapes[i].ndim = static_cast<int32_t>(one.size());
    for (size_t k = 0; k < one.size(); ++k)
      shapes[i].dims[k] = one[k] == Form::unknown_dim() && !literal ? -1 : Form::from(one[k]);
  }
}

template <typename Dim, typename F>
inline MXReturnValue infer_shapes(const F& function, void* bound, int32_t n_inputs, MXOPShape* inputs, int32_t n_outputs,
                                  MXOPShape* outputs) {
  /* With all inputs known, 0 is a size, and where one of them is a scalar, () is a shape: otherwise they are MXNet's "not
   * known". */
  const bool literal = complete(n_inputs, inputs);
  bool scalars = false;
  for (int32_t i = 0; i < n_inputs; ++i) scalars = scalars || (literal && inputs[i].ndim == 0);
  std::vector<std::vector<Dim>> ins = to_vectors<Dim>(n_inputs, inputs), outs = to_vectors<Dim>(n_outputs, outputs);
  if (function(attrs_of(bound), &ins, &outs) != MX_SUCCESS) return MX_FAIL;
  if (ins.size() != static_cast<size_t>(n_inputs) || outs.size() != static_cast<size_t>(n_outputs))
    return complain("it changed the number of inputs or outputs");
  from_vectors(ins, literal, scalars, inputs);
  from_vectors(outs, literal, scalars, outputs);
  return MX_SUCCESS;
}

inline int infer_shape(const MXOPOperator* self, void* bound, int32_t n_inputs, MXOPShape* inputs, int32_t n_outputs,
                       MXOPShape* outputs) noexcept {
  return guarded([&] {
    const CustomOp& op = op_of(self);
    if (op.infer_shape64 != nullptr)
      return infer_shapes<int64_t>(op.infer_shape64, bound, n_inputs, inputs, n_outputs, outputs);
    return infer_shapes<unsigned int>(op.infer_shape, bound, n_inputs, inputs, n_outputs, outputs);
  });
}

inline int mutated_inputs(const MXOPOperator* self, void* bound, int32_t capacity, int32_t* positions,
                          int32_t* count) noexcept {
  return guarded([&] {
    std::vector<int> found;
    if (op_of(self).mutate_inputs(attrs_of(bound), &found) != MX_SUCCESS) return MX_FAIL;
    if (found.size() > static_cast<size_t>(capacity)) return complain("it names more inputs than there are");
    std::copy(found.begin(), found.end(), positions);
    *count = static_cast<int32_t>(found.size());
    return MX_SUCCESS;
  });
}

/* ---- execution ------------------------------------------------------------------------------------------------- */

inline int create_state(const MXOPOperator* self, void* bound, int32_t device_type, int32_t device_id, int32_t n_inputs,
                        const MXOPShape* shapes, const int32_t* types, void** state) noexcept {
  return guarded([&] {
    const CustomOp& op = op_of(self);
    const MXAttrs& attrs = attrs_of(bound);
    const MXContext ctx(device_type == MXOP_GPU ? "gpu" : "cpu", device_id);
    const std::vector<int> kinds(types, types + n_inputs);
    CustomStatefulOp* made = nullptr;
    MXReturnValue done;
    if (op.create_op64.on(device_type) != nullptr)
      done = op.create_op64.on(device_type)(attrs, ctx, to_vectors<int64_t>(n_inputs, shapes), kinds, &made);
    else if (op.create_op.on(device_type) != nullptr)
      done = op.create_op.on(device_type)(attrs, ctx, to_vectors<unsigned int>(n_inputs, shapes), kinds, &made);
    else
      done = op.create_op_short.on(device_type)(attrs, &made);
    *state = made;
    if (done == MX_SUCCESS && made == nullptr) return complain("createOpState returned no object");
    return done;
  });
}

inline void destroy_state(const MXOPOperator*, void* state) noexcept {
  guarded([&] { return delete static_cast<CustomStatefulOp*>(state), MX_SUCCESS; });
}

/* The vectors of one call, kept for the next one. */
struct Frame {
  std::vector<MXTensor> inputs, outputs;
};

inline bool same_form(const MXTensor& tensor, const MXOPTensor& given) {
  return tensor.dtype == static_cast<MXDType>(given.dtype) && tensor.stype == kDefaultStorage &&
         tensor.ctx.dev_id == given.device_id && tensor.ctx.dev_type == (given.device_type == MXOP_GPU ? "gpu" : "cpu") &&
         tensor.shape.size() == static_cast<size_t>(given.ndim) &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), given.shape);
}

inline void refresh(std::vector<MXTensor>* tensors, MXOPTensor* const* given, int32_t n) {
  if (tensors->size() != static_cast<size_t>(n)) tensors->assign(static_cast<size_t>(n), MXTensor());
  for (int32_t i = 0; i < n; ++i) {
    MXTensor& tensor = (*tensors)[static_cast<size_t>(i)];
    const MXOPTensor& from = *given[i];
    if (same_form(tensor, from)) { /* whatever the user's function did to it the last time */
      tensor.data_ptr = tensor.dltensor.data = from.data;
      tensor.dltensor.shape = tensor.shape.data();
      tensor.verID = static_cast<size_t>(from.version);
    } else {
      tensor.setTensor(from.data, static_cast<MXDType>(from.dtype), from.shape, from.ndim, static_cast<size_t>(from.version),
                       MXContext(from.device_type == MXOP_GPU ? "gpu" : "cpu", from.device_id), kDefaultStorage);
    }
  }
}

inline int run(const MXOPOperator* self, void* bound, MXOPRun* run) noexcept {
  return guarded([&] {
    Frame* frame = static_cast<Frame*>(*run->frame);
    if (frame == nullptr) *run->frame = frame = new Frame();
    refresh(&frame->inputs, run->inputs, run->n_inputs);
    refresh(&frame->outputs, run->outputs, run->n_outputs);
    const OpResource resource(run);
    const bool backward = (run->flags & MXOP_RUN_BACKWARD) != 0;
    if (run->state != nullptr) {
      CustomStatefulOp* state = static_cast<CustomStatefulOp*>(run->state);
      return backward ? state->Backward(&frame->inputs, &frame->outputs, resource)
                      : state->Forward(&frame->inputs, &frame->outputs, resource);
    }
    const CustomOp& op = op_of(self);
    return (backward ? op.backward : op.forward).on(run->device_type)(attrs_of(bound), &frame->inputs, &frame->outputs, resource);
  });
}

inline void release_frame(const MXOPOperator*, void* frame) noexcept { delete static_cast<Frame*>(frame); }

/* ---- the table ------------------------------------------------------------------------------------------------- */

struct OpTable {
  typedef CustomOp Entry;
  MXOPOperator table;

  explicit OpTable(CustomOp* op) : table() {
    const bool cpu_state = op->create_op.cpu || op->create_op64.cpu || op->create_op_short.cpu;
    const bool gpu_state = op->create_op.gpu || op->create_op64.gpu || op->create_op_short.gpu;
    table.struct_size = sizeof(table);
    table.functions = (op->forward.cpu || cpu_state ? MXOP_FORWARD_CPU : 0) |
                      (op->forward.gpu || gpu_state ? MXOP_FORWARD_GPU : 0) |
                      (op->backward.cpu || cpu_state ? MXOP_BACKWARD_CPU : 0) |
                      (op->backward.gpu || gpu_state ? MXOP_BACKWARD_GPU : 0) | (cpu_state ? MXOP_STATE_CPU : 0) |
                      (gpu_state ? MXOP_STATE_GPU : 0) | (op->isSGop ? MXOP_SUBGRAPH : 0);
    table.name = op->name;
    table.doc = op->doc;
    table.gradient = op->gradient;
    table.input_names = op->input_names;
    table.user = op;
    table.bind = bind;
    table.unbind = unbind;
    if (op->infer_type) table.infer_type = infer_type;
    if (op->infer_shape || op->infer_shape64) table.infer_shape = infer_shape;
    if (op->infer_storage_type) table.infer_storage = infer_storage;
    if (op->mutate_inputs) table.mutated_inputs = mutated_inputs;
    table.create_state = create_state;
    table.destroy_state = destroy_state;
    table.run = run;
    table.release_frame = release_frame;
  }
};

}  // namespace detail
}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_EXPORT_OP_H_ */
