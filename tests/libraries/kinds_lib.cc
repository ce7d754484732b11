// One operator for each thing that a library may do: parameters, states, several outputs, types, shapes both ways, chains of
// gradients, exceptions, and functions that disturb what they are given.
#include <cmath>
#include <stdexcept>
#include <string>

#include "mxop/lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Attrs;
typedef std::vector<MXTensor> Tensors;
typedef std::vector<std::vector<unsigned int>> Shapes;
typedef std::vector<std::vector<int64_t>> Shapes64;

static std::string get(const Attrs& attrs, const char* name, const char* otherwise) {
  return attrs.count(name) ? attrs.at(name) : otherwise;
}

template <int n_in, int n_out>
MXReturnValue counts(const Attrs&, int* num_in, int* num_out) {
  *num_in = n_in;
  *num_out = n_out;
  return MX_SUCCESS;
}

MXReturnValue float32_only(const Attrs&, std::vector<int>* in, std::vector<int>* out) {
  for (std::vector<int>* types : {in, out})
    for (int& type : *types) {
      if (type != -1 && type != kFloat32) {
        MX_ERROR_MSG << "Expected float32";
        return MX_FAIL;
      }
      type = kFloat32;
    }
  return MX_SUCCESS;
}

// ---- any number of inputs: scale * (x0 + x1 + ...)

MXReturnValue sum_parse(const Attrs& attrs, int* num_in, int* num_out) {
  *num_in = std::stoi(get(attrs, "num_args", "2"));
  *num_out = 1;
  return MX_SUCCESS;
}
MXReturnValue sum_forward(const Attrs& attrs, Tensors* in, Tensors* out, const OpResource&) {
  const float scale = std::stof(get(attrs, "scale", "1"));
  float* y = out->at(0).data<float>();
  for (int64_t i = 0; i < out->at(0).size(); ++i) {
    float sum = 0;  // not in y, which other threads may write to
    for (MXTensor& x : *in) sum += scale * x.data<float>()[i];
    y[i] = sum;
  }
  return MX_SUCCESS;
}
MXReturnValue sum_backward(const Attrs& attrs, Tensors* in, Tensors* out, const OpResource&) {
  const float scale = std::stof(get(attrs, "scale", "1"));
  for (MXTensor& g : *out)
    for (int64_t i = 0; i < g.size(); ++i) g.data<float>()[i] = scale * in->at(0).data<float>()[i];
  return MX_SUCCESS;
}
REGISTER_OP(lib_sum).setInferType(float32_only).setParseAttrs(sum_parse).setForward(sum_forward, "cpu").setBackward(sum_backward, "cpu");

// ---- two outputs, each with a gradient: x + 1 and 2 * x

MXReturnValue pair_forward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  for (int64_t i = 0; i < in->at(0).size(); ++i) {
    out->at(0).data<float>()[i] = in->at(0).data<float>()[i] + 1;
    out->at(1).data<float>()[i] = in->at(0).data<float>()[i] * 2;
  }
  return MX_SUCCESS;
}
MXReturnValue pair_backward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  if (in->size() != 2 + 1 + 2 || out->size() != 1) {
    MX_ERROR_MSG << "backward gets " << in->size() << " inputs";
    return MX_FAIL;
  }
  for (int64_t i = 0; i < out->at(0).size(); ++i)
    out->at(0).data<float>()[i] = in->at(0).data<float>()[i] + 2 * in->at(1).data<float>()[i];
  return MX_SUCCESS;
}
REGISTER_OP(lib_pair).setInferType(float32_only).setParseAttrs(counts<1, 2>).setForward(pair_forward, "cpu").setBackward(pair_backward, "cpu");

// ---- a state between two inputs: y = a + count + b, and count goes up

MXReturnValue counter_forward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  float* count = in->at(1).data<float>();
  for (int64_t i = 0; i < out->at(0).size(); ++i)
    out->at(0).data<float>()[i] = in->at(0).data<float>()[i] + count[0] + in->at(2).data<float>()[i];
  count[0] += 1;
  return MX_SUCCESS;
}
MXReturnValue counter_backward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  for (int k : {0, 2})
    for (int64_t i = 0; i < out->at(k).size(); ++i) out->at(k).data<float>()[i] = (k + 1) * in->at(0).data<float>()[i];
  return MX_SUCCESS;
}
MXReturnValue counter_shape(const Attrs&, Shapes* in, Shapes* out) {
  in->at(1) = {1};
  if (in->at(2).empty()) in->at(2) = in->at(0);
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}
MXReturnValue counter_mutates(const Attrs&, std::vector<int>* indices) {
  indices->push_back(1);
  return MX_SUCCESS;
}
REGISTER_OP(lib_counter).setInferType(float32_only)
    .setParseAttrs(counts<3, 1>)
    .setInferShape(counter_shape)
    .setMutateInputs(counter_mutates)
    .setForward(counter_forward, "cpu")
    .setBackward(counter_backward, "cpu")
    .setInputNames("a, count, b")
    .setDoc("a + count + b, and one more in count.");

// ---- a copy of any type

MXReturnValue copy_forward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  const MXTensor& x = in->at(0);
  if (x.dltensor.data != x.data_ptr || x.dltensor.shape != x.shape.data() || x.dltensor.ndim != int(x.shape.size()) ||
      x.dltensor.strides != nullptr || x.ctx.dev_type != "cpu" || x.stype != kDefaultStorage ||
      out->at(0).dtype != x.dtype || out->at(0).isSame(x) || !x.isSame(in->at(0)))
    throw std::runtime_error("a tensor is not described as it should be");
  memcpy(out->at(0).data<char>(), x.data<char>(), static_cast<size_t>(x.size()) * x.dltensor.dtype.bits / 8);
  return MX_SUCCESS;
}
REGISTER_OP(lib_copy).setForward(copy_forward, "cpu");

// ---- shapes of int64_t: the sum of all elements, of shape (); and types: float64 of anything

MXReturnValue total_shape(const Attrs&, Shapes64*, Shapes64* out) {
  out->at(0) = {};
  return MX_SUCCESS;
}
MXReturnValue total_type(const Attrs&, std::vector<int>*, std::vector<int>* out) {
  out->at(0) = kFloat64;
  return MX_SUCCESS;
}
MXReturnValue total_forward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  double total = 0;
  for (int64_t i = 0; i < in->at(0).size(); ++i)
    total += in->at(0).dtype == kInt32 ? in->at(0).data<int>()[i] : in->at(0).data<float>()[i];
  out->at(0).data<double>()[0] = total;
  return MX_SUCCESS;
}
REGISTER_OP(lib_total).setInferShape(total_shape).setInferType(total_type).setForward(total_forward, "cpu");

MXReturnValue huge_shape(const Attrs&, Shapes64* in, Shapes64* out) {
  out->at(0) = {static_cast<int64_t>(in->at(0).size())};
  return MX_SUCCESS;
}
REGISTER_OP(lib_rank).setInferShape(huge_shape).setForward(total_forward, "cpu");

// ---- completes the shapes of its weight, and of its data from its output

MXReturnValue dense_shape(const Attrs& attrs, Shapes* in, Shapes* out) {
  const unsigned hidden = static_cast<unsigned>(std::stoul(get(attrs, "hidden", "0")));
  std::vector<unsigned>&x = in->at(0), &w = in->at(1), &y = out->at(0);
  if (x.empty()) x = {0, 0};
  if (y.size() == 2 && x[0] == 0) x[0] = y[0];
  if (w.size() == 2 && x[1] == 0) x[1] = w[1];
  w = {hidden, x[1]};
  y = {x[0], hidden};
  return MX_SUCCESS;
}
MXReturnValue dense_forward(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  const int64_t n = in->at(0).shape[0], k = in->at(0).shape[1], m = in->at(1).shape[0];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += in->at(0).data<float>()[i * k + l] * in->at(1).data<float>()[j * k + l];
      out->at(0).data<float>()[i * m + j] = sum;
    }
  return MX_SUCCESS;
}
REGISTER_OP(lib_dense).setInferType(float32_only)
    .setParseAttrs(counts<2, 1>)
    .setInferShape(dense_shape)
    .setForward(dense_forward, "cpu")
    .setInputNames("data,weight");

// ---- a chain of gradients, by name: x**3, whose gradient is _backward_lib_cube, whose gradient is lib_cube_second

MXReturnValue cube(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  for (int64_t i = 0; i < out->at(0).size(); ++i) out->at(0).data<float>()[i] = std::pow(in->at(0).data<float>()[i], 3.f);
  return MX_SUCCESS;
}
// inputs: head, x, y; output: 3 x^2 head
MXReturnValue cube_first(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  for (int64_t i = 0; i < out->at(0).size(); ++i)
    out->at(0).data<float>()[i] = 3 * std::pow(in->at(1).data<float>()[i], 2.f) * in->at(0).data<float>()[i];
  return MX_SUCCESS;
}
// inputs: head of that, then head, x, y, then its output; outputs: gradients of head, x, y
MXReturnValue cube_second(const Attrs&, Tensors* in, Tensors* out, const OpResource&) {
  for (int64_t i = 0; i < out->at(0).size(); ++i) {
    const float g = in->at(0).data<float>()[i], head = in->at(1).data<float>()[i], x = in->at(2).data<float>()[i];
    out->at(0).data<float>()[i] = 3 * x * x * g;
    out->at(1).data<float>()[i] = 6 * x * head * g;
    out->at(2).data<float>()[i] = 0;
  }
  return MX_SUCCESS;
}
REGISTER_OP(lib_cube).setInferType(float32_only).setForward(cube, "cpu");
REGISTER_OP(_backward_lib_cube).setInferType(float32_only)
    .setParseAttrs(counts<3, 1>)
    .setForward(cube_first, "cpu")
    .setGradient("lib_cube_second");
REGISTER_OP(lib_cube_second).setInferType(float32_only).setParseAttrs(counts<5, 3>).setForward(cube_second, "cpu");

// the same, where the gradient of the gradient is a backward function
REGISTER_OP(lib_cube2).setInferType(float32_only).setForward(cube, "cpu").setBackward(cube_first, "cpu").setGradient("lib_cube2_first");
REGISTER_OP(lib_cube2_first).setInferType(float32_only)
    .setParseAttrs(counts<3, 1>)
    .setForward(cube_first, "cpu")
    .setBackward(cube_second, "cpu");

// ---- functions that fail

static MXReturnValue misbehave(const std::string& how) {
  if (how == "throw") throw std::runtime_error("thrown by the library");
  if (how == "throw int") throw 42;
  if (how == "out of range") std::vector<int>().at(5);
  if (how == "fail") {
    MX_ERROR_MSG << "first reason " << 1 << std::endl;
    MX_ERROR_MSG << "second reason";
    return MX_FAIL;
  }
  if (how == "silent") return MX_FAIL;
  if (how == "warn") MX_ERROR_MSG << "not an error after all";
  return MX_SUCCESS;
}
MXReturnValue bad_parse(const Attrs& attrs, int* num_in, int* num_out) {
  *num_in = std::stoi(get(attrs, "num_in", "1"));
  *num_out = std::stoi(get(attrs, "num_out", "1"));
  return misbehave(get(attrs, "parse", ""));
}
MXReturnValue bad_type(const Attrs& attrs, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = attrs.count("dtype") ? std::stoi(attrs.at("dtype")) : in->at(0);
  if (attrs.count("more_types")) out->push_back(0);
  return misbehave(get(attrs, "type", ""));
}
MXReturnValue bad_shape(const Attrs& attrs, Shapes* in, Shapes* out) {
  out->at(0) = in->at(0);
  if (attrs.count("dim")) out->at(0) = {static_cast<unsigned>(std::stol(attrs.at("dim")))};
  if (attrs.count("rank")) out->at(0).assign(static_cast<size_t>(std::stoi(attrs.at("rank"))), 1u);
  if (attrs.count("more_shapes")) in->resize(100);
  if (attrs.count("unset")) out->at(0).clear();
  if (attrs.count("other_input")) in->at(0) = {12345};
  return misbehave(get(attrs, "shape", ""));
}
MXReturnValue bad_mutate(const Attrs& attrs, std::vector<int>* indices) {
  if (attrs.count("mutate")) indices->push_back(std::stoi(attrs.at("mutate")));
  if (attrs.count("mutate_many")) indices->assign(100000, 0);
  return misbehave(get(attrs, "mutates", ""));
}
MXReturnValue bad_forward(const Attrs& attrs, Tensors* in, Tensors* out, const OpResource& res) {
  if (attrs.count("alloc")) {
    char* memory = static_cast<char*>(res.alloc_cpu(std::stoll(attrs.at("alloc"))));
    memory[0] = 1;
  }
  if (attrs.count("sparse")) res.alloc_sparse(nullptr, 0, 0);
  for (int64_t i = 0; i < in->at(0).size(); ++i) out->at(0).data<float>()[i] = in->at(0).data<float>()[i];
  if (attrs.count("disturb")) {  // the next call gets what it should all the same
    in->at(0).shape.clear();
    in->at(0).dtype = kInt8;
    in->at(0).ctx = MXContext::GPU(3);
    out->at(0).data_ptr = nullptr;
    out->at(0).stype = kCSRStorage;
    in->clear();
    out->resize(5);
  }
  return misbehave(get(attrs, "forward", ""));
}
MXReturnValue bad_backward(const Attrs& attrs, Tensors* in, Tensors* out, const OpResource&) {
  for (int64_t i = 0; i < out->at(0).size(); ++i) out->at(0).data<float>()[i] = in->at(0).data<float>()[i];
  return misbehave(get(attrs, "backward", ""));
}
REGISTER_OP(lib_bad)
    .setParseAttrs(bad_parse)
    .setInferType(bad_type)
    .setInferShape(bad_shape)
    .setMutateInputs(bad_mutate)
    .setForward(bad_forward, "cpu")
    .setBackward(bad_backward, "cpu");

// ---- states: made, failing to be made, not made, without a backward

class Shifter : public CustomStatefulOp {
 public:
  explicit Shifter(float by) : by_(by) {}
  MXReturnValue Forward(Tensors* in, Tensors* out, const OpResource& res) override {
    for (int64_t i = 0; i < in->at(0).size(); ++i)
      out->at(0).data<float>()[i] = in->at(0).data<float>()[i] + by_ + (res.is_train() ? 1000 : 0);
    by_ += 1;
    return MX_SUCCESS;
  }

 private:
  float by_;
};
MXReturnValue shifter_state(const Attrs& attrs, const MXContext& ctx, const Shapes64& shapes, const std::vector<int> types,
                            CustomStatefulOp** op) {
  const std::string how = get(attrs, "state", "");
  if (how == "none") return MX_SUCCESS;
  if (ctx.dev_type != "cpu" || types.size() != 1) throw std::runtime_error("wrong context");
  *op = CustomStatefulOp::create<Shifter>(static_cast<float>(shapes.at(0).size()));
  return misbehave(how);
}
REGISTER_OP(lib_shifter).setInferType(float32_only).setCreateOpState(shifter_state, "cpu");

MXReturnValue short_state(const Attrs&, CustomStatefulOp** op) {
  *op = new Shifter(0.5f);
  return MX_SUCCESS;
}
REGISTER_OP(lib_short_state).setInferType(float32_only).setCreateOpState(short_state, "cpu");

// ---- sparse arrays, which are refused

MXReturnValue sparse_types(const Attrs&, std::vector<int>* in, std::vector<int>* out) {
  if (in->at(0) != kCSRStorage) {
    MX_ERROR_MSG << "Expected csr storage";
    return MX_FAIL;
  }
  out->at(0) = kCSRStorage;
  return MX_SUCCESS;
}
MXReturnValue dense_or_sparse(const Attrs& attrs, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = attrs.count("sparse") ? kRowSparseStorage : in->at(0);
  return MX_SUCCESS;
}
REGISTER_OP(lib_csr).setInferSType(sparse_types).setForward(copy_forward, "cpu");
REGISTER_OP(lib_any_storage).setInferSType(dense_or_sparse).setForward(copy_forward, "cpu");

// ---- one for the GPU only

REGISTER_OP(lib_gpu_only).setForward(copy_forward, "gpu");

// no initialize: it may be missing
