/* A function of C that is the CPU way of a kernel defined in Python: @op.cpu takes its address, or a capsule that holds it.
 *
 * It is called once for each run, without Python's interpreter lock and from any thread, and several runs may be under way at
 * a time.  Inputs and outputs are tables of pointers, in the order of the operator's inputs and outputs; all elements lie in C
 * order, an output overlaps no input, and every element of an output is to be written.  `params` are the operator's parameters
 * in the order of its signature: numbers as they are, truth values as 0 and 1, choices by their position, types by their code,
 * None as NaN.  The function may use `threads` threads.  It returns 0, or a number that the Python error shows.
 */
#ifndef MXOP_KERNEL_H_
#define MXOP_KERNEL_H_

#include "mxop/abi.h"

/* The name of a capsule that holds such a function. */
#define MXOP_KERNEL_NAME "mxop.kernel"

typedef int (*MXOPKernel)(const MXOPTensor* const* inputs, const MXOPTensor* const* outputs, const double* params, int threads);

#endif
