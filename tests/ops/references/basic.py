"""Reference values of the basic operations, by NumPy or by plain formulas."""

import numpy as np


def _added(g, index, shape):
    result = np.zeros(shape, g.dtype)
    np.add.at(result, index, g)
    return result


def _written(x, value, index):
    result = x.copy()
    result[index] = value
    return result


def _parts(x, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _softmax(x, axis):
    axis = axis if x.ndim else None
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


# Functions that NumPy has, by its name for them.
REFERENCES = {
    "reshape": np.reshape,
    "permute": np.permute_dims,
    "broadcast_to": np.broadcast_to,
    "flip": np.flip,
    "cat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "split": _parts,
    "unbind": np.unstack,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "sgn": np.sign,
    "clone": np.copy,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pos": np.positive,
    "pow": np.power,
    "where": np.where,
    "clamp": np.clip,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "bitwise_invert": np.invert,
    "take": np.take,
    "take_along_axis": np.take_along_axis,
    "matmul": np.matmul,
    "mm": np.matmul,
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
} | {
    name: getattr(np, name)
    for name in (
        *("abs", "ceil", "cos", "exp", "expm1", "floor", "floor_divide", "isfinite", "isinf"),
        *("isnan", "log", "log1p", "logical_and", "logical_not", "logical_or", "logical_xor"),
        *("maximum", "minimum", "reciprocal", "remainder", "round", "sign", "sin", "sqrt"),
        *("square", "tan", "tanh", "trunc"),
    )
}

# What NumPy lacks, as a plain formula.
REFERENCES |= {
    "to_complex": lambda g, imaginary: 1j * g if imaginary else g + 0j,
    "to": lambda x, dtype: x.astype(dtype.dtype),
    "toDevice": lambda x, device: x,
    "copy": lambda x, src: np.broadcast_to(src, x.shape),
    "fill": lambda x, value: np.full(x.shape, value, x.dtype),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "root": np.sqrt,
    "relu": lambda x: (x + np.abs(x)) / 2,
    "masked_fill": lambda x, mask, value: (1 - mask) * x + mask * value,
    "index_put": _added,
    "getitem": lambda x, index: x[index],
    "index": lambda x, index: x[index],
    "setitem": _written,
    "softmax": _softmax,
    "log_softmax": lambda x, axis: np.log(_softmax(x, axis)) if x.size else x,
    "logsumexp": lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
}

# Made of other operations.
REFERENCES |= {
    "matrix_transpose": np.matrix_transpose,
    "transpose": lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x,
    "expand_dims": np.expand_dims,
    "squeeze": np.squeeze,
    "expand": lambda x, shape: np.broadcast_to(
        x, [n if m == -1 else m for n, m in zip((1, *x.shape), shape, strict=False)]
    ),
    "sum_to_size": lambda x, shape: (
        x if x.shape == shape else np.sum(x, axis=(0, 2) if x.ndim == 3 else 1).reshape(shape)
    ),
    "flatten": lambda x, start_dim=0, end_dim=-1: x.reshape((2, -1) if x.ndim == 3 else (-1,)),
    "chunk": lambda x, chunks, dim: np.array_split(x, chunks if x.size else 1, dim),
    "var": lambda x, axis=None, correction=0, keepdims=False: np.var(
        x, axis=axis, ddof=correction, keepdims=keepdims
    ),
    "std": lambda x, axis=None, correction=0, keepdims=False: np.std(
        x, axis=axis, ddof=correction, keepdims=keepdims
    ),
}

_BOOL = (
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
    *("logical_not", "isfinite", "isinf", "isnan", "any", "all"),
)
_WHOLE = ("argmax", "argmin", *(name for name in REFERENCES if name.startswith("bitwise")))
RESULTS = {
    **dict.fromkeys(_BOOL, "bool"),
    **dict.fromkeys(_WHOLE, "int64"),
    **dict.fromkeys(("abs", "real", "imag", "var", "std"), "real"),
    "to": lambda case, dtype: case.sample.settings["dtype"].name,
    "to_complex": "complex",
}
NO_SCALARS = {
    *("cat", "fill", "flip", "index_put", "real", "imag", "split"),
    *("take", "take_along_axis", "toDevice", "to_complex", "unbind", "matmul"),
    *("mm", "matrix_transpose", "squeeze", "chunk", "std"),
}
