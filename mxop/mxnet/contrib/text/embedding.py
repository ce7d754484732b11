"""``mx.contrib.text.embedding``: vectors for tokens, from files that are there: nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .... import ndarray as nd
from ....ndarray import NDArray
from ....support.errors import AssertedError, MissingFileError, OpLookupError, OpValueError, closest, shown
from ....support.files import path_of
from ....support.missing import hooks
from ... import registry
from ...base import data_dir
from . import published, vectors
from .vocab import UNKNOWN, Vocabulary


class _TokenEmbedding(Vocabulary):
    """A vocabulary whose tokens have vectors; derive, and call ``_load_embedding`` when it is made.

    ``pretrained_file_name_sha1`` has the names of the files that a class reads; the hashes are not looked at.
    """

    pretrained_file_name_sha1: Mapping[str, Any] = {}

    _vec_len = 0
    _idx_to_vec: Any = None

    @property
    def vec_len(self) -> int:
        """How many numbers a vector has."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> NDArray:
        """The vectors, in the order of the tokens' numbers."""
        return self._idx_to_vec

    # ---- files --------------------------------------------------------------------------------------------------------
    @classmethod
    def _get_download_file_name(cls, pretrained_file_name: str) -> str:
        """Return what a file comes in."""
        return pretrained_file_name

    @classmethod
    def _get_pretrained_file(cls, embedding_root: str, pretrained_file_name: str) -> str:
        """Return the path of a file that is there."""
        folder = os.path.join(os.path.expanduser(embedding_root), cls.__name__.lower())
        path = os.path.join(folder, pretrained_file_name)
        archive = os.path.join(folder, cls._get_download_file_name(pretrained_file_name))
        if not os.path.exists(path) and not os.path.exists(archive):
            either = f"{path!r} is not there" if path == archive else f"neither {path!r} nor {archive!r} is there"
            raise MissingFileError(f"{cls.__name__}: {either}, and nothing is downloaded: put the file there")
        return path

    @classmethod
    def _check_pretrained_file_names(cls, pretrained_file_name: str) -> None:
        known = cls.pretrained_file_name_sha1
        if pretrained_file_name not in known:
            raise OpLookupError(
                f"{cls.__name__}: there is no file {pretrained_file_name!r}{closest(pretrained_file_name, known)}; "
                f"get_pretrained_file_names({cls.__name__.lower()!r}) lists them"
            )

    def _load_embedding(
        self, pretrained_file_path: str, elem_delim: str, init_unknown_vec: Callable, encoding: str = "utf8"
    ) -> None:
        """Take over the tokens and vectors of a file; what has a number before and no vector there gets zeros."""
        who = type(self).__name__
        path = os.path.expanduser(path_of(pretrained_file_path, who))
        archive = os.path.join(os.path.dirname(path), self._get_download_file_name(os.path.basename(path)))
        if not elem_delim:
            raise OpValueError(f"{who}: elem_delim={elem_delim!r} is empty")
        packed = archive if archive != path and not os.path.exists(path) else None
        tokens, rows, of_unknown = vectors.read(path, elem_delim, self.unknown_token, encoding, packed)
        for token in tokens:
            if token not in self._token_to_idx:
                self._token_to_idx[token] = len(self._idx_to_token)
                self._idx_to_token.append(token)
        self._vec_len = rows.shape[1]
        if of_unknown is None:
            of_unknown = init_unknown_vec(shape=self.vec_len)
            of_unknown = of_unknown.asnumpy() if isinstance(of_unknown, NDArray) else of_unknown
        whole = np.zeros((len(self), self.vec_len), "float32")
        whole[[self._token_to_idx[token] for token in tokens]] = rows
        whole[UNKNOWN] = of_unknown
        self._idx_to_vec = nd.array(whole)

    # ---- vocabularies -------------------------------------------------------------------------------------------------
    def _index_tokens_from_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Take over the numbers of a vocabulary."""
        self._token_to_idx, self._idx_to_token = dict(vocabulary.token_to_idx), list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = None if vocabulary.reserved_tokens is None else list(vocabulary.reserved_tokens)

    def _set_idx_to_vec_by_embeddings(
        self, token_embeddings: Sequence[_TokenEmbedding], vocab_len: int, vocab_idx_to_token: list
    ) -> None:
        """Join the vectors that embeddings have for tokens; the first token is the unknown one."""
        rows = [nd.concat(e.idx_to_vec[:1], e.get_vecs_by_tokens(vocab_idx_to_token[1:]), dim=0)
                if vocab_len > 1 else e.idx_to_vec[:1] for e in token_embeddings]  # fmt: skip
        self._idx_to_vec = nd.concat(*rows, dim=1)
        self._vec_len = self._idx_to_vec.shape[1]

    def _build_embedding_for_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Keep the tokens of a vocabulary alone, with its numbers."""
        if vocabulary is not None:
            _checked(type(self).__name__, vocabulary)
            self._set_idx_to_vec_by_embeddings([self], len(vocabulary), vocabulary.idx_to_token)
            self._index_tokens_from_vocabulary(vocabulary)

    # ---- vectors ------------------------------------------------------------------------------------------------------
    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """Return the vector of a token, or those of a list of tokens as rows.

        Parameters
        ----------
        tokens : str or list of str
        lower_case_backup : bool
            Whether a token that is not known is looked for in small letters.
        """
        known = self.token_to_idx
        found = [
            known.get(t.lower(), UNKNOWN) if lower_case_backup and t not in known else known.get(t, UNKNOWN)
            for t in (tokens if isinstance(tokens, list) else [tokens])
        ]
        rows = nd.take(self.idx_to_vec, nd.array(found, dtype="int64"))
        return rows if isinstance(tokens, list) else rows[0]

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Change the vectors of a token, or of a list of them; that of unknown tokens when it is named itself."""
        who = f"{type(self).__name__}.update_token_vectors"
        if self.idx_to_vec is None:
            raise AssertedError(f"{who}: no vectors were loaded")
        listed = tokens if isinstance(tokens, list) else [tokens]
        if not isinstance(new_vectors, NDArray):
            raise AssertedError(f"{who}: new_vectors={shown(new_vectors)} is not an NDArray")
        shape = (len(listed), self.vec_len)
        if new_vectors.shape != shape and (len(listed) != 1 or new_vectors.shape != shape[1:]):
            raise AssertedError(f"{who}: new_vectors has shape {new_vectors.shape}; expected {shape}")
        unknown = [token for token in listed if token not in self.token_to_idx]
        if unknown:
            named = f"the vector of unknown tokens is that of {self.unknown_token!r}"
            raise OpValueError(f"{who}: token {shown(unknown[0])} is unknown; {named}")
        self._idx_to_vec[[self.token_to_idx[token] for token in listed]] = new_vectors


def _checked(who: str, vocabulary: Any) -> Vocabulary:
    if not isinstance(vocabulary, Vocabulary):
        raise AssertedError(f"{who}: vocabulary={shown(vocabulary)} is not a Vocabulary")
    return vocabulary


# ---- by name ----------------------------------------------------------------------------------------------------------
register = registry.get_register_func(_TokenEmbedding, "token embedding")
_create = registry.get_create_func(_TokenEmbedding, "token embedding")


def create(embedding_name: str, **kwargs: Any) -> _TokenEmbedding:
    """Make the embedding of a name, such as ``'glove'``; the rest is for its class."""
    return _create(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> dict[str, list[str]] | list[str]:
    """Return the names of the files that an embedding reads, or of all embeddings those of each.

    Examples
    --------
    >>> get_pretrained_file_names("glove")[:2], len(get_pretrained_file_names()["fasttext"])
    (['glove.42B.300d.txt', 'glove.6B.50d.txt'], 327)
    """
    known = {name: list(kind.pretrained_file_name_sha1) for name, kind in registry.get_registry(_TokenEmbedding).items()}
    if embedding_name is None:
        return known
    if embedding_name not in known:
        there = ", ".join(sorted(known))
        raise OpLookupError(f"get_pretrained_file_names: there is no embedding {embedding_name!r}; there are: {there}")
    return known[embedding_name]


# ---- the classes ------------------------------------------------------------------------------------------------------
class _Published(_TokenEmbedding):
    """Vectors of a file that others have published.

    Parameters
    ----------
    pretrained_file_name : str
        One of ``get_pretrained_file_names(name)``.
    embedding_root : str, optional
        The folder that has a folder with the embedding's name, in which the file is, or its zip archive; by default
        ``embeddings`` in :func:`mxop.base.data_dir`.
    init_unknown_vec : callable
        Makes the vector for unknown tokens, where the file has none.
    vocabulary : Vocabulary, optional
        Whose tokens are kept; all of the file's by default.
    **kwargs
        Of :class:`~mxop.contrib.text.vocab.Vocabulary`.
    """

    _archives: Mapping[str, str] = {}

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name: str) -> str:
        return cls._archives[pretrained_file_name]

    def __init__(self, pretrained_file_name: str, embedding_root: str | None = None,
                 init_unknown_vec: Callable = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):  # fmt: skip
        self._check_pretrained_file_names(pretrained_file_name)
        super().__init__(**kwargs)
        root = os.path.join(data_dir(), "embeddings") if embedding_root is None else embedding_root
        self._load_embedding(self._get_pretrained_file(root, pretrained_file_name), " ", init_unknown_vec)
        self._build_embedding_for_vocabulary(vocabulary)


@register
class GloVe(_Published):
    __doc__ = _Published.__doc__
    _archives = published.GLOVE
    pretrained_archive_name_sha1 = dict.fromkeys(published.GLOVE.values())
    pretrained_file_name_sha1 = dict.fromkeys(published.GLOVE)

    def __init__(self, pretrained_file_name: str = "glove.840B.300d.txt", *args: Any, **kwargs: Any):
        super().__init__(pretrained_file_name, *args, **kwargs)


@register
class FastText(_Published):
    __doc__ = _Published.__doc__
    _archives = published.FAST_TEXT
    pretrained_archive_name_sha1 = dict.fromkeys(published.FAST_TEXT.values())
    pretrained_file_name_sha1 = dict.fromkeys(published.FAST_TEXT)

    def __init__(self, pretrained_file_name: str = "wiki.simple.vec", *args: Any, **kwargs: Any):
        super().__init__(pretrained_file_name, *args, **kwargs)


class CustomEmbedding(_TokenEmbedding):
    """Vectors of a file of one's own: lines of a token and its numbers.

    Parameters
    ----------
    pretrained_file_path : str
    elem_delim : str
        What stands between the parts of a line.
    encoding : str
    init_unknown_vec : callable
        Makes the vector for unknown tokens, where the file has none.
    vocabulary : Vocabulary, optional
        Whose tokens are kept; all of the file's by default.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "words.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("cat 1 2\\ndog 3 4\\n")
    >>> words = CustomEmbedding(path)
    >>> words.idx_to_token, words.get_vecs_by_tokens(["dog", "horse"]).asnumpy().tolist()
    (['<unk>', 'cat', 'dog'], [[3.0, 4.0], [0.0, 0.0]])
    """

    def __init__(self, pretrained_file_path: str, elem_delim: str = " ", encoding: str = "utf8",
                 init_unknown_vec: Callable = nd.zeros, vocabulary: Vocabulary | None = None, **kwargs: Any):  # fmt: skip
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._build_embedding_for_vocabulary(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The tokens of a vocabulary, with the vectors of several embeddings joined.

    Parameters
    ----------
    vocabulary : Vocabulary
    token_embeddings : embedding or list of them
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any):
        self._index_tokens_from_vocabulary(_checked("CompositeEmbedding", vocabulary))
        embeddings = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        for embedding in embeddings:
            if not isinstance(embedding, _TokenEmbedding):
                raise AssertedError(f"CompositeEmbedding: {shown(embedding)} in token_embeddings is not an embedding")
        self._set_idx_to_vec_by_embeddings(embeddings, len(self), self.idx_to_token)


__all__ = [
    "CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names", "register",
]  # fmt: skip

__getattr__, __dir__ = hooks(globals(), __all__)
