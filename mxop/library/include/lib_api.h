/* For users whose include path is the folder itself, as that of MXNet 1.6 and 1.7, whose names are in no namespace. */
#include "mxop/lib_api.h"

using namespace mxnet::ext;
