"""The base of Tensor that stands for its methods, which `pullback.ops` attaches at import.

Empty at run time; for type checkers the generated stub beside this file lists every method.
"""


class Methods:
    """What operations give a tensor; see the stub for the list."""

    __slots__ = ()
