"""The operations that a module, package, file or folder defines, and the inputs to check them with.

Owns the reading of a target such as ``"package.module"``, ``"file.py:Class.op"`` or ``"folder"``,
its import as Python would import it, and the inputs that an author wrote because they cannot be
guessed: in the attribute `check_inputs` of an operation or of a `Function` class, or in the
module's dict `CHECK_INPUTS`, by name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import operator
import os
import pkgutil
import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pullback.check.api import check_op
from pullback.check.inputs.guessing import suggestion
from pullback.check.inputs.strategies import as_inputs
from pullback.check.report import Report
from pullback.core.custom.define import AutogradFunction, Function
from pullback.errors import ArgumentError, ArgumentTypeError

TABLE = "CHECK_INPUTS"
_NOT_IMPORTED = ("setup.py", "conftest.py", "__main__.py")


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


class Problem(NamedTuple):
    """A module that could not be imported."""

    source: str
    text: str


# -- finding ---------------------------------------------------------------------------------------
def discover(target: str) -> Discovery:
    """Find the operations of a module, a package with its submodules, a file or a folder.

    Those with a forward and a backward that are defined there, each once, in the order of
    definition; or what is named after a colon: an operation, a function, or a class that holds
    some. `ArgumentError` is raised if what the target itself names is not there, or holds none.
    """
    source, name = split(target)
    found, is_folder = Discovery(), os.path.isdir(source)
    with first_on_path(Path.cwd()):
        if is_folder and not name:
            found.add_folder(Path(source))
        else:
            place = os.path.join(source, "__init__.py") if is_folder else source
            if not name:
                found.add(place)
            elif module := found.imported(place):
                found.add_named(module, source, name)
            if [problem.source for problem in found.problems[:1]] == [place]:
                why = found.problems[0].text
                _refuse("a module, file or folder that can be imported", source, why)
    if not found.operations and not found.problems:
        raise ArgumentError(
            "pullback check: operations with a forward and a backward are required, got none that "
            f"{target} defines.\nhint: what it imports is found under the name of its own module."
        )
    return found


def split(target: str) -> tuple[str, str]:
    """Return the two parts of a target: the module, file or folder, and the name after a colon."""
    source, colon, name = target.rpartition(":")
    if colon and source and all(part.isidentifier() for part in name.split(".")):
        return source.removesuffix(":"), name
    return target, ""


class Discovery:
    """What a target holds: operations, each once, and problems."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.problems: list[Problem] = []

    def imported(self, source: str) -> ModuleType | None:
        """Import a module by its name, or a file; return None, and add a problem, if that fails."""
        try:
            is_file = source.endswith(".py")
            return _load_file(Path(source)) if is_file else importlib.import_module(source)
        except (Exception, SystemExit) as error:
            self.problems.append(Problem(source, f"not imported: {_one_line(error)}"))
            return None

    def add_folder(self, folder: Path) -> None:
        """Add the operations in the files of a folder, and in the packages and folders in it."""
        init = folder / "__init__.py"
        if init.is_file():
            name, root = _dotted(init)
            with first_on_path(root):
                self.add(name)
            return
        for path in sorted(folder.iterdir()):
            if path.name.startswith((".", "__pycache__")) or (path / "pyvenv.cfg").exists():
                continue
            if path.is_dir():
                self.add_folder(path)
            elif path.suffix == ".py" and path.name not in _NOT_IMPORTED:
                self.add(str(path))

    def add(self, source: str) -> None:
        """Add the operations that a module or file defines, and those of a package's modules."""
        module = self.imported(source)
        if module is None:
            return
        for name, op in _operations(module, module.__name__):
            home = sys.modules.get(op.__module__, module)  # of its forward
            imported = home is not module and any(v is op for v in list(vars(home).values()))
            if not imported:
                self._add(source, name, op, module)
        inner = [] if source.endswith(".py") else getattr(module, "__path__", [])
        for found in pkgutil.iter_modules(inner, source + "."):
            if not found.name.endswith(".__main__"):
                self.add(found.name)

    def add_named(self, module: ModuleType, source: str, name: str) -> None:
        """Add what is named, wherever it is defined: an operation, a function, or a class."""
        try:
            value = operator.attrgetter(name)(module)
        except AttributeError:
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
        if any(op is known.op for known in self.operations):
            return
        tables = [table for m in modules if isinstance(table := getattr(m, TABLE, None), dict)]
        every = [getattr(op, "check_inputs", None), *(table.get(name) for table in tables)]
        inputs = next((given for given in every if given is not None), None)
        self.operations.append(Operation(source, name, op, inputs))


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


def _refuse(required: str, came: str, why: str = "") -> NoReturn:
    raise ArgumentError(
        f"pullback check: {required} is required, got {came}{f' ({why})' if why else ''}.\nhint: "
        "name a module as package.module, a file as ops.py, one operation as ops.py:name."
    )


# -- importing -------------------------------------------------------------------------------------
@contextlib.contextmanager
def first_on_path(folder: Path) -> Iterator[None]:
    """Import modules of a folder within a block before others of the same name."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()  # a file may be newer than the cached listing of its folder
    try:
        yield
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
    path = path.resolve(strict=True)
    if (path.parent / "__init__.py").is_file():
        name, root = _dotted(path)
        with first_on_path(root):
            module = importlib.import_module(name)
        if Path(module.__file__ or "").resolve() != path:
            raise ImportError(f"{module.__name__} is imported from {module.__file__}")
        return module
    name = f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # dataclasses look there
    try:
        with first_on_path(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return sys.modules[name]


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

    The options are those of `check_op`; a wrong gradient does not raise. Where no inputs can be
    guessed, the report tells what to write beside the operation.
    """
    inputs = operation.inputs if inputs is None else inputs
    if callable(inputs):
        try:
            inputs = inputs(np.random.default_rng(options.get("seed", 0)))
        except Exception as error:
            raise ArgumentTypeError(
                f"pullback check: inputs of `{operation.name}`, from a function of a random "
                f"generator, are required, got {_one_line(error)}."
            ) from error
    given = as_inputs(() if inputs is None else inputs)
    options |= {"kwargs": given.kwargs, "raise_exception": False}
    report = check_op(operation.op, *given.args, **options)
    if not report.parts:  # none could be guessed
        text = suggestion(operation.op)
        hint = f'write {TABLE} = {{"{operation.name}": "{text}"}} beside it, and mend the shapes'
        report.unchecked = [dataclasses.replace(each, hint=hint) for each in report.unchecked]
    return report
