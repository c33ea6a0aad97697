"""What is saved as a tree of JSON beside arrays by name, and read back.

Owns the form of the header: a plain number, text, bool or None is itself, a list a list, and all
else an object with one tag of `_TAGS`. Arrays are contiguous and little-endian in the file, complex
ones two parts; the header has their dtype. Must not know files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.random import Generator


class Encoder:
    """Turns values into a tree, and collects the arrays that it refers to.

    Attributes
    ----------
    arrays : dict
        From names, unique and made of the path to a value, to arrays as they are written.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return the tree of a value."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, Tensor):
            return {"tensor": self._array(value.detach().cpu().numpy(), path)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, path)}
        if isinstance(value, (int, float, complex, np.generic)):
            return _number(value, path)
        if (state := state_of(value)) is not None:
            return {"state": self.encode(state, path)}
        if isinstance(value, Mapping):
            pairs = [[_key(k, path), self.encode(v, f"{path}.{k}")] for k, v in value.items()]
            return {"dict": pairs}
        if isinstance(value, (list, tuple)):
            items = [self.encode(v, f"{path}.{i}") for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        required = "what has a state_dict, tensors, arrays, generators, numbers, texts and "
        required += "containers of them required"
        raise ArgumentTypeError(
            compose("save", required, f"{type(value).__name__} as '{path}'", hint=_HINT)
        )

    def _array(self, array: np.ndarray[Any, Any], path: str) -> list[Any]:
        """Add an array to the file, and return its name and dtype."""
        is_complex = array.dtype.kind == "c"
        if array.dtype.kind not in "biufc" or array.dtype.itemsize > (16 if is_complex else 8):
            required = "arrays of numbers of at most 64 bits a part required"
            raise ArgumentTypeError(compose("save", required, f"{array.dtype} as '{path}'"))
        name = path
        while name in self.arrays or f"{name}.real" in self.arrays:
            name += "_"
        parts = {f"{name}.real": array.real, f"{name}.imag": array.imag}
        for key, part in (parts if is_complex else {name: array}).items():
            # In one block, as the format is written from memory as it lies; 0-d stays 0-d.
            native = np.asarray(part, part.dtype.newbyteorder("<"), order="C")
            assert native.flags.c_contiguous  # else numbers would be written in another order
            self.arrays[key] = native
        return [name, array.dtype.str]


_HINT = "give it a state_dict and a load_state_dict, or save what it is made of"


def _number(value: Any, path: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return {"complex": [_number(value.real, path), _number(value.imag, path)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if not isinstance(value, (bool, int, float)):
        raise ArgumentTypeError(
            compose("save", "numbers required", f"{type(value).__name__} as '{path}'")
        )
    return value


def _key(key: Any, path: str) -> Any:
    if not isinstance(key, (str, int)):
        required = "dicts with texts or whole numbers for keys required"
        raise ArgumentTypeError(compose("save", required, f"{key!r} in '{path}'"))
    return key


def decode(tree: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """Return the value of a tree; of what has a state, the state."""
    if isinstance(tree, list):
        return [decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    if tag == "tensor":
        return asarray(_read(content, arrays))
    if tag == "array":
        return _read(content, arrays)
    if tag == "dict":
        return {key: decode(value, arrays) for key, value in content}
    if tag == "tuple":
        return tuple(decode(item, arrays) for item in content)
    if tag == "state":
        return decode(content, arrays)
    if tag == "complex":
        return complex(*(decode(part, arrays) for part in content))
    return float(content)


def _read(content: list[Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    name, dtype = content[0], np.dtype(content[1])
    if dtype.kind != "c":
        return arrays[name].astype(dtype, copy=True)
    whole = np.empty(arrays[f"{name}.real"].shape, dtype)
    whole.real, whole.imag = arrays[f"{name}.real"], arrays[f"{name}.imag"]
    return whole


# -- what has a state ------------------------------------------------------------------------------
def state_of(value: Any) -> Any:
    """Return the state of an object that can go on from one, None of any other."""
    if isinstance(value, Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    if isinstance(value, random.Random):
        return value.getstate()
    has_state = hasattr(value, "state_dict") and hasattr(value, "load_state_dict")
    return value.state_dict() if has_state and not isinstance(value, type) else None


def set_state(value: Any, state: Any) -> None:
    """Let an object go on from a state of its kind."""
    if isinstance(value, (Generator, np.random.RandomState)):
        value.set_state(state)
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = state
    elif isinstance(value, random.Random):
        version, internal, gauss = state
        value.setstate((version, tuple(internal), gauss))
    else:
        value.load_state_dict(state)
