// What mxop calls instead of a library's functions: it owns the AotExtra, catches exceptions, and turns C++ values into C.
// Compiled once, on first use, against mxop/custom_aot_extra.h; ctypes calls the functions at the end.
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxop/custom_aot_extra.h"

namespace {

struct Attribute {
  MxopAotAttr view{};
  std::vector<int64_t> ints, rows;
  std::vector<double> floats;
  std::vector<std::string> texts;
  std::vector<const char *> pointers;
};

struct Extra : AotExtra {
  Extra();
  ~Extra() { Drop(); }
  void Drop() {
    if (data != nullptr && destroy != nullptr) destroy(data);
    data = nullptr;
  }
  std::map<std::string, std::unique_ptr<Attribute>> attributes;
  std::vector<size_t> sizes;
  void *data = nullptr;
  void (*destroy)(void *) = nullptr;
};

const MxopAotAttr *FindAttr(const AotExtra *extra, const char *name) {
  const auto &all = static_cast<const Extra *>(extra)->attributes;
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second->view;
}
void SetWorkspace(AotExtra *extra, const size_t *sizes, size_t n) {
  static_cast<Extra *>(extra)->sizes.assign(sizes, sizes + n);
}
const size_t *Workspace(const AotExtra *extra, size_t *n) {
  const auto &sizes = static_cast<const Extra *>(extra)->sizes;
  *n = sizes.size();
  return sizes.data();
}
void SetKernelData(AotExtra *extra, void *data, void (*destroy)(void *)) {
  Extra *self = static_cast<Extra *>(extra);
  if (self->data == data) return;
  self->Drop();
  self->data = data;
  self->destroy = destroy;
}
void *KernelData(const AotExtra *extra) { return static_cast<const Extra *>(extra)->data; }

const MxopAotTable kTable = {sizeof(MxopAotTable), FindAttr, SetWorkspace, Workspace, SetKernelData, KernelData};

Extra::Extra() : AotExtra(&kTable) {}

// Runs `call`; writes what it threw into `error` and returns false.
template <typename Call>
bool Guarded(char *error, size_t room, Call call) {
  std::string text = "it threw something that is no std::exception";
  try {
    call();
    return true;
  } catch (const std::exception &problem) {
    text = problem.what();
  } catch (...) {
  }
  std::strncpy(error, text.c_str(), room - 1);
  error[room - 1] = 0;
  return false;
}

constexpr int kThrew = -2147483647;

}  // namespace

extern "C" {

void *mxop_aot_extra_new() { return new Extra; }
void mxop_aot_extra_free(void *extra) { delete static_cast<Extra *>(extra); }

void mxop_aot_extra_attr(void *extra, const char *name, char kind, int64_t size, const int64_t *ints, const double *floats,
                         const char *const *texts, int64_t n_rows, const int64_t *rows) {
  std::unique_ptr<Attribute> a(new Attribute);
  a->view.kind = kind;
  a->view.size = size;
  a->view.n_rows = n_rows;
  if (rows != nullptr) a->rows.assign(rows, rows + n_rows);
  if (ints != nullptr) a->ints.assign(ints, ints + size);
  if (floats != nullptr) a->floats.assign(floats, floats + size);
  if (texts != nullptr) a->texts.assign(texts, texts + size);
  for (const auto &t : a->texts) a->pointers.push_back(t.c_str());
  a->view.ints = ints != nullptr ? a->ints.data() : nullptr;
  a->view.floats = floats != nullptr ? a->floats.data() : nullptr;
  a->view.texts = texts != nullptr ? a->pointers.data() : nullptr;
  a->view.rows = rows != nullptr ? a->rows.data() : nullptr;
  static_cast<Extra *>(extra)->attributes[name] = std::move(a);
}

size_t mxop_aot_extra_workspace(void *extra, size_t *sizes, size_t room) {
  const auto &found = static_cast<Extra *>(extra)->sizes;
  for (size_t k = 0; k < found.size() && k < room; ++k) sizes[k] = found[k];
  return found.size();
}

int mxop_aot_init(void *function, int *ndims, int64_t **shapes, const char **dtypes, void *extra, char *error, size_t room) {
  using Init = int (*)(int *, int64_t **, const char **, AotExtra *);
  int code = kThrew;
  Guarded(error, room, [&] { code = reinterpret_cast<Init>(function)(ndims, shapes, dtypes, static_cast<Extra *>(extra)); });
  return code;
}

// Writes at most `room` sizes and returns their number; kThrew when it threw.
int mxop_aot_infer(void *function, int *ndims, int64_t **shapes, void *extra, int64_t *out, int room_out, char *error,
                   size_t room) {
  using Infer = std::vector<int64_t> (*)(int *, int64_t **, AotExtra *);
  int n = kThrew;
  Guarded(error, room, [&] {
    const std::vector<int64_t> found = reinterpret_cast<Infer>(function)(ndims, shapes, static_cast<Extra *>(extra));
    n = static_cast<int>(found.size());
    for (int k = 0; k < n && k < room_out; ++k) out[k] = found[k];
  });
  return n;
}

int mxop_aot_run(void *function, int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, void *stream,
                 void *extra, char *error, size_t room) {
  using Run = int (*)(int, void **, int *, int64_t **, const char **, void *, void *);
  int code = kThrew;
  Guarded(error, room, [&] {
    AotExtra *base = static_cast<Extra *>(extra);
    code = reinterpret_cast<Run>(function)(nparam, params, ndims, shapes, dtypes, stream, base);
  });
  return code;
}

}  // extern "C"
