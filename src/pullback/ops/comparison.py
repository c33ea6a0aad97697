"""Comparison, logic and bits: the results are bools and integers, which have no gradient."""

from __future__ import annotations

from typing import Any

from pullback.errors import DTypeError, compose
from pullback.ops._declare import Operation, both, elementwise, grid, integers, standard
from pullback.ops._examples import documented

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


def _compares(names: str, standard_name: str, printed: str, ordered: bool = True) -> Operation:
    return elementwise(
        names,
        standard(standard_name, ordered=ordered),
        inputs=("x", "y"),
        differentiable=False,
        domain=grid(-2, 2),
        doc=documented(
            f"Return {standard_name.replace('_', ' ')} of x and y, element by element, as bool.",
            f"pb.{standard_name}(pb.tensor([1.0, 2.0, 3.0]), 2)",
            printed,
        ),
    )


equal = _compares("eq equal", "equal", "tensor([False,  True, False])", ordered=False)
not_equal = _compares("ne not_equal", "not_equal", "tensor([ True, False,  True])", ordered=False)
less = _compares("lt less", "less", "tensor([ True, False, False])")
less_equal = _compares("le less_equal", "less_equal", "tensor([ True,  True, False])")
greater = _compares("gt greater", "greater", "tensor([False, False,  True])")
greater_equal = _compares("ge greater_equal", "greater_equal", "tensor([False,  True,  True])")


def truth(condition: Any) -> Any:
    """Return a condition as bools, of which promotion may have made numbers."""
    return condition if str(condition.dtype).endswith("bool") else condition != 0


def _logical(name: str, call: str, printed: str, inputs: tuple[str, ...]) -> Operation:
    def forward(xp: Any, *arrays: Any) -> Any:
        return getattr(xp, name)(*map(truth, arrays))

    return elementwise(
        name,
        forward,
        inputs=inputs,
        differentiable=False,
        domain=grid(-1, 1),
        doc=documented(
            f"Return {name}({', '.join(inputs)}) as bool; numbers are true where they are not 0.",
            call,
            printed,
        ),
    )


logical_and, logical_or, logical_xor = (
    _logical(name, f"pb.{name}(pb.tensor([0, 1, 2]), pb.tensor([1, 0, 1]))", printed, ("x", "y"))
    for name, printed in (
        ("logical_and", "tensor([False, False,  True])"),
        ("logical_or", "tensor([ True,  True,  True])"),
        ("logical_xor", "tensor([ True,  True, False])"),
    )
)
logical_not = _logical(
    "logical_not", "pb.logical_not(pb.tensor([0, 1]))", "tensor([ True, False])", ("x",)
)
isfinite, isinf, isnan = (
    elementwise(
        name,
        standard(name),
        differentiable=False,
        domain=both(-2, 2),
        doc=documented(
            f"Return whether each element is {what}, as bool.",
            f"pb.{name}(pb.tensor([1.0, pb.inf, pb.nan]))",
            printed,
        ),
    )
    for name, what, printed in (
        ("isfinite", "neither infinite nor NaN", "tensor([ True, False, False])"),
        ("isinf", "infinite", "tensor([False,  True, False])"),
        ("isnan", "NaN", "tensor([False, False,  True])"),
    )
)


# -- bits ------------------------------------------------------------------------------------------
def _of_bits(name: str, call: str, printed: str, inputs: tuple[str, ...] = ("x", "y")) -> Operation:
    def forward(xp: Any, *arrays: Any) -> Any:
        for given, array in zip(inputs, arrays, strict=True):
            dtype = str(array.dtype).rpartition(".")[2]
            if "int" not in dtype and dtype != "bool":
                hint = "convert it first, for instance with x.long()"
                raise DTypeError(
                    compose(name, "integers or bools required", dtype, (given, array), hint=hint)
                )
        return getattr(xp, name)(*arrays)

    return elementwise(
        name,
        forward,
        inputs=inputs,
        differentiable=False,
        domain=integers(0, 7),
        doc=documented(f"Return {name}({', '.join(inputs)}) of integers.", call, printed),
    )


bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift = (
    _of_bits(name, f"pb.{name}(pb.tensor([5, 6]), 3)", printed)
    for name, printed in (
        ("bitwise_and", "tensor([1, 2])"),
        ("bitwise_or", "tensor([7, 7])"),
        ("bitwise_xor", "tensor([6, 5])"),
        ("bitwise_left_shift", "tensor([40, 48])"),
        ("bitwise_right_shift", "tensor([0, 0])"),
    )
)
bitwise_invert = _of_bits(
    "bitwise_invert", "pb.bitwise_invert(pb.tensor([0, 5]))", "tensor([-1, -6])", ("x",)
)
