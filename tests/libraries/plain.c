/* A library in plain C, against abi.h alone: c_scale (a * x, with a gradient) and c_count (a state that counts calls). */
#include <stdlib.h>
#include <string.h>

#include "mxop/abi.h"

static const MXOPHost* host;

/* ---- c_scale */

typedef struct {
  double by;
} Scale;

static int scale_bind(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                      int32_t* n_outputs) {
  Scale* made = malloc(sizeof(Scale));
  int32_t i;
  (void)self;
  made->by = 1;
  for (i = 0; i < n_attrs; ++i) {
    if (strcmp(attrs[i].key, "by") != 0) {
      host->error("c_scale has one parameter, by; given:");
      host->error(attrs[i].key);
      free(made);
      return 1;
    }
    made->by = atof(attrs[i].value);
  }
  *bound = made;
  *n_inputs = 1;
  *n_outputs = 1;
  return 0;
}

static void scale_unbind(const MXOPOperator* self, void* bound) {
  (void)self;
  free(bound);
}

static int scale_run(const MXOPOperator* self, void* bound, MXOPRun* run) {
  const double by = ((const Scale*)bound)->by;
  const MXOPTensor *x = run->inputs[0], *y = run->outputs[0]; /* in backward: the head, and the gradient */
  int64_t i;
  (void)self;
  for (i = 0; i < y->size; ++i) {
    if (x->dtype == MXOP_FLOAT64)
      ((double*)y->data)[i] = by * ((const double*)x->data)[i];
    else
      ((float*)y->data)[i] = (float)(by * ((const float*)x->data)[i]);
  }
  return 0;
}

static int floats(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                  int32_t* outputs) {
  (void)self, (void)bound, (void)n_inputs, (void)n_outputs;
  if (inputs[0] == MXOP_UNKNOWN) inputs[0] = outputs[0];
  if (inputs[0] != MXOP_UNKNOWN && inputs[0] != MXOP_FLOAT32 && inputs[0] != MXOP_FLOAT64) {
    host->error("expected float32 or float64");
    return 1;
  }
  outputs[0] = inputs[0];
  return 0;
}

static const MXOPOperator scale = {
    sizeof(MXOPOperator), MXOP_FORWARD_CPU | MXOP_BACKWARD_CPU,
    "c_scale", "Multiply by the parameter `by`.", "c_scale_gradient", "data", NULL,
    scale_bind, scale_unbind, floats, NULL, NULL, NULL, NULL, NULL, scale_run, NULL};

/* The gradient is linear in the head, and takes head, x and y; its own gradient gives one for each. */
static int gradient_bind(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                         int32_t* n_outputs) {
  const int failed = scale_bind(self, n_attrs, attrs, bound, n_inputs, n_outputs);
  *n_inputs = 3;
  return failed;
}

static int gradient_run(const MXOPOperator* self, void* bound, MXOPRun* run) {
  int32_t k;
  if (run->flags & MXOP_RUN_BACKWARD)
    for (k = 1; k < run->n_outputs; ++k) memset(run->outputs[k]->data, 0, (size_t)run->outputs[k]->size * sizeof(float));
  return scale_run(self, bound, run);
}

static const MXOPOperator scale_gradient = {
    sizeof(MXOPOperator), MXOP_FORWARD_CPU | MXOP_BACKWARD_CPU,
    "c_scale_gradient", NULL, NULL, NULL, NULL,
    gradient_bind, scale_unbind, NULL, NULL, NULL, NULL, NULL, NULL, gradient_run, NULL};

/* ---- c_count */

static int states = 0;

static int count_bind(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                      int32_t* n_outputs) {
  (void)self, (void)n_attrs, (void)attrs;
  *bound = NULL;
  *n_inputs = 0;
  *n_outputs = 1;
  return 0;
}

static int count_shape(const MXOPOperator* self, void* bound, int32_t n_inputs, MXOPShape* inputs, int32_t n_outputs,
                       MXOPShape* outputs) {
  (void)self, (void)bound, (void)n_inputs, (void)inputs, (void)n_outputs;
  outputs[0].ndim = 1;
  outputs[0].dims[0] = 2;
  return 0;
}

static int count_type(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                      int32_t* outputs) {
  (void)self, (void)bound, (void)n_inputs, (void)inputs, (void)n_outputs;
  outputs[0] = MXOP_INT64;
  return 0;
}

static int count_state(const MXOPOperator* self, void* bound, int32_t device_type, int32_t device_id, int32_t n_inputs,
                       const MXOPShape* shapes, const int32_t* types, void** state) {
  (void)self, (void)bound, (void)device_id, (void)n_inputs, (void)shapes, (void)types;
  if (device_type != MXOP_CPU) return 1;
  *state = calloc(1, sizeof(int64_t));
  ++states;
  return 0;
}

static void count_destroy(const MXOPOperator* self, void* state) {
  (void)self;
  --states;
  free(state);
}

static int count_run(const MXOPOperator* self, void* bound, MXOPRun* run) {
  int64_t* out = run->outputs[0]->data;
  (void)self, (void)bound;
  out[0] = ++*(int64_t*)run->state;
  out[1] = states;
  return 0;
}

static const MXOPOperator counter = {
    sizeof(MXOPOperator), MXOP_FORWARD_CPU | MXOP_STATE_CPU,
    "c_count", NULL, NULL, NULL, NULL,
    count_bind, NULL, count_type, count_shape, NULL, NULL, count_state, count_destroy, count_run, NULL};

/* ---- the library */

static const MXOPOperator* const operators[] = {&scale, &scale_gradient, &counter};

static const MXOPLibrary library = {
    sizeof(MXOPLibrary), MXOP_ABI_VERSION, MXOP_FEATURE_OPERATORS, "a C compiler", 3, 0, 0, operators, NULL, NULL, NULL};

MXOP_EXPORT const MXOPLibrary* mxop_library_v1(const MXOPHost* given) {
  if (!(given->features & MXOP_FEATURE_OPERATORS) || !MXOP_HAS(given, MXOPHost, alloc)) return NULL;
  host = given;
  return &library;
}
