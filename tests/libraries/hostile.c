/* A library that answers with rubbish; MODE says with which. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mxop/abi.h"

#define REFUSE 1
#define REFUSE_WITH_TEXT 2
#define LIBRARY_SIZE_0 3
#define LIBRARY_SIZE_HUGE 4
#define OTHER_VERSION 5
#define UNKNOWN_FEATURES 6
#define COUNT_NEGATIVE 7
#define COUNT_HUGE 8
#define NO_LIST 9
#define NULL_OPERATOR 10
#define OPERATOR_SIZE_SMALL 11
#define NAME_NULL 12
#define NAME_LONG 13
#define NAME_NO_TEXT 14
#define NAME_NO_NAME 15
#define NAME_TWICE 16
#define NAME_TAKEN 17
#define NO_RUN 18
#define NO_BIND 19
#define NO_FORWARD 20
#define INITIALIZE_FAILS 21
#define INITIALIZE_FAILS_SILENTLY 22
#define STATE_WITHOUT_CREATE 23
#define GRADIENT_UNKNOWN 24
#define DOC_NO_TEXT 25
#define NAME_EMPTY 26
#define PASSES_HUGE 27
#define PARTITIONERS_NEGATIVE 28
#define LARGER_TABLES 29 /* a later version of everything, which is fine */
#define FUZZ 30

static const MXOPHost* host;
static uint64_t random_state = 1;

static int64_t rubbish(void) { /* small numbers often, any numbers sometimes */
  static const int64_t favourites[] = {0, -1, 1, 2, 3, -2, 31, 32, 33, 1 << 20, INT_MAX, INT_MIN};
  uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  z ^= z >> 31;
  if (z % 8 == 0) return (int64_t)(z >> 3);
  return favourites[(z >> 3) % (sizeof(favourites) / sizeof(*favourites))];
}

static int result(void) {
  static char text[100000];
  if (MODE != FUZZ || rubbish() > 0) return 0;
  memset(text, (int)(rubbish() & 255), sizeof(text) - 1);
  host->error(text);
  if (rubbish() == 0) host->error(NULL);
  return 1;
}

static int bind(const MXOPOperator* self, int32_t n_attrs, const MXOPAttr* attrs, void** bound, int32_t* n_inputs,
                int32_t* n_outputs) {
  (void)self, (void)bound;
  if (n_attrs > 0) random_state = strtoull(attrs[0].value, NULL, 10);
  if (MODE == FUZZ && rubbish() % 4 == 0) {
    *n_inputs = (int32_t)rubbish();
    *n_outputs = (int32_t)rubbish();
    return result();
  }
  *n_inputs = *n_outputs = 1;
  return 0;
}

static int types(const MXOPOperator* self, void* bound, int32_t n_inputs, int32_t* inputs, int32_t n_outputs,
                 int32_t* outputs) {
  int32_t i;
  (void)self, (void)bound, (void)inputs, (void)n_inputs;
  for (i = 0; i < n_outputs; ++i) outputs[i] = MODE == FUZZ ? (int32_t)rubbish() : inputs[0];
  return result();
}

static int shapes(const MXOPOperator* self, void* bound, int32_t n_inputs, MXOPShape* inputs, int32_t n_outputs,
                  MXOPShape* outputs) {
  int32_t i, k;
  (void)self, (void)bound, (void)n_inputs;
  for (i = 0; i < n_outputs; ++i) {
    outputs[i].ndim = MODE == FUZZ ? (int32_t)rubbish() : inputs[0].ndim;
    for (k = 0; k < outputs[i].capacity; ++k) outputs[i].dims[k] = MODE == FUZZ ? rubbish() : inputs[0].dims[k];
    if (MODE == FUZZ && rubbish() == 31) outputs[i].dims = NULL;
    if (MODE == FUZZ && rubbish() == 31) outputs[i].capacity = INT_MAX;
  }
  if (MODE == FUZZ && rubbish() == 31) inputs[0].ndim = (int32_t)rubbish();
  return result();
}

static int mutated(const MXOPOperator* self, void* bound, int32_t capacity, int32_t* positions, int32_t* count) {
  int32_t i;
  (void)self, (void)bound;
  *count = 0;
  if (MODE != FUZZ || rubbish() % 4) return 0;
  for (i = 0; i < capacity; ++i) positions[i] = (int32_t)rubbish();
  *count = (int32_t)rubbish();
  return result();
}

static int run(const MXOPOperator* self, void* bound, MXOPRun* run) {
  (void)self, (void)bound;
  (void)run;
  return result();
}

static char long_name[5000];
static MXOPOperator one, two;
static struct {
  MXOPOperator known;
  char later[200];
} larger;
static const MXOPOperator* list[2] = {&one, &two};
static struct {
  MXOPLibrary known;
  char later[100];
} library;

static int initialize(int32_t version) {
  (void)version;
  if (MODE == INITIALIZE_FAILS) host->error("no licence for this machine");
  return MODE == INITIALIZE_FAILS || MODE == INITIALIZE_FAILS_SILENTLY;
}

static void describe(MXOPOperator* op, const char* name) {
  op->struct_size = MODE == OPERATOR_SIZE_SMALL ? 40 : sizeof(*op);
  op->functions = MODE == NO_FORWARD ? MXOP_BACKWARD_CPU : MXOP_FORWARD_CPU;
  if (MODE == STATE_WITHOUT_CREATE) op->functions |= MXOP_STATE_CPU;
  op->name = name;
  op->gradient = MODE == GRADIENT_UNKNOWN ? "no_such_operator" : NULL;
  op->doc = MODE == DOC_NO_TEXT ? "\xff\xfe" : NULL;
  op->bind = MODE == NO_BIND ? NULL : bind;
  op->infer_type = types;
  op->infer_shape = shapes;
  op->mutated_inputs = mutated;
  op->run = MODE == NO_RUN ? NULL : run;
}

static const char* first_name(void) {
  memset(long_name, 'n', sizeof(long_name) - 1);
  switch (MODE) {
    case NAME_NULL: return NULL;
    case NAME_LONG: return long_name;
    case NAME_NO_TEXT: return "\xff\xfe";
    case NAME_NO_NAME: return "not a name";
    case NAME_EMPTY: return "";
    case NAME_TAKEN: return "relu";
    case NAME_TWICE: return "hostile_two";
    default: return "hostile_one";
  }
}

MXOP_EXPORT const MXOPLibrary* mxop_library_v1(const MXOPHost* given) {
  host = given;
  if (MODE == REFUSE_WITH_TEXT) host->error("this library wants another host");
  if (MODE == REFUSE || MODE == REFUSE_WITH_TEXT) return NULL;
  describe(&one, first_name());
  describe(&two, "hostile_two");
  if (MODE == NULL_OPERATOR) list[1] = NULL;
  if (MODE == LARGER_TABLES) {
    larger.known = one;
    larger.known.struct_size = sizeof(larger);
    memset(larger.later, 0x5a, sizeof(larger.later));
    memset(library.later, 0x5a, sizeof(library.later));
    list[0] = &larger.known;
  }
  library.known.struct_size = MODE == LIBRARY_SIZE_0 ? 0 : MODE == LIBRARY_SIZE_HUGE ? UINT_MAX :
                              MODE == LARGER_TABLES ? sizeof(library) : sizeof(library.known);
  library.known.abi_version = MODE == OTHER_VERSION ? 99 : MXOP_ABI_VERSION;
  library.known.required = MODE == UNKNOWN_FEATURES ? UINT64_C(1) << 40 : MXOP_FEATURE_OPERATORS;
  library.known.n_operators = MODE == COUNT_NEGATIVE ? -1 : MODE == COUNT_HUGE ? INT_MAX : 2;
  library.known.operators = MODE == NO_LIST ? NULL : list;
  library.known.n_passes = MODE == PASSES_HUGE ? INT_MAX : 0;
  library.known.n_partitioners = MODE == PARTITIONERS_NEGATIVE ? -5 : 0;
  library.known.initialize = initialize;
  return &library.known;
}
