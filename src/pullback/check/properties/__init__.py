"""The parts of the check: properties that every differentiable call has, in the order they run.

A part yields variants of the session's call, each with what it has to give; the engine in
`variants` makes the calls, compares and reports. `failing` tells what the source says of a failure.
"""

from __future__ import annotations

from pullback.check.properties.arguments import aliases, jvp, second_order, vmap
from pullback.check.properties.arrays import dtypes, layouts, libraries
from pullback.check.properties.calls import (
    lifetime,
    linear,
    masks,
    modes,
    mutation,
    outputs,
    repeatable,
)
from pullback.check.properties.first import first_derivatives
from pullback.check.properties.sizes import shapes
from pullback.check.properties.variants import DIFFERENCES, EQUAL, Part

__all__ = ["PARTS", "Part"]

# The name, the title, what yields the calls, what they are compared with, why there may be none.
# Writes and randomness come first: they can look like any other failure.
PARTS: tuple[Part, ...] = (
    Part("mutation", "nothing written to", mutation, EQUAL, essential=True, fast=True),
    Part("repeatable", "repeatable", repeatable, EQUAL, essential=True, fast=True),
    Part("first", "first derivatives", first_derivatives, DIFFERENCES, essential=True, fast=True),
    Part(
        "masks", "subsets of the inputs", masks, EQUAL, "one argument is differentiated", fast=True
    ),
    Part("outputs", "each output alone", outputs, EQUAL, "one output is differentiable", fast=True),
    Part("linear", "linear in grad_output", linear, EQUAL, fast=True),
    Part("jvp", "jvp against backward", jvp, EQUAL, "no jvp of its own", fast=True),
    Part("vmap", "vmap against a loop", vmap, EQUAL, "no vmap of its own", fast=True),
    Part("aliases", "one tensor passed twice", aliases, EQUAL, "no two arguments may be equal"),
    Part("layouts", "memory layouts", layouts, EQUAL, fast=True),
    Part("shapes", "other sizes", shapes, DIFFERENCES, "forward takes these shapes only"),
    Part("modes", "no_grad and threads", modes, EQUAL),
    Part("lifetime", "nothing kept alive", lifetime, EQUAL),
    Part("second_order", "second derivatives", second_order, DIFFERENCES),
    Part("dtypes", "dtypes", dtypes, EQUAL, "forward takes float64 only"),
    Part("libraries", "array libraries", libraries, EQUAL, "forward takes NumPy arrays only"),
)
