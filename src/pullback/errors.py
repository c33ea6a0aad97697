"""Every error and warning that pullback raises, and the two helpers that word them.

This module imports nothing from pullback. Each error is an `AutogradError` and also the built-in
exception (in brackets) that a user of NumPy or PyTorch would expect::

    AutogradError             [Exception]
    |-- GraphError            [RuntimeError]              the graph or the engine was misused
    |   |-- InplaceError                                  an in-place change that breaks gradients
    |   |-- ReleasedError                                 saved tensors were already released
    |   |-- BatchedValueError                             one value was asked of a batch of them
    |   `-- MissingRuleError  [NotImplementedError]       the operation has no gradient rule
    |-- GradientError         [RuntimeError]              a rule or hook returned a wrong value
    |   `-- AnomalyError                                  detect_anomaly found NaN or infinity
    |-- GradcheckError        [AssertionError]            a check of gradients failed
    |   `-- UncheckedError                                something could not be checked
    |-- ShapeError            [ValueError, RuntimeError]  a shape does not fit
    |-- DTypeError            [TypeError, RuntimeError]   a dtype is unsupported or does not fit
    |-- ConvergenceError      [RuntimeError]              an iteration did not reach a solution
    |-- DeviceError           [RuntimeError]              devices or libraries mixed or missing
    |-- ArgumentError         [ValueError]                an argument has a wrong value
    |-- ArgumentTypeError     [TypeError]                 an argument has a wrong type
    |-- NameNotFoundError     [AttributeError, KeyError]  no saved value or argument has the name
    |-- TensorIndexError      [IndexError]                an index or dimension is out of range
    `-- MissingExtraError     [ImportError]               an optional library is not installed

    UntrackedTensorWarning    [UserWarning]               a tensor where no gradient reaches it
    UncheckedWarning          [UserWarning]               a gradient that could not be checked

An error about arguments (shape, dtype, device, value, type, index) that is raised while an
operation runs gets the name that the user called it by, and descriptions of the inputs that its
text leaves out.
"""

import linecache
import re
import reprlib
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from pullback.public_names import listed as _listed

__all__ = [
    "AnomalyError",
    "ArgumentError",
    "ArgumentTypeError",
    "AutogradError",
    "BatchedValueError",
    "ConvergenceError",
    "DTypeError",
    "DeviceError",
    "GradcheckError",
    "GradientError",
    "GraphError",
    "InplaceError",
    "MissingExtraError",
    "MissingRuleError",
    "NameNotFoundError",
    "ReleasedError",
    "ShapeError",
    "TensorIndexError",
    "UncheckedError",
    "UncheckedWarning",
    "UntrackedTensorWarning",
    "compose",
    "describe",
    "warn_user",
]
__dir__ = _listed(__name__)


# Maps the code of a running function to a reader of its local variables, which returns the names
# of the operation that was called and its arguments by name.
Call = tuple[tuple[str, ...], list[tuple[str, object]]]
ERROR_CONTEXT: dict[CodeType, Callable[[dict[str, Any]], Call]] = {}


class AutogradError(Exception):
    """The base of every error that pullback raises."""

    def __init__(self, *args: Any) -> None:
        if args and isinstance(self, _OF_ARGUMENTS):
            args = (_completed(str(args[0]), sys._getframe(1)), *args[1:])
        super().__init__(*args)


class GraphError(AutogradError, RuntimeError):
    """The graph or the engine was used in a way that has no correct result.

    ``needs_scalar`` tells the error of a transform for a result that is no scalar.
    """

    needs_scalar = False


class InplaceError(GraphError):
    """An in-place change that is forbidden, or that invalidated a saved tensor."""


class ReleasedError(GraphError):
    """The backward pass needs saved tensors that an earlier backward pass released."""


class BatchedValueError(GraphError):
    """One value was required inside of `vmap`, where every sample has its own.

    ``each`` calls a function once for each sample instead: ``each(function, args, keywords)``. It
    returns NotImplemented where no argument differs between samples.
    """

    each: Callable[..., Any] | None = None


class MissingRuleError(GraphError, NotImplementedError):
    """The operation has no gradient rule for the gradient that was asked for."""


class GradientError(AutogradError, RuntimeError):
    """A backward rule or a hook returned something that is not a gradient of the argument.

    ``argument`` names the argument that a gradient does not fit; ``came`` is its shape if that is
    wrong, and ``unsummed`` holds the axes to sum over if that is all that is missing.
    """

    argument: str = ""
    came: tuple[int, ...] | None = None
    unsummed: tuple[int, ...] = ()


class AnomalyError(GradientError):
    """A NaN or an infinity came up under `detect_anomaly`.

    Attributes
    ----------
    node : object or None
        The node of the graph at which it was found, None where nothing was recorded yet, or
        once the graph is gone: an error that is kept keeps no graph.
    operation : str
        The operation that made it.
    phase : str
        ``"forward"`` or ``"backward"``.
    argument : str
        The argument that brought it, or whose gradient it is; empty for a result.
    index : tuple of int or None
        Where the first one is in the array.
    line : str
        The user's line of the forward call, as a traceback shows it; empty where it is unknown.
    """

    operation: str = ""
    phase: str = ""
    index: tuple[int, ...] | None = None
    line: str = ""
    _node: "weakref.ref[Any] | None" = None

    @property
    def node(self) -> Any:
        """The node, None where there is none or it is gone."""
        return None if self._node is None else self._node()

    @node.setter
    def node(self, node: Any) -> None:
        self._node = None if node is None else weakref.ref(node)

    def __reduce__(self) -> Any:
        """Leave the node behind: the error may be sent to another process, the graph not."""
        return type(self), self.args, {**self.__dict__, "_node": None}


class GradcheckError(AutogradError, AssertionError):
    """A check of gradients failed; ``report`` holds all findings.

    It is made of the report, so that its text, with repairs of the source, is written when it is
    first read.
    """

    @property
    def report(self) -> Any:
        """The report, None where there is none."""
        return next((each for each in self.args if not isinstance(each, str)), None)


class UncheckedError(GradcheckError):
    """Nothing is known to be wrong, but something could not be checked."""


class ShapeError(AutogradError, ValueError, RuntimeError):
    """A shape does not fit."""


class DTypeError(AutogradError, TypeError, RuntimeError):
    """A dtype is unsupported, or does not fit."""


class DeviceError(AutogradError, RuntimeError):
    """Arrays of different devices or array libraries were mixed, or a device is missing."""


class ArgumentError(AutogradError, ValueError):
    """An argument of the right type has a value that cannot be used."""


class ArgumentTypeError(AutogradError, TypeError):
    """An argument has a type that cannot be used."""


class TensorIndexError(AutogradError, IndexError):
    """An index or a dimension is out of range, or is not an index."""


class NameNotFoundError(AutogradError, AttributeError, KeyError):
    """There is no saved value or argument of that name."""

    __str__ = Exception.__str__  # a KeyError would print its message in quotes


class ConvergenceError(AutogradError, RuntimeError):
    """An iteration did not reach the solution that it was asked for."""


class MissingExtraError(AutogradError, ImportError):
    """An optional library that is needed is not installed."""


class UncheckedWarning(UserWarning):
    """A check passed over a gradient that it could not check."""


class UntrackedTensorWarning(UserWarning):
    """A tensor that requires grad was used where no gradient reaches it."""


_OF_ARGUMENTS = (
    ShapeError,
    DTypeError,
    DeviceError,
    ArgumentError,
    ArgumentTypeError,
    TensorIndexError,
)


def describe(name: str, value: object) -> str:
    """Describe a value in one line, as error messages list their inputs.

    Parameters
    ----------
    name : str
        The name of the value, usually that of the argument.
    value : object
        Any object. A tensor or an array of any library is described by its shape and dtype, any
        other object by its type and a short repr.

    Returns
    -------
    str
        One line, without indentation. The device is named unless it is the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> describe("weight", np.zeros((3, 4), np.float32))
    'weight: shape (3, 4), dtype float32'
    >>> describe("dim", "x")
    "dim: str 'x'"
    """
    array = getattr(value, "_data", value)  # a Tensor cannot name a dtype that is not supported
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if shape is None or dtype is None:
        return (
            f"{name}: None"
            if value is None
            else f"{name}: {type(value).__name__} {reprlib.repr(value)}"
        )
    dtype_name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    line = f"{name}: shape {tuple(shape)}, dtype {dtype_name}"
    device = str(getattr(value, "device", "cpu"))
    return line if "cpu" in device.lower() else f"{line}, device {device}"


def compose(
    op: str, required: str, came: str, *inputs: tuple[str, object], hint: str | None = None
) -> str:
    """Compose an error message in the form that all of pullback's have.

    Parameters
    ----------
    op : str
        The operation or API that was called.
    required : str
        What it needs.
    came : str
        What it got instead.
    *inputs : tuple of (str, object)
        The values involved, each with the name the caller knows it by; one indented line each.
    hint : str, optional
        How to fix it, as an instruction without a full stop: ``"call detach() first"``.

    Returns
    -------
    str
        The message.

    Examples
    --------
    >>> print(compose("mm", "matrices required", "1 dimension", ("x", 2.0), hint="use pb.matmul"))
    mm: matrices required, got 1 dimension
      x: float 2.0
    hint: use pb.matmul
    """
    lines = [f"{op}: {required}, got {came}"]
    lines += [f"  {describe(name, value)}" for name, value in inputs]
    if hint is not None:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


def nearest(name: object, names: Iterable[object], cutoff: float = 0.6) -> str:
    """Return which of some names is most like one that is none of them; "" where none is.

    Examples
    --------
    >>> nearest("wieght", ["bias", "weight"]), nearest("x", ["bias"])
    ('weight', '')
    """
    import difflib  # when it is needed: it takes as long to load as this module

    return next(iter(difflib.get_close_matches(str(name), map(str, names), 1, cutoff)), "")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's call: the first frame that is not pullback's own."""
    warnings.warn(message, category, stacklevel=1 + _depth_of_user()[1])


def at_user_line(function: Callable[..., Any], /, *args: Any, **settings: Any) -> Any:
    """Call a function of another library, whose warnings of its call then show the user's line.

    They show the line of the frame that called it: this one has the user's file and line.
    """
    frame, _ = _depth_of_user()
    if frame is None:
        return function(*args, **settings)
    source = "\n" * (frame.f_lineno - 1) + "function(*args, **settings)"
    code = compile(source, frame.f_code.co_filename, "eval")
    names = {"function": function, "args": args, "settings": settings}
    return eval(code, frame.f_globals, names)


def user_line() -> tuple[str, int] | None:
    """Return the file and the number of that line."""
    frame, _ = _depth_of_user()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def user_variable(value: object) -> str:
    """Return the name of the user's variable that is an object, in the line of the call, or ""."""
    frame, _ = _depth_of_user()
    variables = {} if frame is None else frame.f_locals
    return next((name for name, each in variables.items() if each is value), "")


def _depth_of_user() -> tuple[FrameType | None, int]:
    """Return the user's frame, and how far it is from the function that asks, which is 0."""
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        frame = frame.f_back
        depth += 1
    return frame, depth


def _completed(message: str, frame: FrameType | None) -> str:
    """Return a message with the name of the operation that the user called, and its inputs."""
    call, running = None, set()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pullback":
        call = frame if frame.f_code in ERROR_CONTEXT else call
        running.add(frame.f_code.co_name.strip("_"))
        frame = frame.f_back
    if call is None:
        return message
    variables = call.f_locals
    names, inputs = ERROR_CONTEXT[call.f_code](variables)
    if isinstance(variables, dict):  # before Python 3.13 a copy, which the frame keeps alive
        variables.clear()
    text, hint, rest = message.partition("\nhint:")
    label, _, said = text.partition(":")
    lines, name = [], _as_written(frame, names) or (label if label in names else names[0])
    if label in names or label.strip("_") in running:
        text = f"{name}:{said}"
    else:  # a part of it
        lines.append(f"in {name}")
    for line in [describe(*value) for value in inputs]:
        described = line.partition(": ")[2]
        if not described.startswith("shape"):
            continue
        if described in said:
            said = said.replace(described, "", 1)
        else:
            lines.append(f"  {line}")
    return "".join([text, *(f"\n{line}" for line in lines), hint, rest])


# Where functions have several names.
_SPACES = ("Tensor", "linalg", "fft", "special")


def _as_written(frame: FrameType | None, names: tuple[str, ...]) -> str:
    """Return which of its names the user's line calls a function by; "" if that is not seen."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno) if frame else ""
    package = sys.modules["pullback"]
    spaces = [package, *(getattr(package, n, None) for n in _SPACES), package.nn.functional]
    stems = [name.rstrip("_") for name in names]  # a form in place has its function's aliases
    known = [getattr(space, stem, None) for space in spaces for stem in stems]
    for name in re.findall(r"(\w+)\(", line):
        result = [getattr(space, name.rstrip("_"), None) for space in spaces]
        if any(x is function is not None for x in result for function in known):
            return str(name)
    return ""
