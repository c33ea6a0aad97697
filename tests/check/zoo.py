"""Operations whose backward is wrong in one known way, and operations whose backward is right.

The wrong ones are mistakes that people made: where `source` has an address, one that was reported
there. `tests/check/test_zoo.py` runs them through the checker, `tests/peers/test_zoo.py` through
PyTorch's gradcheck.
"""

from tests.check import (
    _right,
    _right_arrays,
    _right_hard,
    _right_indexing,
    _right_scales,
    _wrong_pointwise,
    _wrong_structured,
)

WRONG = [*_wrong_pointwise.ENTRIES, *_wrong_structured.ENTRIES]
RIGHT = [
    *_right.ENTRIES,
    *_right_hard.ENTRIES,
    *_right_arrays.ENTRIES,
    *_right_indexing.ENTRIES,
    *_right_scales.ENTRIES,
]
