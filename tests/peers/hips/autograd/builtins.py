"""Containers are Python's own; a tensor counts as the array or the number that it stands for."""

import builtins
from builtins import dict, list, tuple, type

import pullback as pb
from autograd.tracer import getval


def isinstance(value, kinds):
    if builtins.isinstance(value, pb.Tensor):
        return builtins.isinstance(value, kinds) or builtins.isinstance(getval(value), kinds)
    return builtins.isinstance(value, kinds)


__all__ = ["dict", "isinstance", "list", "tuple", "type"]
