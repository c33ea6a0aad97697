"""The parts of the check: properties that every differentiable call has, in the order they run.

A part yields variants of the session's call, each with what it has to give; the engine in
`variants` makes the calls, compares and reports.
"""

from __future__ import annotations

from pullback.check import sizes
from pullback.check.properties import arguments, arrays, calls, first
from pullback.check.properties.variants import Part

__all__ = ["PARTS", "Part"]

# The name, the title, what yields the calls, why there may be none.
# Writes and randomness come first: they can look like any other failure.
PARTS: tuple[Part, ...] = (
    Part("mutation", "nothing written to", calls.mutation, essential=True, fast=True),
    Part("repeatable", "repeatable", calls.repeatable, essential=True, fast=True),
    Part("first", "first derivatives", first.first_derivatives, essential=True, fast=True),
    Part(
        "masks", "subsets of the inputs", calls.masks, "one argument is differentiated", fast=True
    ),
    Part("outputs", "each output alone", calls.outputs, "one output is differentiable", fast=True),
    Part("linear", "linear in grad_output", calls.linear, fast=True),
    Part("jvp", "jvp against backward", arguments.jvp, "no jvp of its own", fast=True),
    Part("vmap", "vmap against a loop", arguments.vmap, "no vmap of its own", fast=True),
    Part("aliases", "one tensor passed twice", arguments.aliases, "no two arguments may be equal"),
    Part("layouts", "memory layouts", arrays.layouts, fast=True),
    Part("shapes", "other sizes", sizes.shapes, "forward takes these shapes only"),
    Part("modes", "no_grad and threads", calls.modes),
    Part("lifetime", "nothing kept alive", calls.lifetime),
    Part("second_order", "second derivatives", arguments.second_order),
    Part("dtypes", "dtypes", arrays.dtypes, "forward takes float64 only"),
    Part("libraries", "array libraries", arrays.libraries, "forward takes NumPy arrays only"),
)
