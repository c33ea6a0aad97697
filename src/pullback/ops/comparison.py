"""Comparison, logic and bits: the results are bools and integers, which have no gradient."""

from __future__ import annotations

from typing import Any

from pullback.ops._declare import Operation, both, elementwise, grid, integers, standard

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]


def _compares(names: str, standard_name: str, ordered: bool = True) -> Operation:
    return elementwise(
        names,
        standard(standard_name, ordered=ordered),
        inputs=("x", "y"),
        differentiable=False,
        domain=grid(-2, 2),
        doc=f"Return {standard_name.replace('_', ' ')} of x and y, element by element, as bool.",
    )


equal = _compares("eq equal", "equal", ordered=False)
not_equal = _compares("ne not_equal", "not_equal", ordered=False)
less = _compares("lt less", "less")
less_equal = _compares("le less_equal", "less_equal")
greater = _compares("gt greater", "greater")
greater_equal = _compares("ge greater_equal", "greater_equal")


def truth(condition: Any) -> Any:
    """Return a condition as bools, of which promotion may have made numbers."""
    return condition if str(condition.dtype).endswith("bool") else condition != 0


def _logical(name: str, inputs: tuple[str, ...] = ("x", "y")) -> Operation:
    def forward(xp: Any, *arrays: Any) -> Any:
        return getattr(xp, name)(*map(truth, arrays))

    return elementwise(
        name,
        forward,
        inputs=inputs,
        differentiable=False,
        domain=grid(-1, 1),
        doc=f"Return {name}({', '.join(inputs)}) as bool; numbers are true where they are not 0.",
    )


logical_and, logical_or, logical_xor = (
    _logical(name) for name in ("logical_and", "logical_or", "logical_xor")
)
logical_not = _logical("logical_not", ("x",))
isfinite, isinf, isnan = (
    elementwise(
        name,
        standard(name),
        differentiable=False,
        domain=both(-2, 2),
        doc=f"Return {name}(x) as bool.",
    )
    for name in ("isfinite", "isinf", "isnan")
)

_INTEGERS = (
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
)
bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift = (
    elementwise(
        name,
        standard(name),
        inputs=("x", "y"),
        differentiable=False,
        domain=integers(0, 7),
        doc=f"Return {name}(x, y) of integers.",
    )
    for name in _INTEGERS
)
bitwise_invert = elementwise(
    "bitwise_invert",
    standard("bitwise_invert"),
    differentiable=False,
    domain=integers(-8, 7),
    doc="Return every bit of x flipped.",
)
