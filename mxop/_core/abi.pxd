# What native.pyx uses of mxop/library/include/mxop/abi.h; the header says what everything means.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "mxop/abi.h" nogil:
    enum:
        MXOP_ABI_VERSION
        MXOP_CPU
        MXOP_GPU
        MXOP_RUN_BACKWARD
        MXOP_RUN_TRAINING
        MXOP_FORWARD_CPU
        MXOP_FORWARD_GPU
        MXOP_BACKWARD_CPU
        MXOP_BACKWARD_GPU
        MXOP_STATE_CPU
        MXOP_STATE_GPU
        MXOP_SUBGRAPH
    const uint64_t MXOP_FEATURE_OPERATORS
    const uint64_t MXOP_FEATURE_PASSES
    const uint64_t MXOP_FEATURE_PARTITIONERS

    ctypedef struct MXOPHost:
        uint32_t struct_size
        uint32_t abi_version
        uint64_t features
        int32_t mxnet_version
        const char* version
        void (*error)(const char* text) noexcept nogil
        void* (*alloc)(void* call, int64_t nbytes, int32_t device_type) noexcept nogil

    ctypedef struct MXOPAttr:
        const char* key
        const char* value

    ctypedef struct MXOPShape:
        int64_t* dims
        int32_t ndim
        int32_t capacity

    ctypedef struct MXOPTensor:
        uint32_t struct_size
        int32_t dtype
        void* data
        const int64_t* shape
        int32_t ndim
        int32_t device_type
        int32_t device_id
        int32_t storage
        int64_t size
        uint64_t version

    ctypedef struct MXOPRun:
        uint32_t struct_size
        uint32_t flags
        void* state
        void** frame
        int32_t n_inputs
        int32_t n_outputs
        MXOPTensor** inputs
        MXOPTensor** outputs
        int32_t device_type
        int32_t device_id
        void* stream
        void* call
        uint64_t seed
        uint64_t seed_version

    ctypedef struct MXOPOperator:
        uint32_t struct_size
        uint32_t functions
        const char* name
        const char* doc
        const char* gradient
        const char* input_names
        int (*bind)(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                    int32_t* n_outputs) noexcept nogil
        void (*unbind)(const MXOPOperator* self, void* bound) noexcept nogil
        int (*infer_type)(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                          int32_t* outputs) noexcept nogil
        int (*infer_shape)(const MXOPOperator* self, void* bound, int32_t n_inputs, MXOPShape* inputs,
                           int32_t n_outputs, MXOPShape* outputs) noexcept nogil
        int (*infer_storage)(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs,
                             int32_t n_outputs, int32_t* outputs) noexcept nogil
        int (*mutated_inputs)(const MXOPOperator* self, void* bound, int32_t capacity, int32_t* positions,
                              int32_t* count) noexcept nogil
        int (*create_state)(const MXOPOperator* self, void* bound, int32_t device_type, int32_t device_id,
                            int32_t n_inputs, const MXOPShape* shapes, const int32_t* types, void** state) noexcept nogil
        void (*destroy_state)(const MXOPOperator* self, void* state) noexcept nogil
        int (*run)(const MXOPOperator* self, void* bound, MXOPRun* run) noexcept nogil
        void (*release_frame)(const MXOPOperator* self, void* frame) noexcept nogil

    ctypedef void (*MXOPText)(void* sink, const char* text, int64_t length) noexcept nogil

    ctypedef struct MXOPParam:
        const char* name
        const MXOPTensor* tensor

    ctypedef struct MXOPGraph:
        uint32_t struct_size
        int32_t n_options
        const MXOPAttr* options
        const char* json
        int32_t n_args
        int32_t n_aux
        const MXOPParam* args
        const MXOPParam* aux
        const MXOPTensor* (*new_param)(void* call, const char* name, int32_t ndim, const int64_t* shape, int32_t dtype,
                                       int32_t device_type, int32_t device_id, int32_t is_aux) noexcept nogil
        void* call

    ctypedef struct MXOPPass:
        uint32_t struct_size
        const char* name
        void* user
        int (*run)(const MXOPPass* self, const MXOPGraph* graph, MXOPText put, void* sink) noexcept nogil

    ctypedef struct MXOPStrategy:
        uint32_t struct_size
        const char* name
        const char* subgraph_op
        void* user
        int (*supported)(const MXOPStrategy* self, const MXOPGraph* graph, int32_t n_nodes, int32_t* ids) noexcept nogil
        int (*create_selector)(const MXOPStrategy* self, const MXOPGraph* graph, void** selector) noexcept nogil
        int (*select)(void* selector, int32_t node) noexcept nogil
        int (*select_input)(void* selector, int32_t node, int32_t input) noexcept nogil
        int (*select_output)(void* selector, int32_t node, int32_t output) noexcept nogil
        int (*filter)(void* selector, int32_t n, const int32_t* candidates, int32_t capacity, int32_t* keep,
                      int32_t* n_keep) noexcept nogil
        int (*reset)(void* selector) noexcept nogil
        void (*destroy_selector)(void* selector) noexcept nogil
        int (*review)(const MXOPStrategy* self, const MXOPGraph* subgraph, int32_t id, int32_t* accept, MXOPText put,
                      void* sink) noexcept nogil

    ctypedef struct MXOPPartitioner:
        uint32_t struct_size
        int32_t n_strategies
        const char* name
        const MXOPStrategy** strategies

    ctypedef struct MXOPLibrary:
        uint32_t struct_size
        uint32_t abi_version
        uint64_t required
        const char* compiler
        int32_t n_operators
        int32_t n_passes
        int32_t n_partitioners
        const MXOPOperator** operators
        const MXOPPass** passes
        const MXOPPartitioner** partitioners
        int (*initialize)(int32_t mxnet_version) noexcept nogil

    ctypedef const MXOPLibrary* (*MXOPEntry)(const MXOPHost* host) noexcept nogil
