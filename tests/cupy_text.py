"""The CUDA text that CuPy makes of an ``ElementwiseKernel``, from its documentation, over a stand-in for its header.

Not a test itself; the simulated CuPy runs this text on the host, and tests have NVRTC compile it.
"""

from __future__ import annotations

from typing import NamedTuple

#: Arrays and indices as CuPy's kernels have them: of NumPy's type names, with shapes, and strides in bytes.
HEADER = """
template <typename T, int N> class CArray {
    T *data;
    long long shape[N + 1], strides[N + 1];
public:
    __device__ CArray(T *data_, const long long *shape_, const long long *strides_) : data(data_)
    {
        for (int k = 0; k < N; k++) {
            shape[k] = shape_[k];
            strides[k] = strides_[k];
        }
    }
    __device__ T &operator[](const long long *at) const
    {
        char *found = (char *)data;
        for (int k = 0; k < N; k++)
            found += at[k] * strides[k];
        return *(T *)found;
    }
    __device__ T &operator[](long long i) const
    {
        long long at[N + 1];
        for (int k = N - 1; k >= 0; k--) {
            at[k] = i % shape[k];
            i /= shape[k];
        }
        return (*this)[at];
    }
};
template <typename T> class CArray<T, 0> {
    T *data;
public:
    __device__ CArray(T *data_, const long long *, const long long *) : data(data_) {}
    template <typename U> __device__ T &operator[](const U &) { return *data; }
    template <typename U> __device__ T operator[](const U &) const { return *data; }
};
template <int N> class CIndexer {
    long long size_, shape[N + 1], at[N + 1];
public:
    __device__ CIndexer(const long long *shape_) : size_(1)
    {
        for (int k = 0; k < N; k++)
            size_ *= shape[k] = shape_[k];
    }
    __device__ long long size() const { return size_; }
    __device__ void set(long long i)
    {
        for (int k = N - 1; k >= 0; k--) {
            at[k] = i % shape[k];
            i /= shape[k];
        }
    }
    __device__ const long long *get() const { return at; }
};
#define CUPY_FOR(i, n) for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \\
        i += (long long)blockDim.x * gridDim.x)
"""
TYPES = {
    "float32": "float", "float64": "double", "uint8": "unsigned char", "int8": "signed char", "int32": "int",
    "int64": "long long", "bool": "bool", "uint16": "unsigned short", "uint32": "unsigned int",
    "uint64": "unsigned long long",
}  # fmt: skip


class Parameter(NamedTuple):
    """A parameter of a kernel: one of ``"raw float32 x, int64 n"``."""

    name: str
    dtype: str
    raw: bool

    @property
    def ctype(self) -> str:
        return TYPES[self.dtype]


def parameters(text: str) -> list[Parameter]:
    """Return the parameters of a text."""
    words = [part.split() for part in text.split(",") if part.strip()]
    assert all(len(w) == 2 or (len(w) == 3 and w[0] == "raw") for w in words), text
    assert all(w[-1] not in ("i", "_ind") and len(w[-1]) > 1 for w in words), text
    return [Parameter(w[-1], w[-2], len(w) == 3) for w in words]


def elementwise_text(inputs: list[Parameter], outputs: list[Parameter], dims: list[int | None], ndim: int, operation: str,
                     name: str, preamble: str) -> str:  # fmt: skip
    """Return the text of a kernel whose arguments are arrays of so many dimensions, or numbers (None)."""
    given, lines = [], []
    for k, (p, n) in enumerate(zip([*inputs, *outputs], dims, strict=True)):
        const = "const " * (k < len(inputs))
        if n is None:
            given.append(f"{const}{p.ctype} {p.name}")
        elif p.raw:
            given.append(f"{const}CArray<{p.ctype}, {n}> {p.name}")
        else:
            given.append(f"{const}CArray<{p.ctype}, {n}> _raw_{p.name}")
            lines.append(f"{const}{p.ctype} &{p.name} = _raw_{p.name}[_ind.get()];")
    given.append(f"CIndexer<{ndim}> _ind")
    body = "\n".join([*lines, operation])
    return (
        f'{HEADER}{preamble}\nextern "C" __global__ void {name}({", ".join(given)})\n{{\n;\n#pragma unroll 1\n'
        f"CUPY_FOR(i, _ind.size()) {{\n_ind.set(i);\n{body};\n}}\n;\n}}\n"
    )


def joined(shape: tuple[int, ...], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Return dimensions and the strides of arrays in bytes, where neighbouring dimensions of all are one where they can be."""
    dims: list[int] = []
    kept: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if dims and all(mine[-1] == theirs[axis] * size for mine, theirs in zip(kept, strides, strict=True)):
            dims[-1] *= size
            for mine, theirs in zip(kept, strides, strict=True):
                mine[-1] = theirs[axis]
        else:
            dims.append(size)
            for mine, theirs in zip(kept, strides, strict=True):
                mine.append(theirs[axis])
    return dims, kept


def launch_text(inputs: list[Parameter], outputs: list[Parameter], dims: list[int | None], ndim: int, name: str,
                waits: bool) -> str:  # fmt: skip
    """Return what follows a kernel's text on the host: ``launch_NAME``, which takes the grid, the block, and for each array its
    address, shape and strides."""
    given, passed = ["unsigned gx", "unsigned bx"], []
    for p, n in zip([*inputs, *outputs], dims, strict=True):
        if n is None:
            given.append(f"{p.ctype} {p.name}")
            passed.append(p.name)
        else:
            given += [f"{p.ctype} *{p.name}", f"const long long *shape_{p.name}", f"const long long *strides_{p.name}"]
            passed.append(f"CArray<{p.ctype}, {n}>({p.name}, shape_{p.name}, strides_{p.name})")
    given.append("const long long *shape")
    passed.append(f"CIndexer<{ndim}>(shape)")
    return (
        f'extern "C" void launch_{name}({", ".join(given)})\n{{\n'
        f"    mx_launch(gx, 1, bx, {str(waits).lower()}, [=] {{ {name}({', '.join(passed)}); }});\n}}\n"
    )
