"""The names of what is traced."""

from pullback.compat.autograd.boxes import getval, isbox, notrace_primitive
from pullback.compat.autograd.extend import Box, primitive

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive"]
