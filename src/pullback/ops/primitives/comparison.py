"""Comparison, logic and bits: the results are bools and integers, which have no gradient."""

from __future__ import annotations

from typing import Any

from pullback.errors import DTypeError, compose
from pullback.ops.declare import Primitive, elementwise, standard
from pullback.ops.examples import documented
from pullback.ops.samples import both, grid, integers


# -- comparisons -----------------------------------------------------------------------------------
def _compares(
    names: str, standard_name: str, printed: str, methods: str, *, ordered: bool = True
) -> Primitive:
    return elementwise(
        names,
        standard(standard_name, ordered=ordered),
        inputs=("x", "y"),
        differentiable=False,
        domain=grid(-2, 2),
        reference=f"numpy.{standard_name}",
        result_dtype="bool",
        methods=methods,
        doc=documented(
            f"Return {standard_name.replace('_', ' ')} of x and y, element by element, as bool.",
            f"pb.{standard_name}(pb.tensor([1.0, 2.0, 3.0]), 2)",
            printed,
        ),
    )


eq_p = _compares("eq equal", "equal", "tensor([False,  True, False])", "eq eq_", ordered=False)
equal = eq = eq_p.public
ne_p = _compares(
    "ne not_equal",
    "not_equal",
    "tensor([ True, False,  True])",
    "ne ne_ not_equal not_equal_",
    ordered=False,
)
not_equal = ne = ne_p.public
lt_p = _compares("lt less", "less", "tensor([ True, False, False])", "lt lt_ less less_")
less = lt = lt_p.public
le_p = _compares(
    "le less_equal",
    "less_equal",
    "tensor([ True,  True, False])",
    "le le_ less_equal less_equal_",
)
less_equal = le = le_p.public
gt_p = _compares(
    "gt greater", "greater", "tensor([False, False,  True])", "gt gt_ greater greater_"
)
greater = gt = gt_p.public
ge_p = _compares(
    "ge greater_equal",
    "greater_equal",
    "tensor([False,  True,  True])",
    "ge ge_ greater_equal greater_equal_",
)
greater_equal = ge = ge_p.public


# -- logic -----------------------------------------------------------------------------------------
def truth(condition: Any) -> Any:
    """Return a condition as bools, of which promotion may have made numbers."""
    return condition if str(condition.dtype).endswith("bool") else condition != 0


def _logical(name: str, call: str, printed: str, inputs: tuple[str, ...]) -> Primitive:
    def forward(xp: Any, *arrays: Any) -> Any:
        return getattr(xp, name)(*map(truth, arrays))

    return elementwise(
        name,
        forward,
        inputs=inputs,
        differentiable=False,
        domain=grid(-1, 1),
        result_dtype="bool",
        methods=f"{name} {name}_",
        doc=documented(
            f"Return {name}({', '.join(inputs)}) as bool; numbers are true where they are not 0.",
            call,
            printed,
        ),
    )


logical_and_p, logical_or_p, logical_xor_p = (
    _logical(name, f"pb.{name}(pb.tensor([0, 1, 2]), pb.tensor([1, 0, 1]))", printed, ("x", "y"))
    for name, printed in (
        ("logical_and", "tensor([False, False,  True])"),
        ("logical_or", "tensor([ True,  True,  True])"),
        ("logical_xor", "tensor([ True,  True, False])"),
    )
)
logical_and = logical_and_p.public
logical_or = logical_or_p.public
logical_xor = logical_xor_p.public


logical_not_p = _logical(
    "logical_not",
    "pb.logical_not(pb.tensor([0, 1]))",
    "tensor([ True, False])",
    ("x",),
)
logical_not = logical_not_p.public


isfinite_p, isinf_p, isnan_p = (
    elementwise(
        name,
        standard(name),
        differentiable=False,
        domain=both(-2, 2),
        result_dtype="bool",
        methods=name,
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
isfinite = isfinite_p.public
isinf = isinf_p.public
isnan = isnan_p.public


# -- bits ------------------------------------------------------------------------------------------
def _of_bits(
    name: str, call: str, printed: str, methods: str, numpy: str, inputs: str = "xy"
) -> Primitive:
    def forward(xp: Any, *arrays: Any) -> Any:
        for argument, array in zip(inputs, arrays, strict=True):
            dtype = str(array.dtype).rpartition(".")[2]
            if "int" not in dtype and dtype != "bool":
                hint = "convert it first, for instance with x.long()"
                raise DTypeError(
                    compose(name, "integers or bools required", dtype, (argument, array), hint=hint)
                )
        return getattr(xp, name)(*arrays)

    return elementwise(
        name,
        forward,
        inputs=tuple(inputs),
        differentiable=False,
        domain=integers(0, 7),
        result_dtype="int64",
        methods=methods,
        numpy=numpy,
        doc=documented(f"Return {name}({', '.join(inputs)}) of integers.", call, printed),
    )


bitwise_and_p, bitwise_or_p, bitwise_xor_p, bitwise_left_shift_p, bitwise_right_shift_p = (
    _of_bits(name, f"pb.{name}(pb.tensor([5, 6]), 3)", printed, f"{name} {name}_", numpy)
    for name, printed, numpy in (
        ("bitwise_and", "tensor([1, 2])", "bitwise_and"),
        ("bitwise_or", "tensor([7, 7])", "bitwise_or"),
        ("bitwise_xor", "tensor([6, 5])", "bitwise_xor"),
        ("bitwise_left_shift", "tensor([40, 48])", "left_shift"),
        ("bitwise_right_shift", "tensor([0, 0])", "right_shift"),
    )
)
bitwise_and = bitwise_and_p.public
bitwise_or = bitwise_or_p.public
bitwise_xor = bitwise_xor_p.public
bitwise_left_shift = bitwise_left_shift_p.public
bitwise_right_shift = bitwise_right_shift_p.public


bitwise_invert_p = _of_bits(
    "bitwise_invert",
    "pb.bitwise_invert(pb.tensor([0, 5]))",
    "tensor([-1, -6])",
    "bitwise_not bitwise_not_",
    "invert",
    "x",
)
bitwise_invert = bitwise_not = bitwise_invert_p.public
