"""``mx.contrib.text`` and ``mx.contrib.io``: MXNet's numbers and vectors of tokens, files that hold anything, loaders.

What is expected of values is what MXNet 1.9.1 gives.
"""

import io
import zipfile
from collections import Counter

import numpy as np
import pytest

import mxop as mx
from mxop.contrib.text import embedding, utils, vectors
from mxop.contrib.text.vocab import Vocabulary

COUNTS = Counter(["c", "c", "c", "b", "b", "b", "a", "some_word$", "<pad>", "<pad>"])
LINES = "a 1 2 3\nb 4 5 6\n<unk> 7 8 9\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="words.txt", encoding="utf8"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return str(tmp_path / name)

    return write


# ---- tokens -----------------------------------------------------------------------------------------------------------
def test_counts():
    assert utils.count_tokens_from_str(" Life is great ! \n life is good . \n", to_lower=True) == {
        "life": 2, "is": 2, "great": 1, "!": 1, "good": 1, ".": 1,
    }  # fmt: skip
    found = utils.count_tokens_from_str("*Life*is*\n*life*", r"\*", "\n", False, Counter({"life": 2}))
    assert found == {"Life": 1, "is": 1, "life": 3}
    with pytest.raises(ValueError, match="regular expressions: nothing to repeat"):
        utils.count_tokens_from_str("a*b", "*")


@pytest.mark.parametrize("options, tokens", [
    ({}, ["<unk>", "b", "c", "<pad>", "a", "some_word$"]),
    ({"most_freq_count": 2}, ["<unk>", "b", "c"]),
    ({"most_freq_count": 0}, ["<unk>"]),
    ({"min_freq": 2}, ["<unk>", "b", "c", "<pad>"]),
    ({"min_freq": 100}, ["<unk>"]),
    ({"most_freq_count": 2, "unknown_token": "<u>", "reserved_tokens": ["<pad>", "b"]}, ["<u>", "<pad>", "b", "c", "a"]),
    ({"unknown_token": "b"}, ["b", "c", "<pad>", "a", "some_word$"]),
])  # fmt: skip
def test_vocabularies(options, tokens):
    words = Vocabulary(COUNTS, **options)
    assert words.idx_to_token == tokens and words.token_to_idx == {t: i for i, t in enumerate(tokens)}
    assert words.unknown_token == tokens[0] and words.reserved_tokens == options.get("reserved_tokens")
    assert words.to_indices([*tokens, "strange"]) == [*range(len(tokens)), 0] and words.to_indices("strange") == 0
    assert words.to_tokens(list(range(len(tokens)))) == tokens and words.to_tokens(0) == tokens[0]


@pytest.mark.parametrize("make, told", [
    (lambda: Vocabulary(COUNTS, min_freq=0), "min_freq=0 is not positive"),
    (lambda: Vocabulary(COUNTS, most_freq_count=-1), "most_freq_count=-1 is negative"),
    (lambda: Vocabulary(COUNTS, reserved_tokens=["a", "a"]), "names a token twice"),
    (lambda: Vocabulary(COUNTS, reserved_tokens=["<unk>"]), "or the unknown one, '<unk>'"),
    (lambda: Vocabulary(["a"]), "counter is a list"),
    (lambda: Vocabulary(COUNTS).to_tokens(6), "6 is not the index of a token; there are 6"),
    (lambda: Vocabulary(COUNTS).to_tokens([0, 1.0]), "1.0 is not the index of a token"),
])  # fmt: skip
def test_refused_vocabularies(make, told):
    with pytest.raises(mx.MXNetError, match=told):
        make()


# ---- vectors ----------------------------------------------------------------------------------------------------------
def rows(found):
    return found.idx_to_vec.asnumpy().tolist()


def test_files_of_vectors(written):
    path = written(LINES + "b 0 0 0\n")
    with pytest.warns(UserWarning, match=r"words.txt', line 4: token 'b' has a vector already, and is left out"):
        found = embedding.CustomEmbedding(path)
    assert found.idx_to_token == ["<unk>", "a", "b"] and found.vec_len == 3 and len(found) == 3
    assert rows(found) == [[7, 8, 9], [1, 2, 3], [4, 5, 6]] and found.idx_to_vec.dtype == np.float32
    other = embedding.CustomEmbedding(written(LINES), unknown_token="<u>", init_unknown_vec=mx.nd.ones)
    assert other.idx_to_token == ["<u>", "a", "b", "<unk>"] and rows(other)[0] == [1, 1, 1]
    with pytest.warns(UserWarning, match="line 1: token '2' with one number is taken for a header"):
        assert rows(embedding.CustomEmbedding(written("2\t3\nä\t1\t2  \n", encoding="utf16"), "\t", "utf16")) == [
            [0, 0],
            [1, 2],
        ]


def test_reserved_tokens_keep_their_numbers_better(written):
    found = embedding.CustomEmbedding(written(LINES), reserved_tokens=["<pad>", "b"])  # MXNet's rows are moved against them
    assert found.idx_to_token == ["<unk>", "<pad>", "b", "a"]
    assert rows(found) == [[7, 8, 9], [0, 0, 0], [4, 5, 6], [1, 2, 3]]


def test_vectors_of_a_vocabulary(written):
    words = Vocabulary(Counter(["a", "a", "zz"]), reserved_tokens=["<pad>"])
    found = embedding.CustomEmbedding(written(LINES), vocabulary=words)
    unknown = [7.0, 8.0, 9.0]
    assert found.idx_to_token == words.idx_to_token == ["<unk>", "<pad>", "a", "zz"] and found.reserved_tokens == ["<pad>"]
    assert rows(found) == [unknown, unknown, [1, 2, 3], unknown]
    joined = embedding.CompositeEmbedding(words, [found, embedding.CustomEmbedding(written(LINES))])
    assert rows(joined) == [r + r for r in rows(found)] and joined.vec_len == 6
    assert rows(embedding.CompositeEmbedding(words, found)) == rows(found)
    assert rows(embedding.CompositeEmbedding(Vocabulary(), found)) == [unknown]


def test_looking_up_and_changing(written):
    found = embedding.CustomEmbedding(written(LINES))
    assert found.get_vecs_by_tokens("a").asnumpy().tolist() == [1, 2, 3]
    assert found.get_vecs_by_tokens(["A", "b"]).asnumpy().tolist() == [[7, 8, 9], [4, 5, 6]]
    assert found.get_vecs_by_tokens(["A", "B"], lower_case_backup=True).asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    found.update_token_vectors("a", mx.nd.array([9, 9, 9]))
    found.update_token_vectors(["b"], mx.nd.array([[8, 8, 8]]))
    found.update_token_vectors(["<unk>", "b"], mx.nd.array([[1, 1, 1], [2, 2, 2]]))
    assert rows(found) == [[1, 1, 1], [9, 9, 9], [2, 2, 2]]
    for tokens, new, told in (("zz", [1, 1, 1], "token 'zz' is unknown"), ("a", [1, 1], r"shape \(2,\); expected \(1, 3\)"),
                              (["a", "b"], [1, 1, 1], r"expected \(2, 3\)")):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            found.update_token_vectors(tokens, mx.nd.array(new))


@pytest.mark.parametrize("text, told", [
    ("a 1 2\nb 1 2 3\n", "line 2: token 'b' has 3 numbers, those before have 2"),
    ("a 1 2\nb 1 x\n", "line 2: token 'b': could not convert string to float: 'x'"),
    ("a 1 2\n\nb 1 2\n", "line 2: '' has no ' '"),
    ("a 1 2\n" + "b" * vectors.LONGEST, "line 2: has 1,048,576 characters and more"),
    ("", "has no line with a token and a vector"),
    ("<unk> 1 2 3\na 1 2\n", "the vector of '<unk>' has 3 numbers, those of the others have 2"),
    (b"a 1 2\n\xff 1 2\n", "is not text in 'utf8': .*invalid start byte"),
])  # fmt: skip
def test_refused_files(written, text, told):
    with pytest.raises(mx.errors.OpValueError, match=f"words.txt'.* {told}"):
        embedding.CustomEmbedding(written(text))


@pytest.mark.filterwarnings("ignore:embedding")
def test_no_file_raises_an_error_of_another_kind(tmp_path):
    random, refused = np.random.RandomState(0), 0
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("glove.6B.50d.txt", LINES * 5)
    (tmp_path / "glove").mkdir()
    for path, whole, encodings in (("words.txt", LINES.encode(), ["utf8", "utf16", "ascii"]),
                                   ("glove/glove.6B.zip", archive.getvalue(), [None])):  # fmt: skip
        for _ in range(300):
            data = bytearray(whole)
            for at in random.randint(0, len(data), 3):
                data[at] = random.randint(256)
            (tmp_path / path).write_bytes(data)
            try:
                if encodings == [None]:
                    embedding.GloVe("glove.6B.50d.txt", str(tmp_path))
                else:
                    embedding.CustomEmbedding(str(tmp_path / path), encoding=random.choice(encodings))
            except mx.MXNetError:
                refused += 1
    assert refused > 300


def test_refused_arguments(written):
    path = written(LINES)
    for call, kind, told in (
        (lambda: embedding.CustomEmbedding(path, encoding="none"), ValueError, "unknown encoding: none"),
        (lambda: embedding.CustomEmbedding(path, ""), ValueError, "elem_delim='' is empty"),
        (lambda: embedding.CustomEmbedding("/nowhere/words.txt"), FileNotFoundError, "/nowhere/words.txt"),
        (lambda: embedding.CustomEmbedding(path, vocabulary=["a"]), TypeError, "is not a Vocabulary"),
        (lambda: embedding.CompositeEmbedding(Vocabulary(), 3), TypeError, "3 in token_embeddings is not an embedding"),
    ):
        with pytest.raises(kind, match=told):
            call()


# ---- by name ----------------------------------------------------------------------------------------------------------
def test_published_files_are_read_and_never_downloaded(written, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"glove.6B.50d.txt' nor .*glove.6B.zip' is there, and nothing is downloaded"):
        embedding.create("GloVe", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    with pytest.raises(KeyError, match=r"no file 'glove.6B.5d.txt'; did you mean 'glove.6B.50d.txt'"):
        embedding.create("glove", pretrained_file_name="glove.6B.5d.txt")
    written(LINES, "embeddings/fasttext/wiki.simple.vec")
    assert rows(embedding.FastText(embedding_root=str(tmp_path / "embeddings"))) == [[7, 8, 9], [1, 2, 3], [4, 5, 6]]
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    words = Vocabulary(Counter("b"))
    assert rows(embedding.create("fasttext", vocabulary=words)) == [[7, 8, 9], [4, 5, 6]]
    (tmp_path / "embeddings" / "glove").mkdir()
    with zipfile.ZipFile(tmp_path / "embeddings" / "glove" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", LINES)
    assert len(embedding.create("glove", pretrained_file_name="glove.6B.50d.txt")) == 3
    with pytest.raises(ValueError, match=r"no item named 'glove.6B.100d.txt' in the archive"):
        embedding.create("glove", pretrained_file_name="glove.6B.100d.txt")
    written("no archive", "embeddings/glove/glove.6B.zip")
    with pytest.raises(ValueError, match="is not a zip file that can be read"):
        embedding.create("glove", pretrained_file_name="glove.6B.50d.txt")


def test_classes_of_users(written):
    path = written(LINES)

    @embedding.register
    class MyEmbedding(embedding._TokenEmbedding):
        pretrained_file_name_sha1 = {"mine.txt": "x"}  # noqa: RUF012

        def __init__(self, pretrained_file_name="mine.txt", **kwargs):
            super().__init__(**kwargs)
            self._load_embedding(path, " ", mx.nd.zeros)

    assert rows(embedding.create("MyEmbedding")) == [[7, 8, 9], [1, 2, 3], [4, 5, 6]]
    assert embedding.get_pretrained_file_names("myembedding") == ["mine.txt"]
    assert len(embedding.get_pretrained_file_names()["glove"]) == 10
    with pytest.raises(KeyError, match="there is no embedding 'none'"):
        embedding.get_pretrained_file_names("none")


# ---- loaders ----------------------------------------------------------------------------------------------------------
def test_loaders():
    loader = [(mx.nd.arange(6).reshape((2, 3)), mx.nd.array([1, 2])), (np.ones((1, 3)), np.array([3]))]
    batches = mx.contrib.io.DataLoaderIter(loader, label_name="y")
    assert batches.provide_data == [("data", (2, 3))] and batches.provide_label == [("y", (2,))] and batches.batch_size == 2
    for _ in range(2):
        first, last = batches
        assert (first.pad, last.pad) == (0, 1) and first.data[0].asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert last.data[0].asnumpy().tolist() == [[1, 1, 1], [0, 0, 0]] and last.label[0].asnumpy().tolist() == [3, 0]
        batches.reset()
    with pytest.raises(ValueError, match="gives no batch"):
        mx.contrib.io.DataLoaderIter([])
    with pytest.raises(TypeError, match=r"expected \(data, label\)"):
        mx.contrib.io.DataLoaderIter([np.ones(3)])


@pytest.mark.parametrize("kind, told", [
    (zipfile.ZIP_BZIP2, "packed otherwise than by deflate"), (zipfile.ZIP_LZMA, "packed otherwise than by deflate"),
    (zipfile.ZIP_DEFLATED, r"glove.6B.zip' unpacks to more than \d+ bytes"),
])  # fmt: skip
def test_archives_that_unpack_to_much(tmp_path, monkeypatch, kind, told):
    (tmp_path / "glove").mkdir()
    with zipfile.ZipFile(tmp_path / "glove" / "glove.6B.zip", "w", kind) as archive:
        archive.writestr("glove.6B.50d.txt", "a 1 2\n" * (100_000 if kind == zipfile.ZIP_DEFLATED else 1))
    monkeypatch.setenv("MXOP_MAX_DENSE_BYTES", "1000")
    with pytest.raises(mx.MXNetError, match=told):
        embedding.GloVe("glove.6B.50d.txt", str(tmp_path))
