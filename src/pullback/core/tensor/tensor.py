"""The Tensor: a box around an array of some library, with its node in the graph.

Owns the slots and what can be asked of them: gradient, requires_grad, leaf or not, hooks,
conversion to Python and NumPy. The operations are attached by ``pullback.ops``; the typed
list of them is the stub of `Methods`.
"""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from pullback import hints
from pullback.arrays import (
    NUMPY,
    DType,
    constant,
    dtype_of,
    get_default_dtype,
    innermost,
    is_array,
    join,
    library_of,
    ndarray,
    varies,
)
from pullback.core.graph.modes import MAKING, STATE
from pullback.core.graph.node import AccumulateGrad, Node, Output, RemovableHandle, add_hook
from pullback.core.tensor import printing
from pullback.core.tensor.endings import CALLS, refuse_as_setting, warn_of_end, warn_of_scipy
from pullback.core.tensor.methods import Methods
from pullback.core.tensor.versions import BORROWED, is_borrowed, shared_counter, version_of
from pullback.core.tensor.views import array_for_reading, graph_is_lost, refresh
from pullback.errors import ArgumentTypeError, DTypeError, GraphError, ShapeError


class _Count(int):
    """A number of elements, as the Array API has it; called, the shape, as PyTorch has it."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


class Tensor(Methods):
    """An array and its node in the graph; made by `pullback.tensor` and `pullback.asarray`.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    _data: Any  # the array
    # Its edge target in the graph: None exactly where it requires no grad; of a leaf its
    # AccumulateGrad.
    _node: Any
    # What counts the in-place changes of the memory, see versions.py; None as long as nobody asked,
    # and in a view, whose base has it.
    _counter: Any
    _grad: Tensor | None  # the accumulated gradient
    _base: Tensor | None  # the tensor whose memory this one shows, None where it is no view
    # Of a leaf whose requires_grad was switched off the AccumulateGrad, with its hooks: it is the
    # leaf's again when that is switched on; not set before.
    _frozen: AccumulateGrad | None
    # And only where _base is not None, see views.py:
    _outer: Any  # the path of the view that it was taken of, None if it was taken of the base
    _step: Any  # the operation that took it
    _output: int | None  # the number of the output
    _settings: Any
    _kind: str  # how the view came about
    _base_node: Any  # the base's node and array when this view was last up to date
    _base_data: Any
    __slots__ = (
        *("__weakref__", "_base", "_base_data", "_base_node", "_counter", "_data", "_frozen"),
        *("_grad", "_kind", "_node", "_outer", "_output", "_settings", "_step"),
    )

    __hash__ = object.__hash__
    __pandas_priority__ = 5000  # above a DataFrame's 4000: pandas leaves its operators to us
    _printed_as = "tensor"
    # what integers become where floating-point numbers are needed
    _default_dtype: Callable[[], DType] = staticmethod(get_default_dtype)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        TENSOR_CLASSES.add(cls)

    # -- what it is ---------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._data.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """The data type."""
        return dtype_of(self._data.dtype)

    @property
    def device(self) -> str:
        """Where the array lives: ``"cpu"``, ``"cuda:0"``."""
        return library_of(self._data).device(self._data)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> _Count:
        """The number of elements; called, ``x.size()`` or ``x.size(dim)``, the shape."""
        shape = self.shape
        count = 1
        for length in shape:
            count *= length
        result = _Count(count)
        result.shape = shape
        return result

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.size)

    def dim(self) -> int:
        """Return the number of axes."""
        return self.ndim

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a real floating one."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the dtype is a complex one."""
        return self.dtype.is_complex

    def data_array(self) -> Any:
        """Return the array in the box, brought up to date; the array itself, not a copy."""
        if self._base is not None:
            refresh(self)
        return self._data

    def _shown(self) -> Any:
        """Return the array for reading alone: a view has one even where its graph is lost."""
        return self._data if self._base is None else array_for_reading(self)

    # -- its place in the graph -------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for this tensor; settable on leaves."""
        if self._base is not None:
            array_for_reading(self)
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether this leaf requires grad and return it.

        Raises
        ------
        GraphError
            If a non-leaf is to be switched off.
        DTypeError
            If the dtype is neither floating nor complex.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        if self._base is not None:
            refresh(self)
        if not requires_grad:
            if not self.is_leaf:
                raise GraphError(
                    "requires_grad_: you can only change requires_grad flags of leaf variables, "
                    f"got a result of {self._node.name()}.\n"
                    "hint: use detach() for a tensor outside of the graph."
                )
            if self._node is not None:
                self._frozen, self._node = self._node, None
        elif not self.requires_grad:
            if not self.dtype.is_inexact:
                raise DTypeError(
                    "requires_grad_: only Tensors of floating point and complex dtype can require "
                    f"gradients, got dtype {self.dtype.name}.\n"
                    "hint: convert it first, for instance with float()."
                )
            self._node = getattr(self, "_frozen", None)
            if self._node is None:
                making = MAKING.get()
                self._node = AccumulateGrad(self, 0 if making is None else making.level)
            self._frozen = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return not self.requires_grad or self._node.__class__ is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor, None for a leaf."""
        if self.is_leaf:
            return None
        node: Node = self._node
        return node.node if node.__class__ is Output else node

    @property
    def output_nr(self) -> int:
        """Which output of its node this tensor is."""
        return getattr(self._node, "index", 0)

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, None until there is one; assignable."""
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad of a Tensor that is not a leaf is being read: it is only filled after "
                "retain_grad(). Did you mean the .grad of a leaf?",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"grad: a gradient must be a Tensor or None, got {type(value).__name__}.\n"
                "hint: wrap it with pullback.asarray."
            )
        if value is self:
            raise GraphError("grad: a tensor cannot be its own gradient, got the tensor itself")
        wanted, came = ((t.shape, t.dtype, t.device) for t in (self, value))
        if wanted != came or join(map(library_of, (self._data, value._data))) is None:
            raise ShapeError(
                "grad: the gradient must have its tensor's shape, dtype and device, got\n"
                f"  tensor: shape {wanted[0]}, dtype {wanted[1].name}, device {wanted[2]}\n"
                f"  gradient: shape {came[0]}, dtype {came[1].name}, device {came[2]}"
            )

    @property
    def data(self) -> Tensor:
        """The same values outside of the graph; assigning swaps the array and keeps the version."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"data: must be a Tensor, got {type(value).__name__}.\n"
                "hint: wrap it with pullback.asarray."
            )
        if self.requires_grad and not value.dtype.is_inexact:
            raise DTypeError(
                "data: only Tensors of floating point and complex dtype can require gradients, "
                f"got dtype {value.dtype.name} for a tensor that requires grad"
            )
        self._data = value.data_array()

    def _alias(self) -> Tensor:
        """Return an untracked tensor that shares the array and the version counter."""
        return box(self._shown(), None, shared_counter(self), self.__class__)

    def detach(self) -> Tensor:
        """Return the same values outside of the graph, sharing memory and version.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x.detach()).sum().backward()
        >>> x.grad
        tensor([1., 2.])
        """
        alias = self._alias()
        if alias._data.__class__ is not ndarray:
            alias._data = constant(alias._data)
        return alias

    def detach_(self) -> Tensor:
        """Cut this tensor from its graph in place and return it.

        Its views keep the graph that they have; if it was changed in place before, those do that
        were used or looked at since.

        Raises
        ------
        GraphError
            If the tensor is a view: its base would still be in the graph.
        """
        if self._base is not None:
            raise GraphError(
                "detach_: Can't detach views in-place: their base would still be in the graph.\n"
                "hint: use detach() instead of detach_()."
            )
        if self.is_leaf:
            return self.requires_grad_(False)
        shared_counter(self)  # its node must not count for it any more, and be kept
        self._node.extras().detached = self._version
        self._node = None
        return self

    @property
    def _version(self) -> int:
        """How often the memory was changed in place."""
        return version_of(self)

    if TYPE_CHECKING:  # attached by api.py, which knows the engine

        def backward(
            self,
            gradient: Any = None,
            retain_graph: bool | None = None,
            create_graph: bool = False,
            inputs: Any = None,
        ) -> None:
            """Add the gradient of this tensor to the ``.grad`` of its leaves."""

    # -- hooks --------------------------------------------------------------------------------
    def _target(self, api: str) -> Any:
        if not self.requires_grad:
            raise GraphError(
                f"{api}: cannot register a hook on a tensor that doesn't require gradient.\n"
                "hint: call requires_grad_() on the leaf it comes from first."
            )
        return self._node

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` each time the gradient of this tensor is computed.

        A tensor that the hook returns replaces the gradient; None keeps it.

        Raises
        ------
        GraphError
            If the tensor does not require grad.
        ArgumentTypeError
            If `hook` is not callable.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.tensor(3.0, requires_grad=True)
        >>> with x.register_hook(lambda grad: 10 * grad):
        ...     (x * x).backward()
        >>> x.grad
        tensor(60.)
        """
        hooks = self._target("register_hook").extras().hooks("tensor_hooks")
        return add_hook("register_hook", hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(leaf)`` each time the leaf's ``.grad`` has been added to.

        Examples
        --------
        >>> import pullback as pb
        >>> w = pb.tensor(3.0, requires_grad=True)
        >>> @pb.no_grad
        ... def step(leaf):
        ...     leaf -= 0.1 * leaf.grad
        ...     leaf.grad = None
        >>> handle = w.register_post_accumulate_grad_hook(step)
        >>> (w * w).backward()
        >>> w
        tensor(2.4000, requires_grad=True)
        """
        target = self._target("register_post_accumulate_grad_hook")
        if target.__class__ is not AccumulateGrad:
            raise GraphError(
                "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be "
                "registered on non-leaf tensors.\nhint: use register_hook."
            )
        return add_hook("register_post_accumulate_grad_hook", target.post_hooks, hook)

    def retain_grad(self) -> None:
        """Keep this non-leaf's gradient in ``.grad`` too; on a leaf, nothing to do.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.tensor(3.0, requires_grad=True)
        >>> y = x * x
        >>> y.retain_grad()
        >>> (2 * y).backward()
        >>> y.grad
        tensor(2.)
        """
        target = self._target("retain_grad")
        if target.__class__ is not AccumulateGrad and target.extras().retained is None:
            target.extra.retained = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        if not self.requires_grad or self._node.extra is None:
            return False
        return self._node.extra.retained is not None

    # -- out of the box -----------------------------------------------------------------------
    def item(self) -> bool | int | float | complex:
        """Return the one element as a Python number.

        In a function that a transform differentiates, a warning says where its derivative ends.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.tensor([1.0, 2.0]).sum().item()
        3.0
        """
        number = self._one()
        if CALLS.get() is not None:
            warn_of_end("item", self)
        return number  # type: ignore[no-any-return]

    def _one(self) -> Any:
        """Return the one element, for a look at it."""
        values = _values(self)
        if values.size != 1:
            raise ShapeError(
                f"item: needs a tensor with one element, got shape {self.shape}.\n"
                "hint: reduce it first, or use tolist()."
            )
        return values.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; see `item`."""
        values = _values(self)
        if CALLS.get() is not None:
            warn_of_end("tolist", self)
        return values.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Return the values as a NumPy array that shares memory where it can.

        Parameters
        ----------
        force : bool
            Detach first, as ``x.detach().numpy()`` does.

        Raises
        ------
        GraphError
            If the tensor requires grad, grad mode is on, and it is not forced.

        Examples
        --------
        >>> import pullback as pb
        >>> x = pb.zeros(2)
        >>> x.numpy()[0] = 1.0
        >>> x
        tensor([1., 0.])
        """
        if self._node is None and self._base is None and self._counter is not BORROWED:
            if self._data.__class__ is ndarray:  # as most often in a user's forward
                return self._data
        elif not force and self.requires_grad and STATE.get().grad:
            raise self._lost("numpy", "use tensor.detach().numpy() instead")
        library = library_of(self._data)
        array = self._shown()
        return library.to_numpy(library.readonly(array) if is_borrowed(self) else array)

    @staticmethod
    def _lost(api: str, hint: str) -> GraphError:
        """Return the error for a tensor whose graph would end in an array."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if frame.f_code in RULES:
                hint = (
                    "mark the rule that runs with pb.once_differentiable, or write it with tensor "
                    "operations; detach() would make its derivative wrong"
                )
                break
            frame = frame.f_back
        return GraphError(
            f"{api}: can't convert a Tensor that requires grad to a NumPy array: its graph would "
            f"be lost.\nhint: {hint}."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if self.requires_grad and STATE.get().grad:
            way = hints.here() or hints.JOINED
            values = "for the values alone, without gradient: tensor.detach().numpy()"
            raise self._lost("numpy", f"{way}; {values}")
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the array; raise for a tensor that requires grad."""
        if self.requires_grad and STATE.get().grad:
            raise GraphError(
                "__dlpack__: can't export a Tensor that requires grad.\nhint: detach() it first."
            )
        array = self._exported()
        if is_borrowed(self) and copy is not False:
            array = library_of(array).copy(array)  # borrowed: a consumer may write to it
        options = {
            "stream": stream,
            "max_version": max_version,
            "dl_device": dl_device,
            "copy": copy,
        }
        return array.__dlpack__(**{k: v for k, v in options.items() if v is not None})

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return the kind of device and its number, as DLPack counts them."""
        return self._exported().__dlpack_device__()  # type: ignore[no-any-return]

    def _exported(self) -> Any:
        """Return an array that exports DLPack; raise for one that changes in forward mode."""
        array = self._shown()
        return array if hasattr(array, "__dlpack__") else library_of(array).to_numpy(array)

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ShapeError(
                "bool: the truth value of a Tensor needs exactly one element, got shape "
                f"{self.shape}.\nhint: use .any() or .all()."
            )
        return bool(self._one())

    def __float__(self) -> float:
        refuse_as_setting(self)
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._one())

    def __complex__(self) -> complex:
        refuse_as_setting(self)
        return complex(self._number("complex"))

    def _number(self, what: str) -> Any:
        """Return the one element for Python, or for SciPy, which keep no graph."""
        number = self._one()
        if CALLS.get() is not None:
            warn_of_end(what, self)
        elif self.requires_grad:
            warn_of_scipy(what, self)
        return number

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(
                f"index: only integer tensors can be an index, got dtype {self.dtype.name}"
            )
        if self.shape:  # NumPy would take one element for a number, and drop the axis
            raise ArgumentTypeError(
                f"index: a 0-d tensor required as an index of Python, got shape {self.shape}.\n"
                "hint: use .item() for the number, .numpy() for an array of indices"
            )
        return int(self._one())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len: a 0-d tensor has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        suffix = ""
        if self._base is not None and graph_is_lost(self):
            suffix = "grad_fn=<Invalid>"
        elif self.requires_grad:
            node = self.grad_fn
            suffix = "requires_grad=True" if node is None else f"grad_fn=<{node.name()}>"
        library, is_batch = library_of(self._data), varies(self._data)
        device, note = library.device(self._data), "batched" if is_batch else ""
        values = innermost(self._shown())
        values = library_of(values).to_numpy(values) if is_batch else _values(self)
        return printing.tensor_repr(self._printed_as, values, self.dtype, device, note, suffix)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows: the text, its kind, and a small map of its values."""
        facts = [str(tuple(self.shape)), self.dtype.name, str(self.device)]
        facts += [self.grad_fn.name()] if self.grad_fn is not None else []
        values = "" if varies(self._data) else printing.heat_map(_values(self))
        shown = printing.html_table([facts], ["shape", "dtype", "device", "grad_fn"][: len(facts)])
        return printing.mimebundle(repr(self), shown + values)

    def __format__(self, spec: str) -> str:
        return format(self._one(), spec) if spec and not self.shape else format(repr(self), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._check_copied()
        state = (self._shown(), self.requires_grad, self._grad, self.__class__)
        return _restore, state, getattr(self, "__dict__", None)

    def __copy__(self) -> Tensor:
        """Return a leaf on the same memory, with a gradient and hooks of its own."""
        self._check_copied()
        copied = self._alias()
        if self.requires_grad:
            copied.requires_grad_()
        if attributes := getattr(self, "__dict__", None):  # of a subclass
            copied.__dict__.update(attributes)
        return copied

    def _check_copied(self) -> None:
        """Raise where a tensor is the result of an operation."""
        if self.is_leaf:
            return
        if way := hints.here():  # the user asked for no copy
            raise self._lost("copy", way)
        raise GraphError(
            "copy, pickle, deepcopy: only leaf Tensors (those the user made) can be copied "
            f"with their state, got a result of {self._node.name()}.\n"
            "hint: detach() it, or clone() it to stay in the graph."
        )


# The classes of tensors: the results of operations on one of them are of that class.
TENSOR_CLASSES: set[type[Any]] = {Tensor}


# The code in which users' gradient rules run while their derivative may be asked for.
RULES: set[CodeType] = set()
# The class of what a user's operation makes of arrays alone, by the class of the arrays.
FOR_ARRAYS: dict[type[Any], type[Tensor]] = {}


def class_for_arrays(args: Sequence[Any]) -> type[Tensor]:
    """Return the class of the results of arguments of which some may be plain tensors."""
    cls = Tensor
    for a in args:
        if isinstance(a, Tensor):
            return Tensor
        cls = FOR_ARRAYS.get(a.__class__, cls)
    return cls


def tensor_class(args: Sequence[Any]) -> type[Tensor]:
    """Return the class of the results: that of the arguments; the most derived of several."""
    cls = Tensor
    for a in args:
        if isinstance(a, cls):
            cls = a.__class__
    return cls


def new_leaf(
    array: Any, level: int, counter: Any = None, cls: type[Tensor] | None = None
) -> Tensor:
    """Return a leaf that requires grad, at a level of a transform; its numbers have a gradient."""
    tensor = box(array, None, counter, cls or Tensor)
    tensor._node = AccumulateGrad(tensor, level)
    return tensor


def box(array: Any, node: Any = None, counter: Any = None, cls: type[Tensor] = Tensor) -> Tensor:
    """Return a tensor around `array` with `node` as its node in the graph."""
    tensor = cls()
    tensor._data = array
    tensor._node = node
    tensor._counter = counter
    tensor._base = tensor._grad = None
    return tensor


def borrowed(g: Any) -> Any:
    """Return a gradient as a tensor for user code, which must not write to its memory.

    A change in place changes a copy. None stays None; a tensor keeps its node.
    """
    if g.__class__ is ndarray:
        t = Tensor()
        t._data, t._counter = g, BORROWED
        t._node = t._base = t._grad = None
        return t
    if g is None:
        return None
    if isinstance(g, Tensor):
        return box(g.data_array(), g._node, BORROWED)
    return box(as_array(g), None, BORROWED)


# a += b where the library can, else a + b; returns the array that holds the sum.
iadd: Callable[[Any, Any], Any] = operator.iadd


def unaliased(tensor: Tensor) -> Tensor:
    """Return a tensor of the same node and values with memory of its own."""
    array = tensor.data_array()
    return box(library_of(array).copy(array), tensor._node)


def _values(tensor: Tensor) -> Any:
    """Return the values of a tensor for reading alone, in NumPy's memory."""
    array = constant(tensor._shown())
    return library_of(array).to_numpy(array)


def in_class(tensor: Tensor, cls: type[Tensor]) -> Tensor:
    """Return a tensor in a class: the same values, node and memory."""
    if tensor.__class__ is cls:
        return tensor
    return box(tensor.data_array(), tensor._node, shared_counter(tensor), cls)


def as_array(value: Any) -> Any:
    """Return a result of bare arithmetic as an array: NumPy gives scalars for 0 dimensions."""
    return value if is_array(value) else NUMPY.tidy(value)


def _restore(
    array: Any, requires_grad: bool, grad: Tensor | None, cls: type[Tensor] = Tensor
) -> Tensor:
    tensor = box(array, cls=cls)
    tensor._grad = grad
    return tensor.requires_grad_() if requires_grad else tensor
