"""The operations that a module, package, file or folder defines, and the inputs to check them with.

Owns how a target such as ``"package.module"``, ``"file.py:Class.op"`` or ``"folder"`` is read, and
where an author writes inputs that cannot be guessed: in the attribute `check_inputs`
of an operation or of a `Function` class, or in the module's dict `CHECK_INPUTS`, by name.
"""

from __future__ import annotations

import dataclasses
import functools
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from pullback.check.inputs.guessing import suggestion
from pullback.check.loading import dotted, load, load_file, told
from pullback.check.ops import check_op
from pullback.check.report import Report
from pullback.core.custom.define import AutogradFunction, Function
from pullback.errors import ArgumentError, ArgumentTypeError

GIVEN = "CHECK_INPUTS"
_NOT_IMPORTED = ("setup.py", "conftest.py", "__main__.py")
_STOPS = (KeyboardInterrupt, GeneratorExit)


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation that was found.

    Attributes
    ----------
    place : str
        The dotted name of its module, or the path of its file.
    name : str
        Its name there, as in ``"Class.op"``.
    op : object
    inputs : object
        What the author gave to check it with: a text, a tuple or a dict of arguments, or a
        function of a random generator that returns one of these. None if they are to be guessed.
    """

    place: str
    name: str
    op: Any
    inputs: Any = None

    @property
    def id(self) -> str:
        """The target that names it alone."""
        return f"{self.place}:{self.name}"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A module that could not be imported, or inputs that are for nothing."""

    place: str
    text: str


@dataclasses.dataclass(frozen=True)
class Discovery:
    """What a target holds; `named` says that it names one operation."""

    operations: list[Operation]
    problems: list[Problem]
    named: bool = False


class InputsRequiredError(ArgumentError):
    """Inputs were neither given nor could be guessed; `suggestion` is a text to begin from."""

    def __init__(self, operation: Operation) -> None:
        name, self.suggestion = operation.name, suggestion(operation.op)
        super().__init__(
            f"pullback check: inputs of `{name}` are required, since they could not be guessed, "
            f'got none.\nhint: write {GIVEN} = {{"{name}": "{self.suggestion}"}} beside it, and '
            "mend the shapes."
        )


# -- finding ---------------------------------------------------------------------------------------
def discover(target: str) -> Discovery:
    """Find the operations of a module, a package with its submodules, a file or a folder.

    Parameters
    ----------
    target : str
        A dotted name, a ``.py`` file or a folder; behind a colon the name of one operation or of
        a class that holds some.

    Returns
    -------
    Discovery
        The operations with a forward and a backward that are defined there, each once, in the
        order of definition, and the submodules that could not be imported.

    Raises
    ------
    ArgumentError
        If there is no such place, it cannot be imported, or it has not the name behind the colon.

    Examples
    --------
    >>> discover("pullback.optim").operations
    []
    """
    place, name = split(target)
    path, search = Path(place), _Search()
    is_folder = place != "" and path.is_dir()
    if is_folder and not name:
        search.folder(path)
    elif is_folder or place.endswith(".py"):
        file = path / "__init__.py" if is_folder else path
        if not file.is_file():
            _refuse("a file that exists", place)
        module = _required(place, lambda: load_file(file))
        if name:
            return search.named(module, place, name)
        search.module(module, place)
    else:
        module = _required(place, lambda: load(place, Path.cwd()))
        if name:
            return search.named(module, place, name)
        search.package(module, place, Path.cwd())
    return Discovery(search.operations, search.problems)


def split(target: str) -> tuple[str, str]:
    """Return the place and the name that a target is made of.

    Examples
    --------
    >>> split("package/ops.py:Solver.step"), split("package.ops")
    (('package/ops.py', 'Solver.step'), ('package.ops', ''))
    """
    place, colon, name = target.rpartition(":")
    if colon and place and all(part.isidentifier() for part in name.split(".")):
        return place, name
    return target, ""


class _Search:
    """Collects operations, each once, and what stood in the way."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    # -- walking -------------------------------------------------------------------------------
    def attempt(self, place: str, load: Callable[[], ModuleType]) -> ModuleType | None:
        """Return a module; None, and a problem, where it cannot be imported."""
        try:
            return load()
        except _STOPS:
            raise
        except BaseException as error:  # also what exits or skips while it is imported
            self.problems.append(Problem(place, f"not imported: {told(error)}"))
            return None

    def package(self, module: ModuleType, place: str, root: Path) -> None:
        """Search a module, and if it is a package what is in it."""
        self.module(module, place)
        for found in pkgutil.iter_modules(getattr(module, "__path__", []), place + "."):
            if not found.name.endswith(".__main__"):
                inner = self.attempt(found.name, functools.partial(load, found.name, root))
                if inner is not None:
                    self.package(inner, found.name, root)

    def folder(self, folder: Path) -> None:
        """Search the files of a folder, and the packages and folders in it."""
        init = folder / "__init__.py"
        if init.is_file():
            name, root = dotted(init)
            package = self.attempt(name, functools.partial(load_file, init))
            if package is not None:
                self.package(package, name, root)
            return
        for path in sorted(folder.iterdir()):
            if path.name.startswith((".", "__pycache__")) or (path / "pyvenv.cfg").exists():
                continue
            if path.is_dir():
                self.folder(path)
            elif path.suffix == ".py" and path.name not in _NOT_IMPORTED:
                module = self.attempt(str(path), functools.partial(load_file, path))
                if module is not None:
                    self.module(module, str(path))

    # -- reading a module ----------------------------------------------------------------------
    def module(self, module: ModuleType, place: str) -> None:
        """Take the operations that a module defines."""
        for name, op in _operations(module, module.__name__):
            if id(op) not in self._seen and not _is_imported(op, module):
                self._seen.add(id(op))
                self.operations.append(Operation(place, name, op, _given(module, name, op)))
        for name in _table(module):
            if not _has(module, name):
                text = f"{GIVEN} has inputs of {name!r}, which is not defined there"
                self.problems.append(Problem(place, text))

    def named(self, module: ModuleType, place: str, name: str) -> Discovery:
        """Take what is named, wherever it was defined: an operation, a function, or a class."""
        if not _has(module, name):
            _refuse(f"a name that is defined in {place}", name)
        value: Any = module
        for part in name.split("."):
            value = getattr(value, part)
        if isinstance(value, type) and not issubclass(value, Function):
            for inner, op in _operations(value, value.__module__, name + "."):
                self.operations.append(Operation(place, inner, op, _given(module, inner, op)))
            return Discovery(self.operations, self.problems)
        if not callable(value):
            _refuse("an operation or a function", f"{name}, of type {type(value).__name__}")
        home = sys.modules.get(getattr(value, "__module__", None) or "", module)
        given = _given(module, name, value)
        given = _given(home, name, value) if given is None else given
        return Discovery([Operation(place, name, value, given)], [], named=True)


def _operations(owner: Any, module: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the operations among the variables of a module or class, and of its classes."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, staticmethod):
            value = value.__func__
        if isinstance(value, AutogradFunction):
            if value.rule is not None:
                yield prefix + name, value
        elif not isinstance(value, type):
            continue
        elif issubclass(value, Function):
            if value._op is not None and value._op.rule is not None:
                yield prefix + name, value
        elif value.__module__ == module and _is_within(value, owner):
            yield from _operations(value, module, f"{prefix}{name}.")


def _is_within(inner: type, owner: Any) -> bool:
    """Say whether a class was defined in a module or class, rather than assigned to it."""
    return not isinstance(owner, type) or inner.__qualname__.startswith(f"{owner.__qualname__}.")


def _is_imported(op: Any, module: ModuleType) -> bool:
    """Say whether another module defines it: an operation has the module of its forward."""
    home = sys.modules.get(op.__module__)
    if home is None or home is module:
        return False
    return any(value is op for value in list(vars(home).values()))


def _has(module: ModuleType, name: str) -> bool:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def _table(module: ModuleType) -> dict[str, Any]:
    table = getattr(module, GIVEN, {})
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        _refuse(f"a dict {GIVEN} by names in {module.__name__}", repr(table))
    return table


def _given(module: ModuleType, name: str, op: Any) -> Any:
    given = getattr(op, "check_inputs", None)
    return _table(module).get(name) if given is None else given


def _required(place: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Return a module that the user named, or refuse."""
    try:
        return load()
    except _STOPS:
        raise
    except BaseException as error:
        _refuse("a module, file or folder that can be imported", place, told(error))


def _refuse(required: str, came: str, why: str = "") -> NoReturn:
    raise ArgumentError(
        f"pullback check: {required} is required, got {came}{f' ({why})' if why else ''}.\nhint: "
        "name a module as package.module, a file as ops.py, one operation as ops.py:name."
    )


def nothing_in(target: str) -> str:
    """Say that a target defines no operation."""
    return (
        "pullback check: operations with a forward and a backward are required, got none that "
        f"{target} defines.\nhint: what it imports is found under the name of its own "
        "module."
    )


# -- checking --------------------------------------------------------------------------------------
def check_operation(operation: Operation, inputs: Any = None, **options: Any) -> Report:
    """Check an operation on the inputs that are given, those its author gave, or guessed ones.

    Parameters
    ----------
    operation : Operation
    inputs : object, optional
        As `Operation.inputs`, in their place.
    **options : object
        Those of `check_op`; nothing wrong raises.

    Raises
    ------
    InputsRequiredError
        If none are given and none can be guessed.
    ArgumentError, ArgumentTypeError
        If those given are not what the operation takes.

    Examples
    --------
    >>> import pullback as pb
    >>> check_operation(Operation("pullback", "sin", pb.sin), "x: (n,)", fast=True).ok
    True
    """
    given = operation.inputs if inputs is None else inputs
    if given is not None:
        args, kwargs = _arguments(operation, given, options.get("seed", 0))
        return check_op(operation.op, *args, kwargs=kwargs, raise_exception=False, **options)
    try:
        return check_op(operation.op, raise_exception=False, **options)
    except ArgumentError as error:
        raise InputsRequiredError(operation) from error


def _arguments(
    operation: Operation, given: Any, seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments by position and by name from what was given as the inputs."""
    if callable(given):
        try:
            given = given(np.random.default_rng(seed))
        except Exception as error:
            raise ArgumentTypeError(
                f"pullback check: inputs of `{operation.name}`, from a function of a random "
                f"generator, are required, got {told(error)}."
            ) from error
    if isinstance(given, dict):
        return (), given
    if isinstance(given, tuple | list):
        return tuple(given), {}
    return (given,), {}
