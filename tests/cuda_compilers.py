"""Compilers for CUDA text on machines without a GPU: NVRTC, and the host's C++ compiler behind a shim.

Not a test itself; the tests of the GPU's text use it.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from kept_files import digest, kept, text_file

#: What the kernels are compiled with.
OPTIONS = ("--fmad=false", "-DMXOP_SUBNORMALS")

#: What CUDA has and the host has not.  Where a text is called as it is, one "thread" runs the whole grid; `launcher` runs
#: blocks of them, one after the other, each from barrier to barrier.
SHIM = r"""
#undef _FORTIFY_SOURCE /* it refuses to jump to other stacks */
#include <setjmp.h>
#include <ucontext.h>
#include <stdlib.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#define __device__
#define __global__
#if defined(_WIN32)
#define __global__ __declspec(dllexport)
#endif
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(n)
struct mx_dim { unsigned x, y, z; };
static mx_dim blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
static jmp_buf mx_home, mx_fibers[1024];
static bool mx_waits;
static void (*mx_call)(void *), *mx_called; /* not std::function, a third of the time of compiling */
static void mx_body() { mx_call(mx_called); }
template <typename F> static void mx_call_of(void *f) { (*(F *)f)(); }
/* Continue elsewhere.  swapcontext calls the system for the mask of signals: most of the time of a reduction. */
static __attribute__((noinline)) void mx_switch(jmp_buf &from, jmp_buf &to)
{
    if (!_setjmp(from)) _longjmp(to, 1);
}
static void __syncthreads()
{
    mx_waits = true;
    mx_switch(mx_fibers[threadIdx.x], mx_home);
}
static double mx_exchange[1024];
/* All threads of a block exchange at once here, not those of a warp: so do all texts. */
template <typename T> static T __shfl_xor_sync(unsigned, T x, int mask)
{
    mx_exchange[threadIdx.x] = x;
    __syncthreads();
    const T found = (T)mx_exchange[threadIdx.x ^ mask];
    __syncthreads();
    return found;
}
/* A fiber is one thread of all blocks. */
static void mx_start()
{
    for (;;) {
        mx_switch(mx_fibers[threadIdx.x], mx_home);
        mx_body();
        mx_waits = false;
    }
}
static __attribute__((noinline)) void mx_make_fiber(char *stack, size_t size)
{
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = 0;
    makecontext(&context, mx_start, 0);
    if (!_setjmp(mx_home)) setcontext(&context);
}
/* Run the threads of a block in turn, each up to its next barrier, until all have ended. */
static void mx_together()
{
    char runs[1024];
    memset(runs, 1, blockDim.x);
    for (bool any = true; any;) {
        any = false;
        for (unsigned t = 0; t < blockDim.x; t++)
            if (runs[t]) {
                threadIdx.x = t;
                mx_waits = false;
                mx_switch(mx_home, mx_fibers[t]);
                runs[t] = mx_waits;
                any = any || mx_waits;
            }
    }
}
static void mx_run(unsigned gx, unsigned gy, unsigned bx, bool together)
{
    gridDim = {gx, gy, 1};
    blockDim = {bx, 1, 1};
    char *const stacks = together ? (char *)malloc((size_t)bx << 16) : 0;
    for (unsigned t = 0; together && t < bx; t++) {
        threadIdx = {t, 0, 0};
        mx_make_fiber(&stacks[(size_t)t << 16], 1 << 16);
    }
    for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx; x++) {
            blockIdx = {x, y, 0};
            if (together)
                mx_together();
            else
                for (unsigned t = 0; t < bx; t++) {
                    threadIdx = {t, 0, 0};
                    mx_body();
                }
        }
    free(stacks);
    blockIdx = threadIdx = {0, 0, 0};
    blockDim = gridDim = {1, 1, 1};
}
template <typename F> static void mx_launch(unsigned gx, unsigned gy, unsigned bx, bool together, F body)
{
    mx_called = &body;
    mx_call = mx_call_of<F>;
    mx_run(gx, gy, bx, together);
}
static inline int __float_as_int(float x) { int u; memcpy(&u, &x, 4); return u; }
static inline float __int_as_float(int u) { float x; memcpy(&x, &u, 4); return x; }
static inline double rcbrt(double x) { return 1.0 / cbrt(x); }
static inline float rcbrt(float x) { return (float)(1.0 / cbrt((double)x)); }
/* A start from Winitzki's formula, then Halley's steps. */
static inline double erfinv(double y)
{
    const double a = fabs(y);
    if (!(a < 1.0)) return a == 1.0 ? copysign((double)INFINITY, y) : (double)NAN;
    if (a < 1e-9) return y * 0.88622692545275801;
    const double w = log1p(-a * a), c = 4.3307 + 0.5 * w;
    double x = sqrt(sqrt(c * c - w * 6.8027) - c);
    for (int i = 0; i < 4; i++) {
        const double e = a < 0.5 ? erf(x) - a : (1.0 - a) - erfc(x), d = e / (1.1283791670955126 * exp(-x * x));
        x -= d / (1.0 + x * d);
    }
    return copysign(x, y);
}
static inline double normcdf(double x) { return 0.5 * erfc(-0.70710678118654752 * x); }
static inline float normcdf(float x) { return (float)normcdf((double)x); }
static inline float erfinv(float y) { return (float)erfinv((double)y); }
"""


class CompileError(Exception):
    """A compiler's message."""


# ---- NVRTC ------------------------------------------------------------------------------------------------------------------
def find_nvrtc() -> str | None:
    """Return the path of the NVRTC library of the package nvidia-cuda-nvrtc, or None; beside sanitizers it does not work."""
    if os.environ.get("MXOP_TEST_SANITIZE"):
        return None
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec else ():
        for pattern in ("*/lib/libnvrtc.so.*", "*/bin/nvrtc64_*.dll", "*/bin/*/nvrtc64_*.dll"):
            found = sorted(f for f in glob.glob(os.path.join(root, pattern)) if "builtins" not in f)
            if found:
                return found[-1]
    return None


def nvrtc_ptx(path: str, source: str, options: tuple[str, ...] = ()) -> str:
    """Compile CUDA text to PTX, as it is compiled for a device; none is needed."""
    options = (*options, *OPTIONS)
    lib = ctypes.CDLL(path)
    program = ctypes.c_void_p()
    if lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None):
        raise CompileError("nvrtcCreateProgram failed")

    def text(size_of, get) -> str:
        size = ctypes.c_size_t()
        size_of(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        get(program, buffer)
        return buffer.value.decode()

    try:
        given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        if lib.nvrtcCompileProgram(program, len(options), given):
            raise CompileError(text(lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog))
        return text(lib.nvrtcGetPTXSize, lib.nvrtcGetPTX)
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def unoptimized(path: str) -> tuple[str, ...]:
    """Return the options with which NVRTC takes a third of its time; none where it is older than 12.8."""
    options = ("--Ofast-compile=max",)
    try:
        nvrtc_ptx(path, "", options)
    except CompileError:
        return ()
    return options


# ---- the host ---------------------------------------------------------------------------------------------------------------
def find_host() -> str | None:
    """Return the host's C++ compiler, or None."""
    if sys.platform == "win32":
        return None  # the shim is written for GCC and Clang
    wanted = os.environ.get("CXX", "").split()[:1]
    return next((found for name in [*wanted, "g++", "clang++", "c++"] if (found := shutil.which(name))), None)


_libraries: dict[str, ctypes.CDLL] = {}


@functools.cache
def _host_command() -> list[str]:
    return [
        find_host(),
        "-std=c++14",
        "-O1",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fwrapv",
        "-w",
        "-shared",
        "-fPIC",
    ]


@functools.cache
def _host_version() -> str:
    return subprocess.run([find_host(), "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def _shim() -> Path:
    """Return the header of what the host has not; GCC compiles it once, which is half of the time of a small kernel."""
    name = f"shim-{digest(*_host_command(), _host_version(), SHIM)}.h"
    header = text_file(name, SHIM)
    if "Free Software Foundation" in _host_version():
        command = [option for option in _host_command() if option != "-shared"]
        command += ["-x", "c++-header", str(header), "-o"]
        kept(f"{name}.gch", lambda path: subprocess.run([*command, str(path)], check=True))
    return header


def host_library(source: str) -> ctypes.CDLL:
    """Compile CUDA text for the host, unless it was done before, and load it."""
    if source not in _libraries:
        name = digest(*_host_command(), _host_version(), SHIM, source)

        def make(library: Path) -> None:
            text = library.with_suffix(".cpp")
            text.write_text(f'#include "{_shim()}"\n{source}')
            done = subprocess.run(
                [*_host_command(), str(text), "-o", str(library)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise CompileError(done.stderr[:4000])

        _libraries[source] = ctypes.CDLL(str(kept(f"{name}.so", make)))
    return _libraries[source]


_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\)')


def launcher(source: str) -> str:
    """Return what follows a CUDA text, so that its kernels are run by blocks of threads: for each, ``launch_NAME``."""
    found = []
    for name, parameters in _KERNEL.findall(source):
        parameters = " ".join(parameters.split())
        names = [re.search(r"(\w+)$", p)[1] for p in parameters.split(", ")]
        body = source[source.index(f" {name}(") :].split('extern "C"')[0]
        found.append(
            f'extern "C" void launch_{name}(unsigned gx, unsigned gy, unsigned bx, {parameters})\n{{\n'
            f"    mx_launch(gx, gy, bx, {str('__syncthreads' in body or '__shfl' in body).lower()}, "
            f"[=] {{ {name}({', '.join(names)}); }});\n}}\n"
        )
    return "".join(found)


def kernel_parameters(source: str) -> dict[str, list[str]]:
    """Return the types of the parameters of each kernel of a text; those of pointers end with ``*``."""
    return {
        name: [re.match(r"(.*?)\w+$", " ".join(p.split()))[1].strip() for p in parameters.split(",")]
        for name, parameters in _KERNEL.findall(source)
    }


def pointer(array) -> ctypes.c_void_p:
    """Return the address of a NumPy array's first element."""
    return ctypes.c_void_p(array.__array_interface__["data"][0])


CTYPES = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "uint8": ctypes.c_ubyte, "int32": ctypes.c_int,
    "int8": ctypes.c_byte, "int64": ctypes.c_longlong,
}  # fmt: skip
