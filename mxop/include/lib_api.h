/* For users whose include path is the folder itself. */
#include "mxop/lib_api.h"
