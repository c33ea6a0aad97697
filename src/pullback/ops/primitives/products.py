"""Products of matrices and vectors.

All but `cross` are matrix products underneath, so that the array library's BLAS does the work.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.arrays import NUMPY
from pullback.errors import ShapeError, compose, describe
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import Primitive, elementwise, op_for, operation
from pullback.ops.matrices import needs_one_stack
from pullback.ops.samples import both, sample


# -- two matrices, two stacks of them --------------------------------------------------------------
def _matmul(xp: Any, x: Any, y: Any) -> Any:
    if not x.shape or not y.shape or x.shape[-1] != y.shape[max(len(y.shape) - 2, 0)]:
        raise ShapeError(
            "matmul: the last axis of x and the second to last of y must have one length, got\n"
            f"  {describe('x', x)}\n  {describe('y', y)}"
        )
    if len(x.shape) > 2 and len(y.shape) > 2:
        needs_one_stack("matmul", (x.shape[:-2], y.shape[:-2]), x=x, y=y)
    return xp.matmul(x, y)


def _swap(x: Any, xp: Any) -> Any:
    return xp.matrix_transpose(x)


# A product of a matrix and a vector adds its numbers one after the other. A gradient adds so many
# at most: more of them are added as sums are.
_FEW = 64


def _left(g: Any, x_shape: Any, y: Any, xp: Any) -> Any:
    if len(y.shape) == 2 and len(x_shape) <= 2:  # of a vector x, g is one as well
        return xp.matmul(g, _swap(y, xp))
    if len(y.shape) == 1:  # g has the shape of x less its last axis
        return sum_to_shape(xp.reshape(g, (*g.shape, 1)) * y, x_shape, xp)
    if len(x_shape) == 2:  # y is a stack: one sum over all of it
        stack = tuple(range(len(y.shape) - 2))
        labels = ((*stack, "i", "m"), (*stack, "n", "m"), ("i", "n"))
        return op_for(xp, contract_p)(g, y, labels=labels)
    g2 = xp.expand_dims(g, axis=-2) if len(x_shape) == 1 else g
    product = xp.matmul(g2, _swap(y, xp))
    if len(x_shape) == 1:
        product = xp.reshape(product, (*product.shape[:-2], product.shape[-1]))
    return sum_to_shape(product, x_shape, xp)


def _right(g: Any, x: Any, y_shape: Any, xp: Any) -> Any:
    if len(x.shape) == 2 and (len(y_shape) == 2 or x.shape[0] <= _FEW):
        return xp.matmul(_swap(x, xp), g)  # of a vector y, g is one as well
    if len(y_shape) == 1:  # g has the shape of x less its last axis
        axes = tuple(range(len(x.shape)))
        return op_for(xp, contract_p)(x, g, labels=(axes, axes[:-1], axes[-1:]))
    if len(y_shape) == 2 and len(x.shape) > 2:  # one sum over all of the stack
        *stack, row = range(len(x.shape))
        return op_for(xp, contract_p)(x, g, labels=((*stack, row), (*stack, "m"), (row, "m")))
    if len(x.shape) == 1:
        rows = xp.expand_dims(g, axis=-2)
        return sum_to_shape(xp.expand_dims(x, axis=-1) * rows, y_shape, xp)
    return sum_to_shape(xp.matmul(_swap(x, xp), g), y_shape, xp)


matmul_p = operation(
    "matmul",
    _matmul,
    numpy_kernel="matmul",
    rules={"x": _left, "y": _right},
    samples=(
        sample((3, 4), (4, 2)),
        sample((4,), (4,)),
        sample((3, 4), (4,)),
        sample((4,), (4, 2)),
        sample((2, 3, 4), (4, 2)),
        sample((3, 4), (2, 4, 2)),
        sample((2, 1, 3, 4), (5, 4, 2)),
        sample((2, 3, 4), (4,)),
        sample((4,), (2, 4, 3)),
        sample((0, 4), (4, 2)),
        sample((3, 0), (0, 2)),
    ),
    scalars=False,
    doc="Return the matrix product; vectors and stacks as in PyTorch and the standard.",
    batch="matmul",
)


def _way_to_fit(x: Sequence[int], y: Sequence[int]) -> str:
    """Return the hint for two shapes that are not those of a product of matrices."""
    if len(x) != 2 or len(y) != 2:
        return "\nhint: use matmul for vectors and stacks of matrices."
    turned = "y.T" if x[1] == y[1] else "x.T" if x[0] == y[0] else ""
    return f"\nhint: {turned} has a shape that fits." if turned else ""


def _mm(xp: Any, x: Any, y: Any) -> Any:
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[0]:
        raise ShapeError(
            "mm: two matrices of shapes (n, k) and (k, m) required, got\n"
            f"  {describe('x', x)}\n  {describe('y', y)}{_way_to_fit(x.shape, y.shape)}"
        )
    return xp.matmul(x, y)


def _mm_numpy(x: Any, y: Any) -> Any:
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError
    return x.dot(y)


mm_p = elementwise(
    "mm",
    _mm,
    numpy_kernel=_mm_numpy,
    x=lambda g, y, xp: xp.matmul(g, y.mT),
    y=lambda g, x, xp: xp.matmul(x.mT, g),
    domain=both(-2, 2),
    broadcasts=False,
    samples=(sample((3, 4), (4, 2)), sample((0, 4), (4, 2)), sample((3, 0), (0, 2))),
    reference="numpy.matmul",
    scalars=False,
    methods="mm",
    doc="""Return the product of two matrices.

    Raises
    ------
    ShapeError
        If one has not exactly two dimensions, or the inner lengths differ.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mm(pb.eye(2), pb.ones((2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """,
    batch="matmul",
)
mm = mm_p.public


# -- vectors ---------------------------------------------------------------------------------------
def _outer(xp: Any, x1: Any, x2: Any) -> Any:
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        came = f"{len(x1.shape)} and {len(x2.shape)} dimensions"
        raise ShapeError(compose("outer", "two vectors required", came, ("x1", x1), ("x2", x2)))
    return xp.multiply(x1[:, None], x2[None, :])


# A product of matrices would lose the sign of a zero; its rules need no matrix of products.
outer_p = elementwise(
    "outer",
    _outer,
    x1=lambda g, x2, xp: xp.matmul(g, x2),
    x2=lambda g, x1, xp: xp.matmul(g.mT, x1),
    domain=both(-2, 2),
    broadcasts=False,
    samples=(sample((3,), (2,)), sample((1,), (1,)), sample((0,), (2,))),
    scalars=False,
    doc="Return the matrix of the products x1[i] * x2[j].",
    batch="outer",
)


cross_p = operation(
    "cross",
    lambda xp, x1, x2, *, axis=-1: xp.linalg.cross(x1, x2, axis=axis),
    rules={
        "x1": lambda g, x2, axis, xp: xp.linalg.cross(x2, g, axis=axis),
        "x2": lambda g, x1, axis, xp: xp.linalg.cross(g, x1, axis=axis),
    },
    broadcasts=True,
    samples=(
        sample((3,), (3,), axis=-1),
        sample((2, 3), (3,), axis=-1),
        sample((3, 2), (3, 1), axis=-2),
        sample((0, 3), (0, 3), axis=-1),
    ),
    scalars=False,
    doc="Return the cross product of vectors of three elements.",
    batch="cross",
)


# -- contractions ----------------------------------------------------------------------------------
Label = str | int
Labels = tuple[tuple[Label, ...], ...]


class _Plan(NamedTuple):
    """How to bring a contraction to one product of (stacks of) matrices."""

    x_order: tuple[int, ...] | None  # None: as it is
    y_order: tuple[int, ...] | None
    out_order: tuple[int, ...] | None
    stacked: int  # how many axes of each kind there are
    left: int
    summed: int
    right: int


def _order(labels: tuple[Label, ...], wanted: tuple[Label, ...]) -> tuple[int, ...] | None:
    return None if labels == wanted else tuple(labels.index(n) for n in wanted)


@functools.lru_cache(maxsize=1024)
def _plan(labels: Labels) -> _Plan:
    x, y, out = labels
    stacked = tuple(n for n in x if n in y and n in out)
    summed = tuple(n for n in x if n in y and n not in out)
    left = tuple(n for n in x if n not in y)
    right = tuple(n for n in y if n not in x)
    return _Plan(
        _order(x, (*stacked, *left, *summed)),
        _order(y, (*stacked, *summed, *right)),
        _order((*stacked, *left, *right), out),
        *map(len, (stacked, left, summed, right)),
    )


def _contract(xp: Any, x: Any, y: Any, *, labels: Labels) -> Any:
    for i, array in enumerate((x, y)):
        if array.ndim != len(labels[i]):
            required = f"a label required for each axis of '{'xy'[i]}'"
            raise ShapeError(compose("contract", required, str(labels[i]), ("x", x), ("y", y)))
    plan = _plan(labels)
    x = x if plan.x_order is None else xp.permute_dims(x, plan.x_order)
    y = y if plan.y_order is None else xp.permute_dims(y, plan.y_order)
    if plan.left == plan.summed == plan.right == 1:
        out = xp.matmul(x, y)
    elif plan.left == plan.summed == 1 and not (plan.stacked or plan.right):
        out = _times_vector(x, y, xp)
    elif plan.right == plan.summed == 1 and not (plan.stacked or plan.left):
        out = _times_vector(_swap(y, xp), x, xp)
    elif not plan.summed:
        x = xp.reshape(x, (*x.shape, *(1,) * plan.right))
        ones = (1,) * plan.left
        out = x * xp.reshape(y, (*y.shape[: plan.stacked], *ones, *y.shape[plan.stacked :]))
    else:
        out = _product(plan, x, y, xp)
    return out if plan.out_order is None else xp.permute_dims(out, plan.out_order)


def _times_vector(x: Any, y: Any, xp: Any) -> Any:
    """Return the product of a matrix and a vector, sums of many numbers as sums of short ones."""
    rows, n = x.shape
    if n <= _FEW:
        return xp.matmul(x, y)
    whole = n - n % _FEW
    parts = xp.reshape(x[:, :whole], (rows, whole // _FEW, _FEW))  # a view, in any memory layout
    parts = xp.permute_dims(parts, (1, 0, 2))
    result = xp.sum(xp.matmul(parts, xp.reshape(y[:whole], (-1, _FEW, 1))), axis=0)
    return result[:, 0] + xp.matmul(x[:, whole:], y[whole:])


def _product(plan: _Plan, x: Any, y: Any, xp: Any) -> Any:
    """Return the product of arrays whose axes of each kind are made one."""
    s, rows, columns = plan.stacked, x.shape[: plan.stacked + plan.left], y.shape
    columns = columns[s + plan.summed :]
    n = math.prod(x.shape[s + plan.left :])
    stack = (math.prod(rows[:s]),) if s else ()
    x = xp.reshape(x, (*stack, math.prod(rows[s:]), n))
    if plan.right or stack:
        out = xp.matmul(x, xp.reshape(y, (*stack, n, math.prod(columns))))
    else:
        out = _times_vector(x, xp.reshape(y, (n,)), xp)
    return xp.reshape(out, (*rows, *columns))


# Its gradients are contractions again.
contract_p: Primitive = operation(
    "contract",
    _contract,
    rules={
        "x": lambda g, y, labels, xp: op_for(xp, contract_p)(
            g, y, labels=(labels[2], labels[1], labels[0])
        ),
        "y": lambda g, x, labels, xp: op_for(xp, contract_p)(
            x, g, labels=(labels[0], labels[2], labels[1])
        ),
    },
    samples=(
        sample((2, 3), (3, 4), labels=(("i", "j"), ("j", "k"), ("k", "i"))),
        sample((2, 3, 2), (2, 4), labels=(("b", "i", "j"), ("b", "k"), ("k", "j", "b", "i"))),
        sample((3, 2, 2), (2, 4, 3), labels=(("a", "b", "c"), ("c", "d", "a"), ("b", "d"))),
        sample((2, 2, 3), (2, 3), labels=(("b", "i", "j"), ("b", "j"), ("i", "b"))),
        sample((3,), (3,), labels=(("i",), ("i",), ())),
        sample((), (2,), labels=((), ("i",), ("i",))),
        sample((2, 0), (0, 3), labels=(("i", "j"), ("j", "k"), ("i", "k"))),
    ),
    reference=(
        lambda np, x, y, labels: np.einsum(
            ",".join(map("".join, labels[:2])) + "->" + "".join(labels[2]), x, y
        )
    ),
    scalars=False,
    doc="""Return sums of products over labelled axes.

    Each label of one operand is one of the other or of the result; axes of one label have one
    length.
    """,
    batch="contract",
)


# -- the linear layer ------------------------------------------------------------------------------
def _rows(xp: Any, x: Any) -> Any:
    """Return (..., features) as a matrix."""
    return xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1])) if len(x.shape) != 2 else x


def _times_rows(xp: Any, x: Any, y: Any) -> Any:
    """Return the product of (..., features) and a matrix, as one product of matrices."""
    product = xp.matmul(_rows(xp, x), y)
    return xp.reshape(product, (*x.shape[:-1], y.shape[1])) if len(x.shape) != 2 else product


def _linear(xp: Any, input: Any, weight: Any) -> Any:
    return _times_rows(xp, input, xp.matrix_transpose(weight))


def _linear_weight(g: Any, input: Any, xp: Any) -> Any:
    return xp.matmul(xp.matrix_transpose(_rows(xp, g)), _rows(xp, input))


linear_p = elementwise(
    "linear",
    _linear,
    input=lambda g, weight, xp: _times_rows(xp, g, weight),
    weight=_linear_weight,
    domain=both(-2, 2),
    broadcasts=False,
    samples=(
        sample((2, 3), (4, 3)),
        sample((3,), (2, 3)),
        sample((2, 1, 3), (2, 3)),
        sample((0, 3), (2, 3)),
        sample((2, 0), (3, 0)),
    ),
    reference=(lambda np, input, weight: np.einsum("...i,oi->...o", input, weight)),
    scalars=False,
    doc="Return input @ weight.T.",
    batch="linear",
)


def _affine_numpy(input: Any, weight: Any, bias: Any) -> Any:
    product = _linear(NUMPY.xp, input, weight)
    product += bias  # while it is in the processor's cache
    return product


affine_p = elementwise(
    "affine",
    lambda xp, input, weight, bias: _linear(xp, input, weight) + bias,
    numpy_kernel=_affine_numpy,
    input=lambda g, weight, xp: _times_rows(xp, g, weight),
    weight=_linear_weight,
    bias=lambda g, xp: xp.sum(_rows(xp, g), axis=0),
    domain=both(-2, 2),
    broadcasts=False,
    samples=(
        sample((2, 3), (4, 3), (4,)),
        sample((3,), (2, 3), (2,)),
        sample((2, 1, 3), (2, 3), (2,)),
        sample((0, 3), (2, 3), (2,)),
        sample((2, 0), (3, 0), (3,)),
    ),
    reference=(lambda np, input, weight, bias: np.einsum("...i,oi->...o", input, weight) + bias),
    scalars=False,
    doc="Return input @ weight.T + bias.",
    batch="linear",
)
