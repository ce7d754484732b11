/* mxop_around.h - the four pixels around places in images, and their weights; one build per instruction set. */
#ifndef MXOP_AROUND_H
#define MXOP_AROUND_H

#include "mxop_block.h"
#include "mxop_bulk.h"

#define MX_T float
#define MX_I int32_t
#define MX_(name) name##_f32
#include "mxop_around_type.h"
#define MX_T double
#define MX_I int64_t
#define MX_(name) name##_f64
#include "mxop_around_type.h"

#endif
