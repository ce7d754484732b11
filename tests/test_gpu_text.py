"""The GPU's kernels without a GPU: NVRTC compiles all of them, and the host runs their text against the CPU's programs."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import subprocess
import sys
import zlib
from pathlib import Path

import cupy_text
import fake_kernels
import numpy as np
import pytest
from comparing import into
from cuda_compilers import CTYPES, find_host, find_nvrtc, host_library, nvrtc_ptx, pointer, unoptimized

import mxop as mx
from mxop import dtypes
from mxop._core.elementwise import values_of
from mxop._gpu import compiled, layout, preamble, reductions, text
from mxop.errors import DeviceError
from mxop.formula import input_, keys_of, walk
from mxop.op import Elementwise, Reduction, operators

FLOATS = (dtypes.FLOAT32, dtypes.FLOAT64, dtypes.FLOAT16)
WRITE, ADD = text.REQ_WRITE, text.REQ_ADD
ARCHITECTURE = "--gpu-architecture=compute_90"
#: Functions of a float that are computed in float64, on the CPU as well.
WIDE = {"digamma", "polygamma"}


# ---- what there is to compile ----------------------------------------------------------------------------------------
def calls_of(op):
    """Yield parameters for every choice that has a formula of its own."""
    given = {p.name: 1 for p in op.spec.params if p.required and not p.choices}
    chosen = [p for p in op.spec.params if p.choices]
    for values in itertools.product(*(p.choices for p in chosen)):
        yield op.parse(given | {p.name: v for p, v in zip(chosen, values, strict=True)})


def formulas_of(op, orders):
    """Yield (operator, attrs, number of inputs, order): the operator and its backward operators."""
    for attrs in calls_of(op):
        n = 3 if op.variadic else len(op.input_names(attrs))
        at = (op, attrs, n)
        for order in range(orders + 1):
            yield (*at, order)
            o, a, m = at
            if order == orders or not o.has_backward_operator:
                break
            rule = o.backward_formula(a, m)
            wanted = tuple(i for i, g in enumerate(rule.roots) if g is not None)
            if not wanted:
                break
            n_operands = len(rule.heads) + len(rule.inputs) + len(rule.outputs)
            at = (o.backward_operator(), o.backward_operator().attrs_for(a, wanted, m), n_operands)


def forward_operators(kind):
    return [op for op in operators() if isinstance(op, kind) and not op.is_backward]


def kernel_of(op, attrs, n, dtype, req=WRITE):
    formula = op.formula(attrs, n)
    types = [dtype] * len(formula.roots)
    return text.of_formula(formula, [dtype] * n, types, formula.compute_type(dtype), [req] * len(types), op.name)


@functools.cache
def elementwise_kernels():
    """Return every different kernel of the registry: orders 0 to 2, req write and add."""
    found = {}
    for op in forward_operators(Elementwise):
        for o, attrs, n, order in formulas_of(op, 2):
            for dtype in (*FLOATS, dtypes.INT32):
                # float16 is computed as float32, and integers mostly as float64: only reading and writing differ, as
                # they do in the lower orders; neither does adding depend on the formula
                if order == 2 and dtype not in (dtypes.FLOAT32, dtypes.FLOAT64) and not o.formula(attrs, n).integer:
                    continue
                for req in (WRITE, ADD) if order == 0 or dtype == dtypes.FLOAT32 else (WRITE,):
                    kernel = kernel_of(o, attrs, n, dtype, req)
                    found.setdefault((kernel.in_types, kernel.out_types, kernel.operation), kernel)
    for source, target, req in itertools.product(text.STORAGE, text.STORAGE, (WRITE, ADD)):
        kernel = text.of_copy(source, target, req)
        found.setdefault((kernel.in_types, kernel.out_types, kernel.operation), kernel)
    return list(found.values())


def reduction_kernels():
    found = []
    for op in forward_operators(Reduction):
        for attrs in calls_of(op):
            for dtype in text.STORAGE:
                out_type = op.infer_type(attrs, [dtype], [dtypes.UNKNOWN])[1][0]
                found.append(reductions.of_reduction(op, attrs, dtype, out_type))
    return found


def source_of(kernels):
    text_of = "".join(k.standalone(f"k{i}") for i, k in enumerate(kernels))
    return text.prologue(text_of) + text_of


PARTS = 32  # of the kernels: NVRTC takes longer for all at once


# ---- NVRTC -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def nvrtc():
    path = find_nvrtc()
    if path is None:
        pytest.skip("nvidia-cuda-nvrtc is not installed (pip install nvidia-cuda-nvrtc)")
    return path


def entries_of(ptx):
    """Return the PTX of each kernel by its name."""
    parts = [part[: part.index("\n}\n")] for part in ptx.split(".visible .entry ")[1:]]
    return {part[: part.index("(")]: part for part in parts}


def test_there_are_kernels():
    assert len(elementwise_kernels()) > 800


@pytest.mark.parametrize("part", range(PARTS))
def test_every_elementwise_kernel_compiles(nvrtc, part):
    kernels = elementwise_kernels()
    kernels = kernels[len(kernels) * part // PARTS : len(kernels) * (part + 1) // PARTS]
    entries = entries_of(nvrtc_ptx(nvrtc, source_of(kernels), (ARCHITECTURE,)))
    assert len(entries) == len(kernels)
    for i, kernel in enumerate(kernels):
        ptx, names = entries[f"k{i}"], {n.label for n in walk(kernel.roots) if n.kind == "call"}
        if names <= {"add", "sub", "mul", "neg", "square"}:
            assert "fma.rn" not in ptx, f"{kernel.name} is contracted: {kernel.operation}"
        if kernel.ctype == "float" and set(kernel.in_types + kernel.out_types) <= {dtypes.FLOAT32, dtypes.FLOAT16}:
            # double in a float kernel is slow on most GPUs, and the sign of a function without a float form; CUDA's own
            # sin, cos and tan use it for large arguments only
            # and what draws by rejection does so in double on both devices, for the same numbers
            allowed = names & (WIDE | {"sin", "cos", "tan", "random_gamma", "random_poisson"})
            assert allowed or ".f64" not in ptx, f"{kernel.name} computes in double: {kernel.operation}"


def test_every_reduction_compiles(nvrtc):
    kernels = reduction_kernels()
    assert len(kernels) >= 9 * len(text.STORAGE)
    entries = entries_of(nvrtc_ptx(nvrtc, source_of(kernels), (ARCHITECTURE, *unoptimized(nvrtc))))
    assert len(entries) == len(kernels)


def test_nothing_is_fast_math():
    assert text.OPTIONS == ("--fmad=false", "-DMXOP_SUBNORMALS")
    words = "".join(preamble.FUNCTIONS.values()) + "".join(k.operation for k in elementwise_kernels()[:200])
    assert "__expf" not in words and "__fdividef" not in words


# ---- the same text on the host ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def host():
    if find_host() is None:
        pytest.skip("no C++ compiler (g++, clang++, or the one that CXX names)")
    return host_library


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 1e-30, -1e-30, 20.0, -20.0, 88.0, -100.0,
           700.0, -745.0, 1e10, -1e10, np.inf, -np.inf, np.nan)  # fmt: skip


def operands(n, dtype, rng):
    """Return `n` arrays of points: every pair of special values, and many ordinary ones."""
    special = np.array(SPECIAL)
    grid = np.array(list(itertools.product(special, repeat=2))).T
    columns = []
    for k in range(n):
        ordinary = np.concatenate([rng.uniform(-1, 1, 700), rng.uniform(0.3, 3, 700), rng.normal(0, 30, 600)])
        columns.append(np.concatenate([grid[k % 2], rng.permutation(ordinary)]))
    return [np.ascontiguousarray(c.astype(dtype)) for c in columns]


def parameter_values(op, attrs, names):
    """Return values for a formula's parameters other than 1, which hides mistakes."""
    return [{"n": 1.0}.get(n, 0.75 + 0.5 * k) for k, n in enumerate(names)]


def host_results(library, name, kernel, values, arrays):
    out = [np.zeros(arrays[0].shape, dtypes.numpy_dtype(t)) for t in kernel.out_types]
    scalar = CTYPES[text.SCALAR[kernel.ctype]]
    number = float if kernel.compute in dtypes.FLOATS else int
    getattr(library, name)(
        *map(pointer, arrays),
        *(scalar(number(v)) for v in values),
        *map(pointer, out),
        ctypes.c_longlong(arrays[0].size),
    )
    return out


def agree(found, expected, rtol, scale):
    """Return the mask of agreement: NaN with NaN, infinities exactly, others within a tolerance."""
    with np.errstate(all="ignore"):
        close = np.abs(found - expected) <= rtol * np.maximum(np.abs(expected), scale)
    return close | (found == expected) | (np.isnan(found) & np.isnan(expected))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_generated_text_agrees_with_the_cpu(host, dtype):
    code, cases = dtypes.code_of(dtype), []
    for op in forward_operators(Elementwise):
        if op.out_dtype is not None:
            continue  # conversions: below
        for o, attrs, n, order in formulas_of(op, 1):
            if not o.formula(attrs, n).keys:  # which are no numbers: test_random.py
                cases.append((o, attrs, n, order, kernel_of(o, attrs, n, code)))
    assert len(cases) > 150
    library = host(source_of([c[-1] for c in cases]))
    rtol, wrong = {"float64": 2e-12, "float32": 4e-5}[dtype], []
    for i, (op, attrs, n, order, kernel) in enumerate(cases):
        values = parameter_values(op, attrs, kernel.params)
        rng = np.random.default_rng(zlib.crc32(f"{op.name} {dict(attrs)}".encode()))  # whatever other operators there are
        arrays = operands(n, dtype, rng)
        call = attrs.replaced(**dict(zip(kernel.params, values, strict=True))) if kernel.params else attrs
        expected = into(op.pure, [mx.nd.array(a, dtype=dtype) for a in arrays], None, attrs=call)
        expected = expected if isinstance(expected, list) else [expected]
        with np.errstate(all="ignore"):
            # two formulas of one value differ by roundings of the largest term, not of their difference
            scale = np.maximum(np.max(np.abs(np.nan_to_num(arrays, posinf=1, neginf=1)), axis=0), 1) if order else 1e-2
            # a density is made of differences of log-gammas and logarithms, of products of parameters and their reciprocals,
            # which err as much as these are large
            size = np.max([np.maximum(np.abs(x), 1 / np.abs(x)) for x in arrays], axis=0)
            if op.name.endswith("_density"):
                scale = np.maximum(scale, size**2)
            large = (np.max(np.abs(arrays), axis=0) > 100) | (np.min(np.abs(arrays), axis=0) < 1e-2)
            odd = large & op.name.endswith("_density")
        for k, (a, b) in enumerate(zip(host_results(library, f"k{i}", kernel, values, arrays), expected, strict=True)):
            fine = agree(a, b.asnumpy(), rtol, scale) | odd
            if not fine.all():
                at = int(np.argmin(fine))
                point = ", ".join(repr(x[at]) for x in arrays)
                wrong.append(
                    f"{op.name} {dict(attrs)} output {k} at ({point}): {a[at]!r} but the CPU says {b.asnumpy()[at]!r}; "
                    f"{(~fine).sum()} differ"
                )
    assert not wrong, f"{len(wrong)} of {len(cases)}\n" + "\n".join(wrong)


INTEGERS = ("int32", "int8", "uint8", "int64")


def _compares(op):
    return op.name.startswith(("_equal", "_not_equal", "_greater", "_lesser", "_logical"))


def test_generated_integer_text_agrees_with_the_cpu(host):
    rng, cases = np.random.default_rng(6), []
    for op in forward_operators(Elementwise):
        for o, attrs, n, _ in formulas_of(op, 1):
            if op.out_dtype is None and o.formula(attrs, n).integer and not o.formula(attrs, n).keys:
                cases += [(o, attrs, n, t, kernel_of(o, attrs, n, dtypes.code_of(t))) for t in INTEGERS]
    assert len(cases) > 4 * 50
    library = host(source_of([c[-1] for c in cases]))
    for i, (op, attrs, n, dtype, kernel) in enumerate(cases):
        limits = np.iinfo(dtype)
        special = [v for v in (0, 1, -1, 2, -3, 7, limits.min, limits.max) if limits.min <= v <= limits.max]
        grid = np.array(list(itertools.product(special, repeat=2))).T
        arrays = [np.concatenate([grid[k % 2], rng.integers(-9 if limits.min else 0, 10, 500)]).astype(dtype) for k in range(n)]
        number = 100.75 if _compares(op) else 300.75  # what the type does not hold is compared in float64, by another kernel
        call = attrs.replaced(**dict.fromkeys(kernel.params, number)) if kernel.params else attrs
        values = values_of(op, call, n, dtypes.code_of(dtype))
        expected = into(op.pure, [mx.nd.array(a, dtype=dtype) for a in arrays], None, attrs=call)
        found = host_results(library, f"k{i}", kernel, values, arrays)
        for a, b in zip(found, expected if isinstance(expected, list) else [expected], strict=True):
            np.testing.assert_array_equal(a, b.asnumpy(), err_msg=f"{op.name} {dict(attrs)} {dtype}")


def test_generated_conversions_agree_with_the_cpu(host):
    codes = [t for t in text.STORAGE if t != dtypes.BFLOAT16 or dtypes.has_bfloat16()]
    cases = [(s, t, req, text.of_copy(s, t, req)) for s, t in itertools.product(codes, codes) for req in (WRITE, ADD)]
    library = host(source_of([c[-1] for c in cases]))
    rng = np.random.default_rng(7)
    for i, (source, target, req, _) in enumerate(cases):
        points = rng.uniform(0, 100, 300) if source in dtypes.FLOATS else rng.integers(0, 100, 300)
        if source in dtypes.FLOATS and target in dtypes.FLOATS:
            tiny = [0, -0.0, 1e-8, 6e-5, 6.1e-5, 65504, 65519, 65520, 1e6, 1e-40, np.inf, -np.inf, np.nan]
            points = np.concatenate([tiny, rng.normal(0, 1, 300) * 10.0 ** rng.integers(-9, 9, 300)])
        with np.errstate(over="ignore"):
            a = points.astype(dtypes.numpy_dtype(source))
        b = rng.integers(0, 20, a.size).astype(dtypes.numpy_dtype(target))
        expected = mx.nd.array(b, dtype=b.dtype)
        into("Cast", [mx.nd.array(a, dtype=a.dtype)], expected, req, dtype=dtypes.NAMES[target])
        getattr(library, f"k{i}")(pointer(a), pointer(b), ctypes.c_longlong(a.size))
        name = f"{dtypes.NAMES[source]} to {dtypes.NAMES[target]}, req {req}"
        found, expected = b, expected.asnumpy()
        if target == dtypes.BFLOAT16:  # NumPy's comparison of arrays knows NaN of its own types only
            found, expected = found.astype("float32"), expected.astype("float32")
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_generated_float16_text_agrees_with_the_cpu(host):
    names = ("exp", "tanh", "broadcast_mul", "elemwise_add", "_plus_scalar", "sqrt", "broadcast_maximum", "log1p")
    cases = []
    for name in names:
        for o, attrs, n, _ in formulas_of(mx.op.get(name), 1):
            cases += [(o, attrs, n, req, kernel_of(o, attrs, n, dtypes.FLOAT16, req)) for req in (WRITE, ADD)]
    library, rng = host(source_of([c[-1] for c in cases])), np.random.default_rng(8)
    for i, (op, attrs, n, req, kernel) in enumerate(cases):
        arrays = [rng.uniform(0.1, 4, 400).astype("float16") for _ in range(n)]
        call = attrs.replaced(**dict.fromkeys(kernel.params, 1.25)) if kernel.params else attrs
        out = [np.full(400, 2, "float16") for _ in kernel.out_types]
        expected = [mx.nd.array(a, dtype="float16") for a in out]
        into(op, [mx.nd.array(a, dtype="float16") for a in arrays], expected, req, call)
        getattr(library, f"k{i}")(
            *map(pointer, arrays),
            *[ctypes.c_float(1.25)] * len(kernel.params),
            *map(pointer, out),
            ctypes.c_longlong(400),
        )
        for a, b in zip(out, expected, strict=True):
            np.testing.assert_allclose(a, b.asnumpy(), rtol=2e-3, err_msg=f"{op.name} req {req}")


def test_generated_reductions_agree_with_the_cpu(host):
    cases = []
    for op in forward_operators(Reduction):
        for attrs in calls_of(op):
            for dtype in ("float32", "float64", "float16", *INTEGERS):
                code = dtypes.code_of(dtype)
                out_type = op.infer_type(attrs, [code], [dtypes.UNKNOWN])[1][0]
                cases.append((op, attrs.replaced(axis=(1,)), dtype, reductions.of_reduction(op, attrs, code, out_type)))
    library, rng = host(source_of([c[-1] for c in cases])), np.random.default_rng(9)
    for i, (op, attrs, dtype, kernel) in enumerate(cases):
        for columns in (0, 1, 37) if op.empty else (1, 37):
            a = np.ascontiguousarray((rng.normal(0, 3, (5, columns)) + (np.dtype(dtype).kind == "u") * 9).astype(dtype))
            if columns == 37 and a.dtype.kind == "f":
                a[2, 3], a[3, 0] = np.nan, np.inf
            out = np.zeros(5, dtypes.numpy_dtype(kernel.out_type))
            count = CTYPES[text.SCALAR[kernel.ctype]](columns)
            getattr(library, f"k{i}")(pointer(a), count, pointer(out), ctypes.c_longlong(5), ctypes.c_longlong(columns))
            expected = into(op, [mx.nd.array(a, dtype=dtype)], None, attrs=attrs).asnumpy()
            rtol = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3}.get(dtype, 0)
            np.testing.assert_allclose(out, expected, rtol=rtol, err_msg=f"{op.name} {dict(attrs)} {dtype} of {columns}")


def test_a_reduction_of_nothing_has_the_value_of_its_identity():
    for op in forward_operators(Reduction):
        kernel = reductions.of_reduction(op, op.parse({}), dtypes.UINT8, dtypes.UINT8)
        assert float(kernel.identity) == kernel.identity_value
    kernel = reductions.of_reduction(mx.op.get("max"), mx.op.get("max").parse({}), dtypes.INT64, dtypes.INT64)
    assert kernel.identity_value == -(2**63)


def test_missing_integer_form_is_named():
    kernel = text.ElementwiseText((mx.op.F.exp(input_(0)),), (), (4,), (4,), dtypes.INT32, (WRITE,), "some")
    with pytest.raises(mx.MXNetError, match=r"operator some: primitive exp has no integer form.*int32"):
        _ = kernel.operation


# ---- machines without a GPU ------------------------------------------------------------------------------------------
def without_cupy(code):
    """Run code in a process in which CuPy cannot be found."""
    hide = "import sys; sys.modules['cupy'] = None\n"
    done = subprocess.run([sys.executable, "-c", hide + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_mxop_never_imports_cupy():
    code = "import sys, mxop; x = mxop.nd.ones((2,)) + 1; x.asnumpy(); print('cupy' in sys.modules, 'mxop._gpu' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_error_without_cupy_says_what_to_install():
    code = """
import mxop as mx
from mxop.errors import DeviceError
assert mx.num_gpus() == 0
for make in (lambda: mx.nd.zeros((2,), ctx=mx.gpu(0)), lambda: mx.nd.array([1], ctx=mx.gpu(0)),
             lambda: mx.nd.ones((2,)).as_in_context(mx.gpu(0)), lambda: mx.gpu_memory_info(0)):
    try:
        make()
    except DeviceError as problem:
        print(problem)
"""
    lines = without_cupy(code).splitlines()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("gpu(0) needs CuPy") and "mxop-ndarray[cuda12]" in line and "mxop-ndarray[cuda13]" in line


def test_error_without_a_device_says_so():
    code = """
import sys, types
sys.modules['cupy'] = cupy = types.ModuleType('cupy')
def getDeviceCount():
    raise RuntimeError('cudaErrorNoDevice: no CUDA-capable device is detected')
cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=getDeviceCount))
import mxop as mx
assert mx.num_gpus() == 0
for count in (None, 2):
    if count:
        cupy.cuda.runtime.getDeviceCount = lambda: count
    try:
        mx.nd.zeros((2,), ctx=mx.gpu(7))
    except mx.errors.DeviceError as problem:
        print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert "no CUDA device is visible" in first and "cudaErrorNoDevice" in first and "CUDA_VISIBLE_DEVICES" in first
    assert second == "gpu(7) does not exist; CUDA devices visible here: gpu(0), gpu(1)"


def test_device_error_is_an_mxnet_error():
    assert issubclass(DeviceError, mx.MXNetError)


# ---- the kernels that run --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype, elements", [("float32", 4), ("float64", 2), ("float16", 8), ("int8", 16)])
def test_kernels_move_whole_words(nvrtc, dtype, elements):
    code = dtypes.code_of(dtype)
    x, y = input_(0), input_(1)
    compute = dtypes.COMPUTED_AS.get(code, code)
    kernel = text.ElementwiseText((x * y + x,), (), (code, code), (code,), compute, (WRITE,), "some")
    itemsize = np.dtype(dtype).itemsize
    for shape, strides, words in (
        ((1000,), [(1,), (1,), (1,)], True),
        ((64, 128), [(128, 1), (0, 1), (128, 1)], True),  # a row is given to all
        ((64, 127), [(127, 1), (0, 1), (127, 1)], False),  # rows end in the middle of a word
    ):
        laid, _, _ = layout.lay(shape, strides, itemsize, True)
        assert laid.width == (elements if words else 1)
        ptx = nvrtc_ptx(nvrtc, by_words(kernel, laid), (ARCHITECTURE,))
        wide = "ld.global.v" in ptx and "st.global.v" in ptx
        assert wide is words and ".local" not in ptx, ptx
    assert layout.lay((1000,), [(1,), (1,), (1,)], itemsize, False)[0].width == 1  # something begins in the middle of a word


def test_kernels_of_elements_compile(nvrtc, simulated_gpu):
    nd, ctx = mx.nd, simulated_gpu
    for dtype in ("float32", "float16", "float64", "int8", "bool"):
        fake_kernels.made.clear()
        x, at = nd.ones((96, 80), dtype=dtype, ctx=ctx), nd.ones((3, 64), ctx=ctx)
        nd.take(x, at, mode="wrap")
        nd._internal._take_grad(nd.ones((3, 64, 80), dtype=dtype, ctx=ctx), at, x)
        nd.transpose(x)
        sources = dict(fake_kernels.made)
        nd.cumsum(x, axis=1)
        sources["few"] = fake_kernels.made["mxop_running_sums"]
        nd.cumsum(x, axis=0)
        sources["columns"] = fake_kernels.made["mxop_running_sums"]
        assert {"mxop_take", "mxop_sums_at", "mxop_copy"} < set(sources)
        for name, source in sources.items():
            ptx = nvrtc_ptx(nvrtc, re.sub(r"#ifndef (INFINITY|NAN)\n.*\n#endif\n", "", source), (ARCHITECTURE,))
            assert ptx.count(".entry") == 1 and ".local" not in ptx, name
            assert "ld.global.v4.u32" in ptx or name != "mxop_take"
            assert ("bar.sync" in ptx) is (name in ("mxop_copy", "few")), name


def test_subnormal_numbers_are_kept(nvrtc):
    kernel = text.ElementwiseText((input_(0) * 0.5,), (), (0,), (0,), dtypes.FLOAT32, (WRITE,), "half")
    laid, _, _ = layout.lay((100,), [(1,), (1,)], 4, True)
    ptx = nvrtc_ptx(nvrtc, by_words(kernel, laid), (ARCHITECTURE,))
    assert "mul.rn.f32" in ptx and ".ftz" not in ptx


def by_words(kernel, laid):
    """Return the text that CuPy compiles of a kernel by words."""
    return cupy_texts([kernel.by_words(laid)])


def cupy_texts(sources):
    """Return the text that CuPy compiles of kernels, each of which has its own namespace, for arrays of one dimension."""
    found = [cupy_text.HEADER]
    for i, source in enumerate(sources):
        inputs, outputs = cupy_text.parameters(source.in_params), cupy_text.parameters(source.out_params)
        dims = [int(not p.raw) if is_array(p, source) else None for p in (*inputs, *outputs)]
        made = cupy_text.elementwise_text(inputs, outputs, dims, 1, source.operation, f"k{i}", source.preamble)
        made = made.removeprefix(cupy_text.HEADER)
        found.append(f"namespace n{i} {{\n{made}\n}}\n")
    return "".join(found)


def is_array(parameter, source):
    return bool(source.out_params) and parameter.name[0] in "xyp"


def some_sources(step):
    """Return the sources of kernels of the registry, of arrays of any strides, and by words; those with keys are among them."""
    kernels = elementwise_kernels()
    with_keys = [k for k in kernels if keys_of(k.roots)]
    for kernel in (*kernels[::step], *with_keys[:: max(step // 10, 1)]):
        yield kernel.plain()
        n = len(kernel.in_types) + len(kernel.out_types)
        size = max(dtypes.SIZES[t] for t in (*kernel.in_types, *kernel.out_types))
        yield kernel.by_words(layout.lay((100_000,), [(1,)] * n, size, True)[0])


def test_kernels_compile_as_cupy_makes_them(nvrtc):
    sources = list(some_sources(5))
    text_of = re.sub(r"#ifndef (INFINITY|NAN)\n.*\n#endif\n", "", cupy_texts(sources))
    values = "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"
    ptx = nvrtc_ptx(nvrtc, values + text_of, (ARCHITECTURE, *unoptimized(nvrtc)))
    assert ptx.count(".entry") == len(sources) > 300


def test_every_kernel_compiles_in_the_text_of_the_cupy_that_is_installed(nvrtc):
    cupy = pytest.importorskip("cupy")
    from cupy._core import _kernel

    headers = Path(cupy.__file__).parent / "_core" / "include"
    cuda = pytest.importorskip("cuda.pathfinder").find_nvidia_header_directory("cudart")
    if cuda is None:
        pytest.skip("the headers of CUDA are not installed")
    folders = [*(headers / "cupy" / "_cccl" / name for name in ("cub", "thrust", "libcudacxx")), headers, cuda]
    options = ("--std=c++17", *(f"-I{folder}" for folder in folders), ARCHITECTURE)
    for source in some_sources(40):
        made = cupy.ElementwiseKernel(source.in_params, source.out_params, source.operation, source.name,
                                      preamble=source.preamble, no_return=True)  # fmt: skip
        kinds = []
        for p in (*cupy_text.parameters(source.in_params), *cupy_text.parameters(source.out_params)):
            array = is_array(p, source)
            kinds.append(_kernel._ArgInfo(1 if array else 3, cupy.ndarray if array else object, np.dtype(p.dtype),
                                          int(array and not p.raw), array, array))  # fmt: skip
        kinds.append(_kernel._ArgInfo(2, object, None, 1, True, True))
        names = [f"#include <cupy/{name}>\n" for name in ("complex.cuh", "carray.cuh", "atomics.cuh", "math_constants.h")]
        whole = _kernel._get_elementwise_kernel_code(tuple(kinds), _kernel._TypeMap(()), made.params, made.operation, made.name,
                                                     made.preamble)  # fmt: skip
        ptx = nvrtc_ptx(nvrtc, "".join(names) + whole, options)
        assert bool(source.out_params) or "st.global.v" in ptx  # by words, it writes words


@pytest.mark.parametrize(("dtype", "calls"), [("float32", 1), ("float64", 2)])
def test_philox_runs_once_for_all_numbers_that_it_makes(nvrtc, dtype, calls):
    """One call makes the bits of four float32 numbers, or of two float64 numbers: as many as a thread needs."""
    code = dtypes.code_of(dtype)
    kernel = text.ElementwiseText((mx.op.F.random(input_(0)),), (), (dtypes.INT64,), (code,), code, (WRITE,), "some")

    def multiplications(drawn):
        laid, _, _ = layout.lay((1 << 20,), [(0,), (1,)], dtypes.SIZES[code], True, drawn)
        ptx = nvrtc_ptx(nvrtc, by_words(kernel, laid), (ARCHITECTURE,))
        assert ".local" not in ptx or not drawn
        return len(re.findall(r"mul\.(?:wide|hi|lo)\.", ptx))

    assert multiplications(True) <= calls * 24 < multiplications(False) / 2


def test_subnormal_numbers_are_kept_by_the_cupy_that_is_installed(nvrtc):
    cupy = pytest.importorskip("cupy")
    compiled.keep_subnormals(cupy)
    source = 'extern "C" __global__ void f(float *x) { x[0] *= 0.5f; }'

    def flushes(*options):
        ptx, _ = cupy.cuda.compiler._NVRTCProgram(source).compile((ARCHITECTURE, *options, "-ftz=true"))
        return b".ftz" in ptx

    assert flushes() and not flushes(*text.OPTIONS)
