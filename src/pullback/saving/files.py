"""Saving and loading: one safetensors file, written whole or not at all.

The header has, beside what the format asks for, the tree of encoding.py. Files that were made
elsewhere have none, and are read as tensors by name.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import tempfile
from typing import Any, Never

import numpy as np

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, compose, nearest
from pullback.extras import optional
from pullback.hints import option_of
from pullback.ops.functions.creation import asarray
from pullback.saving.encoding import Encoder, decode, set_state, state_of

_HEADER = "pullback"
_VERSION = 1


def _safetensors(api: str) -> Any:
    optional(api, "safetensors.numpy", "safetensors", "save")
    return importlib.import_module("safetensors")


def save(path: str | os.PathLike[str], /, *unnamed: Never, **objects: Any) -> None:
    """Save objects under their names in one file, which `load` goes on from bit for bit.

    Parameters
    ----------
    path : path
        A file there is replaced once the new one is whole: whatever stops the writing leaves it.
    **objects : object
        What has a `state_dict` (modules, optimizers, schedulers, batches), tensors, arrays,
        generators (pullback's, NumPy's, Python's), numbers, texts, and containers of them.

    Raises
    ------
    ArgumentTypeError
        If an object has no name, or can't be saved: it is named, and nothing is written.
    MissingExtraError
        If safetensors is not installed.

    Examples
    --------
    >>> import os, tempfile, pullback as pb
    >>> w = pb.ones(2, requires_grad=True)
    >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> pb.save(path, w=w, epoch=3)
    >>> with pb.no_grad():
    ...     _ = w.zero_()
    >>> pb.load(path, w=w)
    {'epoch': 3}
    >>> w
    tensor([1., 1.], requires_grad=True)
    """
    if unnamed:
        hint = "write pb.save(path, model=model, epoch=3); pb.load(path, model=model) fills it"
        came = ", ".join(type(each).__name__ for each in (path, *unnamed))
        raise ArgumentTypeError(compose("save", "a path, then names", came, hint=hint))
    library, encoder = _safetensors("save"), Encoder()
    tree = {name: encoder.encode(value, name) for name, value in objects.items()}
    header = json.dumps({"version": _VERSION, "objects": tree}, allow_nan=False)
    path = os.path.abspath(os.fspath(path))
    folder = os.path.dirname(path)
    handle, part = tempfile.mkstemp(".part", f"{os.path.basename(path)}.", folder)
    os.close(handle)
    try:
        library.numpy.save_file(encoder.arrays, part, {_HEADER: header})
        _flush(part)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    _flush(folder)


def _flush(path: str) -> None:
    """Bring a file, or the names in a folder, to the disk; some systems do no such with folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_OF_TORCH = (
    "a file that torch.save wrote is read by torch.load; safetensors.torch.save_file(state, path) "
    "writes the state for pb.load"
)


def _is_archive(path: Any) -> bool:
    """Return whether a file is a zip archive, as PyTorch writes."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _read(path: Any) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the tree of a file, None if it was made elsewhere, and its arrays."""
    library = _safetensors("load")
    try:
        with library.safe_open(os.fspath(path), "np") as file:
            text = (file.metadata() or {}).get(_HEADER)
        arrays = library.numpy.load_file(path)
    except library.SafetensorError as error:
        required = "a whole file of the safetensors format required"
        hint = _OF_TORCH if _is_archive(path) else None
        raise ArgumentError(compose("load", required, f"{path}: {error}", hint=hint)) from None
    if text is None:
        return None, arrays
    header = json.loads(text)
    if header["version"] > _VERSION:
        required = f"a file of version {_VERSION} or older required"
        hint = "load it with the version of pullback that saved it, or a newer one"
        raise ArgumentError(compose("load", required, str(header["version"]), hint=hint))
    return header["objects"], arrays


def load(path: str | os.PathLike[str], /, **objects: Any) -> dict[str, Any]:
    """Load a file of `save` into objects, and return what else it holds by name.

    Parameters
    ----------
    path : path
    **objects : object
        What was saved under these names: what has a state goes on from it; tensors and arrays of
        the same shape and dtype are filled in place.

    Returns
    -------
    dict
        From the names that were not given to what was saved, states for what had one. Of a file
        that was made elsewhere: its tensors.

    Raises
    ------
    ArgumentError
        If the file is none of the format; if objects and file differ: all differences are listed,
        and the objects are as before.
    MissingExtraError
        If safetensors is not installed.

    Examples
    --------
    >>> import os, tempfile, pullback as pb
    >>> model, path = pb.nn.Linear(2, 1), os.path.join(tempfile.mkdtemp(), "state.safetensors")
    >>> pb.save(path, model=model, epoch=3)
    >>> pb.load(path, model=pb.nn.Linear(2, 1))
    {'epoch': 3}
    >>> sorted(pb.load(path)["model"])  # without an object to fill: its state
    ['bias', 'weight']
    """
    tree, arrays = _read(path)
    if tree is None:
        tensors: dict[str, Any] = {name: asarray(array) for name, array in arrays.items()}
        if objects:
            required = "no objects for a file that pullback did not save required"
            hint = "give its tensors to load_state_dict: module.load_state_dict(pb.load(path))"
            raise ArgumentError(compose("load", required, ", ".join(objects), hint=hint))
        return tensors
    values = {name: decode(content, arrays) for name, content in tree.items()}
    _fill_all(objects, values)
    return {name: value for name, value in values.items() if name not in objects}


def _fill_all(objects: dict[str, Any], values: dict[str, Any]) -> None:
    """Fill all objects, or none of them and raise with all differences."""
    differences: list[str] = []
    previous: list[tuple[Any, Any]] = []
    for name, target in objects.items():
        if name not in values:
            near = nearest(name, values.keys() - objects.keys())
            meant = f", {near!r} meant?" if near else ""
            meant = f"; {way}" if (way := option_of(name)) else meant
            differences.append(f"{name}: missing; the file has {', '.join(values)}{meant}")
            continue
        content = copy.deepcopy(_content(target))
        try:
            _fill(name, target, values[name])
            previous.append((target, content))
        except (ArgumentError, ArgumentTypeError, KeyError, TypeError, ValueError) as error:
            differences.append(f"{name}: {error}".replace("\n", "\n  "))
    if differences:
        for target, content in previous:
            _fill("", target, content)
        raise ArgumentError("\n  ".join(["load: the file differs from the objects:", *differences]))


def _content(target: Any) -> Any:
    return (
        target.detach()
        if isinstance(target, Tensor)
        else (target if isinstance(target, np.ndarray) else state_of(target))
    )


def _fill(name: str, target: Any, value: Any) -> None:
    """Let an object go on from what was saved."""
    if isinstance(target, (Tensor, np.ndarray)):
        if not isinstance(value, (Tensor, np.ndarray)):
            raise ArgumentTypeError(f"an array required, got {type(value).__name__}")
        theirs, ours = _kind(value), _kind(target)
        if theirs != ours:
            raise ArgumentError(f"{ours} required, got {theirs}")
        if isinstance(target, Tensor):
            with no_grad():
                target.copy_(asarray(value))
        else:
            target[...] = value.numpy() if isinstance(value, Tensor) else value
        return
    if state_of(target) is None:
        required = "tensors, arrays and what has a state required"
        hint = f"leave it out: what the file has for it is returned under {name!r}"
        raise ArgumentTypeError(compose("load", required, type(target).__name__, hint=hint))
    set_state(target, value)


def _kind(array: Any) -> str:
    dtype = array.dtype.name if isinstance(array, Tensor) else array.dtype.newbyteorder("=").name
    return f"shape {tuple(array.shape)} of {dtype}"
