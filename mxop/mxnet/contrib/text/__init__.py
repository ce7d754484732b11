"""``mx.contrib.text``: tokens counted, numbered, and given the vectors of files.

One concern a file:

- ``utils``: counts of tokens
- ``vocab``: numbers of tokens
- ``embedding``: vectors of tokens
- ``vectors``: the files that hold them
- ``published``: what such files are called
"""

from ....support.missing import hooks
from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]

__getattr__, __dir__ = hooks(globals(), __all__)
