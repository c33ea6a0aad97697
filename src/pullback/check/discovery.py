"""The operations that a module, package, file or folder defines, and the inputs to check them with.

Owns the reading of a target such as ``"package.module"``, ``"file.py:Class.op"`` or ``"folder"``,
and of the inputs that an author wrote because they cannot be guessed: in the attribute
`check_inputs` of an operation or of a `Function` class, or in the module's dict `CHECK_INPUTS`, by
name.
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

from pullback.check.inputs.candidates import suggestion
from pullback.check.loading import dotted, load, load_file, one_line
from pullback.check.ops import check_op
from pullback.check.report import Report
from pullback.core.custom.define import AutogradFunction, Function
from pullback.errors import ArgumentError, ArgumentTypeError

TABLE = "CHECK_INPUTS"
_NOT_IMPORTED = ("setup.py", "conftest.py", "__main__.py")
_STOPS = (KeyboardInterrupt, GeneratorExit)


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation that was found.

    Attributes
    ----------
    source : str
        The dotted name of its module, or the path of its file.
    name : str
        Its name there, as in ``"Class.op"``.
    op : object
    inputs : object
        What the author wrote to check it with: a text, a tuple or a dict of arguments, or a
        function of a random generator that returns one of these. None if they are to be guessed.
    """

    source: str
    name: str
    op: Any
    inputs: Any = None

    @property
    def id(self) -> str:
        """The target that names only this operation."""
        return f"{self.source}:{self.name}"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A module that could not be imported, or inputs for an operation that does not exist."""

    source: str
    text: str


@dataclasses.dataclass(frozen=True)
class Discovery:
    """What a target holds; `named` if it names one operation."""

    operations: list[Operation]
    problems: list[Problem]
    named: bool = False


class InputsRequiredError(ArgumentError):
    """There are no inputs and none could be guessed; `suggestion` is a first description."""

    def __init__(self, operation: Operation) -> None:
        name, self.suggestion = operation.name, suggestion(operation.op)
        super().__init__(
            f"pullback check: inputs of `{name}` are required, since they could not be guessed, "
            f'got none.\nhint: write {TABLE} = {{"{name}": "{self.suggestion}"}} beside it, and '
            "mend the shapes."
        )


# -- finding ---------------------------------------------------------------------------------------
def discover(target: str) -> Discovery:
    """Find the operations of a module, a package with its submodules, a file or a folder.

    Parameters
    ----------
    target : str
        A dotted name, a ``.py`` file or a folder; after a colon the name of one operation or of a
        class that holds some.

    Returns
    -------
    Discovery
        The operations with a forward and a backward that are defined there, each once, in the
        order of definition, and the submodules that could not be imported.

    Raises
    ------
    ArgumentError
        If there is no such module, file or folder, it cannot be imported, or it does not define the
        name after the colon.

    Examples
    --------
    >>> discover("pullback.optim").operations
    []
    """
    source, name = split(target)
    path, search = Path(source), _Search()
    is_folder = source != "" and path.is_dir()
    if is_folder and not name:
        search.folder(path)
    elif is_folder or source.endswith(".py"):
        file = path / "__init__.py" if is_folder else path
        if not file.is_file():
            _refuse("a file that exists", source)
        module = _required(source, lambda: load_file(file))
        if name:
            return search.named(module, source, name)
        search.module(module, source)
    else:
        module = _required(source, lambda: load(source, Path.cwd()))
        if name:
            return search.named(module, source, name)
        search.package(module, source, Path.cwd())
    return Discovery(search.operations, search.problems)


def split(target: str) -> tuple[str, str]:
    """Return the two parts of a target: the module, file or folder, and the name.

    Examples
    --------
    >>> split("package/ops.py:Solver.step"), split("package.ops")
    (('package/ops.py', 'Solver.step'), ('package.ops', ''))
    """
    source, colon, name = target.rpartition(":")
    if colon and source and all(part.isidentifier() for part in name.split(".")):
        return source, name
    return target, ""


class _Search:
    """Collects operations, each once, and problems."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    # -- walking -------------------------------------------------------------------------------
    def attempt(self, source: str, load: Callable[[], ModuleType]) -> ModuleType | None:
        """Return a module; None, and a problem, where it cannot be imported."""
        try:
            return load()
        except _STOPS:
            raise
        except BaseException as error:  # also SystemExit, and pytest's skip
            self.problems.append(Problem(source, f"not imported: {one_line(error)}"))
            return None

    def package(self, module: ModuleType, source: str, root: Path) -> None:
        """Search a module, and the modules in it if it is a package."""
        self.module(module, source)
        for found in pkgutil.iter_modules(getattr(module, "__path__", []), source + "."):
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
    def module(self, module: ModuleType, source: str) -> None:
        """Add the operations that a module defines."""
        for name, op in _operations(module, module.__name__):
            if id(op) not in self._seen and not _is_imported(op, module):
                self._seen.add(id(op))
                self.operations.append(
                    Operation(source, name, op, _author_inputs(module, name, op))
                )
        for name in _table(module):
            if not _has(module, name):
                text = f"{TABLE} has inputs of {name!r}, which is not defined there"
                self.problems.append(Problem(source, text))

    def named(self, module: ModuleType, source: str, name: str) -> Discovery:
        """Add what is named, wherever it is defined: an operation, a function, or a class."""
        if not _has(module, name):
            _refuse(f"a name that is defined in {source}", name)
        value: Any = module
        for part in name.split("."):
            value = getattr(value, part)
        if isinstance(value, type) and not issubclass(value, Function):
            for inner, op in _operations(value, value.__module__, name + "."):
                self.operations.append(
                    Operation(source, inner, op, _author_inputs(module, inner, op))
                )
            return Discovery(self.operations, self.problems)
        if not callable(value):
            _refuse("an operation or a function", f"{name}, of type {type(value).__name__}")
        home = sys.modules.get(getattr(value, "__module__", None) or "", module)
        inputs = _author_inputs(module, name, value)
        inputs = _author_inputs(home, name, value) if inputs is None else inputs
        return Discovery([Operation(source, name, value, inputs)], [], named=True)


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
    """Return whether a class was defined in a module or class, rather than assigned to it."""
    return not isinstance(owner, type) or inner.__qualname__.startswith(f"{owner.__qualname__}.")


def _is_imported(op: Any, module: ModuleType) -> bool:
    """Return whether another module defines it: `__module__` is that of its forward."""
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
    table = getattr(module, TABLE, {})
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        _refuse(f"a dict {TABLE} by names in {module.__name__}", repr(table))
    return table


def _author_inputs(module: ModuleType, name: str, op: Any) -> Any:
    inputs = getattr(op, "check_inputs", None)
    return _table(module).get(name) if inputs is None else inputs


def _required(source: str, load: Callable[[], ModuleType]) -> ModuleType:
    """Return a module that the user named, or raise."""
    try:
        return load()
    except _STOPS:
        raise
    except BaseException as error:
        _refuse("a module, file or folder that can be imported", source, one_line(error))


def _refuse(required: str, came: str, why: str = "") -> NoReturn:
    raise ArgumentError(
        f"pullback check: {required} is required, got {came}{f' ({why})' if why else ''}.\nhint: "
        "name a module as package.module, a file as ops.py, one operation as ops.py:name."
    )


def no_operations(target: str) -> str:
    """Return the message that a target defines no operation."""
    return (
        "pullback check: operations with a forward and a backward are required, got none that "
        f"{target} defines.\nhint: what it imports is found under the name of its own "
        "module."
    )


# -- checking --------------------------------------------------------------------------------------
def check_operation(operation: Operation, inputs: Any = None, **options: Any) -> Report:
    """Check an operation on these inputs, on those its author wrote, or on guessed ones.

    Parameters
    ----------
    operation : Operation
    inputs : object, optional
        As `Operation.inputs`; in place of those of the operation.
    **options : object
        Those of `check_op`; a wrong gradient does not raise.

    Raises
    ------
    InputsRequiredError
        If there are no inputs and none can be guessed.
    ArgumentError, ArgumentTypeError
        If the operation does not accept the inputs.

    Examples
    --------
    >>> import pullback as pb
    >>> check_operation(Operation("pullback", "sin", pb.sin), "x: (n,)", fast=True).ok
    True
    """
    inputs = operation.inputs if inputs is None else inputs
    if inputs is not None:
        args, kwargs = _arguments(operation, inputs, options.get("seed", 0))
        return check_op(operation.op, *args, kwargs=kwargs, raise_exception=False, **options)
    try:
        report = check_op(operation.op, raise_exception=False, **options)
    except ArgumentError as error:
        raise InputsRequiredError(operation) from error
    if not report.parts:  # none could be guessed
        raise InputsRequiredError(operation)
    return report


def _arguments(
    operation: Operation, inputs: Any, seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments from what a user wrote as the inputs."""
    if callable(inputs):
        try:
            inputs = inputs(np.random.default_rng(seed))
        except Exception as error:
            raise ArgumentTypeError(
                f"pullback check: inputs of `{operation.name}`, from a function of a random "
                f"generator, are required, got {one_line(error)}."
            ) from error
    if isinstance(inputs, dict):
        return (), inputs
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}
