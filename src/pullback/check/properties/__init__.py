"""The parts of the check, one file each, and the order in which they run.

A part is a function of the session, to which it reports what it finds. What several of them share
is in `recheck` (first derivatives at another call than the user's), `reporting` and `saved` (what
forward kept for backward).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pullback.check.properties.aliases import check_aliases
from pullback.check.properties.dtypes import check_dtypes
from pullback.check.properties.first import check_first
from pullback.check.properties.jvp import check_jvp
from pullback.check.properties.layouts import check_layouts
from pullback.check.properties.libraries import check_libraries
from pullback.check.properties.lifetime import check_lifetime
from pullback.check.properties.linear import check_linear
from pullback.check.properties.masks import check_masks
from pullback.check.properties.modes import check_modes
from pullback.check.properties.mutation import check_mutation
from pullback.check.properties.outputs import check_outputs
from pullback.check.properties.repeatable import check_repeatable
from pullback.check.properties.second_order import check_second_order
from pullback.check.properties.shapes import check_shapes
from pullback.check.properties.vmap import check_vmap
from pullback.check.session import Session


class Part(NamedTuple):
    """One part of the check.

    Attributes
    ----------
    name, title : str
        As `only` and `skip` take it; as reports print it.
    run : callable
        Takes the session, and reports to it.
    essential : bool
        Whether the later parts are meaningless once it failed.
    fast : bool
        Whether it is part of the fast check.
    """

    name: str
    title: str
    run: Callable[[Session], None]
    essential: bool = False
    fast: bool = False


# Writes and randomness come first: they can look like any other failure.
PARTS: tuple[Part, ...] = (
    Part("mutation", "nothing written to", check_mutation, essential=True, fast=True),
    Part("repeatable", "repeatable", check_repeatable, essential=True, fast=True),
    Part("first", "first derivatives", check_first, essential=True, fast=True),
    Part("masks", "subsets of the inputs", check_masks, fast=True),
    Part("outputs", "each output alone", check_outputs, fast=True),
    Part("linear", "linear in grad_output", check_linear, fast=True),
    Part("jvp", "jvp against backward", check_jvp, fast=True),
    Part("vmap", "vmap against a loop", check_vmap, fast=True),
    Part("aliases", "one tensor passed twice", check_aliases),
    Part("layouts", "memory layouts", check_layouts, fast=True),
    Part("shapes", "other sizes", check_shapes),
    Part("modes", "no_grad and threads", check_modes),
    Part("lifetime", "nothing kept alive", check_lifetime),
    Part("second_order", "second derivatives", check_second_order),
    Part("dtypes", "dtypes", check_dtypes),
    Part("libraries", "array libraries", check_libraries),
)
