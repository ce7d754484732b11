/* What FuncInit, Func and FuncInferShape of an operator compiled ahead of time may ask and keep.
 *
 * Source compatible with MindSpore's custom_aot_extra.h: attributes of the operator's info, workspaces, and data that Init
 * leaves for Func.  The object behind AotExtra belongs to mxop; all calls to it go through C functions, so that the library
 * and mxop may come from different compilers and C++ libraries.
 *
 *   extern "C" int AddInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra);
 *   extern "C" std::vector<int64_t> AddInferShape(int *ndims, int64_t **shapes, AotExtra *extra);
 *   extern "C" int Add(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
 *                      void *extra);
 */
#ifndef MXOP_CUSTOM_AOT_EXTRA_H_
#define MXOP_CUSTOM_AOT_EXTRA_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/* Data that Init makes and Func uses; derive from it.  Deleted by the library that made it. */
class AotKernelData {
 public:
  AotKernelData() = default;
  virtual ~AotKernelData() = default;
};

class AotExtra;

/* ---- the border: plain C --------------------------------------------------------------------------------------------- */
extern "C" {
/* An attribute: kind is one of "bifs" (bool, int, float, string), "BIFS" (a list of those), "JG" (lists of lists of ints,
 * floats).  Exactly one of the pointers is set; `rows` holds the lengths of the inner lists. */
struct MxopAotAttr {
  char kind;
  int64_t size;
  const int64_t *ints;
  const double *floats;
  const char *const *texts;
  int64_t n_rows;
  const int64_t *rows;
};

struct MxopAotTable {
  uint64_t size; /* of this struct: later versions append */
  const MxopAotAttr *(*attr)(const AotExtra *extra, const char *name);
  void (*set_workspace)(AotExtra *extra, const size_t *sizes, size_t n);
  const size_t *(*workspace)(const AotExtra *extra, size_t *n);
  void (*set_kernel_data)(AotExtra *extra, void *data, void (*destroy)(void *));
  void *(*kernel_data)(const AotExtra *extra);
};
}

/* ---- what an operator sees ------------------------------------------------------------------------------------------- */
class AotExtra {
 public:
  bool HasAttr(const std::string &name) const { return table_->attr(this, name.c_str()) != nullptr; }

  /* The value of an attribute: bool, an integer or floating type, std::string, std::vector of int64_t, float, double, bool
   * or std::string, or std::vector<std::vector<...>> of int64_t, float or double. */
  template <typename T>
  T Attr(const std::string &name) const {
    T value{};
    Read(Find(name), name, &value);
    return value;
  }

  /* Bytes of each workspace; they follow the outputs in the parameters of Func. */
  void SetWorkSpace(const std::vector<size_t> &sizes) { table_->set_workspace(this, sizes.data(), sizes.size()); }
  std::vector<size_t> WorkSpace() const {
    size_t n = 0;
    const size_t *sizes = table_->workspace(this, &n);
    return std::vector<size_t>(sizes, sizes + n);
  }

  void SetKernelData(AotKernelData *data) { table_->set_kernel_data(this, data, &AotExtra::Destroy); }
  AotKernelData *KernelData() const { return static_cast<AotKernelData *>(table_->kernel_data(this)); }
  void DestructKernelData() { SetKernelData(nullptr); }

  explicit AotExtra(const MxopAotTable *table) : table_(table) {}

 private:
  static void Destroy(void *data) { delete static_cast<AotKernelData *>(data); }

  const MxopAotAttr &Find(const std::string &name) const {
    const MxopAotAttr *found = table_->attr(this, name.c_str());
    if (found == nullptr) throw std::runtime_error("the operator has no attribute '" + name + "'");
    return *found;
  }
  static void Expect(const MxopAotAttr &a, const std::string &name, const char *kinds, const char *what) {
    for (const char *k = kinds; *k != 0; ++k) {
      if (a.kind == *k) return;
    }
    throw std::runtime_error("attribute '" + name + "' is no " + what);
  }

  template <typename T>
  static typename std::enable_if<std::is_arithmetic<T>::value>::type Read(const MxopAotAttr &a, const std::string &name,
                                                                          T *value) {
    Expect(a, name, std::is_floating_point<T>::value ? "fi" : std::is_same<T, bool>::value ? "b" : "ib", "number of this type");
    *value = a.floats != nullptr ? static_cast<T>(a.floats[0]) : static_cast<T>(a.ints[0]);
  }
  static void Read(const MxopAotAttr &a, const std::string &name, std::string *value) {
    Expect(a, name, "s", "string");
    *value = a.texts[0];
  }
  template <typename T>
  static typename std::enable_if<std::is_arithmetic<T>::value>::type Read(const MxopAotAttr &a, const std::string &name,
                                                                          std::vector<T> *value) {
    Expect(a, name, std::is_floating_point<T>::value ? "FI" : "IB", "list of this type");
    for (int64_t k = 0; k < a.size; ++k) {
      value->push_back(a.floats != nullptr ? static_cast<T>(a.floats[k]) : static_cast<T>(a.ints[k]));
    }
  }
  static void Read(const MxopAotAttr &a, const std::string &name, std::vector<std::string> *value) {
    if (a.size == 0 && a.kind == 'I') return; /* an empty list has no type */
    Expect(a, name, "S", "list of strings");
    value->assign(a.texts, a.texts + a.size);
  }
  template <typename T>
  static void Read(const MxopAotAttr &a, const std::string &name, std::vector<std::vector<T>> *value) {
    Expect(a, name, std::is_floating_point<T>::value ? "GJ" : "J", "list of lists of this type");
    int64_t at = 0;
    for (int64_t r = 0; r < a.n_rows; ++r) {
      std::vector<T> row;
      for (int64_t k = 0; k < a.rows[r]; ++k, ++at) {
        row.push_back(a.floats != nullptr ? static_cast<T>(a.floats[at]) : static_cast<T>(a.ints[at]));
      }
      value->push_back(row);
    }
  }

  const MxopAotTable *table_;
};

#endif /* MXOP_CUSTOM_AOT_EXTRA_H_ */
