/* Enumerations, device contexts and DLPack's tensor, as libraries see them. */
#ifndef MXOP_EXT_TYPES_H_
#define MXOP_EXT_TYPES_H_

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#if defined(__NVCC__)
#include <cuda_runtime.h>
#include <curand_kernel.h>
#endif

#include "../abi.h"

/* What holds one library's own data must not be merged with that of another library of the process. */
#if defined(_WIN32)
#define PRIVATE_SYMBOL
#else
#define PRIVATE_SYMBOL __attribute__((visibility("hidden")))
#endif

#if !defined(DLPACK_VERSION) && !defined(DLPACK_MAJOR_VERSION)
#define DLPACK_VERSION 020
extern "C" {
typedef enum {
  kDLCPU = 1,
  kDLGPU = 2,
  kDLCPUPinned = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLExtDev = 12,
} DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int device_id;
} DLContext;
typedef enum { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U } DLDataTypeCode;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLContext ctx;
  int ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* nullptr: C order */
  uint64_t byte_offset;
} DLTensor;
} /* extern "C" */
#endif

namespace mxnet {
namespace ext {

/* Element types. */
enum MXDType {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kBfloat16 = 12,
  kUNSET = 100,
};

/* How elements are stored.  mxop's arrays are dense. */
enum MXStorageType { kDefaultStorage = 0, kRowSparseStorage = 1, kCSRStorage = 2 };

enum MXReturnValue { MX_FAIL = 0, MX_SUCCESS = 1 };

/* In int64_t shapes: a dimension that is not known yet, and (as the only element) a shape of unknown rank.  In shapes of
 * `unsigned int` these are, as in MXNet, 0 and an empty vector. */
enum : int64_t { kUnknownDim = -1, kUnknownRank = -2 };

/* Where a tensor lies: "cpu" or "gpu", and which one. */
struct MXContext {
  MXContext() : dev_type("error"), dev_id(-1) {}
  explicit MXContext(std::string type, int id) : dev_type(std::move(type)), dev_id(id) {}
  explicit MXContext(const char* type, int id) : dev_type(type), dev_id(id) {}
  static MXContext CPU() { return MXContext("cpu", 0); }
  static MXContext GPU() { return MXContext("gpu", 0); }
  static MXContext CPU(int dev_id) { return MXContext("cpu", dev_id); }
  static MXContext GPU(int dev_id) { return MXContext("gpu", dev_id); }

  std::string dev_type;
  int dev_id;
};

/* Parameters and options, as text. */
typedef std::unordered_map<std::string, std::string> MXAttrs;

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_TYPES_H_ */
