"""Containers as vectors, optimizers, fixed points."""

from pullback.compat.autograd.misc.flatten import flatten
from pullback.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
