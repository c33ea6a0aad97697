"""HIPS autograd's modules and names, in its conventions: change a program's imports alone.

Complex gradients are the conjugates of pullback's, results are NumPy's arrays and scalars, and a
result that depends on no argument has gradient zero, with a warning.

>>> import pullback.compat.autograd.numpy as np
>>> from pullback.compat.autograd import grad
>>> grad(lambda x: np.sum(np.array([x, x**2])))(3.0)
np.float64(7.0)
"""

from pullback.compat.autograd import numpy as numpy
from pullback.compat.autograd.builtins import *  # noqa: F403
from pullback.compat.autograd.differential_operators import *  # noqa: F403
from pullback.compat.autograd.extend import primitive as primitive
