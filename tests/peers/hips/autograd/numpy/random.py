"""NumPy's."""

from numpy.random import *
