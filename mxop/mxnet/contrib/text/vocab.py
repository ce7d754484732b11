"""``mx.contrib.text.vocab``: numbers for tokens, 0 for all that are not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from ....support.errors import AssertedError, OpIndexError, OpValueError, shown
from ....support.missing import hooks

#: The number of every token that is not known.
UNKNOWN = 0


class Vocabulary:
    """Tokens in a row: the one for unknown tokens, reserved ones, then those of a counter, the most frequent first.

    Parameters
    ----------
    counter : collections.Counter, optional
        Tokens with how often they were seen; of equally frequent ones the smaller comes first.
    most_freq_count : int, optional
        How many tokens of the counter are taken at most.
    min_freq : int
        How often a token must have been seen to be taken.
    unknown_token : hashable
        What stands for every unknown token.
    reserved_tokens : list of hashable, optional
        What gets a number in any case, such as padding.

    Examples
    --------
    >>> from collections import Counter
    >>> words = Vocabulary(Counter("the cat and the dog and the cow".split()), min_freq=2, reserved_tokens=["<pad>"])
    >>> words.idx_to_token, words.to_indices(["the", "horse"]), words.to_tokens(3)
    (['<unk>', '<pad>', 'the', 'and'], [2, 0], 'and')
    """

    def __init__(self, counter: Counter | None = None, most_freq_count: int | None = None, min_freq: int = 1,
                 unknown_token: Hashable = "<unk>", reserved_tokens: Sequence[Hashable] | None = None):  # fmt: skip
        if min_freq <= 0:
            raise AssertedError(f"Vocabulary: min_freq={min_freq} is not positive")
        if most_freq_count is not None and most_freq_count < 0:
            raise OpValueError(f"Vocabulary: most_freq_count={most_freq_count} is negative")
        reserved = list(reserved_tokens or ())
        if len({unknown_token, *reserved}) != 1 + len(reserved):
            given = f"reserved_tokens={shown(reserved)}"
            raise AssertedError(f"Vocabulary: {given} names a token twice, or the unknown one, {unknown_token!r}")
        if counter is not None and not isinstance(counter, Counter):
            raise AssertedError(f"Vocabulary: counter is a {type(counter).__name__}; expected a collections.Counter")
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token = [unknown_token, *reserved]
        self._idx_to_token += _chosen(counter or Counter(), set(self._idx_to_token), most_freq_count, min_freq)
        self._token_to_idx = {token: index for index, token in enumerate(self._idx_to_token)}

    def __len__(self) -> int:
        return len(self.idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The number of each token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list:
        """The tokens in the order of their numbers."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """What stands for every unknown token."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list | None:
        """What got a number in any case."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """Return the number of a token, or those of a list of tokens."""
        if isinstance(tokens, list):
            return [self.token_to_idx.get(token, UNKNOWN) for token in tokens]
        return self.token_to_idx.get(tokens, UNKNOWN)

    def to_tokens(self, indices: Any) -> Any:
        """Return the token of a number, or those of a list of numbers."""
        found = []
        for index in indices if isinstance(indices, list) else [indices]:
            if not isinstance(index, int) or not -len(self) <= index < len(self):
                raise _InvalidIndexError(f"Vocabulary: {shown(index)} is not the index of a token; there are {len(self)}")
            found.append(self.idx_to_token[index])
        return found if isinstance(indices, list) else found[0]


class _InvalidIndexError(OpIndexError, OpValueError):
    """What is no number of a token."""


def _chosen(counter: Counter, taken: set, most: int | None, least: int) -> list:
    """Return the tokens of a counter that get a number, in their order."""
    ordered = sorted(sorted(counter.items(), key=lambda item: item[0]), key=lambda item: -item[1])
    found = [token for token, count in ordered if count >= least and token not in taken]
    return found if most is None else found[:most]


__all__ = ["Vocabulary"]

__getattr__, __dir__ = hooks(globals(), __all__)
