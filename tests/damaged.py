"""Damaged and hostile files given to everything that reads files: what may be raised, and that memory and time stay bounded.

Run as ``python -m damaged SEED COUNT [READER]`` (from this folder); `test_damaged.py` does, in a process of its own.  COUNT
files are made for each reader, each by a generator that is seeded with its number.  The last line that is printed says how many
of them each reader has read, refused, and failed at.
"""

import base64
import faulthandler
import gzip
import io
import json
import os
import pickle
import pickletools
import random
import resource
import struct
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import mxop as mx
from mxop import nd, recordio, sym
from mxop.cli import Stop
from mxop.cli.npy import read_floats
from mxop.library import binary
from mxop.optimizer.pickled import _RUN

DATA = Path(__file__).parent / "data"
MORE = 768 << 20  # bytes that the process may take beyond what it has: files are small, nd.load may take 256 MiB for empty rows
LONG = 20  # seconds that no file may take
NUMBERS = [
    0,
    1,
    -1,
    127,
    128,
    255,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**53,
    2**61 - 1,
    2**62,
    2**63 - 1,
    -(2**63),
]


# ---- damage ---------------------------------------------------------------------------------------------------------
def one_of(good, draw, number, count):
    """Return the good file, it cut at each byte or with each byte changed (if `count` allows for that), or damaged anyhow."""
    size = len(good[0])
    if number > 2 * size or 4 * size > count:
        return damaged(draw, draw.choice(good)) if number else good[0]
    if 0 < number <= size:
        return good[0][: number - 1]
    changed = bytearray(good[0])
    if number:
        changed[number - size - 1] ^= draw.randrange(1, 256)
    return bytes(changed)


def damaged(draw, content):
    """Return bytes that were cut, changed, moved, or replaced by others."""
    content = bytearray(content)
    if draw.random() < 0.2:
        return bytes(content[: draw.randrange(len(content) + 1)])
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        at, edit = draw.randrange(len(content) + 1), draw.randrange(7)
        if edit == 0 and content:
            content[at % len(content)] ^= 1 << draw.randrange(8)
        elif edit == 1 and content:
            content[at % len(content)] = draw.choice([0, 9, 10, 32, 127, 128, 255, draw.randrange(256)])
        elif edit == 2:
            del content[at : at + draw.randint(1, 12)]
        elif edit == 3:
            content[at:at] = draw.randbytes(draw.randint(1, 12))
        elif edit == 4:
            content[at:at] = content[at : at + draw.randint(1, 40)] * draw.choice([1, 1, 2, 50])
        elif edit == 5:
            number = draw.choice(NUMBERS) & (1 << 64) - 1
            content[at : at + 8] = number.to_bytes(8, draw.choice(["little", "big"]))[: draw.choice([4, 8])]
        else:
            content[at:at] = draw.choice([*map(str, NUMBERS), "9" * 5000, "1e400", "nan"]).encode() if at % 9 else b"\n"
    return bytes(content)


STATES = [base64.b64decode(p) for case in json.loads((DATA / "states.json").read_text())["cases"].values() for p in case[0]]


def own_states():
    update = mx.optimizer.get_updater(mx.optimizer.create("adam", lr_scheduler=mx.lr_scheduler.FactorScheduler(2)))
    for index in (0, "b"):
        update(index, nd.ones((2, 3)), nd.ones((2, 3)))
    return update.get_states(dump_optimizer=True)


_NAMES = ["numpy\ndtype", "numpy.core.multiarray\nscalar", "builtins\nbytearray", "_codecs\nencode", "builtins\nobject",
          "mxnet.ndarray.ndarray\nNDArray", "mxnet.optimizer.optimizer\nAdam", "mxnet.lr_scheduler\nFactorScheduler",
          "copy_reg\n_reconstructor"]  # fmt: skip
_TEXTS = [b"handle", b"f8", b"lr", b"update", b"_all_index_update_counts", b"latin1", b"", b"<"]
_WIDTHS = {1: b"KqhCU\x80\x8a\x8c", 2: b"M", 4: b"JjrXTB\x8b", 8: b"G\x8d\x8e\x95\x96"}
_USED = {1: b"\x85", 2: b"a\x86R\x81b\x93", 3: b"s\x87"}


_RUNS = [op.code.encode("latin-1") for op in pickletools.opcodes if op.name in _RUN]


def instructions(draw):
    """Return a pickle of random instructions; most of them find the operands that they need."""
    found, depth, marks = bytearray(draw.choice([b"\x80\x02", b"}", b"(", b"\x80\x04]"])), 1, 0
    for _ in range(draw.randint(1, 40)):
        op = draw.choice([*_RUNS, b")", b"(", b"}", b"c", b"C", b"K", b"h", b"R", b"b", b"t", b"\x86"])
        if draw.random() < 0.97:  # else it may lack what it needs
            if depth < next((n for n, ops in _USED.items() if op in ops), 0) or (op in b"tldeu" and not marks):
                continue
            if op in b"\x8a\x8b\x96IgjrLp" and draw.random() < 0.8:
                continue
        found += op
        width = next((n for n, ops in _WIDTHS.items() if op in ops), 0)
        if op == b"c":
            found += f"{draw.choice(_NAMES)}\n".encode()
        elif op in b"ILFSVpg":
            found += draw.choice([b"0", b"1", b"01", b"1.5", b"5L", b"9" * 20, b"nan", b"'f8'", b"handle", b"<"]) + b"\n"
        elif op in b"XTBCU\x8a\x8b\x8c\x8d\x8e\x96":
            text = draw.choice([*_TEXTS, draw.randbytes(8)])
            size = len(text) if draw.random() < 0.95 else draw.choice([0, 1, 255, 1 << 30])
            found += min(size, (1 << 8 * width) - 1).to_bytes(width, "little") + text
        elif width:
            found += bytes([draw.randrange(3)]) + bytes(width - 1)
        marks += (op == b"(") - (op in b"tldeu")
        depth = max(depth + 1 - sum(n * (op in ops) for n, ops in _USED.items()), 1)
    return bytes(found + b".")


def shared(draw):
    """Return a pickle of collections that hold the one before several times, or lie deep in each other."""
    depth, times, kind = draw.choice([2, 3, 8, 40, 100, 3000]), draw.choice([1, 2, 3]), draw.choice("tld")
    key = [b"K%c" % k if kind == "d" else b"" for k in range(times)]
    inner = draw.choice([b"N", b"X\x04\x00\x00\x00text", b"C\x40" + bytes(64), b"]"])
    more = b"q\x00" + b"".join(k + b"h\x00" for k in key[1:]) + kind.encode()
    return b"\x80\x02}K\x00" + (b"(" + key[0]) * depth + inner + more * depth + b"s."


def dtypes(draw):
    """Return a number of NumPy's whose type has a state of any kind."""

    def value(depth=0):
        if depth < 3 and draw.random() < 0.3:
            return tuple(value(depth + 1) for _ in range(draw.randrange(4)))
        return draw.choice([*NUMBERS, None, "<", "|", "f8", "O", b"abc", 1.5, {"a": 1}, ("f8", (2**40,))])

    def pickled(what):
        return pickle.dumps(what, 2)[2:-1]

    state = [3, "<", None, None, None, -1, -1, 0]
    state[draw.randrange(8)] = value()
    name = draw.choice(["f8", "V8", "S4", "U4", "M8[s]", "O", "i4", "?", "f8,i4"])
    made = b"cnumpy\ndtype\n(" + pickled(name) + b"I0\nI1\ntR" + pickled(tuple(state)) + b"b"
    return b"\x80\x02cnumpy.core.multiarray\nscalar\n(" + made + pickled(draw.randbytes(draw.choice([0, 4, 8]))) + b"tR."


# ---- readers: what makes a good file, what reads it, and whether errors can name the file ---------------------------
def set_states(content):
    mx.optimizer.get_updater(mx.optimizer.create("adam")).set_states(content)


def every(iterator):
    return [batch.data[0].asnumpy() for batch in iterator]


def records(path):
    reader = recordio.MXRecordIO(path, "r")
    while (record := reader.read()) is not None:
        if len(record) >= 24:
            recordio.unpack(record)


def indexed(idx, rec):
    reader = recordio.MXIndexedRecordIO(idx, rec, "r")
    return [reader.read_idx(key) for key in reader.keys]


def text_of(make):
    buffer = io.BytesIO()
    make(buffer)
    return buffer.getvalue()


def zipped(text):
    def write(file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("glove.6B.50d.txt", text)

    return text_of(write)


def of_records():
    writer = recordio.MXIndexedRecordIO("good.idx", "good.rec", "w")
    for key, label in enumerate((1.0, [1, 2, 3], 7.0)):
        writer.write_idx(key, recordio.pack(recordio.IRHeader(0, label, key, 0), b"\x0a\x23\xd7\xce" * key + b"abc"))
    writer.close()
    return Path("good.rec").read_bytes(), Path("good.idx").read_bytes()


def checkpoint(path):
    Path("net-0001.params").write_bytes(Path(path).read_bytes())
    mx.model.load_checkpoint("net", 1)


def load_states(path):
    store = mx.kv.create()
    store.set_optimizer(mx.optimizer.create("sgd"))
    store.load_optimizer_states(path)


def rebuilt(content):
    nd.zeros((2,)).__setstate__({"handle": bytearray(content)})


def use_json(path):
    net = sym.load(path)
    net.infer_shape_partial()


def initializer(content):
    mx.init.Uniform()(mx.init.InitDesc("w", {"__init__": content.decode("latin-1")}), nd.zeros((2, 2)))


def readers():
    """Return for each reader: good contents, the reading function of a name (or bytes), whether errors name the file."""
    images = struct.pack(">IIII", 0x803, 3, 4, 4) + bytes(range(48))
    Path("labels").write_bytes(struct.pack(">II", 0x801, 3) + bytes([1, 2, 3]))
    Path("images").write_bytes(images)
    csv, svm = b"1,2,3\n4,5,6e1\n-7,8,9\n", b"1 0:0.5 2:2\n-1 1:3 # a remark\n0\n"
    rec, idx = of_records()
    words = b"<unk> 0 0\ncat 1 2\ndog 3 4\n3 2\n"
    params = [(DATA / f"{n}.params").read_bytes() for n in ("mixed", "v2_dtypes", "v1", "sparse", "oldest", "v3_np_shape")]
    graphs = [(DATA / f"{n}.json").read_bytes() for n in ("mlp", "lenet", "loop", "v08", "while_loop", "np_shape", "cond")]
    arrow = text_of(lambda f: np.save(f, np.arange(6.0).reshape(2, 3)))
    sym.exp(sym.Variable("x")).save("net-symbol.json")
    os.makedirs("glove", exist_ok=True)

    def glove(path):
        Path("glove/glove.6B.zip").write_bytes(Path(path).read_bytes())
        mx.contrib.text.embedding.GloVe("glove.6B.50d.txt", ".")

    record = nd.save_tobuffer([nd.ones((2,))])[24:-8]
    library = min(Path(mx.__file__).parent.rglob("*.so"), key=lambda path: path.stat().st_size).read_bytes()

    def header(draw):
        return damaged(draw, library[:600]) + library[600:]

    return {
        "set_states, MXNet's pickles": (STATES, set_states, None),
        "set_states, ours": ([own_states()], set_states, None),
        "set_states, instructions": (instructions, set_states, None),
        "set_states, shared and deep": (shared, set_states, None),
        "set_states, dtypes": (dtypes, set_states, None),
        "NDArray.__setstate__": ([record], rebuilt, None),
        "kvstore.load_optimizer_states": ([STATES[0], own_states()], load_states, True),
        "nd.load": (params, nd.load, True),
        "init.Load": (params[:3], mx.init.Load, True),
        "model.load_checkpoint": ([nd.save_tobuffer({"arg:x": nd.ones(2)})], checkpoint, False),
        "sym.load": (graphs, use_json, False),
        "initializer of a variable": ([b'["Constant", {"value": 0.25}]', b'["zero", {}]'], initializer, None),
        "MNISTIter, images": ([images], lambda p: every(mx.io.MNISTIter(p, "labels", 1)), True),
        "MNISTIter, labels": ([Path("labels").read_bytes()], lambda p: every(mx.io.MNISTIter("images", p, 1)), True),
        "MNISTIter, .gz": ([gzip.compress(images, mtime=0)], lambda p: every(mx.io.MNISTIter(p, "labels", 1)), True),
        "CSVIter": ([csv], lambda p: every(mx.io.CSVIter(p, (3,))), True),
        "CSVIter, .gz": ([gzip.compress(csv, mtime=0)], lambda p: every(mx.io.CSVIter(p, (3,))), True),
        "LibSVMIter": ([svm], lambda p: every(mx.io.LibSVMIter(p, (3,))), True),
        "LibSVMIter, .gz": ([gzip.compress(svm, mtime=0)], lambda p: every(mx.io.LibSVMIter(p, (3,))), True),
        "MXRecordIO": ([rec], records, False),
        "MXIndexedRecordIO, index": ([idx], lambda p: indexed(p, "good.rec"), False),
        "MXIndexedRecordIO, records": ([rec], lambda p: indexed("good.idx", p), True),
        "CustomEmbedding": ([words], mx.contrib.text.embedding.CustomEmbedding, True),
        "GloVe, .zip": ([zipped(words.decode())], glove, False),
        "library, header": (header, lambda p: binary.check(Path(p)), True),
        "npy of the commands": ([arrow], read_floats, True),
    }


# ---- judging --------------------------------------------------------------------------------------------------------
def main(seed, count, only=None):
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    all_readers = readers()
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MORE, now + MORE))
    found, bad = {}, 0
    for name, (good, read, named) in all_readers.items():
        if only is not None and only not in name:
            continue
        tally = found[name] = {"read": 0, "refused": 0, "failed": 0}
        for number in range(count):
            draw = random.Random(f"{seed} {name} {number}")
            content = good(draw) if callable(good) else one_of(good, draw, number, count)
            given = content
            if named is not None:
                given = f"damaged.{'gz' if '.gz' in name else 'file'}"
                Path(given).write_bytes(content)
            faulthandler.dump_traceback_later(LONG, exit=True)
            kind, why = "failed", ""
            try:
                read(given)
                kind = "read"
            except (mx.MXNetError, Stop) as problem:
                if isinstance(problem, MemoryError):
                    why = f"took too much memory: {problem}"
                elif named and given not in str(problem):
                    why = f"the file is not named: {problem}"
                else:
                    kind = "refused"
            except Exception as problem:
                why = f"{type(problem).__name__}: {problem}"
            faulthandler.cancel_dump_traceback_later()
            tally[kind] += 1
            if kind == "failed":
                bad += 1
                if tally["failed"] <= 3:
                    print(f"BAD {name}, {number}: {why[:300]}; {content[:80]!r}", flush=True)
            if number == 0 and not callable(good) and kind != "read":
                bad += 1
                print(f"BAD {name}: the good file is not read", flush=True)
    print(json.dumps(found))
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4])))
