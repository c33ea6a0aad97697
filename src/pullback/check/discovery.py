"""The operations that a module, package, file or folder defines, and the inputs to check them with.

Owns the reading of a target such as ``"package.module"``, ``"file.py:Class.op"`` or ``"folder"``,
its import as Python would import it, and the inputs that an author wrote because they cannot be
guessed: in the attribute `check_inputs` of an operation or of a `Function` class, or in the
module's dict `CHECK_INPUTS`, by name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import operator
import os
import pkgutil
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pullback.check.inputs.candidates import suggestion
from pullback.check.ops import check_op
from pullback.check.report import Report
from pullback.core.custom.define import AutogradFunction, Function
from pullback.errors import ArgumentError, ArgumentTypeError

TABLE = "CHECK_INPUTS"
_NOT_IMPORTED = ("setup.py", "conftest.py", "__main__.py")
_FAILED = "not imported: "
_STOPS = (KeyboardInterrupt, GeneratorExit)


class Operation(NamedTuple):
    """An operation: its module or file, its name there, itself, and its author's inputs, if any.

    The inputs are a text, a tuple or a dict of arguments, or a function of a random generator that
    returns one of these.
    """

    source: str
    name: str
    op: Any
    inputs: Any = None

    @property
    def id(self) -> str:
        """The target that names only this operation."""
        return f"{self.source}:{self.name}"

    @property
    def place(self) -> str:
        """The same with the path of its file: what a shell finds, whatever `sys.path` is there."""
        file = getattr(sys.modules.get(self.source), "__file__", None)
        return f"{self.source if file is None else os.path.relpath(file)}:{self.name}"


class Problem(NamedTuple):
    """A module that could not be imported, or inputs for an operation that does not exist."""

    source: str
    text: str


class Discovery(NamedTuple):
    """What a target holds."""

    operations: list[Operation]
    problems: list[Problem]


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

    Those with a forward and a backward that are defined there, each once, in the order of
    definition; or what is named after a colon: an operation, a function, or a class that holds
    some. What the target itself names has to be there, or an `ArgumentError` is raised.

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
        return search.found
    load = functools.partial(_load, source, Path.cwd())
    if is_folder or source.endswith(".py"):
        file = path / "__init__.py" if is_folder else path
        if not file.is_file():
            _refuse("a file that exists", source)
        load = functools.partial(_load_file, file)
    module = search.attempt(source, load)
    if module is None:
        why = search.found.problems[0].text.removeprefix(_FAILED)
        _refuse("a module, file or folder that can be imported", source, why)
    if name:
        search.named(module, source, name)
    elif source.endswith(".py"):
        search.module(module, source)
    else:
        search.package(module, source, Path.cwd())
    return search.found


def split(target: str) -> tuple[str, str]:
    """Return the two parts of a target: the module, file or folder, and the name after a colon."""
    source, colon, name = target.rpartition(":")
    if colon and source and all(part.isidentifier() for part in name.split(".")):
        return source.removesuffix(":"), name
    return target, ""


class _Search:
    """Collects operations, each once, and problems."""

    def __init__(self) -> None:
        self.found = Discovery([], [])
        self._seen: set[int] = set()

    def attempt(self, source: str, load: Callable[[], ModuleType]) -> ModuleType | None:
        """Return a module; None, and a problem, where it cannot be imported."""
        try:
            return load()
        except _STOPS:
            raise
        except BaseException as error:  # also SystemExit, and pytest's skip
            self.problem(source, _FAILED + _one_line(error))
            return None

    def package(self, module: ModuleType, source: str, root: Path) -> None:
        """Search a module, and the modules in it if it is a package."""
        self.module(module, source)
        for found in pkgutil.iter_modules(getattr(module, "__path__", []), source + "."):
            if not found.name.endswith(".__main__"):
                inner = self.attempt(found.name, functools.partial(_load, found.name, root))
                if inner is not None:
                    self.package(inner, found.name, root)

    def folder(self, folder: Path) -> None:
        """Search the files of a folder, and the packages and folders in it."""
        init = folder / "__init__.py"
        if init.is_file():
            name, root = _dotted(init)
            package = self.attempt(name, functools.partial(_load_file, init))
            if package is not None:
                self.package(package, name, root)
            return
        for path in sorted(folder.iterdir()):
            if path.name.startswith((".", "__pycache__")) or (path / "pyvenv.cfg").exists():
                continue
            if path.is_dir():
                self.folder(path)
            elif path.suffix == ".py" and path.name not in _NOT_IMPORTED:
                module = self.attempt(str(path), functools.partial(_load_file, path))
                if module is not None:
                    self.module(module, str(path))

    def module(self, module: ModuleType, source: str) -> None:
        """Add the operations that a module defines."""
        for name, op in _operations(module, module.__name__):
            if id(op) not in self._seen and not _is_imported(op, module):
                self._seen.add(id(op))
                self.add(source, name, op, _author_inputs(module, name, op))
        for name in _table(module):
            if _member(module, name) is None:
                self.problem(source, f"{TABLE} has inputs of {name!r}, which is not defined there")

    def named(self, module: ModuleType, source: str, name: str) -> None:
        """Add what is named, wherever it is defined: an operation, a function, or a class."""
        value = _member(module, name)
        if value is None:
            _refuse(f"a name that is defined in {source}", name)
        if isinstance(value, type) and not issubclass(value, Function):
            for inner, op in _operations(value, value.__module__, name + "."):
                self.add(source, inner, op, _author_inputs(module, inner, op))
            return
        if not callable(value):
            _refuse("an operation or a function", f"{name}, of type {type(value).__name__}")
        home = sys.modules.get(getattr(value, "__module__", None) or "", module)
        inputs = _author_inputs(module, name, value)
        inputs = _author_inputs(home, name, value) if inputs is None else inputs
        self.add(source, name, value, inputs)

    def add(self, *operation: Any) -> None:
        self.found.operations.append(Operation(*operation))

    def problem(self, source: str, text: str) -> None:
        self.found.problems.append(Problem(source, text))


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


def _member(module: ModuleType, name: str) -> Any:
    """Return what a module has under a name with dots; None if it is not there."""
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        return None


def _table(module: ModuleType) -> dict[str, Any]:
    table = getattr(module, TABLE, {})
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        _refuse(f"a dict {TABLE} by names in {module.__name__}", repr(table))
    return table


def _author_inputs(module: ModuleType, name: str, op: Any) -> Any:
    inputs = getattr(op, "check_inputs", None)
    return _table(module).get(name) if inputs is None else inputs


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


# -- importing -------------------------------------------------------------------------------------
@contextlib.contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """Put a folder first on ``sys.path``, and restore it."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()  # a file may be newer than the cached listing of its folder
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def _load(name: str, folder: Path) -> ModuleType:
    """Import a module by its name, with a folder first on the path."""
    with _on_path(folder):
        return importlib.import_module(name)


def _dotted(path: Path) -> tuple[str, Path]:
    """Return the dotted name of a file's module, and the folder of its outermost package."""
    path = path.resolve()
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _load_file(path: Path) -> ModuleType:
    """Import a file: as a module of its package if it is in one, else under a unique name."""
    path = path.resolve()
    if (path.parent / "__init__.py").is_file():
        module = _load(*_dotted(path))
        if Path(module.__file__ or "").resolve() != path:
            raise ImportError(f"{module.__name__} is imported from {module.__file__}")
        return module
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look
    try:
        with _on_path(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _one_line(error: BaseException) -> str:
    """Return an exception in one line, with the line of the user's code that raised it."""
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = (os.path.dirname(__file__), "<frozen ", importlib.__file__ or "")
    frame = next((f for f in reversed(frames) if not f.filename.startswith(own)), None)
    return text if frame is None else f"{text} ({os.path.basename(frame.filename)}:{frame.lineno})"


# -- checking --------------------------------------------------------------------------------------
def check_operation(operation: Operation, inputs: Any = None, **options: Any) -> Report:
    """Check an operation on these inputs, on those its author wrote, or on guessed ones.

    The options are those of `check_op`; a wrong gradient does not raise. `InputsRequiredError` is
    raised if there are no inputs and none can be guessed.
    """
    inputs = operation.inputs if inputs is None else inputs
    if callable(inputs):
        inputs = _called(operation, inputs, options.get("seed", 0))
    options["raise_exception"] = False
    if isinstance(inputs, dict):
        return check_op(operation.op, kwargs=inputs, **options)
    if inputs is not None:
        args = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        return check_op(operation.op, *args, **options)
    try:
        report = check_op(operation.op, **options)
    except ArgumentError as error:
        raise InputsRequiredError(operation) from error
    if not report.parts:  # none could be guessed
        raise InputsRequiredError(operation)
    return report


def _called(operation: Operation, inputs: Callable[..., Any], seed: int) -> Any:
    """Return the inputs that an author's function draws."""
    try:
        return inputs(np.random.default_rng(seed))
    except Exception as error:
        raise ArgumentTypeError(
            f"pullback check: inputs of `{operation.name}`, from a function of a random "
            f"generator, are required, got {_one_line(error)}."
        ) from error
