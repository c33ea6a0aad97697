"""What the registry tests are made of: calls, their samples, reference values.

A case is one sample of one declaration, in real or in complex numbers. Reference values are those
that the declaration gives, or the longer formulas of `references`; gradients are checked by
`pullback.check`, from differences alone. They follow PyTorch's convention: for a loss
L = Re(sum(conj(seed) * output)), the gradient of a complex input z = x + iy is dL/dx + i dL/dy.
"""

import functools
import importlib
import itertools
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy

import pullback as pb
from pullback.arrays import library_of
from pullback.ops.declare import REGISTRY, Composition


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
    def has_rules(self):
        """Whether it has rules of its own, and is not made of other operations."""
        return not isinstance(self.op, Composition)

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
        if self.op.vjp_all is not None:
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

    def within(self, tensors):
        """Bring drawn inputs to where the operation is defined."""
        pairs = zip(self.domains, tensors, strict=True)
        return [domain.within(t) if domain.within else t for domain, t in pairs]

    def observed(self, results):
        """Return what of the results is determined."""
        if self.declaration.observed is None:
            return results
        seen = self.declaration.observed(*results)
        return list(seen) if isinstance(seen, tuple) else [seen]

    def call(self, tensors):
        """Call the operation on drawn tensors and return what is determined of its results."""
        return self.observed(self.results(self.within(tensors)))

    def results(self, tensors):
        """Call the operation as it is and return the list of its results."""
        settings = self.settings(tensors[0].data_array())
        result = self.declaration.call(*tensors, **settings)
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


def every(cases):
    """Run a test on every case."""
    return pytest.mark.parametrize("case", cases, ids=str)


def mostly(cases):
    """Run a test on every case; on the further samples of an operation under stress alone."""
    marks = [pytest.param(c, marks=[pytest.mark.stress] if c.number else []) for c in cases]
    return pytest.mark.parametrize("case", marks, ids=str)


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


# -- reference values -----------------------------------------------------------------------------
MODULES = {"np": np, "scipy": scipy, "math": math}


def _long_references():
    """Gather what each module of `references` says; nothing may be said twice."""
    values = {}
    for path in sorted(Path(__file__).with_name("references").glob("*.py")):
        module = importlib.import_module(f"tests.ops.references.{path.stem}")
        assert not values.keys() & module.REFERENCES.keys(), path
        values |= module.REFERENCES
    return values


def _called(reference):
    """Return the reference of a declaration as a function of arrays."""
    if isinstance(reference, str):
        module, _, name = reference.rpartition(".")
        function, of_numbers = getattr(importlib.import_module(module), name), module == "math"
    else:
        names = reference.__code__.co_varnames[: reference.__code__.co_argcount]
        modules = list(itertools.takewhile(MODULES.__contains__, names))
        function = functools.partial(reference, *(MODULES[name] for name in modules))
        of_numbers = "math" in modules
    return np.vectorize(function, otypes=["float64"]) if of_numbers else function


def _of_its_name(declaration):
    """Return NumPy's or SciPy's function that is called what an operation is, None if none is."""
    names = (declaration.primitive.name, *declaration.names)
    spaces = (np, np.linalg, np.fft, scipy.special)
    functions = (getattr(space, name, None) for name in names for space in spaces)
    return next(filter(callable, functions), None)


def _references():
    """Return the function that gives each operation's value on NumPy arrays."""
    declared = {n: _called(d.reference) for n, d in REGISTRY.items() if d.reference}
    others = {n: _of_its_name(d) for n, d in REGISTRY.items() if not d.reference}
    by_name = {n: function for n, function in others.items() if function}
    return by_name | declared | LONG_REFERENCES


# Those that take more than a line.
LONG_REFERENCES = _long_references()
REFERENCES = _references()
# The dtype of the result where it is not always the same.
RESULTS = {
    "to": lambda case, dtype: case.sample.settings["dtype"].name,
    "float_power": lambda case, dtype: "complex128" if case.complex else "float64",
}


def expected(case, arrays):
    """Return the reference values of a call, a list of arrays."""
    arrays = [host(t) for t in case.within(leaves(arrays))]
    result = REFERENCES[case.name](*arrays, **case.settings())
    results = [np.asarray(r) for r in (result if case.op.multi else [result])]
    return [host(out) for out in case.observed(leaves(results))]


def expected_dtypes(case, dtype):
    """Return the names of the dtypes of a call's results on inputs of a floating `dtype`."""
    kinds = RESULTS.get(case.name, case.declaration.result_dtype)
    return [_dtype(kind, case, dtype) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]


def _dtype(kind, case, dtype):
    real = {"complex64": "float32", "complex128": "float64"}
    if callable(kind):
        return kind(case, dtype)
    if kind == "real":
        return real.get(dtype, dtype)
    if kind == "complex":
        return {to: of for of, to in real.items()}.get(dtype, dtype)
    return dtype if kind == "same" else kind
