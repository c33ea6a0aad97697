"""What docs/numpy.md has to list, by the tables of the protocol."""

import numpy as np
from numpy.testing.overrides import get_overridable_numpy_ufuncs

from pullback.numpy_protocol.arguments import ADAPTERS
from pullback.numpy_protocol.table import ARRAYS_LIKE, NO_COUNTERPART, OF_VALUES
from pullback.ops.declare import NUMPY

UFUNCS = sorted(
    u.__name__
    for u in get_overridable_numpy_ufuncs()
    if not u.__name__.startswith("_") and getattr(np, u.__name__, None) is u
)


# The functions, no ufuncs but those that have a counterpart of their own, that are written here.
MAPPED = {*ADAPTERS, *(name for name, (_, parameters) in NUMPY.items() if parameters)}


def groups():
    """Return the names under each heading, in the order of the document."""
    mapped = MAPPED - set(UFUNCS)
    return {
        "ufuncs": [n for n in UFUNCS if n not in NO_COUNTERPART and n not in OF_VALUES],
        "functions": sorted(n for n in mapped if "." not in n or n.startswith("lib.")),
        "linalg": sorted(n for n in mapped if n.startswith("linalg.")),
        "fft": sorted(n for n in mapped if n.startswith("fft.")),
        "values": sorted(OF_VALUES),
        "like": sorted(ARRAYS_LIKE),
    }
