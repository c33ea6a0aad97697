"""Reading the tables of ways out: by the full name of a function."""

from __future__ import annotations

import functools
import os
from types import ModuleType

from pullback.hints import numpy_functions, scipy_functions
from pullback.hints.rows import rows

__all__ = ["way_out"]

# Classes of compiled code, whose module is not known.
_WITHOUT_MODULE = {"SuperLU.solve": "scipy.sparse.linalg.splu"}

TABLES: dict[str, ModuleType] = {"numpy": numpy_functions, "scipy": scipy_functions}


@functools.cache
def ways(library: str) -> dict[str, str]:
    """Return the ways out of a library's functions, by their names below the library."""
    result = {}
    for module, text in TABLES[library].WAYS.items():
        for names, way in rows(text):
            for name in names:
                way_of_it = f"{way[:-1]}{name}" if way.endswith(".*") else way
                result[f"{module}.{name}".lstrip(".")] = way_of_it
    return result


def way_out(name: str) -> str:
    """Return what a hint says instead of a function; "" if unknown."""
    library, _, below = _WITHOUT_MODULE.get(name, name).partition(".")
    if library not in TABLES:
        return ""
    is_bridged = library == "scipy" and below in scipy_functions.BRIDGED
    way = f"pullback.interop.{name}" if is_bridged else ways(library).get(below, "")
    if way and " " not in way:
        way = f"{way}, which has a gradient"
    module, _, function = below.rpartition(".")
    switched = function in scipy_functions.WITH_SWITCH.get(module, "").split()
    if library == "numpy" or is_bridged or not switched or os.environ.get("SCIPY_ARRAY_API"):
        return way
    switch = f"{name} with SCIPY_ARRAY_API=1 set before SciPy is imported"
    return f"{way}, or {switch}" if way else switch
