/* The C++ interface for operator libraries: MXNet 1.9's lib_api.h, over the C ABI of abi.h.
 *
 * Include it and define `initialize`; nothing else is to be compiled or linked.  It needs C++11.  Everything is in namespace
 * mxnet::ext, as users of MXNet know it, and every name that MXNet 1.9's header documents means the same here.  What mxop
 * adds: inferShape and createOpState over int64_t shapes, setGradient, setDoc, setInputNames; parseAttrs, inferType and
 * inferShape may be left out where the default (one input, one output; all the same) is right.  Operators may also be
 * written as for MXNet 1.6 and 1.7.
 *
 * The parts, each including what it needs:
 *   ext/types.h     enumerations, contexts, DLTensor          ext/json.h        JSON values
 *   ext/error.h     MX_ERROR_MSG                              ext/graph.h       Graph, Node
 *   ext/tensor.h    MXTensor, MXSparse                        ext/partition.h   passes, partitioners, selectors
 *   ext/resource.h  OpResource                                ext/registry.h    REGISTER_OP and the others
 *   ext/op.h        CustomOp, CustomStatefulOp                ext/export*.h     how all this becomes tables of the C ABI
 */
#ifndef MXNET_LIB_API_H_
#define MXNET_LIB_API_H_

#define MX_LIBRARY_VERSION 11

#include "ext/types.h"
#include "ext/error.h"
#include "ext/tensor.h"
#include "ext/resource.h"
#include "ext/op.h"
#include "ext/json.h"
#include "ext/graph.h"
#include "ext/partition.h"
#include "ext/registry.h"
#include "ext/export.h"

#endif /* MXNET_LIB_API_H_ */
