"""NumPy's random numbers."""

from numpy.random import *  # noqa: F403
