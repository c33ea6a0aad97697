"""Looking at a recorded graph: as data, as a page, and at what it saved.

A graph is read, never changed, and nothing of it is kept. A module imports from those named before:

    observing, memory                   what is noted of nodes, and what they hold
    records, folding, formats, page     data, and the ways to show it
    data                                one graph
    reading, table                      what users call
"""

from pullback.inspect.data import Graph
from pullback.inspect.reading import graph, record
from pullback.inspect.table import saved
from pullback.public_names import listed as _listed

__all__ = ["Graph", "graph", "record", "saved"]
__dir__ = _listed(__name__)
