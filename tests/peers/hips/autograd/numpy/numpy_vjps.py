"""What rules of HIPS autograd's SciPy functions are written with."""

import numpy as np


def unbroadcast_f(target, f):
    shape = np.shape(target)

    def pulled(g):
        found = f(g)
        if np.ndim(found) > len(shape):
            found = np.sum(found, axis=tuple(range(np.ndim(found) - len(shape))))
        axes = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(found)[i] != 1)
        found = np.sum(found, axis=axes, keepdims=True) if axes else found
        return np.real(found) if np.iscomplexobj(found) and not np.iscomplexobj(target) else found

    return pulled


def repeat_to_match_shape(g, shape, dtype, axis, keepdims):
    if shape == ():
        return g, 1
    axes = range(len(shape)) if axis is None else np.atleast_1d(axis) % len(shape)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return np.reshape(g, kept) + np.zeros(shape, dtype), int(np.prod([shape[i] for i in axes]))
