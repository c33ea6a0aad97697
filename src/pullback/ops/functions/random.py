"""Random numbers, drawn by the array library's own generator.

One default generator a device; `manual_seed` seeds them all, those not made yet too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pullback.arrays import RandomSource, as_dtype, get_default_dtype, library_for
from pullback.core.function.dispatch import drawn_tensor
from pullback.core.graph.locks import fork_safe_locks
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.hints import Answering, hinted
from pullback.ops.arguments import holds_somewhere, tensor_of
from pullback.ops.axes import to_builtin
from pullback.ops.functions.creation import shape_of
from pullback.ops.functions.pointwise import add
from pullback.ops.functions.repeating import broadcast_arrays
from pullback.ops.primitives.arithmetic import divide, multiply, subtract
from pullback.ops.primitives.comparison import less
from pullback.ops.primitives.exponential import log

_lock = fork_safe_locks(1)
_defaults: dict[str, Generator] = {}
_seed: int | None = None


# -- generators ------------------------------------------------------------------------------------
class Generator(Answering):
    """A source of random numbers on one device.

    Parameters
    ----------
    device : str
        ``"cpu"`` or ``"cuda"``.
    seed : int, optional
        The same seed gives the same numbers; by default from the operating system.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.rand(2, generator=pb.Generator(seed=1))
    >>> b = pb.rand(2, generator=pb.Generator(seed=1))
    >>> bool((a == b).all())
    True
    """

    _kind = "Generator"

    def __init__(self, device: str = "cpu", seed: int | None = None) -> None:
        self.device = device
        self._source: RandomSource
        self.manual_seed(seed)

    def manual_seed(self, seed: int | None) -> Generator:
        """Start again from `seed` and return this generator."""
        seed = None if seed is None else _seed_of(seed)
        library, native = library_for(self.device)
        if hasattr(self, "_source"):
            _note(self)
        self._source = library.generator(seed, native)
        return self

    def get_state(self) -> Any:
        """Return the state, to be put back with `set_state`.

        Examples
        --------
        >>> import pullback as pb
        >>> generator = pb.Generator(seed=0)
        >>> state = generator.get_state()
        >>> first = pb.rand(2, generator=generator)
        >>> generator.set_state(state)
        >>> bool((pb.rand(2, generator=generator) == first).all())
        True
        """
        return self._source.get_state()

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` returned."""
        _note(self)
        self._source.set_state(state)


def _seed_of(seed: Any) -> int:
    number = to_builtin(seed)
    if not isinstance(number, int) or number < 0:
        raise ArgumentError(f"manual_seed: seed must be a non-negative integer, got {number!r}")
    return number


def manual_seed(seed: int) -> Generator:
    """Seed the default generator of every device and return the CPU's.

    Examples
    --------
    >>> import pullback as pb
    >>> _ = pb.manual_seed(0)
    >>> a = pb.randn(3)
    >>> _ = pb.manual_seed(0)
    >>> bool((pb.randn(3) == a).all())
    True
    """
    global _seed
    seed = _seed_of(seed)
    with _lock[0]:
        for generator in _defaults.values():
            generator.manual_seed(seed)
        _seed = seed
    return _default("cpu")


def get_rng_state() -> Any:
    """Return the state of the CPU's default generator, to be put back with `set_rng_state`.

    Examples
    --------
    >>> import pullback as pb
    >>> sorted(pb.get_rng_state())[:2]
    ['bit_generator', 'has_uint32']
    """
    return _default("cpu").get_state()


def set_rng_state(new_state: Any) -> None:
    """Let the CPU's default generator go on from a state that `get_rng_state` returned.

    Examples
    --------
    >>> import pullback as pb
    >>> state = pb.get_rng_state()
    >>> a = pb.rand(2)
    >>> pb.set_rng_state(state)
    >>> bool((pb.rand(2) == a).all())
    True
    """
    _default("cpu").set_state(new_state)


def _default(device: str) -> Generator:
    with _lock[0]:
        if device not in _defaults:
            _defaults[device] = Generator(device, _seed)
        return _defaults[device]


def _source(generator: Generator | None, device: Any) -> RandomSource:
    if generator is None:
        generator = _default("cpu" if device is None else str(device))
    if not isinstance(generator, Generator):
        raise ArgumentTypeError(
            f"generator must be a pullback.Generator, got {type(generator).__name__}"
        )
    _note(generator)
    return generator._source


# -- draws that are to be repeated -----------------------------------------------------------------
Drawn = dict[Generator, Any]  # where generators stood before the first draw
_watched: ContextVar[Drawn | None] = ContextVar("pullback_drawn", default=None)


def _note(generator: Generator) -> None:
    """Remember where a generator that is about to move stands, for who watches."""
    drawn = _watched.get()
    if drawn is not None and generator not in drawn:
        drawn[generator] = generator.get_state()


@contextmanager
def watched(drawn: Drawn) -> Iterator[None]:
    """Note in `drawn` where each generator stands that is drawn from inside the block."""
    outer = _watched.get()
    try:
        _watched.set(drawn)
        yield
    finally:
        _watched.set(outer)
        if outer is not None:
            for generator, state in drawn.items():
                outer.setdefault(generator, state)


@contextmanager
def replayed(drawn: Drawn) -> Iterator[None]:
    """Repeat inside the block the draws that `watched` noted; generators stand as before then."""
    standing: Drawn = {generator: generator.get_state() for generator in drawn}
    outer = _watched.get()
    try:
        _watched.set(None)  # they are not moved, seen from outside
        for generator, state in drawn.items():
            generator.set_state(state)
        yield
    finally:
        for generator, state in standing.items():
            generator.set_state(state)
        _watched.set(outer)


def _finish(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


# -- tensors of random numbers ---------------------------------------------------------------------
@hinted
def randn(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers from the standard normal distribution.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randn(2, 3).shape
    (2, 3)
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    source, size = _source(generator, device), shape_of("randn", shape)
    return _finish(drawn_tensor(lambda lead: source.normal((*lead, *size), kind)), requires_grad)


@hinted
def rand(
    *shape: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return numbers from the uniform distribution on [0, 1).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rand((2, 3)).shape
    (2, 3)
    """
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    source, size = _source(generator, device), shape_of("rand", shape)
    return _finish(drawn_tensor(lambda lead: source.uniform((*lead, *size), kind)), requires_grad)


@hinted
def randint(
    low: int,
    high: int | None = None,
    size: Any = (),
    *,
    dtype: Any = "int64",
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Return integers from `low` (0 if only one is given) up to, not including, `high`.

    Examples
    --------
    >>> import pullback as pb
    >>> int(pb.randint(3, 4, (1,)))
    3
    """
    if isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    begin, end = (0, low) if high is None else (low, high)
    if begin >= end:
        raise ArgumentError(f"randint: low must be below high, got {begin} and {end}")
    source, kind = _source(generator, device), as_dtype(dtype)
    shape = shape_of("randint", (size if isinstance(size, int) else tuple(size),))
    return drawn_tensor(lambda lead: source.integers(begin, end, (*lead, *shape), kind))


def randperm(
    n: int, *, dtype: Any = "int64", device: Any = None, generator: Generator | None = None
) -> Tensor:
    """Return the integers below `n` in random order.

    Examples
    --------
    >>> import pullback as pb
    >>> sorted(pb.randperm(3).tolist())
    [0, 1, 2]
    """
    source, kind = _source(generator, device), as_dtype(dtype)
    return drawn_tensor(lambda lead: source.permutation(n, kind, lead))


def randn_like(x: Tensor, **options: Any) -> Tensor:
    """Return standard normal numbers in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randn_like(pb.zeros(2)).shape
    (2,)
    """
    return randn(x.shape, **{"dtype": x.dtype, "device": x.device, **options})


def rand_like(x: Tensor, **options: Any) -> Tensor:
    """Return uniform numbers in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rand_like(pb.zeros(2)).shape
    (2,)
    """
    return rand(x.shape, **{"dtype": x.dtype, "device": x.device, **options})


def real_dtype(x: Tensor) -> Any:
    """Return the dtype of `x` if it is a real one, else the default dtype."""
    return x.dtype if x.dtype.is_floating_point else get_default_dtype()


# -- draws -----------------------------------------------------------------------------------------
def uniform_like(x: Tensor, generator: Any = None) -> Tensor:
    """Return numbers from (0, 1] in the shape and device of `x`, in its dtype if it is real."""
    drawn: Tensor = 1 - rand(x.shape, dtype=real_dtype(x), device=x.device, generator=generator)
    return drawn


def chance_like(x: Tensor, generator: Any) -> Tensor:
    """Return numbers from (0, 1] that do not depend on the precision of `x`."""
    drawn: Tensor = 1 - rand(x.shape, dtype="float32", device=x.device, generator=generator)
    return drawn.to(real_dtype(x))


def bernoulli(input: Any, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Return 1 with the probability that each element of `input` says, or `p`, and else 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bernoulli(pb.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = tensor_of("bernoulli", input, "input").detach()
    chance = x if p is None else float(p)
    wrong = holds_somewhere((x < 0) | (x > 1)) if p is None else not 0 <= p <= 1
    if wrong:
        required = "probabilities from 0 to 1 required"
        raise ArgumentError(compose("bernoulli", required, "others", ("input", x)))
    hit: Tensor = less(1 - uniform_like(x, generator), chance)
    return hit.to(x.dtype)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Any = None,
) -> Tensor:
    """Return numbers from the normal distribution of a mean and a standard deviation.

    Parameters
    ----------
    mean, std : float or Tensor
        Tensors broadcast with each other.
    size : tuple of int, optional
        The shape, where both are numbers.
    dtype, device, requires_grad, generator
        As for `randn`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.normal(pb.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    tensors = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if holds_somewhere(std < 0) if isinstance(std, Tensor) else std < 0:
        raise ArgumentError(compose("normal", "a std of at least 0 required", "a negative one"))
    if tensors:
        size = broadcast_arrays(*tensors)[0].shape
        kind = tensors[0].dtype if tensors[0].dtype.is_inexact else get_default_dtype()
        dtype, device = dtype or kind, device or tensors[0].device
    elif size is None:
        raise ArgumentError("normal: a size is required where mean and std are numbers, got None")
    drawn = randn(
        shape_of("normal", (tuple(size),)), dtype=dtype, device=device, generator=generator
    )
    mean, std = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
    result = add(multiply(drawn, std), mean)
    return result.requires_grad_() if requires_grad else result


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Return indices of the elements of rows, each drawn with a probability as large as it is.

    Parameters
    ----------
    input : Tensor, shape (n,) or (rows, n)
        Not negative; what matters is how large the elements of a row are among each other.
    num_samples : int
        How many indices of each row.
    replacement : bool
        Whether an element may be drawn several times.
    generator : Generator, optional

    Raises
    ------
    ArgumentError, ShapeError
        If there is a negative weight, or no positive one, or are too few.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.multinomial(pb.tensor([0.0, 3.0, 0.0]), 1)
    tensor([1])
    """
    x = tensor_of("multinomial", input, "input").detach()
    if len(x.shape) not in (1, 2):
        came = f"{len(x.shape)} dimensions"
        required = "a vector or a matrix of weights required"
        raise ShapeError(compose("multinomial", required, came, ("input", x)))
    enough = 1 if replacement else num_samples
    few = (x > 0).sum(-1) < enough
    if num_samples < 1 or holds_somewhere(x < 0) or holds_somewhere(few):
        required = f"weights of at least 0, {enough} of them positive, required"
        raise ArgumentError(compose("multinomial", required, "others", ("input", x)))
    if not replacement:  # the largest of weights over exponential draws (Efraimidis, 2006)
        keys = divide(x, subtract(0, log(uniform_like(x, generator))) + 1e-38)
        positions: Tensor = keys.topk(num_samples, -1).indices
        return positions
    shares = x.cumsum(-1)
    drawn = rand(
        (*x.shape[:-1], num_samples), dtype=shares.dtype, device=x.device, generator=generator
    )
    wanted = multiply(drawn, shares[..., -1:])
    below = less(wanted.unsqueeze(-1), shares.unsqueeze(-2))
    return below.to("int64").argmax(-1)  # the first whose sum is beyond


def randint_like(x: Tensor, low: int, high: int | None = None, **options: Any) -> Tensor:
    """Return integers from `low` (0 if only one is given) up to `high` in the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randint_like(pb.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    begin, end = (0, low) if high is None else (low, high)
    settings = {"dtype": x.dtype, "device": x.device, **options}
    return randint(begin, end, x.shape, **settings)
