"""`backward` and `grad`: what a user asks of the engine, with every argument checked first.

Owns the reading of outputs, inputs and initial gradients, and the error texts that people search
for. The pass itself is engine.py's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pullback.arrays import NUMPY, dtype_of, is_array, join, library_of, ndarray
from pullback.core.backward.collect import planned
from pullback.core.backward.engine import run
from pullback.core.backward.hooks import add_to_grad
from pullback.core.function.dispatch import wrap_in
from pullback.core.function.namespace import CORE_OPS
from pullback.core.graph.modes import STATE
from pullback.core.graph.node import AccumulateGrad
from pullback.core.tensor.ownership import is_held_once, is_unshared
from pullback.core.tensor.tensor import Tensor, as_array, box, unaliased
from pullback.core.tensor.versions import bump
from pullback.core.tensor.views import refresh
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GraphError,
    ShapeError,
    warn_user,
)
from pullback.hints import hinted

Tensors = Tensor | Sequence[Tensor]


def _sequence(api: str, name: str, value: Any) -> list[Any]:
    if isinstance(value, Tensor) or value is None or is_array(value):
        return [value]
    try:
        items = list(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{api}: {name} must be a Tensor or a sequence of Tensors, got {type(value).__name__}"
        ) from None
    return items


def _tensors(api: str, name: str, value: Any) -> list[Tensor]:
    tensors = _sequence(api, name, value)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise ArgumentTypeError(f"{api}: {name}[{i}] must be a Tensor, got {type(t).__name__}")
    return tensors


def _roots(api: str, name: str, tensors: Any) -> list[Tensor]:
    roots = _tensors(api, name, tensors)
    for i, t in enumerate(roots):
        if not t.requires_grad:
            raise GraphError(
                f"{api}: element {i} of tensors does not require grad and does not have a "
                "grad_fn.\nhint: call requires_grad_() on the leaves before computing it, and "
                "compute it outside of no_grad."
            )
    return roots


def _initial(
    api: str, name: str, roots: list[Tensor], grads: Any, batched: bool = False
) -> list[Tensor]:
    """Return one gradient a root, ones for real scalars where none is given."""
    listed = [None] * len(roots) if grads is None else _sequence(api, name, grads)
    if len(listed) != len(roots):
        raise GraphError(
            f"{api}: {name} must have one gradient for each of the {len(roots)} tensors, got "
            f"{len(listed)}"
        )
    seeds = [
        _seed(api, i, root, g, batched)
        for i, (root, g) in enumerate(zip(roots, listed, strict=True))
    ]
    observer = STATE.get().observer
    if observer is not None:
        observer.roots(api, name, roots, seeds)
    return seeds


def _implicit_seed(api: str, i: int, root: Tensor) -> Tensor:
    """Return the gradient of a real scalar by itself."""
    if root.numel() != 1:
        raise GraphError(
            f"{api}: grad can be implicitly created only for scalar outputs, got output {i} of "
            f"shape {root.shape}.\nhint: reduce it, for instance with sum(), or pass the "
            "gradient of the output."
        )
    if root.is_complex():
        raise GraphError(
            f"{api}: grad can be implicitly created only for real scalar outputs, got dtype "
            f"{root.dtype.name}.\nhint: pass the gradient of the output."
        )
    return _scalar_seed(root)


def _seed(api: str, i: int, root: Tensor, g: Any, batched: bool) -> Tensor:
    if g is None:
        return _implicit_seed(api, i, root)
    if not isinstance(g, Tensor):
        if not is_array(g):
            raise ArgumentTypeError(
                f"{api}: gradients can be either Tensors or None, got {type(g).__name__}"
            )
        g = box(library_of(g).tidy(g))
    shape = g.shape[1:] if batched else g.shape
    if shape != root.shape or (batched and not g.shape):
        more = " With is_grads_batched=True it needs one more leading dimension." if batched else ""
        raise ShapeError(
            f"{api}: Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] "
            f"has a shape of {root.shape}.{more}"
        )
    if g.is_complex() != root.is_complex() or not g.dtype.is_inexact:
        raise DTypeError(
            f"{api}: For complex Tensors, both grad_output and output are required to have the "
            f"same dtype. Mismatch in dtype: grad_output[{i}] has dtype {g.dtype.name} and "
            f"output[{i}] has dtype {root.dtype.name}."
        )
    library = library_of(root.data_array())
    wider = join((library, library_of(g._data)))
    if wider is None or g.device != root.device:
        raise GraphError(
            f"{api}: Mismatch in device: grad_output[{i}] is on {g.device} and output[{i}] on "
            f"{root.device}.\nhint: move it with .to(device)."
        )
    if wider is library:  # else it wraps the graph's arrays, which rules bring to it
        g = wrap_in(g, library)
    cast: Tensor = g if g.dtype is root.dtype else g.to(root.dtype)
    return cast


def _run(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    targets: list[Any] | None,
    retain: bool,
    recorded: bool,
    accumulate: bool,
    ends: Collection[Any] = (),
) -> Mapping[Any, Any]:
    grads = seeds if recorded else [g.data_array() for g in seeds]
    nodes = [t._node for t in roots]
    return run(nodes, grads, targets, retain, recorded, accumulate, ends=ends)


@hinted
def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves they came from.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What to differentiate.
    grad_tensors : Tensor or sequence, optional
        The gradient of each; may be left out, or None, for a real tensor with one element.
    retain_graph : bool, optional
        Keep what was saved, so that backward can run again; by default as `create_graph`.
    create_graph : bool, default False
        Record the backward pass, so that gradients can be differentiated.
    inputs : Tensor or sequence of Tensor, optional
        Only these get a gradient, leaves or not.

    Raises
    ------
    GraphError
        If a tensor does not require grad, is no scalar and has no gradient, or the graph was
        used before without `retain_graph`.
    ShapeError, DTypeError
        If a gradient does not fit its tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> pb.autograd.backward(x * x, pb.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    _backward("grad_tensors", tensors, grad_tensors, retain_graph, create_graph, inputs)


def _backward(
    name: str,
    tensors: Tensors,
    grads: Any,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
) -> None:
    """Run `backward`, or the method of a tensor; `name` is what it calls its gradients."""
    roots = _roots("backward", "tensors", tensors)
    seeds = _initial("backward", name, roots, grads)
    retain = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warn_user(
            "Using backward() with create_graph=True makes the .grad of the leaves keep the whole "
            "graph alive, and a reference cycle where something in the graph keeps a leaf: use "
            "autograd.grad, or reset .grad to None afterwards."
        )
    if inputs is None:
        _run(roots, seeds, None, retain, create_graph, True)
        return
    wanted = _inputs("backward", inputs)
    targets = [t._node for t in wanted]
    result = _run(roots, seeds, targets, retain, create_graph, True)
    for t in {id(t): t for t in wanted}.values():
        g = result[t._node]
        if g is not None and t._node.__class__ is not AccumulateGrad and not t.retains_grad:
            new = _grad_to_tensor(g)
            add_to_grad(t, new, new.requires_grad)


def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the ``.grad`` of the leaves it came from.

    See `pullback.autograd.backward` for the arguments and errors.
    """
    if inputs is None and not create_graph and STATE.get().observer is None:  # the common call
        if self._base is not None:
            refresh(self)
        node = self._node
        if node is None:
            _roots("backward", "tensors", self)
        data, seed = self._data, None
        if gradient is None:
            seed = _ones(data)
        elif gradient.__class__ is Tensor and gradient._base is None:
            array = gradient._data
            if (
                array.__class__ is ndarray
                and data.__class__ is ndarray
                and array.dtype is data.dtype
                and array.shape == data.shape
            ):
                seed = array
        if seed is None:
            seed = _initial("backward", "gradient", [self], gradient)[0]._data
        run((node,), (seed,), None, bool(retain_graph))
        return
    _backward("gradient", self, gradient, retain_graph, create_graph, inputs)


_seeds: dict[Any, Any] = {}


def _ones(data: Any) -> Any:
    """Return the gradient of a real scalar by itself, made once; None for anything else."""
    if data.__class__ is not ndarray or data.size != 1 or data.dtype.kind != "f":
        return None
    key = (data.dtype.char, data.ndim)
    seed = _seeds.get(key)
    if seed is None:
        seed = _seeds[key] = NUMPY.readonly(NUMPY.full(data.shape, 1, dtype_of(data.dtype)))
    return seed


def _scalar_seed(root: Tensor) -> Tensor:
    array = root.data_array()
    seed = _ones(array)
    return box(library_of(array).full_like(array, 1) if seed is None else seed)


def _grad_to_tensor(g: Any, alone: bool = False) -> Tensor:
    """Return a gradient as a tensor that shares memory with nothing.

    `alone` says that nobody else holds the array, whose memory may be that of another all the same.
    """
    if isinstance(g, Tensor):
        return unaliased(g)
    if g.__class__ is ndarray:
        return box(g if alone and is_unshared(g) else g.copy())
    array = as_array(g)
    library = library_of(array)
    return box(library.copy(array) if library.mutable or not alone else array)


def _inputs(api: str, inputs: Any) -> list[Tensor]:
    wanted = _tensors(api, "inputs", inputs)
    if not wanted:
        raise GraphError(f"{api}: `inputs` argument to `{api}()` cannot be empty.")
    for i, t in enumerate(wanted):
        if not t.requires_grad:
            raise GraphError(
                f"{api}: One of the differentiated Tensors does not require grad: inputs[{i}].\n"
                "hint: call requires_grad_() on it before computing the outputs."
            )
    return wanted


@hinted
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`; no ``.grad`` is touched.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        What to differentiate, and with respect to what (leaves or not).
    grad_outputs : Tensor or sequence, optional
        The gradient of each output; may be left out for real tensors with one element.
    retain_graph : bool, optional
        Keep what was saved, so that it can run again; by default as `create_graph`.
    create_graph : bool, default False
        Record the backward pass, so that the gradients can be differentiated.
    allow_unused : bool, optional
        Whether an input that the outputs do not depend on gives None instead of an error.
    is_grads_batched : bool, default False
        Whether `grad_outputs` have a leading dimension; one pass is made for each item of it and
        the results are stacked.
    materialize_grads : bool, default False
        Give zeros instead of None; implies `allow_unused`.

    Returns
    -------
    tuple of Tensor or None
        One gradient an input, in order.

    Raises
    ------
    GraphError
        As `backward`, and if an input was not used.
    ArgumentError
        If `materialize_grads` is set and `allow_unused` is False.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor(2.0, requires_grad=True)
    >>> (g,) = pb.autograd.grad(x**3, x, create_graph=True)
    >>> g, pb.autograd.grad(g, x)
    (tensor(12., grad_fn=<MulBackward>), (tensor(12.),))
    """
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "grad: Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: False."
        )
    wanted = _inputs("grad", inputs)
    roots = _roots("grad", "outputs", outputs)
    seeds = _initial("grad", "grad_outputs", roots, grad_outputs, is_grads_batched)
    retain = create_graph if retain_graph is None else retain_graph
    targets = [t._node for t in wanted]
    result: Mapping[Any, Any]
    if is_grads_batched:
        result = _batched(roots, seeds, targets, retain, create_graph)
    else:
        result = _run(roots, seeds, targets, retain, create_graph, False)
    gradients = _as_tensors(targets, result)
    for i, (t, g) in enumerate(zip(wanted, gradients, strict=True)):
        if g is None and materialize_grads:
            zeros = box(library_of(t._data).full_like(t._data, 0))
            gradients[i] = zeros.requires_grad_(create_graph)
        elif g is None and not allow_unused:
            raise GraphError(
                "grad: One of the differentiated Tensors appears to not have been used in the "
                f"graph: inputs[{i}].\nhint: Set allow_unused=True if this is the desired behavior."
            )
    return tuple(gradients)


def pulled_back(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | None,
    retain: bool,
    recorded: bool,
    fixed: Sequence[Tensor] = (),
) -> list[Tensor | None]:
    """Return the gradients by `inputs` of outputs that require grad: `grad` for transforms.

    The gradients of the outputs are tensors that fit, which is not checked; None is for scalars.
    Saved values are kept if they are to be retained. What is `fixed` is independent of one another:
    `grad` goes on where an input was computed from another, this does not where both are fixed.
    """
    if grad_outputs is None:
        seeds = [_scalar_seed(root) for root in outputs]
    else:
        seeds = list(map(_beside, grad_outputs, outputs))
    if (observer := STATE.get().observer) is not None:
        observer.roots("grad", "grad_outputs", list(outputs), seeds)
    targets, ends = [t._node for t in inputs], frozenset([t._node for t in fixed])
    return _as_tensors(targets, _run(outputs, seeds, targets, retain, recorded, False, ends))


def _as_tensors(targets: Sequence[Any], result: Mapping[Any, Any]) -> list[Tensor | None]:
    """Return the gradients of targets as tensors."""
    gradients: list[Tensor | None] = []
    for target in targets:
        alone = is_held_once(result[target])  # asked before a variable holds it
        g = result[target]
        gradients.append(None if g is None else _grad_to_tensor(g, alone))
        g = None
    return gradients


def _beside(g: Tensor, root: Tensor) -> Tensor:
    """Return a gradient in the array library of its output, unless it wraps that."""
    array = g._data if g._base is None else g.data_array()
    if array.__class__ is (root._data if root._base is None else root.data_array()).__class__:
        return g
    library = library_of(root._data)
    return wrap_in(g, library) if join((library, library_of(array))) is library else g


def _batched(
    roots: list[Tensor], seeds: list[Tensor], targets: list[Any], retain: bool, create: bool
) -> dict[Any, Any]:
    count = seeds[0].shape[0]
    if count == 0 or any(g.shape[0] != count for g in seeds):
        raise ShapeError(
            "grad: with is_grads_batched=True all grad_outputs must have one leading length of at "
            f"least 1, got {[g.shape[0] for g in seeds]}"
        )
    seed_arrays = seeds if create else [g.data_array() for g in seeds]
    nodes = [t._node for t in roots]
    plan = planned(nodes, targets, 0)
    passes = []
    for k in range(count):
        rows = [g[k, ...] for g in seed_arrays]  # of an array without further axes an array as well
        retained = retain or k < count - 1
        passes.append(run(nodes, rows, targets, retained, create, False, plan=plan))
    stacked: dict[Any, Any] = {}
    for target in targets:
        rows = [p[target] for p in passes]
        if any(r is None for r in rows):
            stacked[target] = None
        elif create:
            stacked[target] = rows[0].stack(rows)
        else:
            arrays = [as_array(r) for r in rows]
            stacked[target] = library_of(arrays[0]).xp.stack(arrays)
    return stacked


def increment_version(tensor: Tensors) -> None:
    """Tell that the memory of a tensor was written to behind the library's back.

    Parameters
    ----------
    tensor : Tensor or sequence of Tensor
        Each one's version grows by one, so that a backward that needs the old values raises.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0])
    >>> x.numpy()[0] = 5.0
    >>> pb.autograd.increment_version(x)
    >>> x._version
    1
    """
    for t in _sequence("increment_version", "tensor", tensor):
        if not isinstance(t, Tensor):
            raise ArgumentTypeError(f"increment_version: takes Tensors, got {type(t).__name__}")
        bump(t)


CORE_OPS.grad = grad
Tensor.backward = tensor_backward  # type: ignore[method-assign]
tensor_backward.__qualname__ = "Tensor.backward"
