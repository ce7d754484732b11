// Squared hinge loss as an operator of a compiled library, written for MXNet's lib_api.h.
#include <algorithm>

#include "mxnet/lib_api.h"

using namespace mxnet::ext;
using Attributes = std::unordered_map<std::string, std::string>;

MXReturnValue forward(const Attributes& attrs, std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                      const OpResource& res) {
  const float* data = inputs->at(0).data<float>();
  const float* label = inputs->at(1).data<float>();
  float* out = outputs->at(0).data<float>();
  for (int64_t i = 0; i < inputs->at(0).size(); ++i) {
    float short_of_one = std::max(1 - label[i] * data[i], 0.0f);
    out[i] = short_of_one * short_of_one;
  }
  return MX_SUCCESS;
}

MXReturnValue backward(const Attributes& attrs, std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                       const OpResource& res) {
  const float* head = inputs->at(0).data<float>();
  const float* data = inputs->at(1).data<float>();
  const float* label = inputs->at(2).data<float>();
  float* data_grad = outputs->at(0).data<float>();
  float* label_grad = outputs->at(1).data<float>();
  for (int64_t i = 0; i < inputs->at(1).size(); ++i) {
    float slope = -2 * std::max(1 - label[i] * data[i], 0.0f) * head[i];
    data_grad[i] = slope * label[i];
    label_grad[i] = slope * data[i];
  }
  return MX_SUCCESS;
}

MXReturnValue parseAttrs(const Attributes& attrs, int* num_in, int* num_out) {
  *num_in = 2;
  *num_out = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const Attributes& attrs, std::vector<int>* intypes, std::vector<int>* outtypes) {
  for (int type : *intypes) {
    if (type != kFloat32) {
      MX_ERROR_MSG << "squared_hinge_library: expected float32";
      return MX_FAIL;
    }
  }
  outtypes->at(0) = kFloat32;
  return MX_SUCCESS;
}

MXReturnValue inferShape(const Attributes& attrs, std::vector<std::vector<unsigned int>>* inshapes,
                         std::vector<std::vector<unsigned int>>* outshapes) {
  outshapes->at(0) = inshapes->at(0);
  return MX_SUCCESS;
}

REGISTER_OP(squared_hinge_library)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferShape(inferShape);

MXReturnValue initialize(int version) { return MX_SUCCESS; }
