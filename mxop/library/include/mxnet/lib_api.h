/* MXNet's name of the header, so that libraries written for MXNet compile unchanged. */
#include "../mxop/lib_api.h"
