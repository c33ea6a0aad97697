"""NumPy's."""

from numpy.fft import *
