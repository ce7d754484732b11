"""Sentences of different lengths in batches."""

from __future__ import annotations

import logging
import random
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ... import ndarray as nd
from ...support.errors import OpLookupError, OpValueError, shown
from ..io import DataBatch, DataDesc, DataIter


def encode_sentences(sentences: Iterable[Iterable[Hashable]], vocab: dict | None = None, invalid_label: int = -1,
                     invalid_key: Hashable = "\n", start_label: int = 0,
                     unknown_token: Hashable | None = None) -> tuple[list[list[int]], dict]:  # fmt: skip
    """Return sentences as lists of numbers, and the numbers of the words.

    Parameters
    ----------
    sentences : iterable of iterables of words
    vocab : dict, optional
        Numbers of words; without, one is made.
    invalid_label, invalid_key
        The number that fills sentences up, which no word gets, and its entry in a new `vocab`.
    start_label : int
        The first number.
    unknown_token : object, optional
        The word that stands for those that a given `vocab` does not have.

    Examples
    --------
    >>> encode_sentences([["a", "b"], ["b", "c", "a"]], start_label=1)
    ([[1, 2], [2, 3, 1]], {'\\n': -1, 'a': 1, 'b': 2, 'c': 3})
    """
    fresh = vocab is None
    vocab = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label

    def number(word: Hashable) -> int:
        nonlocal following
        if word not in vocab:
            if not fresh and unknown_token is None:
                raise OpLookupError(f"encode_sentences: {shown(word)} is not in vocab, and there is no unknown_token")
            following += following == invalid_label
            word = word if unknown_token is None else unknown_token
            vocab[word] = following
            following += 1
        return vocab[word]

    return [[number(word) for word in sentence] for sentence in sentences], vocab


class BucketSentenceIter(DataIter):
    """Batches of sentences of about the same length; the label of a word is the word that follows.

    Parameters
    ----------
    sentences : list of list of int
        See :func:`encode_sentences`.
    batch_size : int
    buckets : list of int, optional
        Lengths to which sentences are filled up; longer ones are left out.  By default the lengths that `batch_size`
        sentences or more have.
    invalid_label : int
        What sentences are filled up with.
    data_name, label_name : str
    dtype : str
    layout : {'NT', 'TN'}

    Examples
    --------
    >>> batches = mx.rnn.BucketSentenceIter([[1, 2], [3, 4], [5, 6, 7], [8, 9]], 2, buckets=[2, 4], invalid_label=0)
    >>> [(batch.bucket_key, batch.data[0].shape) for batch in batches]
    [(2, (2, 2))]
    """

    def __init__(self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: Sequence[int] | None = None,
                 invalid_label: int = -1, data_name: str = "data", label_name: str = "softmax_label",
                 dtype: Any = "float32", layout: str = "NT"):  # fmt: skip
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise OpValueError(f"BucketSentenceIter: layout={shown(layout)} is neither 'NT' nor 'TN'")
        lengths = [len(sentence) for sentence in sentences]
        if not buckets:
            buckets = [length for length, n in enumerate(np.bincount(lengths or [0])) if length and n >= batch_size]
        if not buckets:
            raise OpValueError(f"BucketSentenceIter: no {batch_size} sentences have the same length; give buckets")
        self.buckets, self.layout, self.dtype = sorted(buckets), layout, dtype
        self.data_name, self.label_name, self.invalid_label = data_name, label_name, invalid_label
        self.major_axis, self.default_bucket_key = layout.find("N"), max(buckets)
        self.data = self._filled(sentences)
        self.idx = [(bucket, at) for bucket, data in enumerate(self.data)
                    for at in range(0, len(data) - batch_size + 1, batch_size)]  # fmt: skip
        shape = (batch_size, self.default_bucket_key)
        self.provide_data, self.provide_label = self._described(shape if layout == "NT" else shape[::-1])
        self.reset()

    def _filled(self, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Return the sentences of each bucket, filled up."""
        found: list[list[np.ndarray]] = [[] for _ in self.buckets]
        left_out = 0
        for sentence in sentences:
            bucket = bisect_left(self.buckets, len(sentence))
            if bucket == len(self.buckets):
                left_out += 1
                continue
            row = np.full(self.buckets[bucket], self.invalid_label, self.dtype)
            row[: len(sentence)] = sentence
            found[bucket].append(row)
        if left_out:
            logging.warning("BucketSentenceIter: %d sentences are longer than the largest bucket", left_out)
        return [np.asarray(rows, self.dtype).reshape(len(rows), size) for rows, size in zip(found, self.buckets)]

    def _described(self, shape: tuple[int, ...]) -> tuple[list[DataDesc], list[DataDesc]]:
        names = (self.data_name, self.label_name)
        data, label = ([DataDesc(name, shape, np.dtype(self.dtype).type, layout=self.layout)] for name in names)
        return data, label

    def reset(self) -> None:
        """Begin again, in another order; it comes from the global generators of ``random`` and NumPy."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata, self.ndlabel = [], []
        for data in self.data:
            np.random.shuffle(data)
            label = np.full_like(data, self.invalid_label)
            label[:, :-1] = data[:, 1:]
            self.nddata.append(nd.array(data, dtype=self.dtype))
            self.ndlabel.append(nd.array(label, dtype=self.dtype))

    def next(self) -> DataBatch:
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, at = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = (arrays[bucket][at : at + self.batch_size] for arrays in (self.nddata, self.ndlabel))
        if self.major_axis == 1:
            data, label = data.T, label.T
        described = self._described(data.shape)
        return DataBatch([data], [label], 0, bucket_key=self.buckets[bucket], provide_data=described[0],
                         provide_label=described[1])  # fmt: skip
