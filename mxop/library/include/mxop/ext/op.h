/* Operators: the functions that users write, and the object that they register them with. */
#ifndef MXOP_EXT_OP_H_
#define MXOP_EXT_OP_H_

#include "error.h"
#include "resource.h"
#include "tensor.h"

#include <functional>
#include <map>

namespace mxnet {
namespace ext {

#define MX_STR_SUBGRAPH_SYM_JSON "subgraph_sym_json"
#define MX_STR_DTYPE "__ext_dtype__"
#define MX_STR_SHAPE "__ext_shape__"
#define MX_STR_EXTRA_INPUTS "__ext_extra_inputs__"

/* An operator that keeps something between forward and backward. */
class CustomStatefulOp {
 public:
  CustomStatefulOp() : ignore_warn(false), created_(false) {}
  virtual ~CustomStatefulOp() {}

  /* Make one; MXNet asks users to do it this way. */
  template <class A, typename... Ts>
  static CustomStatefulOp* create(Ts... args) {
    CustomStatefulOp* op = new A(args...);
    op->created_ = true;
    return op;
  }

  bool wasCreated() { return created_; }

  virtual MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs, const OpResource& op_res) {
    return Forward(*inputs, *outputs, op_res);
  }
  virtual MXReturnValue Backward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs, const OpResource& op_res) {
    return Backward(*inputs, *outputs, op_res);
  }

  /* As MXNet 1.6 and 1.7 had them. */
  virtual MXReturnValue Forward(std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource op_res) {
    return absent("forward", inputs, outputs, op_res);
  }
  virtual MXReturnValue Backward(std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource op_res) {
    return absent("backward", inputs, outputs, op_res);
  }

  bool ignore_warn;

 private:
  static MXReturnValue absent(const char* what, const std::vector<MXTensor>&, const std::vector<MXTensor>&,
                              const OpResource&) {
    MX_ERROR_MSG << "Error! Operator does not support " << what << std::endl;
    return MX_FAIL;
  }

  bool created_;
};

typedef MXReturnValue (*fcomp_t)(const MXAttrs& attributes, std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                                 const OpResource& res);
typedef MXReturnValue (*parseAttrs_t)(const MXAttrs& attributes, int* num_inputs, int* num_outputs);
typedef MXReturnValue (*inferType_t)(const MXAttrs& attributes, std::vector<int>* in_types, std::vector<int>* out_types);
typedef MXReturnValue (*inferSType_t)(const MXAttrs& attributes, std::vector<int>* in_storage_types,
                                      std::vector<int>* out_storage_types);
typedef MXReturnValue (*inferShape_t)(const MXAttrs& attributes, std::vector<std::vector<unsigned int>>* in_shapes,
                                      std::vector<std::vector<unsigned int>>* out_shapes);
typedef MXReturnValue (*inferShape64_t)(const MXAttrs& attributes, std::vector<std::vector<int64_t>>* in_shapes,
                                        std::vector<std::vector<int64_t>>* out_shapes);
typedef MXReturnValue (*mutateInputs_t)(const MXAttrs& attributes, std::vector<int>* input_indices);
typedef MXReturnValue (*createOpState_t)(const MXAttrs& attributes, const MXContext& ctx,
                                         const std::vector<std::vector<unsigned int>>& in_shapes,
                                         const std::vector<int> in_types, CustomStatefulOp** op);
typedef MXReturnValue (*createOpState64_t)(const MXAttrs& attributes, const MXContext& ctx,
                                           const std::vector<std::vector<int64_t>>& in_shapes,
                                           const std::vector<int> in_types, CustomStatefulOp** op);
typedef MXReturnValue (*createOpStateShort_t)(const MXAttrs& attributes, CustomStatefulOp** op); /* MXNet 1.7 */

/* The same functions as MXNet 1.6 and 1.7 had them: attributes ordered and by value, vectors by value or reference. */
namespace v17 {
typedef std::map<std::string, std::string> Attrs;
typedef std::vector<std::vector<unsigned int>> Shapes;
typedef MXReturnValue (*fcomp_t)(Attrs, std::vector<MXTensor>, std::vector<MXTensor>, OpResource);
typedef MXReturnValue (*parseAttrs_t)(Attrs, int*, int*);
typedef MXReturnValue (*inferType_t)(Attrs, std::vector<int>&, std::vector<int>&);
typedef MXReturnValue (*inferShape_t)(Attrs, Shapes&, Shapes&);
typedef MXReturnValue (*mutateInputs_t)(Attrs, std::vector<int>&);
typedef MXReturnValue (*createOpState_t)(Attrs, CustomStatefulOp**);
inline Attrs ordered(const MXAttrs& attrs) { return Attrs(attrs.begin(), attrs.end()); }
}  // namespace v17

/* One registered operator.  Mistakes in its registration are kept in `problem` and reported when the library is loaded. */
class CustomOp {
 public:
  explicit CustomOp(const char* op_name) : name(op_name) {}

  CustomOp& setForward(fcomp_t fcomp, const char* ctx = "cpu") { return put(&forward, fcomp, ctx, "setForward"); }
  CustomOp& setForward(v17::fcomp_t fcomp, const char* ctx = "cpu") { return put(&forward, adapted(fcomp), ctx, "setForward"); }
  CustomOp& setBackward(fcomp_t fgrad, const char* ctx = "cpu") { return put(&backward, fgrad, ctx, "setBackward"); }
  CustomOp& setBackward(v17::fcomp_t fgrad, const char* ctx = "cpu") {
    return put(&backward, adapted(fgrad), ctx, "setBackward");
  }
  CustomOp& setParseAttrs(parseAttrs_t func) { return parse_attrs = func, *this; }
  CustomOp& setParseAttrs(v17::parseAttrs_t func) {
    parse_attrs = [func](const MXAttrs& attrs, int* inputs, int* outputs) {
      return func(v17::ordered(attrs), inputs, outputs);
    };
    return *this;
  }
  CustomOp& setInferType(inferType_t func) { return infer_type = func, *this; }
  CustomOp& setInferType(v17::inferType_t func) {
    infer_type = [func](const MXAttrs& attrs, std::vector<int>* inputs, std::vector<int>* outputs) {
      return func(v17::ordered(attrs), *inputs, *outputs);
    };
    return *this;
  }
  CustomOp& setInferSType(inferSType_t func) { return infer_storage_type = func, *this; }
  CustomOp& setInferShape(inferShape_t func) { return infer_shape = func, *this; }
  CustomOp& setInferShape(inferShape64_t func) { return infer_shape64 = func, *this; }
  CustomOp& setInferShape(v17::inferShape_t func) {
    infer_shape = [func](const MXAttrs& attrs, v17::Shapes* inputs, v17::Shapes* outputs) {
      return func(v17::ordered(attrs), *inputs, *outputs);
    };
    return *this;
  }
  CustomOp& setMutateInputs(mutateInputs_t func) { return mutate_inputs = func, *this; }
  CustomOp& setMutateInputs(v17::mutateInputs_t func) {
    mutate_inputs = [func](const MXAttrs& attrs, std::vector<int>* indices) { return func(v17::ordered(attrs), *indices); };
    return *this;
  }
  CustomOp& setCreateOpState(createOpState_t func, const char* ctx) {
    return put(&create_op, func, ctx, "setCreateOpState");
  }
  CustomOp& setCreateOpState(createOpState64_t func, const char* ctx) {
    return put(&create_op64, func, ctx, "setCreateOpState");
  }
  CustomOp& setCreateOpState(createOpStateShort_t func, const char* ctx) {
    return put(&create_op_short, func, ctx, "setCreateOpState");
  }
  CustomOp& setCreateOpState(v17::createOpState_t func, const char* ctx = "cpu") {
    return put(&create_op_short, [func](const MXAttrs& attrs, CustomStatefulOp** op) { return func(v17::ordered(attrs), op); },
               ctx, "setCreateOpState");
  }
  CustomOp& setIsSubgraphOp() { return isSGop = true, *this; }

  /* Not in MXNet.  The registered operator that computes this one's gradient: its inputs are those of setBackward's
   * function.  It may have a gradient itself, so this one can be differentiated as often as the chain is long.  An operator
   * named _backward_<name> is taken without being told. */
  CustomOp& setGradient(const char* op_name) { return gradient = op_name, *this; }
  CustomOp& setDoc(const char* text) { return doc = text, *this; }
  /* "data, weight": names instead of data0, data1... */
  CustomOp& setInputNames(const char* names) { return input_names = names, *this; }

  template <typename Pointer>
  using Function = std::function<typename std::remove_pointer<Pointer>::type>;

  template <typename F>
  struct ByDevice {
    F cpu = nullptr, gpu = nullptr;
    const F& on(int device) const { return device == MXOP_GPU ? gpu : cpu; }
    explicit operator bool() const { return cpu != nullptr || gpu != nullptr; }
  };

  const char* name;
  const char *gradient = nullptr, *doc = nullptr, *input_names = nullptr;
  Function<parseAttrs_t> parse_attrs;
  Function<inferType_t> infer_type;
  inferSType_t infer_storage_type = nullptr;
  Function<inferShape_t> infer_shape;
  inferShape64_t infer_shape64 = nullptr;
  Function<mutateInputs_t> mutate_inputs;
  bool isSGop = false;
  ByDevice<Function<fcomp_t>> forward, backward;
  ByDevice<createOpState_t> create_op;
  ByDevice<createOpState64_t> create_op64;
  ByDevice<Function<createOpStateShort_t>> create_op_short;
  std::string problem;

 private:
  static Function<fcomp_t> adapted(v17::fcomp_t func) {
    return [func](const MXAttrs& attrs, std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs, const OpResource& res) {
      return func(v17::ordered(attrs), *inputs, *outputs, res);
    };
  }
  template <typename F, typename G>
  CustomOp& put(ByDevice<F>* functions, G function, const char* ctx, const char* what) {
    const std::string device = ctx ? ctx : "";
    F* place = device == "cpu" ? &functions->cpu : device == "gpu" ? &functions->gpu : nullptr;
    if (place == nullptr)
      complain(std::string(what) + ": context '" + device + "'; expected \"cpu\" or \"gpu\"");
    else if (*place != nullptr)
      complain(std::string(what) + " is called twice for context '" + device + "'");
    else
      *place = function;
    return *this;
  }
  void complain(const std::string& text) { problem += (problem.empty() ? "" : "; ") + text; }
};

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_OP_H_ */
