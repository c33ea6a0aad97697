"""Jacobians, Hessians, and their products with a vector: `jacobian`, `hessian`, `hvp`, `vhp`."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.backward.api import pulled_back
from pullback.core.backward.collect import collect
from pullback.core.custom.pytree import unflatten
from pullback.core.function.primitive import Primitive
from pullback.core.graph.node import CustomNode, Node
from pullback.core.tensor.endings import run_in_call
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, BatchedValueError, GraphError, compose
from pullback.hints import hinted
from pullback.ops.functions.creation import zeros_like
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import broadcast_to, moveaxis
from pullback.transforms.api.arguments import (
    Argnum,
    Arguments,
    Function,
    Transformed,
    name_of,
)
from pullback.transforms.api.jvp import run_forward
from pullback.transforms.api.recording import (
    Recording,
    check_differentiable,
    check_real,
    check_scalar,
    check_tensor,
    structured,
)
from pullback.transforms.api.vmap import for_rows
from pullback.transforms.directions import as_tensor, is_differentiable, or_zeros
from pullback.transforms.forward.pushforward import Pushforward, unit_seeds
from pullback.transforms.levels import run_recorded
from pullback.transforms.user_calls import WrappedCall

_WORTHWHILE = 4  # rows from which on a batch of them is quicker than one after the other
_MOST_AT_ONCE = 2**22  # elements of a gradient of a batch


@hinted
def jacobian(
    fun: Function,
    argnum: Argnum = 0,
    mode: str | None = None,
    has_aux: bool = False,
    *,
    argnums: Argnum | None = None,
) -> Function:
    """Return the function that computes all first derivatives of `fun`.

    Parameters
    ----------
    fun : callable
        Returns a Tensor, or a container of tensors and other objects.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    mode : {None, "reverse", "forward"}
        Reverse makes a backward pass for each element of the result, forward runs `fun` in
        forward mode for each element of the arguments: for many of them at once where only
        built-in operations see them. By default `fun` runs once, and what is fewer is passed
        through what was recorded.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns an array of shape ``out.shape + in.shape``: its
        element ``[i, j]`` is the derivative of element i of the result by element j of the
        argument. Where the result is a container, the same container of derivatives; where the
        argument is one, a container like it in each of them; for a sequence as `argnum`, a tuple.
        None for integers. With `has_aux` a pair of that and the other object.

        Derivatives by a complex argument are gradients as `Tensor.backward` computes them, of the
        real part of each element: of a holomorphic function the conjugate of its derivative.
        Those of a complex result by a real argument are complex.

    Raises
    ------
    ArgumentTypeError
        If the result holds no Tensor, so that it depends on no argument.
    DTypeError
        If the differentiated arguments, or the result, hold nothing but integers.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import jacobian
    >>> jacobian(lambda x, y: x**2 * y)(np.array([1.0, 2.0]), 3.0)
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    if mode not in (None, "reverse", "forward"):
        required = "mode 'reverse', 'forward' or None required"
        raise ArgumentError(compose("jacobian", required, repr(mode)))
    return Jacobian(jacobian, fun, argnum=argnum, argnums=argnums, mode=mode, has_aux=has_aux)


@hinted
def jacrev(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes all first derivatives of `fun` in reverse mode.

    Parameters, results and errors are those of `jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import jacrev
    >>> jacrev(np.cumsum)(np.array([1.0, 2.0]))
    array([[1., 0.],
           [1., 1.]])
    """
    return Jacobian(jacrev, fun, argnum=argnum, argnums=argnums, has_aux=has_aux)


@hinted
def jacfwd(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes all first derivatives of `fun` in forward mode.

    No graph is kept: the memory is that of `fun` itself, twice. Parameters, results and errors are
    those of `jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import jacfwd
    >>> jacfwd(np.cumsum)(np.array([1.0, 2.0]))
    array([[1., 0.],
           [1., 1.]])
    """
    return Jacobian(jacfwd, fun, argnum=argnum, argnums=argnums, has_aux=has_aux)


class Jacobian(Transformed):
    """The Jacobian of a function, by the name of any transform that needs it."""

    def __init__(self, transform: Callable[..., Any], fun: Function, **settings: Any) -> None:
        super().__init__(transform, fun, **settings)
        modes = {jacrev: "reverse", jacfwd: "forward"}
        self._mode = modes.get(transform, settings.get("mode"))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Jacobian, with the second object where there is one."""
        arguments = Arguments(self._api, self._fun, self._argnum, args, kwargs)
        if self._mode == "forward":
            # the function runs again and again, with one warning a line
            result, aux = run_in_call(0, _forward, arguments, self._has_aux)
        else:
            result, aux = _recorded(arguments, self._has_aux, self._mode is None)
        return (result, aux) if self._has_aux else result


# -- through what was recorded ---------------------------------------------------------------------
def _recorded(arguments: Arguments, has_aux: bool, by_size: bool) -> tuple[Any, Any]:
    recording = Recording(arguments, has_aux)
    result = iter(blocks_of(recording, by_size))
    blocks = [
        recording.structured(next(result), recording.keeps) if is_differentiable(leaf) else None
        for leaf in recording.outs
    ]
    return unflatten(recording.structure, blocks), recording.auxiliary() if has_aux else None


def blocks_of(recording: Recording, by_size: bool = True) -> list[list[Tensor]]:
    """Return for each leaf of a recorded result its derivatives by each input.

    By size: vectors may be pushed forward where the inputs have far fewer elements.
    """
    check_differentiable(recording.arguments, recording.outs, recording.structure)
    outs = [as_tensor(x) for x in recording.outs if is_differentiable(x)]
    columns = sum(leaf.numel() for leaf in recording.leaves)
    blocks = None
    if by_size and 2 * columns < sum(out.numel() for out in outs):
        blocks = _by_columns(recording, outs)
    return [_by_rows(recording, out) for out in outs] if blocks is None else blocks


def _by_rows(recording: Recording, out: Tensor) -> list[Tensor]:
    """Return the derivatives of a result by each input, by a pass for each of its elements."""
    rows = _pulled(recording, out, 1)
    if out.is_complex() and not all(r.is_complex() for r in rows):
        imaginary = _pulled(recording, out, 1j)
        rows = [r if r.is_complex() else r + 1j * im for r, im in zip(rows, imaginary, strict=True)]
    pairs = zip(rows, recording.leaves, strict=True)
    return [r.reshape((*out.shape, *leaf.shape)) for r, leaf in pairs]


def _pulled(recording: Recording, out: Tensor, unit: complex) -> list[Tensor]:
    """Return the gradients of the inputs for each seed `unit` of a result, stacked.

    By one pass with a batch of seeds where only built-in operations see it, else by one for each.
    """
    count = out.numel()
    if count >= _WORTHWHILE and not recording.keeps_with([]) and is_built_in(out):
        try:
            return for_rows(
                lambda seed: recording.pull([out], [seed], retain=True),
                functools.partial(_units, out, unit),
                count,
                _at_once([out], recording.leaves),
            )
        except BatchedValueError:  # a rule looks at values
            pass
    return recording.pull([out], [_units(out, unit)], retain=True, rows=count)


def _units(like: Tensor, unit: complex, start: int = 0, stop: int | None = None) -> Tensor:
    """Return one tensor for each element of another, `unit` there and 0 elsewhere."""
    seeds = unit_seeds(like, start, stop)
    return seeds if unit == 1 else seeds * unit


def _at_once(outs: Sequence[Tensor], sources: Sequence[Tensor]) -> int:
    """Return how many passes are made together, such that no batch of gradients is too large."""
    nodes, _ = collect([out._node for out in outs if out._node is not None])
    largest = max([1, *(t.numel() for t in (*outs, *sources)), *map(_size_at, nodes)])
    return max(1, _MOST_AT_ONCE // largest)


def _size_at(node: Node) -> int:
    """Return how many elements a gradient at a node has at most, as far as the node knows.

    It knows what it saved but of constants, and the shapes that broadcasting must be undone to. Of
    a large array that becomes a small one, the operation that makes it small knows the size.
    """
    largest = 1
    if node.shapes is not None:
        aligned = itertools.zip_longest(*map(reversed, node.shapes), fillvalue=1)
        largest = math.prod(map(max, aligned))
    if isinstance(node.op, Primitive) and not node.op.variadic:
        record = node.record
        constants = [n for n, edge in zip(node.op.inputs, record, strict=False) if edge is None]
        for name, saved in zip(node.op.layout, record[node.count :], strict=False):
            if name.removesuffix("_shape") not in constants:
                shape = saved if name.endswith("_shape") else getattr(saved, "shape", None)
                largest = max(largest, math.prod(shape or ()))
    return largest


def is_built_in(out: Tensor) -> bool:
    """Return whether no operation of a user's, and no hook, is in the graph of a result."""
    nodes, suspects = collect([] if out._node is None else [out._node])
    own = any(node.__class__ is CustomNode or node.op.__class__ is WrappedCall for node in nodes)
    extras = [node.extra for node in suspects if node.extra is not None]
    watched = any(x.tensor_hooks or x.prehooks or x.posthooks or x.retained for x in extras)
    return not own and not watched


def _by_columns(recording: Recording, outs: Sequence[Tensor]) -> list[list[Tensor]] | None:
    """Return the same of all results, by a pass for each element of the inputs.

    None where an operation's backward cannot be differentiated itself, which that needs.
    """
    places = recording.leaves

    def push(vectors: Sequence[Tensor | None]) -> list[Tensor]:
        return or_zeros(run_recorded(recording.level, derivative, vectors, recording.keeps), outs)

    together = not recording.keeps and all(map(is_built_in, outs))
    try:
        derivative = run_recorded(recording.level, Pushforward, outs, places)
        return _columns(places, outs, push, together)
    except GraphError:
        return None


# -- in forward mode -------------------------------------------------------------------------------
def _forward(arguments: Arguments, has_aux: bool) -> tuple[Any, Any]:
    sources = arguments.sources()
    tensors = [s for s in sources if s is not None]
    # Along zeros: what the function keeps of it is no constant to the runs that follow.
    zeros = [None if s is None else zeros_like(s.detach()) for s in sources]
    first = run_forward(arguments, sources, zeros, has_aux)
    values = first.values()
    together = not first.running.user_ops and not any(t.requires_grad for t in tensors)

    def push(vectors: Sequence[Tensor | None]) -> list[Tensor]:
        left = iter(vectors)
        along = [None if s is None else next(left) for s in sources]
        result = run_forward(arguments, sources, along, has_aux).tangents()
        return [x for x in result if x is not None]

    outs = [as_tensor(x) for x in values if is_differentiable(x)]
    blocks = iter(_columns(tensors, outs, push, together))
    result = [
        structured(arguments, sources, next(blocks), False) if is_differentiable(x) else None
        for x in values
    ]
    return unflatten(first.structure, result), first.auxiliary()


# -- columns ---------------------------------------------------------------------------------------
Push = Callable[[Sequence[Tensor | None]], list[Tensor]]


def _columns(
    sources: Sequence[Tensor], outs: Sequence[Tensor], push: Push, together: bool
) -> list[list[Tensor]]:
    """Return for each result its derivatives by each of `sources`, from those along directions.

    `together`: a batch of directions at once, which no operation of a user's is to see.
    """
    blocks: list[list[Tensor]] = [[] for _ in outs]
    for k, source in enumerate(sources):
        columns = _pushed(push, k, sources, 1, outs, together)
        if source.is_complex():
            imaginary = _pushed(push, k, sources, 1j, outs, together)
            pairs = zip(columns, imaginary, strict=True)
            # gradients are of the real part of each element
            columns = [_real_part(x) + 1j * _real_part(y) for x, y in pairs]
        for i, out in enumerate(outs):
            blocks[i].append(_block(columns[i] if columns else None, out, source))
    return blocks


def _pushed(
    push: Push,
    k: int,
    sources: Sequence[Tensor],
    unit: complex,
    outs: Sequence[Tensor],
    together: bool,
) -> list[Tensor]:
    """Return the derivatives of each result along vectors `unit` of one source, stacked."""
    count, units = sources[k].numel(), functools.partial(_units, sources[k], unit)
    if not count:
        return []

    def along(vector: Tensor) -> list[Tensor]:
        return push([vector if i == k else None for i in range(len(sources))])

    if together and count >= _WORTHWHILE:
        try:
            return for_rows(along, units, count, _at_once(outs, sources))
        except BatchedValueError:  # an operation looks at the derivative
            pass
    rows = [along(units(i, i + 1)[0]) for i in range(count)]
    return [stack(column) for column in zip(*rows, strict=True)]


def _real_part(x: Tensor) -> Tensor:
    part: Tensor = x.real if x.is_complex() else x
    return part


def _block(columns: Tensor | None, out: Tensor, source: Tensor) -> Tensor:
    """Return the derivatives of a result by a source from those along each of its elements."""
    shape = (*out.shape, *source.shape)
    if columns is None:
        return broadcast_to(source.detach(), shape).clone()
    block = moveaxis(columns, 0, -1).reshape(shape)
    return block if block.is_complex() else block.to(source.dtype)


# -- hessian ---------------------------------------------------------------------------------------
@hinted
def hessian(
    fun: Function, argnum: Argnum = 0, has_aux: bool = False, *, argnums: Argnum | None = None
) -> Function:
    """Return the function that computes all second derivatives of `fun`.

    It is the Jacobian of the Jacobian: ``jacobian(jacobian(fun))``.

    Parameters
    ----------
    fun : callable
        Usually returns a scalar Tensor; of anything else all elements are differentiated.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    has_aux : bool, default False
        Whether `fun` returns a pair of the result to differentiate and any other object.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns an array of shape ``in.shape + in.shape``, the
        result's axes in front where it is no scalar. Where the argument is a container, a
        container of containers: ``h["a"]["b"]`` is the derivative by ``a``, then by ``b``; for a
        sequence as `argnum` a tuple of tuples. With `has_aux` a pair of that and the other object.

    Raises
    ------
    ArgumentTypeError, DTypeError
        As `jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import hessian
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])
    """
    return Hessian(hessian, fun, argnum=argnum, argnums=argnums, has_aux=has_aux)


@hinted
def hvp(fun: Function, argnum: Argnum = 0, *, argnums: Argnum | None = None) -> Function:
    """Return the function that multiplies the Hessian of `fun` with a vector from the right.

    `fun` runs once. A pass through its recorded gradient multiplies with the vector; the Hessian
    itself is not computed. What `fun` computes under `no_grad` is a constant, as it is to `grad`
    and `hessian`.

    Parameters
    ----------
    fun : callable
        Returns a real scalar Tensor.
    argnum : int, str or sequence of those, default 0
        The arguments to differentiate with respect to, as in `grad`.
    argnums : optional
        Another name of `argnum`.

    Returns
    -------
    callable
        Takes the arguments of `fun` and then a vector: an array of the shape of the
        differentiated argument, a container like it, or for a sequence as `argnum` a tuple of
        those. None in it means zero. Returns the product, the derivative of the gradient along
        the vector, in the structure of the argument.

    Raises
    ------
    ArgumentError, ShapeError
        If the vector has another structure or shape than the argument.
    GraphError, DTypeError, ArgumentTypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import hvp
    >>> hvp(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]), np.array([1.0, 10.0]))
    array([46.,  4.])
    """
    return HessianProduct(hvp, fun, argnum=argnum, argnums=argnums)


@hinted
def vhp(fun: Function, argnum: Argnum = 0, *, argnums: Argnum | None = None) -> Function:
    """Return the function that multiplies the Hessian of `fun` with a vector from the left.

    The product equals that of `hvp` where the Hessian is symmetric: not where an operation of a
    user's has a gradient that is no derivative. Parameters, results and errors are those of `hvp`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import vhp
    >>> vhp(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]), np.array([1.0, 10.0]))
    array([46.,  4.])
    """
    return HessianProduct(vhp, fun, argnum=argnum, argnums=argnums)


hessian_vector_product = hvp


class Hessian(Transformed):
    """The Hessian of a function."""

    def __init__(self, transform: Callable[..., Any], fun: Function, **settings: Any) -> None:
        super().__init__(transform, fun, **settings)
        first = Jacobian(transform, fun, **self._settings)
        self._second = Jacobian(transform, first, **self._settings)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian, with the second object where there is one."""
        return self._second(*args, **kwargs)


class HessianProduct(Transformed):
    """The product of a Hessian and a vector, from the side that the transform's name says."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the product; the last argument is the vector."""
        if len(args) + len(kwargs) < 2:
            required = f"the arguments of {name_of(self._fun)} and then a vector required"
            came = f"{len(args) + len(kwargs)} arguments"
            raise ArgumentError(compose(self._api, required, came))
        arguments = Arguments(self._api, self._fun, self._argnum, args[:-1], kwargs)
        recording = Recording(arguments)
        out = recording.out
        check_tensor(arguments, out)
        check_real(arguments, out)
        check_scalar(arguments, out, "jacobian of the gradient")
        vectors, kept = recording.vectors(self._api, "the vector", args[-1])
        return recording.structured(self._product(recording, vectors, kept), kept)

    def _product(
        self, recording: Recording, vectors: Sequence[Tensor | None], kept: bool
    ) -> list[Tensor]:
        """Return the product by each input, of a vector, or None for zero, for each."""
        out, places = recording.out, recording.leaves
        gradients: list[Tensor | None] = [None] * len(places)
        if out.requires_grad:
            settings = None, True, True
            gradients = run_recorded(recording.level, pulled_back, [out], places, *settings)
        if self._transform is vhp or is_built_in(out):
            pairs = zip(gradients, vectors, strict=True)
            result = [(g, v) for g, v in pairs if g is not None and v is not None]
            return recording.pull([g for g, _ in result], [v for _, v in result])
        # The Hessian may not be symmetric.
        outs = or_zeros(gradients, places)
        push = run_recorded(recording.level, Pushforward, outs, places)
        return or_zeros(push(vectors, kept), places)
