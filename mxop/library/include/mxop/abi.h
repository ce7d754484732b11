/* The C ABI between mxop and a compiled operator library.
 *
 * A library exports one function, `mxop_library_v1`.  mxop calls it once with what it offers and gets a table of what the
 * library has.  Everything is plain C99: no C++ type, no exception, no memory that one side allocates and the other frees,
 * no sizes below 64 bits.  C++ users include "lib_api.h", which fills these tables; C and other languages fill them by hand.
 *
 * How it stays compatible: every table begins with its size as its maker knew it, fields are only ever appended, and a
 * reader looks at a field only if the size covers it (MXOP_HAS).  What cannot be expressed so gets a feature bit: a
 * library names the bits that it cannot work without in `required`, and mxop refuses it by name if one is unknown.
 *
 * Every function that returns int returns 0 for success.  Before it returns anything else it may call `host->error(text)`;
 * the text is copied, and shown in the Python error.  mxop's tables and strings are read-only and, unless said
 * otherwise, valid only during the call.  A library's tables and strings stay valid for ever: libraries are never unloaded.
 * Strings are UTF-8 and end with a zero byte.
 *
 * Functions are called without Python's interpreter lock, from any thread, and several at a time.
 */
#ifndef MXOP_ABI_H_
#define MXOP_ABI_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MXOP_EXPORT __declspec(dllexport)
#else
#define MXOP_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MXOP_ABI_VERSION 1
#define MXOP_ENTRY_NAME "mxop_library_v1"

/* Whether the table behind `pointer` has a field, going by the size that its maker wrote into it. */
#define MXOP_HAS(pointer, type, field) \
  ((pointer)->struct_size >= offsetof(type, field) + sizeof(((type*)0)->field))

/* Feature bits. */
#define MXOP_FEATURE_OPERATORS UINT64_C(1)
#define MXOP_FEATURE_PASSES UINT64_C(2)
#define MXOP_FEATURE_PARTITIONERS UINT64_C(4)

/* Element types, numbered as in MXNet; -1 is "not known yet" in inference. */
#define MXOP_UNKNOWN (-1)
#define MXOP_FLOAT32 0
#define MXOP_FLOAT64 1
#define MXOP_FLOAT16 2
#define MXOP_UINT8 3
#define MXOP_INT32 4
#define MXOP_INT8 5
#define MXOP_INT64 6
#define MXOP_BOOL 7
#define MXOP_BFLOAT16 12

#define MXOP_CPU 1
#define MXOP_GPU 2

/* What mxop offers to libraries. */
typedef struct MXOPHost {
  uint32_t struct_size;
  uint32_t abi_version;
  uint64_t features;
  int32_t mxnet_version; /* of the API that is imitated: 10901 for 1.9.1 */
  const char* version;   /* mxop's own */
  /* Say why the function that is running is about to fail.  Further texts are appended. */
  void (*error)(const char* text);
  /* Memory until the running MXOPOperator.run returns; NULL when there is none.  `call` is MXOPRun.call. */
  void* (*alloc)(void* call, int64_t bytes, int32_t device_type);
} MXOPHost;

typedef struct MXOPAttr { /* a parameter or an option: never extended */
  const char* key;
  const char* value;
} MXOPAttr;

typedef struct MXOPShape { /* never extended */
  int64_t* dims;           /* room for `capacity` dimensions, -1 where not known */
  int32_t ndim;            /* -1 when the rank is not known */
  int32_t capacity;
} MXOPShape;

typedef struct MXOPTensor {
  uint32_t struct_size;
  int32_t dtype;
  void* data; /* elements in C order */
  const int64_t* shape;
  int32_t ndim;
  int32_t device_type;
  int32_t device_id;
  int32_t storage; /* 0: dense.  Others are not used yet */
  int64_t size;    /* number of elements */
  uint64_t version; /* two tensors of equal data and version have equal elements */
} MXOPTensor;

#define MXOP_RUN_BACKWARD 1u
#define MXOP_RUN_TRAINING 2u

/* One execution.  Forward: inputs are the operator's, outputs too.  Backward: inputs are the gradients of all outputs, then
 * all inputs, then all outputs of forward; outputs are the gradients of all inputs.  All outputs are to be written. */
typedef struct MXOPRun {
  uint32_t struct_size;
  uint32_t flags;
  void* state;  /* of create_state, or NULL */
  void** frame; /* a place, NULL at first, where the library may keep what saves it work the next time.  At most one run
                   uses it at a time; release_frame is called at the end. */
  int32_t n_inputs;
  int32_t n_outputs;
  MXOPTensor* const* inputs;
  MXOPTensor* const* outputs;
  int32_t device_type;
  int32_t device_id;
  void* stream; /* cudaStream_t on a GPU */
  void* call;   /* for MXOPHost.alloc */
  uint64_t seed;         /* what mx.random.seed was given last ... */
  uint64_t seed_version; /* ... and a number that changes whenever it is called */
} MXOPRun;

/* What an operator has functions for (MXOPOperator.functions). */
#define MXOP_FORWARD_CPU 1u
#define MXOP_FORWARD_GPU 2u
#define MXOP_BACKWARD_CPU 4u
#define MXOP_BACKWARD_GPU 8u
#define MXOP_STATE_CPU 16u /* create_state is called first, and gives the state of run */
#define MXOP_STATE_GPU 32u
#define MXOP_SUBGRAPH 64u /* runs a subgraph: any number of inputs and outputs, inferred by the subgraph's own operators */

/* One operator.  `self` is this table; `bound` is what bind made. */
typedef struct MXOPOperator {
  uint32_t struct_size;
  uint32_t functions;
  const char* name;
  const char* doc;         /* or NULL */
  const char* gradient;    /* or NULL: the operator that computes this one's gradient, which makes it differentiable again.
                              Its inputs and outputs are those of a backward run. */
  const char* input_names; /* or NULL: names between commas, for operators whose number of inputs is fixed */
  void* user;              /* the library's own */

  /* Required.  Parse the parameters, once for each set of them; say how many inputs and outputs there are. */
  int (*bind)(const struct MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
              int32_t* n_outputs);
  void (*unbind)(const struct MXOPOperator* self, void* bound); /* or NULL */
  /* Complete types and shapes from each other.  NULL: all types, or shapes, are the same. */
  int (*infer_type)(const struct MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                    int32_t* outputs);
  int (*infer_shape)(const struct MXOPOperator* self, void* bound, int32_t n_inputs, MXOPShape* inputs, int32_t n_outputs,
                     MXOPShape* outputs);
  /* Or NULL.  Storage types: a library must be able to work with 0 (dense) everywhere. */
  int (*infer_storage)(const struct MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                       int32_t* outputs);
  /* Or NULL.  Which inputs are states that the operator writes: at most `capacity` positions. */
  int (*mutated_inputs)(const struct MXOPOperator* self, void* bound, int32_t capacity, int32_t* positions, int32_t* count);
  /* With MXOP_STATE_*: make the state of one call or one node of a graph. */
  int (*create_state)(const struct MXOPOperator* self, void* bound, int32_t device_type, int32_t device_id, int32_t n_inputs,
                      const MXOPShape* shapes, const int32_t* types, void** state);
  void (*destroy_state)(const struct MXOPOperator* self, void* state); /* or NULL */
  /* Required. */
  int (*run)(const struct MXOPOperator* self, void* bound, MXOPRun* run);
  void (*release_frame)(const struct MXOPOperator* self, void* frame); /* or NULL */
} MXOPOperator;

/* Where a function gives text of any length: called once. */
typedef void (*MXOPText)(void* sink, const char* text, int64_t length);

typedef struct MXOPParam { /* an argument or auxiliary state that a graph is given: never extended */
  const char* name;
  const MXOPTensor* tensor;
} MXOPParam;

/* What a graph function works on. */
typedef struct MXOPGraph {
  uint32_t struct_size;
  int32_t n_options;
  const MXOPAttr* options;
  const char* json; /* MXNet's symbol JSON */
  int32_t n_args;
  int32_t n_aux;
  const MXOPParam* args;
  const MXOPParam* aux;
  /* A new argument (or auxiliary state) of this name; NULL when it cannot be.  It lives as long as the call. */
  const MXOPTensor* (*new_param)(void* call, const char* name, int32_t ndim, const int64_t* shape, int32_t dtype,
                                 int32_t device_type, int32_t device_id, int32_t is_aux);
  void* call;
} MXOPGraph;

typedef struct MXOPPass {
  uint32_t struct_size;
  const char* name;
  void* user;
  int (*run)(const struct MXOPPass* self, const MXOPGraph* graph, MXOPText put, void* sink); /* puts the new graph's JSON */
} MXOPPass;

/* One way of cutting subgraphs out of a graph.  Either supported or the selector's functions are given. */
typedef struct MXOPStrategy {
  uint32_t struct_size;
  const char* name;
  const char* subgraph_op; /* the operator that replaces a subgraph */
  void* user;
  /* One number for each node: -2 leave it, -1 any subgraph, 0 and up only with nodes of the same number. */
  int (*supported)(const struct MXOPStrategy* self, const MXOPGraph* graph, int32_t n_nodes, int32_t* ids);
  int (*create_selector)(const struct MXOPStrategy* self, const MXOPGraph* graph, void** selector);
  /* Functions of a selector: 1 yes, 0 no, below 0 failure. */
  int (*select)(void* selector, int32_t node);
  int (*select_input)(void* selector, int32_t node, int32_t input);
  int (*select_output)(void* selector, int32_t node, int32_t output);
  int (*filter)(void* selector, int32_t n, const int32_t* candidates, int32_t capacity, int32_t* keep, int32_t* n_keep);
  int (*reset)(void* selector);
  void (*destroy_selector)(void* selector);
  /* Or NULL.  Accept or reject a subgraph, and put `key\0value\0...` pairs for attributes of its node. */
  int (*review)(const struct MXOPStrategy* self, const MXOPGraph* subgraph, int32_t id, int32_t* accept, MXOPText put,
                void* sink);
} MXOPStrategy;

typedef struct MXOPPartitioner {
  uint32_t struct_size;
  int32_t n_strategies;
  const char* name;
  const MXOPStrategy* const* strategies;
} MXOPPartitioner;

/* What a library has. */
typedef struct MXOPLibrary {
  uint32_t struct_size;
  uint32_t abi_version;
  uint64_t required; /* feature bits that it cannot work without */
  const char* compiler; /* or NULL: what built it, for messages */
  int32_t n_operators;
  int32_t n_passes;
  int32_t n_partitioners;
  const MXOPOperator* const* operators;
  const MXOPPass* const* passes;
  const MXOPPartitioner* const* partitioners;
  /* Or NULL.  Called once, before the lists above are read: it may still change them. */
  int (*initialize)(int32_t mxnet_version);
} MXOPLibrary;

/* The exported function; NULL (after host->error) when the library cannot work with this host. */
typedef const MXOPLibrary* (*MXOPEntry)(const MXOPHost* host);
MXOP_EXPORT const MXOPLibrary* mxop_library_v1(const MXOPHost* host);

#ifdef __cplusplus
}
#endif
#endif /* MXOP_ABI_H_ */
