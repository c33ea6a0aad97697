"""The operations that a module, package, file or folder defines, and the inputs to check them with.

Owns the reading of a target such as ``"package.module"``, ``"file.py:Class.op"`` or ``"folder"``,
its import as Python would import it, and the inputs that an author wrote because they cannot be
guessed: in the attribute `check_inputs` of an operation or of a `Function` class, or in the
module's dict `CHECK_INPUTS`, by name.
"""

from __future__ import annotations

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
    where: str | Path = path if source.endswith(".py") else source
    if source and path.is_dir():
        if not name:
            search.folder(path)
            return search.found
        where = path / "__init__.py"
    if isinstance(where, Path) and not where.is_file():
        _refuse("a file that exists", source)
    module = search.imported(source, where, Path.cwd())
    if module is None:
        why = search.found.problems[0].text.removeprefix(_FAILED)
        _refuse("a module, file or folder that can be imported", source, why)
    if name:
        search.named(module, source, name)
    else:
        search.module(module, source, Path.cwd() if where == source else None)
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

    def imported(self, source: str, where: str | Path, folder: Path) -> ModuleType | None:
        """Return a module; None, and a problem, where it cannot be imported."""
        try:
            return _load_file(where) if isinstance(where, Path) else _load(where, folder)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # also SystemExit, and pytest's skip
            self.found.problems.append(Problem(source, _FAILED + _one_line(error)))
            return None

    def folder(self, folder: Path) -> None:
        """Search the files of a folder, and the packages and folders in it."""
        init = folder / "__init__.py"
        if init.is_file():
            name, root = _dotted(init)
            self._search(name, init, root)
            return
        for path in sorted(folder.iterdir()):
            if path.name.startswith((".", "__pycache__")) or (path / "pyvenv.cfg").exists():
                continue
            if path.is_dir():
                self.folder(path)
            elif path.suffix == ".py" and path.name not in _NOT_IMPORTED:
                self._search(str(path), path, None)

    def _search(self, source: str, where: str | Path, root: Path | None) -> None:
        module = self.imported(source, where, root or Path.cwd())
        if module is not None:
            self.module(module, source, root)

    def module(self, module: ModuleType, source: str, root: Path | None) -> None:
        """Add the operations that a module defines, and those of the modules in it below a root."""
        for name, op in _operations(module, module.__name__):
            home = sys.modules.get(op.__module__, module)  # of its forward
            imported = home is not module and any(v is op for v in list(vars(home).values()))
            if not imported:
                self._add(source, name, op, module)
        for name in _table(module):
            if _member(module, name) is None:
                text = f"{TABLE} has inputs of {name!r}, which is not defined there"
                self.found.problems.append(Problem(source, text))
        inner = getattr(module, "__path__", []) if root is not None else []
        for found in pkgutil.iter_modules(inner, source + "."):
            if not found.name.endswith(".__main__"):
                self._search(found.name, found.name, root)

    def named(self, module: ModuleType, source: str, name: str) -> None:
        """Add what is named, wherever it is defined: an operation, a function, or a class."""
        value = _member(module, name)
        if value is None:
            _refuse(f"a name that is defined in {source}", name)
        if isinstance(value, type) and not issubclass(value, Function):
            for inner, op in _operations(value, value.__module__, name + "."):
                self._add(source, inner, op, module)
        elif callable(value):
            home = sys.modules.get(getattr(value, "__module__", None) or "", module)
            self._add(source, name, value, module, home)
        else:
            _refuse("an operation or a function", f"{name}, of type {type(value).__name__}")

    def _add(self, source: str, name: str, op: Any, *modules: ModuleType) -> None:
        """Add an operation once, with the inputs that its author wrote there or in the modules."""
        if id(op) in self._seen:
            return
        self._seen.add(id(op))
        every = [getattr(op, "check_inputs", None), *(_table(m).get(name) for m in modules)]
        inputs = next((given for given in every if given is not None), None)
        self.found.operations.append(Operation(source, name, op, inputs))


def _operations(owner: Any, module: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the operations among the variables of a module or class, and of its classes."""
    within = f"{owner.__qualname__}." if isinstance(owner, type) else ""
    for name, value in list(vars(owner).items()):
        if isinstance(value, staticmethod):
            value = value.__func__
        is_class = isinstance(value, type)
        is_function = is_class and issubclass(value, Function)
        if is_function or isinstance(value, AutogradFunction):
            if getattr(value._op if is_function else value, "rule", None) is not None:
                yield prefix + name, value
        elif is_class and value.__module__ == module and value.__qualname__.startswith(within):
            yield from _operations(value, module, f"{prefix}{name}.")


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
def _load(name: str, folder: Path, run: Callable[[], Any] | None = None) -> ModuleType:
    """Import a module by its name, or as told, with a folder first on the path."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()  # a file may be newer than the cached listing of its folder
    try:
        return importlib.import_module(name) if run is None else run() or sys.modules[name]
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


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
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        return _load(name, path.parent, functools.partial(spec.loader.exec_module, module))
    except BaseException:
        del sys.modules[name]
        raise


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
    options["raise_exception"] = False
    if callable(inputs):
        try:
            inputs = inputs(np.random.default_rng(options.get("seed", 0)))
        except Exception as error:
            raise ArgumentTypeError(
                f"pullback check: inputs of `{operation.name}`, from a function of a random "
                f"generator, are required, got {_one_line(error)}."
            ) from error
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
