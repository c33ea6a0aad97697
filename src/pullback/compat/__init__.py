"""Other libraries' names over pullback's: for programs that were written for them."""

from pullback.compat import autograd
from pullback.public_names import listed as _listed

__all__ = ["autograd"]
__dir__ = _listed(__name__)
