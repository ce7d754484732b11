// Squared hinge loss as a C function for MindSpore's Custom: one output, float32.
#include <cstdint>

extern "C" int SquaredHinge(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                            void* stream, void* extra) {
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  const float* data = static_cast<const float*>(params[0]);
  const float* label = static_cast<const float*>(params[1]);
  float* out = static_cast<float*>(params[2]);
  for (int64_t i = 0; i < size; ++i) {
    float short_of_one = 1 - label[i] * data[i];
    out[i] = short_of_one > 0 ? short_of_one * short_of_one : 0;
  }
  return 0;
}
