"""PyTorch's own samples of its operations, run on torch and on pullback.

Owns how an operation of torch is found in pullback, how a call is carried over, and what is
compared: values, gradients of a random seed, and the gradients of those.
"""

import functools
import inspect
import itertools
import random
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from tests.peers._op_db_skips import (
    CALLS,
    IGNORED,
    POSITIONAL,
    SKIPS,
    SPELLINGS,
    UNDETERMINED,
)
from torch.testing._internal.common_methods_invocations import op_db

import pullback as pb
from pullback.errors import DTypeError
from pullback.ops.declare import REGISTRY

TOLERANCE = 1e-9
COUNT = 24  # samples of an operation and a dtype
LARGEST = 1500  # elements of a sample, where there are smaller ones
DTYPES = {"float64": torch.float64, "complex128": torch.complex128, "int64": torch.int64}


def full_name(info):
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


INFOS = {full_name(info): info for info in op_db}


# -- finding it in pullback -----------------------------------------------------------------------
def find(name):
    """Return pullback's callable for an operation of torch, or None.

    A method is preferred, since methods are PyTorch's; functions follow the Array API.
    """
    if name in SPELLINGS:
        return resolve(SPELLINGS[name])
    space, _, last = INFOS[name].name.rpartition(".")
    places = {
        "": ("Tensor", ""),
        "nn.functional": ("nn.functional", "", "Tensor"),
        "special": ("special", "", "Tensor"),
        "linalg": ("linalg",),
        "fft": ("fft",),
    }
    paths = (f"{place}.{last}".lstrip(".") for place in places.get(space, ()))
    return next((found for path in paths if (found := resolve(path))), None)


def find_inplace(name):
    """Return the method that does it in place, where both libraries have one, or None."""
    info = INFOS[name]
    method = resolve(f"Tensor.{info.name.rpartition('.')[2]}_")
    return method if info.inplace_variant and info.supports_autograd else None


def resolve(path):
    """Return what a dotted name in pullback calls; a property is called too."""
    found = pb
    for part in path.split("."):
        found = inspect.getattr_static(found, part, None)
        found = getattr(found, "__func__", found)
    if isinstance(found, property):
        return found.fget
    return found if callable(found) and not isinstance(found, (type, pb.DType)) else None


@functools.cache
def parameters(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def called(name, function, *args, **kwargs):
    """Call a function of pullback as torch is called, with pullback's names where it has others."""
    known = parameters(function)
    if name in CALLS:
        return CALLS[name](function, *args, **kwargs)
    if name in POSITIONAL:
        kwargs = {**dict(zip(POSITIONAL[name], args[1:], strict=False)), **kwargs}
        args = args[:1]
    for key, values in IGNORED.items():
        if key in kwargs and key not in known and (not values or kwargs[key] in values):
            del kwargs[key]
    for theirs, ours in (("dim", "axis"), ("dim", "axes"), ("keepdim", "keepdims")):
        if theirs in kwargs and theirs not in known and ours in known:
            kwargs = {ours if key == theirs else key: value for key, value in kwargs.items()}
    if isinstance(kwargs.get("axes"), int):
        kwargs["axes"] = (kwargs["axes"],)
    return function(*args, **kwargs)


def supports(name, dtype):
    """Return whether torch has the operation in a dtype."""
    return INFOS[name].supports_dtype(DTYPES[dtype], "cpu")


def must_take(call):
    """Return whether pullback has to take the dtype: complex ones where they are declared."""
    if call.dtype != "complex128":
        return True
    primitive = getattr(find(call.name), "primitive", None)
    last = INFOS[call.name].name.rpartition(".")[2]
    declaration = REGISTRY.get(primitive.name if primitive else last)
    return declaration is None or any(
        domain.complex or domain.kind == "c" for domain in declaration.domain.values()
    )


# -- samples --------------------------------------------------------------------------------------
@dataclass
class Call:
    """One call of torch's operation: what its samples say, and where the tensors are in it."""

    name: str
    dtype: str
    sample: object

    def __str__(self):
        args = [shown(self.sample.input), *map(shown, self.sample.args)]
        args += [f"{name}={shown(value)}" for name, value in self.sample.kwargs.items()]
        return f"{self.name}({', '.join(args)})"

    @property
    def kind(self):
        """What makes this call unlike others: ranks, emptiness, layout, which arguments."""
        return tuple(map(kind_of, (self.sample.input, *self.sample.args))) + tuple(
            (name, kind_of(value)) for name, value in self.sample.kwargs.items()
        )

    @property
    def size(self):
        return sum(t.numel() for t in tensors_in(self.arguments))

    @property
    def arguments(self):
        return (self.sample.input, self.sample.args, self.sample.kwargs)


def shown(value):
    """Return a short text for an argument."""
    if isinstance(value, torch.Tensor):
        shape = ",".join(map(str, value.shape))
        layout = "" if value.is_contiguous() else " strided"
        return f"{str(value.dtype).removeprefix('torch.')}[{shape}]{layout}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return repr(value)


def kind_of(value):
    if isinstance(value, torch.Tensor):
        return (value.ndim, value.numel() == 0, value.is_contiguous(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(map(kind_of, value))
    if isinstance(value, (bool, str, type(None))):
        return value
    return (type(value).__name__, isinstance(value, (int, float)) and value < 0)


def calls(name, dtype, inplace, met):
    """Return some of torch's samples, of as many kinds as there are, less what the table skips.

    `met` gathers a skipped sample for each entry of the table.
    """
    info = INFOS[name]
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    grad = info.supports_autograd and dtype != "int64"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own deprecations
        samples = info.sample_inputs("cpu", DTYPES[dtype], requires_grad=grad)
        found = [Call(name, dtype, sample) for sample in itertools.islice(samples, 400)]
    kept = [call for call in found if not skipping(call, inplace, met)]
    limit = max(LARGEST, min((call.size for call in kept), default=0))
    kinds = {}
    for call in kept:
        if call.size <= limit:
            kinds.setdefault(call.kind, []).append(call)
    rounds = itertools.zip_longest(*kinds.values())
    picked = [call for turn in rounds for call in turn if call is not None]
    return picked[:COUNT]


def skipping(call, inplace, met):
    """Return whether the table skips a sample, and note for its entries that they met one."""
    text = f"{call} {call.dtype}" + " in place" * inplace
    entries = [key for key, parts in parts_of(call.name).items() if all(p in text for p in parts)]
    for key in entries:
        met.setdefault(key, call)
    return bool(entries)


def parts_of(name):
    """Return the entries of the table for samples of an operation, and the texts they look for."""
    entries = (key.partition(": ") for key in SKIPS)
    return {f"{op}: {text}": text.split(" & ") for op, _, text in entries if op == name and text}


# -- carrying a call over -------------------------------------------------------------------------
def tensors_in(value):
    """Yield the tensors in nested arguments."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def mapped(value, tensor, other):
    """Return nested arguments with `tensor` of each tensor and `other` of everything else."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(item, tensor, other) for item in value])
    if isinstance(value, dict):
        return {name: mapped(item, tensor, other) for name, item in value.items()}
    return other(value)


def unlike_torch(value):
    """Return what pullback says for a constant of torch's."""
    if isinstance(value, torch.dtype):
        return getattr(pb, str(value).removeprefix("torch."))
    return str(value) if isinstance(value, torch.device) else value


class Side:
    """A call on one of the libraries: its leaves and its results."""

    def __init__(self, call, run, lib, leaf, other):
        made = {}

        def convert(t):
            if id(t) not in made:
                made[id(t)] = leaf(t)
            return made[id(t)]

        self.lib = lib
        first, args, kwargs = mapped(call.arguments, convert, other)
        wanted = [t for t in tensors_in(call.arguments) if t.requires_grad]
        self.leaves = [made[id(t)] for t in {id(t): t for t in wanted}.values()]
        result = run(first, *args, **kwargs)
        process = call.sample.output_process_fn_grad
        if "SampleInput.__init__" not in process.__qualname__:
            result = process(result)
        self.results = flattened(result)

    @property
    def tensors(self):
        return [r for r in self.results if isinstance(r, self.lib.Tensor)]

    def derivatives(self, seeds, weights, again):
        """Return the gradients of the results, and of those in the leaves and the seeds."""
        made = [self.lib.asarray(s).requires_grad_() for s in seeds]
        pairs = [(t, s) for t, s in zip(self.tensors, made, strict=True) if t.requires_grad]
        zeros = [self.lib.zeros_like(leaf) for leaf in self.leaves]
        first = self.grad(pairs, self.leaves, zeros, create_graph=again)
        if not again:
            return first, []
        weighted = [(g, self.lib.asarray(w)) for g, w in zip(first, weights, strict=True)]
        pairs = [(g, w) for g, w in weighted if g.requires_grad]
        zeros += [self.lib.zeros_like(s) for s in made]
        return first, self.grad(pairs, [*self.leaves, *made], zeros)

    def grad(self, pairs, leaves, zeros, **options):
        if not pairs or not leaves:
            return zeros
        outputs, seeds = zip(*pairs, strict=True)
        grads = self.lib.autograd.grad(outputs, leaves, seeds, allow_unused=True, **options)
        return [z if g is None else g for g, z in zip(grads, zeros, strict=True)]


def flattened(result):
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in flattened(item)]
    return [result]


def torch_leaf(t):
    return t.detach().requires_grad_(t.requires_grad)  # the same strides


def pullback_leaf(t):
    array = t.detach().numpy(force=True)
    return pb.asarray(array).requires_grad_(t.requires_grad)


# -- comparing ------------------------------------------------------------------------------------
class Disagreement(AssertionError):  # noqa: N818  (read by people, raised nowhere else)
    """What differs between the two libraries in one call."""


def compare(call, inplace=False):
    """Run a call on both libraries and raise Disagreement where they differ.

    `inplace`: change a copy of the first argument; what torch refuses, pullback refuses. What is
    declared for real numbers only may refuse complex ones, or else has to be right there too.
    """
    info, wrapper = INFOS[call.name], INFOS[call.name].gradcheck_wrapper
    theirs, ours = info.op, functools.partial(called, call.name, find(call.name))
    if inplace:
        theirs = on_a_copy(info.inplace_variant)
        ours = on_a_copy(functools.partial(called, call.name, find_inplace(call.name)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = Side(call, functools.partial(wrapper, theirs), torch, torch_leaf, same)
        except RuntimeError:
            if not inplace:
                raise
            theirs = None
    with np.errstate(all="ignore"):
        try:
            ours = Side(call, functools.partial(wrapper, ours), pb, pullback_leaf, unlike_torch)
        except pb.AutogradError as error:
            if theirs is None or (isinstance(error, DTypeError) and not must_take(call)):
                return
            raise
        if theirs is None:
            raise Disagreement("value: there is one, torch refuses")
        agree("value", ours.results, theirs.results, call.name not in UNDETERMINED)
        if call.name not in UNDETERMINED and any(t.requires_grad for t in theirs.tensors):
            compare_derivatives(call, ours, theirs)


def on_a_copy(function):
    return lambda x, *args, **kwargs: function(x.clone(), *args, **kwargs)


def same(value):
    return value


def compare_derivatives(call, ours, theirs):
    rng = np.random.default_rng(0)
    seeds = [like(rng, t) for t in theirs.tensors]
    weights = [like(rng, t) for t in theirs.leaves]
    again = INFOS[call.name].supports_gradgrad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = derivatives_of_torch(theirs, seeds, weights, again)
    if expected is None:
        return
    first, second = ours.derivatives(seeds, weights, again)
    agree("gradient", first, expected[0])
    agree("second derivative", second, expected[1])


def derivatives_of_torch(theirs, seeds, weights, again):
    """Return them as far as torch has them, else None."""
    try:
        return theirs.derivatives(seeds, weights, again)
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented" not in str(error) and "not supported" not in str(error):
            raise
        return None


def like(rng, t):
    values = rng.uniform(0.5, 1.5, t.shape) * rng.choice([-1.0, 1.0], t.shape)
    if t.is_complex():
        values = values + 1j * rng.uniform(-1, 1, t.shape)
    dtype = t.detach().numpy(force=True).dtype
    return np.asarray(values).astype(dtype if dtype.kind in "fc" else np.float64)


def agree(what, ours, theirs, values=True):
    """Check two lists of tensors and other results for dtype, shape and, if wanted, values."""
    if len(ours) != len(theirs):
        raise Disagreement(f"{what}: {len(ours)} results, torch {len(theirs)}")
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        label = f"{what} {number}" if len(ours) > 1 else what
        if not isinstance(b, torch.Tensor):
            if a != b:
                raise Disagreement(f"{label}: {a!r}, torch {b!r}")
            continue
        a, b = host(a), b.detach().numpy(force=True)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise Disagreement(f"{label}: {a.dtype}{a.shape}, torch {b.dtype}{b.shape}")
        wrong = difference(a, b) if values else None
        if wrong is not None:
            raise Disagreement(f"{label}: differs by {wrong:.1e}\n{a}\ntorch\n{b}")


def host(value):
    return value.detach().numpy() if isinstance(value, pb.Tensor) else np.asarray(value)


def difference(a, b):
    """Return the largest difference, relative to the largest finite number, or None if small."""
    if a.dtype.kind not in "fc":
        return None if (a == b).all() else float("nan")
    finite = np.isfinite(b)
    same = np.array_equal(np.where(finite, 0, b), np.where(np.isfinite(a), 0, a), equal_nan=True)
    if not same:
        return float("nan")
    off = np.abs(np.where(finite, a - b, 0)).max(initial=0.0)
    scale = np.abs(np.where(finite, b, 0)).max(initial=1.0)
    return None if off <= TOLERANCE * scale else off / scale
