"""Containers are Python's own."""

from builtins import dict, isinstance, list, tuple, type

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
