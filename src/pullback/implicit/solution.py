"""A solution of an equation as one node of the graph, with derivatives of every order.

Owns the rule. Where F(x, theta) = 0, the gradient g of x becomes ``-u^T dF/dtheta`` with
``(dF/dx)^T u = g``: F was recorded once at the solution, and backward runs that record. A backward
pass that is recorded itself evaluates F and dF/dx again, at the solution as a tensor of the graph,
so that its result can be differentiated in turn.

Invariants: the node's edges lead to what F came from besides x, found in its record, so that what F
closes over is among them. What F reads must be as it was when a recorded pass evaluates it again.

Arrays that wrap others (forward mode) may carry derivatives that no graph of their own level shows.
There the solution is improved by steps of Newton's method in the caller's mode, of which k are
exact to the order 2**k - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pullback.arrays import WrappingLibrary, library_of
from pullback.core.backward.collect import since
from pullback.core.backward.engine import run
from pullback.core.function.record import NodeOperation, PassThrough, new_node
from pullback.core.graph.modes import STATE, no_grad
from pullback.core.graph.node import Node, WideNode, next_seq
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.errors import ConvergenceError, InplaceError, compose
from pullback.implicit.refinement import Residual, jacobian_of, newton_step, refined
from pullback.ops.functions.data_types import finfo
from pullback.ops.primitives.solving import solve

_STEPS = 3  # of Newton's method
# From the solution to what F is evaluated at, in a recorded pass.
_THROUGH = PassThrough("SolutionBackward")


def solution(api: str, residual: Residual, x: Tensor) -> Tensor:
    """Return a solution with the derivatives that its equation gives it.

    Parameters
    ----------
    api : str
        The function that found it.
    residual : callable
        F, of the shape of x.
    x : Tensor
        The solution as the iterations left it.
    """
    x = x.detach()
    with no_grad():
        x, matrix = refined(residual, x)
        wrapped = isinstance(library_of(residual(x).data_array()), WrappingLibrary)
    if not wrapped:
        return _recorded(api, residual, x, matrix)
    if matrix is None:
        raise _singular(api, x)
    for _ in range(_STEPS):
        x = newton_step(jacobian_of(residual, x), residual(x), x)
    return x


def _singular(api: str, x: Tensor) -> ConvergenceError:
    required = "a Jacobian that can be inverted required at the solution, for its derivative"
    hint = (
        "the solution is a multiple root, a flat minimum or one of many: solve an equation that "
        "has a simple one, as its derivative, or add what makes it unique; its value is found "
        "under no_grad()"
    )
    return ConvergenceError(compose(api, required, "a singular one", ("x", x), hint=hint))


def _recorded(api: str, residual: Residual, x: Tensor, matrix: Tensor | None) -> Tensor:
    if not STATE.get().grad:
        return x
    begun = next_seq()
    at = x.clone().requires_grad_()
    value = residual(at)
    edges = since([value._node], begun)[1] if value.requires_grad else []
    if not edges:
        return x
    if matrix is None:
        raise _singular(api, x)
    record = _Record(residual, at, value, matrix, begun)
    node = new_node(WideNode, _Solved(api), tuple(edges), (record,))
    return box(x.data_array(), node, None, x.__class__)


def _pulled(matrix: Tensor, g: Tensor) -> Tensor:
    """Return -u with ``matrix.T u = g``; the gradient of a complex number is conjugated."""
    result: Tensor = -solve(matrix.mH, g.reshape((-1, 1))).reshape(g.shape)
    return result


class _Record(NamedTuple):
    """What the node of a solution keeps."""

    residual: Residual
    x: Tensor  # the solution as a leaf
    value: Tensor  # F at x, recorded; what the derivatives of F depend on is saved in its graph
    matrix: Tensor  # dF/dx
    begun: int  # the number of the oldest node of that graph


class _Solved(NodeOperation):
    """The operation of a solution's node."""

    def __init__(self, api: str) -> None:
        self.node_name = "".join(word.capitalize() for word in api.split("_")) + "Backward"

    def saves_input(self, i: int, record: Any) -> bool:
        """Return True: a recorded pass evaluates F again."""
        return True

    def differentiate(
        self, node: Any, g: Any, wanted: set[Node] | None, recorded: bool
    ) -> Sequence[Any]:
        """Return the gradient of each edge's target; tensors where the pass is recorded."""
        record: _Record = self.kept(node)
        targets = [t for t in node.edges if wanted is None or t in wanted]
        pull = _pull_again if recorded else _pull
        result = pull(node, record, g, targets)
        return [result.get(t) for t in node.edges]


def _pull(node: Node, record: _Record, g: Any, targets: Sequence[Node]) -> Mapping[Node, Any]:
    """Return the gradients, through F as it was recorded."""
    u = _pulled(record.matrix, box(as_array(g))).data_array()
    return run([record.value._node], [u], targets, True, False, False, record.begun)


def _pull_again(
    node: Node, record: _Record, g: Tensor, targets: Sequence[Node]
) -> Mapping[Node, Any]:
    """Return the gradients as functions of the solution and of what F comes from."""
    at = new_node(WideNode, _THROUGH, (node,))  # older than F: no part of dF/dtheta
    x = box(record.x.data_array(), at, None, record.x.__class__)
    begun = next_seq()
    value = record.residual(x)
    u = _pulled(jacobian_of(record.residual, x), g)
    result = run([value._node], [u], targets, True, True, False, begun)
    # This raises where what F saved was changed in place since.
    _check_unchanged(node, result, _pull(node, record, g.data_array(), [*targets, record.x._node]))
    return result


def _check_unchanged(node: Node, now: Mapping[Node, Any], then: Mapping[Node, Any]) -> None:
    """Raise if F, evaluated again, has other derivatives: what it reads is not what it was."""
    for target, g in now.items():
        if differs(g.detach(), box(as_array(then[target]))):
            raise InplaceError(
                f"{node.name()}: one of the variables needed for gradient computation has been "
                "modified by an inplace operation: the equation that was solved has other "
                "derivatives now.\nhint: differentiate before changing what it depends on, or "
                "clone() that first."
            )


def differs(now: Tensor, before: Tensor) -> bool:
    """Return whether what was computed again is not what it was, to rounding."""
    rounding = float(finfo(before.dtype).eps) ** 0.5
    return bool(abs(now - before).sum() > rounding * abs(before).sum())
