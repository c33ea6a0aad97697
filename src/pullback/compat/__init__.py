"""Other libraries' names over pullback's: for programs that were written for them."""

from pullback.compat import autograd

__all__ = ["autograd"]
