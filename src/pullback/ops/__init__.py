"""Every built-in operation with its gradient rule beside it, one file a theme."""

from pullback.ops import (  # noqa: F401  (importing a theme declares its operations)
    _methods,
    activations,
    comparison,
    complex_,
    conversion,
    creation,
    elementary,
    elementwise,
    indexing,
    joining,
    linalg,
    random,
    reductions,
    shape,
)
