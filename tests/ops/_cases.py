"""What the registry tests are made of: calls, their samples, reference values, differences.

A case is one sample of one declaration, in real or in complex numbers. Reference values come from
NumPy or from the plain formulas of this file, reference gradients from central differences alone.
Gradients follow PyTorch's convention: for a loss L = Re(sum(conj(seed) * output)), the gradient of
a complex input z = x + iy is dL/dx + i dL/dy.
"""

import zlib
from dataclasses import dataclass

import numpy as np

import pullback as pb
from pullback.arrays import library_of
from pullback.ops._declare import REGISTRY

STEP = 1e-6


@dataclass(frozen=True)
class Case:
    """One call of one operation."""

    name: str
    number: int
    complex: bool = False

    def __str__(self):
        shapes = ",".join("x".join(map(str, shape)) or "0-d" for shape in self.sample.shapes)
        return f"{self.name}-{self.number}-{shapes}{'-complex' if self.complex else ''}"

    @property
    def declaration(self):
        return REGISTRY[self.name]

    @property
    def op(self):
        return self.declaration.primitive

    @property
    def sample(self):
        return self.declaration.samples[self.number]

    @property
    def domains(self):
        """The domain of each array, in order."""
        domain = self.declaration.domain
        count = len(self.sample.shapes)
        if self.op.variadic:
            return list(domain.values()) * count
        return [domain[name] for name in self.op.inputs]

    @property
    def wanted(self):
        """The positions of the inputs that have a gradient."""
        if not self.op.differentiable:
            return []
        if self.op.joint is not None:
            return list(range(len(self.sample.shapes)))
        return [i for i, name in enumerate(self.op.inputs) if self.op.declared.get(name)]

    def rng(self):
        return np.random.default_rng(zlib.crc32(str(self).encode()))

    def arrays(self, dtype=None):
        """Draw the inputs; floating ones in `dtype`, float64 or complex128 by default."""
        dtype = np.dtype(dtype or ("complex128" if self.complex else "float64"))
        rng, distinct = self.rng(), self.declaration.distinct
        pairs = zip(self.domains, self.sample.shapes, strict=True)
        return [draw(domain, shape, dtype, rng, distinct) for domain, shape in pairs]

    def settings(self, like=None):
        """Return the settings, with arrays as arrays of the library of `like`."""
        found = dict(self.sample.settings)
        for name, value in found.items():
            if isinstance(value, np.ndarray) and like is not None:
                found[name] = library_of(like).from_numpy(value.copy())
        return found

    def call(self, tensors):
        """Call the operation and return the list of its results."""
        result = self.declaration.public(*tensors, **self.settings(tensors[0].data_array()))
        return list(result) if self.op.multi else [result]


def draw(domain, shape, dtype, rng, distinct=False):
    """Draw one array from a domain."""
    if domain.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if domain.kind == "i":
        return np.asarray(rng.integers(int(domain.low), int(domain.high) + 1, shape))
    values = _between(domain, shape, rng, distinct)
    if dtype.kind == "c" and (domain.complex or domain.kind == "c"):
        values = values + 1j * np.asarray(rng.uniform(-1, 1, shape))
        return np.asarray(values).astype(dtype)
    return np.asarray(values).astype(np.zeros(0, dtype).real.dtype)


def _between(domain, shape, rng, distinct):
    low, high = domain.low, domain.high
    if distinct:
        count = int(np.prod(shape))
        places = (rng.permutation(count) + 0.5) / count
        return np.reshape(low + (high - low) * places, shape)
    values = np.asarray(rng.uniform(low, high, shape))
    for point in domain.away:
        near = np.abs(values - point) < 0.1
        values = np.where(near, point + np.copysign(0.2, values - point), values)
    return np.round(values / domain.step) * domain.step if domain.step else values


def cases(*, differentiable=False):
    """Return every case, real and complex; only differentiable operations if so wished."""
    found = []
    for name, declaration in REGISTRY.items():
        if differentiable and not declaration.primitive.differentiable:
            continue
        domains = declaration.domain.values()
        for number in range(len(declaration.samples)):
            if not any(d.kind == "c" for d in domains):
                found.append(Case(name, number))
            if any(d.complex or d.kind == "c" for d in domains):
                found.append(Case(name, number, complex=True))
    return found


# -- calling and differentiating ------------------------------------------------------------------
def leaves(arrays, wanted=()):
    """Wrap arrays, without copying, as leaves; those at `wanted` require grad."""
    tensors = [pb.asarray(a) for a in arrays]
    for i in wanted:
        tensors[i].requires_grad_()
    return tensors


def seeds_for(outputs, rng):
    """Draw an output gradient for each output, as a NumPy array."""
    return [random_like(host(out), rng) for out in outputs]


def random_like(array, rng):
    values = rng.uniform(0.5, 1.5, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.uniform(-1, 1, array.shape)
    return np.asarray(values).astype(array.dtype)


def host(value):
    """Return a tensor's values as a NumPy array."""
    return value.detach().numpy() if isinstance(value, pb.Tensor) else np.asarray(value)


def like(array, values):
    """Return NumPy values as an array of the library of `array`."""
    return library_of(array).from_numpy(np.array(values))


def gradients(case, tensors, seeds, **options):
    """Return the gradients of a call with respect to the inputs that have one."""
    outputs = case.call(tensors)
    seeds = [s if isinstance(s, pb.Tensor) else pb.asarray(s) for s in seeds]
    wanted = [tensors[i] for i in case.wanted]
    return pb.autograd.grad(outputs, wanted, seeds, materialize_grads=True, **options)


def product(values, seeds):
    """Return Re(sum(conj(seed) * value)) over all pairs."""
    pairs = zip(values, seeds, strict=True)
    return sum(float(np.sum(np.conj(s) * v).real) for v, s in pairs)


def differences(loss, arrays, i):
    """Return the central differences of ``loss(arrays)`` in the i-th array."""
    array = arrays[i]
    result = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
            around = []
            for step in (STEP, -STEP):
                moved = array.copy()
                moved[place] += step * unit
                around.append(loss([*arrays[:i], moved, *arrays[i + 1 :]]))
            result[place] += unit * (around[0] - around[1]) / (2 * STEP)
    return result


def first_order(case, arrays, seeds):
    """Return the gradients of the wanted inputs, as NumPy arrays."""
    return [host(g) for g in gradients(case, leaves(arrays, case.wanted), seeds)]


def second_order(case, arrays, seeds, weights):
    """Return gradients of Re(sum(conj(weight) * gradient)) in the wanted inputs and the seeds."""
    tensors = leaves(arrays, case.wanted)
    seeds = leaves(seeds, range(len(seeds)))
    first = gradients(case, tensors, seeds, create_graph=True)
    towards = [*(tensors[i] for i in case.wanted), *seeds]
    rows = [(g, pb.asarray(w)) for g, w in zip(first, weights, strict=True) if g.requires_grad]
    if not rows:
        return [np.zeros_like(host(t)) for t in towards]
    given, factors = zip(*rows, strict=True)
    return [host(g) for g in pb.autograd.grad(given, towards, factors, materialize_grads=True)]


# -- the same values in other memory --------------------------------------------------------------
def transposed(a):
    return np.asarray(a.T.copy().T)


def strided(a):
    large = np.full(tuple(2 * n for n in a.shape), 7, a.dtype)
    view = large[tuple(slice(None, None, 2) for _ in a.shape)] if a.ndim else large[...]
    view[...] = a
    return view


def reversed_(a):
    turn = tuple(slice(None, None, -1) for _ in a.shape)
    return a[turn].copy()[turn] if a.ndim else a.copy()


def readonly(a):
    copy = a.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS = {
    "transposed": transposed,
    "strided": strided,
    "negative strides": reversed_,
    "read-only": readonly,
}


def repeated(a):
    """Return an array of the shape of `a` with stride 0 along its axes, if it has elements."""
    first = a[(slice(0, 1),) * a.ndim] if a.size else a
    return np.broadcast_to(first, a.shape)


# -- reference values -----------------------------------------------------------------------------
def _added(g, index, shape):
    result = np.zeros(shape, g.dtype)
    np.add.at(result, index, g)
    return result


def _written(x, value, index):
    result = x.copy()
    result[index] = value
    return result


def _embedded(g, shape):
    result = np.zeros(shape, g.dtype)
    np.fill_diagonal(result, g)
    return result


def _parts(x, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _softmax(x, axis):
    axis = axis if x.ndim else None
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


# Functions that NumPy has, by its name for them.
NUMPY = {
    "reshape": np.reshape,
    "permute": np.permute_dims,
    "broadcast_to": np.broadcast_to,
    "flip": np.flip,
    "cat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "split": _parts,
    "unbind": np.unstack,
    "diagonal": np.diagonal,
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
    "cumsum": lambda x, axis: np.cumsum(x, axis).reshape(x.shape),
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
FORMULAS = {
    "diag_embed": _embedded,
    "to_complex": lambda g, imaginary: 1j * g if imaginary else g + 0j,
    "to": lambda x, dtype: x.astype(dtype.dtype),
    "toDevice": lambda x, device: x,
    "copy": lambda x, src: np.broadcast_to(src, x.shape),
    "fill": lambda x, value: np.full(x.shape, value, x.dtype),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: (x + np.abs(x)) / 2,
    "keep_where": lambda condition, x: condition * x,
    "masked_fill": lambda x, mask, value: (1 - mask) * x + mask * value,
    "index_put": _added,
    "getitem": lambda x, index: x[index],
    "setitem": _written,
    "softmax": _softmax,
    "log_softmax": lambda x, axis: np.log(_softmax(x, axis)) if x.size else x,
    "logsumexp": lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
}


def expected(case, arrays):
    """Return the reference values of a call, a list of arrays."""
    reference = (NUMPY | FORMULAS)[case.name]
    result = reference(*arrays, **case.settings())
    return [np.asarray(r) for r in (result if case.op.multi else [result])]


BOOL = {
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
    *("logical_not", "isfinite", "isinf", "isnan", "any", "all"),
}


def expected_dtype(case, dtype):
    """Return the name of the dtype of a call's results on inputs of a floating `dtype`."""
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    if case.name in BOOL:
        return "bool"
    if case.name in ("argmax", "argmin") or case.name.startswith("bitwise"):
        return "int64"
    if case.name in ("abs", "real", "imag"):
        return real
    if case.name == "to":
        return case.sample.settings["dtype"].name
    if case.name == "to_complex":
        return {"float32": "complex64", "float64": "complex128"}[dtype]
    return dtype
