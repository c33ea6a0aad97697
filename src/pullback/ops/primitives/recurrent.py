"""The steps of an LSTM and of a GRU over a sequence, with rules of their own for speed.

Step by step each is a dozen operations. Here the results are the states and the gates of each step.
The rules compute derivatives of many steps at once from these, so that a step back is little more
than a product; the gradient of the weight is one product for all steps. As
sigmoid(p) = tanh(p / 2) / 2 + 1 / 2, the products of gates are halved, and one tanh gives gates and
new parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.arrays import NUMPY
from pullback.ops.declare import operation
from pullback.ops.samples import real, sample

_np = NUMPY.xp
# Elements of gates whose derivatives are computed at once: what is computed of them stays in the
# processor's cache.
_AT_ONCE = 262144


# -- what they share -------------------------------------------------------------------------------
def _turned(xp: Any, weight: Any, halves: tuple[float, ...]) -> tuple[Any, Any]:
    """Return a weight transposed, and the factor of each of its rows, one for each part of them."""
    rows, n = weight.shape
    ones = xp.ones_like(weight[: rows // len(halves), 0])
    factors = xp.concat([ones * half for half in halves], axis=0)
    # With its rows in a row it is twice as quick to multiply by.
    return xp.reshape(xp.reshape(xp.matrix_transpose(weight), (n * rows,)), (n, rows)), factors


def _parts(x: Any, n: int) -> list[Any]:
    """Return the parts of length n of the last axis."""
    return [x[..., k : k + n] for k in range(0, x.shape[-1], n)]


def _gates(gates: Any) -> list[Any]:
    return [gates[..., k, :] for k in range(gates.shape[-2])]


def _empty_gates(x: Any, n: int) -> tuple[Any, Any]:
    """Return memory for four gates of each step, and the array of it that is the result.

    A gate of a step is in one piece: operations on such take a third of the time.
    """
    memory = _np.empty((len(x), 4, *x.shape[1:-1], n), x.dtype)
    return memory, _np.moveaxis(memory, 1, -2)


def _forwards(xp: Any, step: Callable[..., Any], x: Any, *states: Any) -> list[Any]:
    """Return the states, and the gates, after each step on x and the states before it."""
    rows = []
    for t in range(x.shape[0]):
        *states, gates = step(x[t, ...], *states)
        rows.append((*states, gates))
    return [xp.stack(column) for column in zip(*rows, strict=True)]


def _backwards(
    xp: Any, prepared: Callable[..., Any], of_steps: Sequence[Any], *to_states: Any
) -> tuple[list[Any], Sequence[Any]]:
    """Return the gradients of the products of each step, and those of the first states.

    ``prepared`` gets of `of_steps`, arrays or None, what belongs to some steps. It returns, for
    these, what the former will be written to, and ``step(t, to_h, ...)``: a tuple of the former,
    and gradients of the states before it.
    """
    count, *shape = of_steps[-1].shape
    size = max(1, _AT_ONCE // max(1, math.prod(shape)))
    blocks = []
    for end in range(count, 0, -size):
        start, rows = max(0, end - size), []
        written, step = prepared(*[a if a is None else a[start:end, ...] for a in of_steps])
        for t in reversed(range(end - start)):
            row, *to_states = step(t, *to_states)
            rows.append(row)
        if xp is not _np:
            written = [xp.stack(column) for column in zip(*rows[::-1], strict=True)]
        blocks.append(written)
    columns = zip(*blocks[::-1], strict=True)
    return [column[0] if len(column) == 1 else xp.concat(column) for column in columns], to_states


def _slopes(xp: Any, *terms: tuple[Any, Any, Any]) -> Any:
    """Return (of - value ** 2) * factor for each (of, value, factor), side by side.

    These are derivatives by what sigmoid was taken of, where `of` is the value itself, or tanh,
    where it is 1.
    """
    if xp is not _np:
        return xp.concat([(of - value * value) * by for of, value, by in terms], axis=-1)
    shape, n = terms[0][1].shape, terms[0][1].shape[-1]
    result = _np.empty((*shape[:-1], len(terms) * n), terms[0][1].dtype)
    spare = _np.empty(shape, result.dtype)
    for (of, value, factor), part in zip(terms, _parts(result, n), strict=True):
        _np.multiply(value, value, spare)
        _np.subtract(of, spare, spare)
        _np.multiply(spare, factor, part)
    return result


def _plus(x: Any, added: Any, t: int) -> Any:
    """Return x and what is added to it at a step, if anything is."""
    return x if added is None else x + added[t, ...]


def _scaled(xp: Any, rows: Any, t: int, factor: Any, added: Any) -> Any:
    """Return row t times a factor, and what is added to that: on NumPy in the row's own memory."""
    row = rows[t, ...]
    if xp is not _np:
        return _plus(row * factor, added, t)
    row *= factor
    if added is not None:
        row += added[t, ...]
    return row


def _before(xp: Any, first: Any, states: Any) -> Any:
    return xp.concat((first[None, ...], states[:-1, ...]), axis=0)


def _by_weight(xp: Any, grads: Any, states: Any) -> Any:
    """Return the gradient of the weight that states of all steps were multiplied by."""
    rows = math.prod(grads.shape[:-1])
    grads, states = (xp.reshape(a, (rows, a.shape[-1])) for a in (grads, states))
    return xp.matmul(xp.matrix_transpose(grads), states)


def _empty_parts(x: Any, count: int, n: int) -> tuple[Any, Any]:
    """Return memory for so many products of a step, and the same as one array for each."""
    lead = x.shape[1:-1]
    memory = _np.empty((*lead, count * n), x.dtype)
    return memory, _np.moveaxis(memory.reshape(*lead, count, n), -2, 0)


# -- LSTM ------------------------------------------------------------------------------------------
def _lstm(xp: Any, x: Any, weight: Any, h: Any, c: Any) -> list[Any]:
    turned, factors = _turned(xp, weight, (0.5, 0.5, 1, 0.5))
    rest = 1 - factors
    if xp is _np:
        return _lstm_numpy(x, turned, factors, rest, h, c)

    def step(products: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
        bent = xp.tanh((xp.matmul(h, turned) + products) * factors)
        i, f, new, o = gates = _parts(bent * factors + rest, weight.shape[1])
        c = f * c + i * new
        return o * xp.tanh(c), c, xp.stack(gates, axis=-2)

    return _forwards(xp, step, x, h, c)


def _lstm_numpy(x: Any, turned: Any, factors: Any, rest: Any, h: Any, c: Any) -> list[Any]:
    n, lead = len(turned), x.shape[1:-1]
    hs, cs = (_np.empty((len(x), *lead, n), x.dtype) for _ in range(2))
    memory, gates = _empty_gates(x, n)
    (bent, parts), spare = _empty_parts(x, 4, n), _np.empty((*lead, n), x.dtype)
    rest = rest.reshape(4, *(1,) * len(lead), n)
    for products, to_h, to_c, each in zip(x, hs, cs, memory, strict=True):
        _np.dot(h, turned, bent)
        _np.add(bent, products, bent)
        _np.multiply(bent, factors, bent)
        _np.tanh(bent, bent)
        _np.multiply(bent, factors, bent)
        i, f, new, o = _np.add(parts, rest, each)
        c = _np.multiply(f, c, to_c)
        c += _np.multiply(i, new, spare)
        h = _np.multiply(o, _np.tanh(c, spare), to_h)
    return [hs, cs, gates]


def _lstm_back(
    xp: Any, weight: Any, gh: Any, gc: Any, g_gates: Any, before: Any, cs: Any, gates: Any
) -> tuple[Sequence[Any], Callable[..., Any]]:
    (i, f, new, o), out = _gates(gates), xp.tanh(cs)
    slopes = _slopes(xp, (i, i, new), (f, f, before), (1, new, i), (o, o, out))
    through = _slopes(xp, (1, out, o))
    added = None
    if g_gates is not None:
        of_gates = xp.stack((i - i * i, f - f * f, 1 - new * new, o - o * o), axis=-2)
        added = xp.reshape(g_gates * of_gates, slopes.shape)

    def step(t: int, to_h: Any, to_c: Any) -> tuple[Any, Any, Any]:
        to_h = _plus(to_h, gh, t)
        to_c = _plus(to_h * through[t, ...] + to_c, gc, t)
        four = xp.concat((to_c, to_c, to_c, to_h), axis=-1)
        row = _scaled(xp, slopes, t, four, added)
        return (row,), xp.matmul(row, weight), to_c * f[t, ...]

    return (slopes,), step


def _lstm_rule(g: Any, weight: Any, h: Any, c: Any, hs: Any, cs: Any, gates: Any, xp: Any) -> Any:
    of_steps, zeros = (*g, _before(xp, c, cs), cs, gates), map(xp.zeros_like, (h, c))
    (gx,), first = _backwards(xp, partial(_lstm_back, xp, weight), of_steps, *zeros)
    return [gx, _by_weight(xp, gx, _before(xp, h, hs)), *first]


lstm_p: Any = operation(
    "lstm",
    _lstm,
    vjp_all=_lstm_rule,
    results=("hs", "cs", "gates"),
    multi=True,
    floating=True,
    domain=real(-2, 2),
    samples=(
        sample((3, 2, 8), (8, 2), (2, 2), (2, 2)),
        sample((1, 4), (4, 1), (1,), (1,)),
        sample((2, 0, 4), (4, 1), (0, 1), (0, 1)),
    ),
    scalars=False,
    doc="""Return the states h and c after each step of an LSTM, and its gates (i, f, g, o).

    `x` holds the products with the input, of all gates, step by step; `weight` gives those with the
    state; `h` and `c` are the first states.
    """,
    batch="steps",
)


# -- GRU -------------------------------------------------------------------------------------------
def _gru(xp: Any, x: Any, weight: Any, h: Any) -> list[Any]:
    n = h.shape[-1]
    turned, factors = _turned(xp, weight[:, :n], (0.5, 0.5, 1))
    bias = xp.sum(weight[:, n:], axis=1)
    if xp is _np:
        return _gru_numpy(x, turned, bias, h)

    def step(products: Any, h: Any) -> tuple[Any, Any]:
        r, z, by_input = _parts(products * factors, n)
        to_r, to_z, by_state = _parts((xp.matmul(h, turned) + bias) * factors, n)
        r, z = (xp.tanh(a) * 0.5 + 0.5 for a in (r + to_r, z + to_z))
        new = xp.tanh(by_input + r * by_state)
        return new + z * (h - new), xp.stack((r, z, new, by_state), axis=-2)

    return _forwards(xp, step, x, h)


def _gru_numpy(x: Any, turned: Any, bias: Any, h: Any) -> list[Any]:
    n, lead = len(turned), x.shape[1:-1]
    hs = _np.empty((len(x), *lead, n), x.dtype)
    memory, gates = _empty_gates(x, n)
    bent, parts = _empty_parts(x, 2, n)
    for products, to_h, each in zip(x, hs, memory, strict=True):
        by_state = h.dot(turned)
        by_state += bias
        _np.add(by_state[..., : 2 * n], products[..., : 2 * n], bent)
        _np.multiply(bent, 0.5, bent)
        _np.tanh(bent, bent)
        _np.multiply(bent, 0.5, bent)
        _np.add(parts, 0.5, each[:2])
        r, z, new, of_state = each
        of_state[...] = by_state[..., 2 * n :]
        _np.multiply(r, of_state, new)
        new += products[..., 2 * n :]
        _np.tanh(new, new)
        h = _np.subtract(h, new, to_h)
        h *= z
        h += new
    return [hs, gates]


def _gru_back(
    xp: Any, weight: Any, gh: Any, g_gates: Any, before: Any, gates: Any
) -> tuple[Sequence[Any], Callable[..., Any]]:
    r, z, new, by_state = _gates(gates)
    by_new = _slopes(xp, (1, new, 1 - z))
    of_gates = _slopes(xp, (r, r, by_new * by_state), (z, z, before - new))
    slopes = xp.concat((of_gates, by_new * r), axis=-1)
    added = added_new = None
    if g_gates is not None:
        g_r, g_z, g_new, g_state = _gates(g_gates)
        added_new = g_new * (1 - new * new)
        of_r = (g_r + added_new * by_state) * (r - r * r)
        added = xp.concat((of_r, g_z * (z - z * z), added_new * r + g_state), axis=-1)

    def step(t: int, to_h: Any) -> tuple[Any, Any]:
        to_h = _plus(to_h, gh, t)
        row = _scaled(xp, slopes, t, xp.concat((to_h, to_h, to_h), axis=-1), added)
        to_new = _scaled(xp, by_new, t, to_h, added_new)
        return (row, to_new), xp.matmul(row, weight) + to_h * z[t, ...]

    return (slopes, by_new), step


def _gru_rule(g: Any, weight: Any, h: Any, hs: Any, gates: Any, xp: Any) -> Any:
    n, before = h.shape[-1], _before(xp, h, hs)
    prepared = partial(_gru_back, xp, weight[:, :n])
    (grads, to_new), first = _backwards(xp, prepared, (*g, before, gates), xp.zeros_like(h))
    ones = xp.ones_like(before[..., : weight.shape[1] - n])  # what the bias is multiplied by
    gx = xp.concat((grads[..., : 2 * n], to_new), axis=-1)
    return [gx, _by_weight(xp, grads, xp.concat((before, ones), axis=-1)), *first]


gru_p: Any = operation(
    "gru",
    _gru,
    vjp_all=_gru_rule,
    results=("hs", "gates"),
    multi=True,
    floating=True,
    domain=real(-2, 2),
    samples=(
        sample((3, 2, 6), (6, 3), (2, 2)),
        sample((2, 3), (3, 1), (1,)),
        sample((2, 0, 3), (3, 2), (0, 1)),
    ),
    scalars=False,
    doc="""Return the states h after each step of a GRU, and its gates.

    `x` holds the products with the input, of r, z and the new part, step by step; `weight` gives
    those with the state, and may have the bias of these as one more column; `h` is the first state.
    The gates are r, z, the new part and its product with the state.
    """,
    batch="steps",
)
