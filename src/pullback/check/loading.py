"""Importing the modules and files to check, as Python would.

A file in a package is imported as a module of it, any other under a unique name. ``sys.path`` is
restored after the import.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType


@contextlib.contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """Put a folder first on ``sys.path``."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()  # a file may be newer than the cached listing of its folder
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def load(name: str, folder: Path) -> ModuleType:
    """Import a module by its name, with a folder first on the path."""
    with _on_path(folder):
        return importlib.import_module(name)


def dotted(path: Path) -> tuple[str, Path]:
    """Return the dotted name of a file's module, and the folder of its outermost package."""
    path = path.resolve()
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def load_file(path: Path) -> ModuleType:
    """Import a file: as a module of its package if it is in one, else under a unique name."""
    path = path.resolve()
    if (path.parent / "__init__.py").is_file():
        module = load(*dotted(path))
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


def one_line(error: BaseException) -> str:
    """Return an exception in one line, with the line of the user's code that raised it."""
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    frames = traceback.extract_tb(error.__traceback__)
    own = (os.path.dirname(__file__), "<frozen ", importlib.__file__ or "")
    frame = next((f for f in reversed(frames) if not f.filename.startswith(own)), None)
    return text if frame is None else f"{text} ({os.path.basename(frame.filename)}:{frame.lineno})"
