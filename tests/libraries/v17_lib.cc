// Operators as libraries for MXNet 1.6 and 1.7 have them: no namespace, ordered attributes, vectors by value and reference.
#include "lib_api.h"

typedef std::map<std::string, std::string> Attrs;

static float factor(const Attrs& attrs) { return attrs.count("by") ? std::stof(attrs.at("by")) : 2.0f; }

static void times(MXTensor from, MXTensor to, float by) {
  for (int64_t i = 0; i < from.size(); ++i) to.data<float>()[i] = by * from.data<float>()[i];
}

MXReturnValue forward(Attrs attrs, std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource) {
  return times(inputs[0], outputs[0], factor(attrs)), MX_SUCCESS;
}

MXReturnValue backward(Attrs attrs, std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource) {
  return times(inputs[0], outputs[0], factor(attrs)), MX_SUCCESS;
}

MXReturnValue parseAttrs(Attrs attrs, int* num_in, int* num_out) {
  *num_in = *num_out = 1;
  return attrs.count("bad") ? MX_FAIL : MX_SUCCESS;
}

MXReturnValue inferType(Attrs, std::vector<int>& intypes, std::vector<int>& outtypes) {
  outtypes[0] = intypes[0];
  return intypes[0] == kFloat32 ? MX_SUCCESS : MX_FAIL;
}

MXReturnValue inferShape(Attrs, std::vector<std::vector<unsigned int>>& inshapes,
                         std::vector<std::vector<unsigned int>>& outshapes) {
  return outshapes[0] = inshapes[0], MX_SUCCESS;
}

REGISTER_OP(v17_times)
    .setForward(forward)
    .setBackward(backward, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferShape(inferShape);

class Counter : public CustomStatefulOp {
 public:
  explicit Counter(int count) : count_(count) {}
  MXReturnValue Forward(std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource) {
    return times(inputs[0], outputs[0], static_cast<float>(++count_)), MX_SUCCESS;
  }

 private:
  int count_;
};

MXReturnValue createOpState(Attrs attrs, CustomStatefulOp** op) {
  *op = new Counter(attrs.count("from") ? std::stoi(attrs["from"]) : 0);
  return MX_SUCCESS;
}

REGISTER_OP(v17_count)
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferShape(inferShape)
    .setCreateOpState(createOpState);

MXReturnValue addTo(Attrs, std::vector<MXTensor> inputs, std::vector<MXTensor> outputs, OpResource) {
  for (int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].data<float>()[i] += 1;
  return times(inputs[0], outputs[0], 1), MX_SUCCESS;
}

MXReturnValue mutateInputs(Attrs, std::vector<int>& indices) { return indices.push_back(0), MX_SUCCESS; }

REGISTER_OP(v17_add_to).setForward(addTo, "cpu").setInferShape(inferShape).setMutateInputs(mutateInputs);

MXReturnValue initialize(int version) { return version >= 10600 ? MX_SUCCESS : MX_FAIL; }
