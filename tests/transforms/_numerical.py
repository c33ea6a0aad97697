"""Derivatives by central differences."""

import numpy as np

STEP = 1e-6


def along(function, x, v):
    """Return the derivative of a function of an array along a direction."""
    return (np.asarray(function(x + STEP * v)) - np.asarray(function(x - STEP * v))) / (2 * STEP)


def jacobian(function, x):
    """Return the derivatives of a function of a real array by its elements, on the last axes."""
    units = np.eye(x.size).reshape(x.size, *x.shape)
    columns = [along(function, x, unit) for unit in units]
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)
