"""The parts of the check: properties that every differentiable call has, in the order they run.

A part yields variants of the session's call, each with what it has to give; the engine in
`variants` makes the calls, compares and reports.
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
from pullback.check.properties.variants import Part
from pullback.check.sizes import shapes

__all__ = ["PARTS", "Part"]

# The name, the title, what yields the calls, why there may be none.
# Writes and randomness come first: they can look like any other failure.
PARTS: tuple[Part, ...] = (
    Part("mutation", "nothing written to", mutation, essential=True, fast=True),
    Part("repeatable", "repeatable", repeatable, essential=True, fast=True),
    Part("first", "first derivatives", first_derivatives, essential=True, fast=True),
    Part("masks", "subsets of the inputs", masks, "one argument is differentiated", fast=True),
    Part("outputs", "each output alone", outputs, "one output is differentiable", fast=True),
    Part("linear", "linear in grad_output", linear, fast=True),
    Part("jvp", "jvp against backward", jvp, "no jvp of its own", fast=True),
    Part("vmap", "vmap against a loop", vmap, "no vmap of its own", fast=True),
    Part("aliases", "one tensor passed twice", aliases, "no two arguments may be equal"),
    Part("layouts", "memory layouts", layouts, fast=True),
    Part("shapes", "other sizes", shapes, "forward takes these shapes only"),
    Part("modes", "no_grad and threads", modes),
    Part("lifetime", "nothing kept alive", lifetime),
    Part("second_order", "second derivatives", second_order),
    Part("dtypes", "dtypes", dtypes, "forward takes float64 only"),
    Part("libraries", "array libraries", libraries, "forward takes NumPy arrays only"),
)
