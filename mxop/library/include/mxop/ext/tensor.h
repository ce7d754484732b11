/* Tensors as operators get them. */
#ifndef MXOP_EXT_TENSOR_H_
#define MXOP_EXT_TENSOR_H_

#include "types.h"

namespace mxnet {
namespace ext {

/* A sparse tensor's parts.  Here so that libraries compile; mxop has dense arrays only and never hands one over. */
struct MXSparse {
  void* data{nullptr};
  int64_t data_len{0};
  int64_t* indices{nullptr};
  int64_t indices_len{0};
  int64_t* indptr{nullptr};
  int64_t indptr_len{0};

  void set(void* data_ptr, const int64_t* dims, int ndims, void* idx, int64_t num_idx, void* idx_ptr = nullptr,
           int64_t num_idx_ptr = 0) {
    data = data_ptr;
    indices = static_cast<int64_t*>(idx);
    indices_len = num_idx;
    indptr = static_cast<int64_t*>(idx_ptr);
    indptr_len = num_idx_ptr;
    data_len = num_idx;
    if (idx_ptr == nullptr) /* row sparse: whole rows */
      for (int i = 1; i < ndims; ++i) data_len *= dims[i];
  }
};

struct MXTensor {
  MXTensor() : data_ptr(nullptr), dtype(kUNSET), verID(0), dltensor(), stype(kDefaultStorage) {}
  MXTensor(const MXTensor& other)
      : data_ptr(other.data_ptr), shape(other.shape), dtype(other.dtype), verID(other.verID), ctx(other.ctx),
        dltensor(other.dltensor), stype(other.stype) {
    dltensor.shape = shape.data();
  }
  MXTensor(void* data_ptr_, std::vector<int64_t> shape_, MXDType dtype_, size_t vID, MXContext mx_ctx,
           MXStorageType stype_ = kDefaultStorage)
      : data_ptr(data_ptr_), shape(std::move(shape_)), dtype(dtype_), verID(vID), ctx(std::move(mx_ctx)), dltensor(),
        stype(stype_) {
    setDLTensor();
  }
  MXTensor& operator=(const MXTensor& other) {
    if (this != &other) {
      data_ptr = other.data_ptr;
      shape = other.shape;
      dtype = other.dtype;
      verID = other.verID;
      ctx = other.ctx;
      dltensor = other.dltensor;
      dltensor.shape = shape.data();
      stype = other.stype;
    }
    return *this;
  }

  void setTensor(void* dptr, MXDType type, const int64_t* dims, int ndims, size_t vID, MXContext mx_ctx,
                 MXStorageType storage_type) {
    data_ptr = dptr;
    dtype = type;
    verID = vID;
    ctx = std::move(mx_ctx);
    stype = storage_type;
    shape.assign(dims, dims + ndims);
    setDLTensor();
  }

  /* Fill `dltensor` from the other fields. */
  void setDLTensor() {
    const bool gpu = ctx.dev_type == "gpu";
    dltensor.data = data_ptr;
    dltensor.ndim = static_cast<int>(shape.size());
    dltensor.shape = shape.data();
    dltensor.strides = nullptr;
    dltensor.byte_offset = 0;
    dltensor.dtype.lanes = 1;
    setDLType();
#if defined(DLPACK_MAJOR_VERSION)
    dltensor.device.device_type = static_cast<DLDeviceType>(gpu ? 2 : 1);
    dltensor.device.device_id = ctx.dev_id;
#else
    dltensor.ctx.device_type = gpu ? kDLGPU : kDLCPU;
    dltensor.ctx.device_id = ctx.dev_id;
#endif
  }

  template <typename data_type>
  inline data_type* data() {
    return reinterpret_cast<data_type*>(data_ptr);
  }

  template <typename data_type>
  inline const data_type* data() const {
    return reinterpret_cast<const data_type*>(data_ptr);
  }

  /* The number of elements. */
  int64_t size() const {
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    return count;
  }

  /* Whether both are the same memory, of the same form, unchanged since. */
  bool isSame(const MXTensor& other) const {
    return data_ptr == other.data_ptr && dtype == other.dtype && verID == other.verID && stype == other.stype &&
           ctx.dev_type == other.ctx.dev_type && ctx.dev_id == other.ctx.dev_id && shape == other.shape;
  }

  void* data_ptr;             /* the first element; elements lie in C order */
  std::vector<int64_t> shape;
  MXDType dtype;
  size_t verID;               /* changes when the elements may have changed */
  MXContext ctx;
  DLTensor dltensor;          /* the same, for functions that take DLPack's tensors */
  MXStorageType stype;

 private:
  void setDLType() {
    switch (dtype) {
      case kFloat16: return set(kDLFloat, 16);
      case kFloat32: return set(kDLFloat, 32);
      case kFloat64: return set(kDLFloat, 64);
      case kBfloat16: return set(4, 16);
      case kUint8: return set(kDLUInt, 8);
      case kBool: return set(kDLUInt, 8);
      case kInt8: return set(kDLInt, 8);
      case kInt32: return set(kDLInt, 32);
      case kInt64: return set(kDLInt, 64);
      default: throw std::runtime_error("MXTensor: unknown dtype " + std::to_string(static_cast<int>(dtype)));
    }
  }
  void set(int code, int bits) {
    dltensor.dtype.code = static_cast<uint8_t>(code);
    dltensor.dtype.bits = static_cast<uint8_t>(bits);
  }
};

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_TENSOR_H_ */
