"""``mx.contrib.text.utils``: how often each token stands in a text."""

from __future__ import annotations

import re
from collections import Counter

from ....support.errors import OpTypeError, OpValueError, shown
from ....support.missing import hooks


def count_tokens_from_str(source_str: str, token_delim: str = " ", seq_delim: str = "\n", to_lower: bool = False,
                          counter_to_update: Counter | None = None) -> Counter:  # fmt: skip
    """Count the tokens of a text.

    Parameters
    ----------
    source_str : str
    token_delim, seq_delim : str
        Regular expressions of what stands between tokens, and between sequences of them.
    to_lower : bool
        Whether to count them in small letters.
    counter_to_update : collections.Counter, optional
        To which the counts are added, and which is returned; a new one by default.

    Examples
    --------
    >>> sorted(count_tokens_from_str("Life is great!\\nlife is good", to_lower=True).items())
    [('good', 1), ('great!', 1), ('is', 2), ('life', 2)]
    """
    if not isinstance(source_str, str):
        raise OpTypeError(f"count_tokens_from_str: source_str={shown(source_str)} is not a string")
    try:
        tokens = filter(None, re.split(f"{token_delim}|{seq_delim}", source_str))
    except re.error as problem:
        given = f"token_delim={shown(token_delim)}, seq_delim={shown(seq_delim)}"
        raise OpValueError(f"count_tokens_from_str: {given} are no regular expressions: {problem}") from None
    counter = Counter() if counter_to_update is None else counter_to_update
    counter.update(token.lower() for token in tokens) if to_lower else counter.update(tokens)
    return counter


__all__ = ["count_tokens_from_str"]

__getattr__, __dir__ = hooks(globals(), __all__)
