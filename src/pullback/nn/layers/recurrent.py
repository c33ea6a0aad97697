"""Recurrent layers: LSTM, GRU and RNN, their cells, and layers of these over sequences.

Owns the cells' formulas and the loops over steps, layers and directions; all steps of an LSTM or of
a GRU are one operation. The inputs of all steps are multiplied at once; a step multiplies the state
alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.hints import hinted
from pullback.nn import functional as F  # noqa: N812
from pullback.nn.layers.linear import fill_by_fan_in, new_parameter
from pullback.nn.module import Module
from pullback.ops.declare import needs_tensor
from pullback.ops.functions.creation import zeros
from pullback.ops.functions.joining import cat, stack
from pullback.ops.primitives.activations import relu, sigmoid
from pullback.ops.primitives.recurrent import gru_p, lstm_p
from pullback.ops.primitives.trigonometric import tanh

State = tuple[Tensor, ...]


# -- one step: the new state from the products with the input and with the state -------------------
def _lstm(by_input: Tensor, by_state: Tensor, state: State) -> State:
    i, f, g, o = (by_input + by_state).chunk(4, -1)
    c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def _gru(by_input: Tensor, by_state: Tensor, state: State) -> State:
    (r, z, n), (hr, hz, hn) = by_input.chunk(3, -1), by_state.chunk(3, -1)
    update = sigmoid(z + hz)
    new = tanh(n + sigmoid(r + hr) * hn)
    return (new + update * (state[0] - new),)


def _tanh(by_input: Tensor, by_state: Tensor, state: State) -> State:
    return (tanh(by_input + by_state),)


def _relu(by_input: Tensor, by_state: Tensor, state: State) -> State:
    return (relu(by_input + by_state),)


_RNN = {"tanh": _tanh, "relu": _relu}


def _rnn(nonlinearity: str) -> Callable[..., State]:
    if nonlinearity not in _RNN:
        required = "a nonlinearity of 'tanh' or 'relu' required"
        raise ArgumentError(compose("RNN", required, repr(nonlinearity)))
    return _RNN[nonlinearity]


class _Recurrent(Module):
    """What cells and layers share: how many gates and states there are, and the step."""

    _gates: ClassVar[int]
    _states: ClassVar[int] = 1
    _step: Callable[..., State]
    hidden_size: int

    def _add(self, suffix: str, inputs: int, bias: bool, of: dict[str, Any]) -> None:
        """Set the parameters of one direction of one layer."""
        rows = self._gates * self.hidden_size
        setattr(self, f"weight_ih{suffix}", new_parameter(rows, inputs, **of))
        setattr(self, f"weight_hh{suffix}", new_parameter(rows, self.hidden_size, **of))
        for name in ("bias_ih", "bias_hh"):
            setattr(self, f"{name}{suffix}", new_parameter(rows, **of) if bias else None)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform up to 1 / sqrt(hidden_size)."""
        for parameter in self.parameters():
            fill_by_fan_in(parameter, fan_in=self.hidden_size)

    def _of(self, suffix: str) -> list[Tensor]:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, f"{name}{suffix}") for name in names]

    def _start(self, hx: Any, shape: tuple[int, ...], input: Tensor) -> State:
        """Return the first state, zeros where none is given, after looking at its shape."""
        if hx is None:
            none = zeros(shape, dtype=input.dtype, device=input.device)
            return (none,) * self._states
        name, state = type(self).__name__, hx if self._states > 1 else (hx,)
        if not isinstance(state, (tuple, list)) or len(state) != self._states:
            required = f"a tuple of {self._states} states, h and c, required as hx"
            raise ArgumentError(compose(name, required, type(hx).__name__))
        for each in state:
            needs_tensor(name, each, "hx")
            if tuple(each.shape) != shape:
                required = f"states of shape {shape} required"
                raise ShapeError(compose(name, required, str(tuple(each.shape)), ("hx", each)))
        return tuple(state)


# -- cells -----------------------------------------------------------------------------------------
class _Cell(_Recurrent):
    @hinted
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        self._add("", input_size, bias, {"dtype": dtype, "device": device})
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the new state: h, or (h, c)."""
        needs_tensor(type(self).__name__, input, "input")
        state = self._start(hx, (*input.shape[:-1], self.hidden_size), input)
        w_ih, w_hh, b_ih, b_hh = self._of("")
        products = F.linear(input, w_ih, b_ih), F.linear(state[0], w_hh, b_hh)
        new = self._step(*products, state)
        return new if self._states > 1 else new[0]

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.input_size}, {self.hidden_size}"


class LSTMCell(_Cell):
    """One step of an LSTM: Hochreiter, Schmidhuber (1997), with a forget gate.

    ``i, f, g, o = W_ih x + b_ih + W_hh h + b_hh``; ``c = sigmoid(f) c + sigmoid(i) tanh(g)``,
    ``h = sigmoid(o) tanh(c)``.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> h, c = pb.nn.LSTMCell(2, 3)(pb.ones((5, 2)))
    >>> h.shape, c.shape
    ((5, 3), (5, 3))
    """

    _gates, _states, _step = 4, 2, staticmethod(_lstm)


class GRUCell(_Cell):
    """One step of a GRU: Cho et al. (2014), the reset gate after the product as in cuDNN.

    ``r, z`` from sigmoids of ``W_ih x + b_ih + W_hh h + b_hh``,
    ``n = tanh(W_in x + b_in + r (W_hn h + b_hn))``, ``h = (1 - z) n + z h``.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.GRUCell(2, 3)(pb.ones((5, 2)), pb.zeros((5, 3))).shape
    (5, 3)
    """

    _gates, _step = 3, staticmethod(_gru)


class RNNCell(_Cell):
    """One step of a simple recurrent network, ``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    nonlinearity : str
        ``"tanh"`` or ``"relu"``.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.RNNCell(2, 3)(pb.ones((5, 2))).shape
    (5, 3)
    """

    _gates = 1

    @hinted
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._step = _rnn(nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)


# -- layers over sequences -------------------------------------------------------------------------
class _Layers(_Recurrent):
    @hinted
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.batch_first = num_layers, batch_first
        self.dropout, self.bidirectional = dropout, bidirectional
        of = {"dtype": dtype, "device": device}
        for k, suffixes in self._suffixes():
            width = input_size if k == 0 else hidden_size * len(suffixes)
            for suffix in suffixes:
                self._add(suffix, width, bias, of)
        self.reset_parameters()

    def _suffixes(self) -> list[tuple[int, list[str]]]:
        """Return the number of each layer with what the names of its directions end in."""
        ends = ["", "_reverse"] if self.bidirectional else [""]
        return [(k, [f"_l{k}{end}" for end in ends]) for k in range(self.num_layers)]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the states h of the last layer at each step, and the last states of all layers.

        Parameters
        ----------
        input : Tensor of shape (L, N, input_size), (N, L, input_size) if batch_first, or (L, I)
        hx : Tensor of shape (layers * directions, N, hidden_size), or two of them for an LSTM
            The first states; zeros by default.

        Returns
        -------
        tuple of (Tensor, Tensor or tuple of Tensor)
        """
        name = type(self).__name__
        needs_tensor(name, input, "input")
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            required = f"an input of 2 or 3 dimensions, the last of {self.input_size}, required"
            raise ShapeError(compose(name, required, str(tuple(input.shape)), ("input", input)))
        x = input if input.ndim == 3 else input.unsqueeze(1)
        x = x.transpose(0, 1) if self.batch_first and input.ndim == 3 else x
        if not x.shape[0]:
            required = "a sequence of at least 1 step required"
            raise ShapeError(compose(name, required, "0", ("input", input)))
        count = self.num_layers * (2 if self.bidirectional else 1)
        lead = (count, x.shape[1]) if input.ndim == 3 else (count,)
        start = self._start(hx, (*lead, self.hidden_size), x)
        start = start if input.ndim == 3 else tuple(s.unsqueeze(1) for s in start)
        x, last = self._run(x, start)
        if input.ndim == 2:
            x, last = x.squeeze(1), tuple(s.squeeze(1) for s in last)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, last if self._states > 1 else last[0]

    def _run(self, x: Tensor, start: State) -> tuple[Tensor, State]:
        """Return the outputs of the last layer and the last states of all."""
        number, last = itertools.count(), []
        for k, suffixes in self._suffixes():
            if k and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for direction, suffix in enumerate(suffixes):
                i = next(number)
                h, state = self._along(x, tuple(s[i] for s in start), suffix, bool(direction))
                outputs.append(h)
                last.append(state)
            x = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return x, tuple(stack(each) for each in zip(*last, strict=True))

    def _along(self, x: Tensor, state: State, suffix: str, reverse: bool) -> tuple[Tensor, State]:
        """Return the states h of one direction of one layer at each step, and its last state."""
        w_ih, w_hh, b_ih, b_hh = self._of(suffix)
        by_input = F.linear(x, w_ih, b_ih).unbind(0)
        outputs = []
        for products in reversed(by_input) if reverse else by_input:
            state = self._step(products, F.linear(state[0], w_hh, b_hh), state)
            outputs.append(state[0])
        return stack(outputs[::-1] if reverse else outputs), state

    def extra_repr(self) -> str:
        """Return the settings."""
        layers = f", num_layers={self.num_layers}" if self.num_layers > 1 else ""
        both = ", bidirectional=True" if self.bidirectional else ""
        return f"{self.input_size}, {self.hidden_size}{layers}{both}"


class LSTM(_Layers):
    """LSTMs over sequences; `LSTMCell` is one step.

    Parameters
    ----------
    input_size, hidden_size : int
        The lengths of the inputs and of the states of each step.
    num_layers : int
        Each runs on the outputs of the one before.
    bias : bool
    batch_first : bool
        Inputs and outputs are (N, L, ...) in place of (L, N, ...); states are not.
    dropout : float
        Of the outputs of all layers but the last, in training.
    bidirectional : bool
        Run over the steps in both directions; outputs are side by side.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> output, (h, c) = pb.nn.LSTM(2, 3, bidirectional=True)(pb.ones((7, 5, 2)))
    >>> output.shape, h.shape
    ((7, 5, 6), (2, 5, 3))
    """

    _gates, _states = 4, 2

    def _along(self, x: Tensor, state: State, suffix: str, reverse: bool) -> tuple[Tensor, State]:
        w_ih, w_hh, b_ih, b_hh = self._of(suffix)
        products = F.linear(x, w_ih, b_ih if b_hh is None else b_ih + b_hh)
        hs, cs, _ = lstm_p.public(products.flip(0) if reverse else products, w_hh, *state)
        return hs.flip(0) if reverse else hs, (hs[-1], cs[-1])


class GRU(_Layers):
    """GRUs over sequences; `GRUCell` is one step, `LSTM` describes the parameters.

    Examples
    --------
    >>> import pullback as pb
    >>> output, h = pb.nn.GRU(2, 3, num_layers=2)(pb.ones((7, 5, 2)))
    >>> output.shape, h.shape
    ((7, 5, 3), (2, 5, 3))
    """

    _gates = 3

    def _along(self, x: Tensor, state: State, suffix: str, reverse: bool) -> tuple[Tensor, State]:
        w_ih, w_hh, b_ih, b_hh = self._of(suffix)
        products = F.linear(x, w_ih, b_ih)
        weight = w_hh if b_hh is None else cat((w_hh, b_hh.unsqueeze(1)), 1)
        hs, _ = gru_p.public(products.flip(0) if reverse else products, weight, *state)
        return hs.flip(0) if reverse else hs, (hs[-1],)


class RNN(_Layers):
    """Simple recurrent networks over sequences; `LSTM` describes the parameters.

    The `nonlinearity` is ``"tanh"`` or ``"relu"``.

    Examples
    --------
    >>> import pullback as pb
    >>> output, h = pb.nn.RNN(2, 3, nonlinearity="relu")(pb.ones((7, 5, 2)))
    >>> output.shape, h.shape
    ((7, 5, 3), (1, 5, 3))
    """

    _gates = 1

    @hinted
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._step = _rnn(nonlinearity)
        sizes = (input_size, hidden_size, num_layers, bias)
        super().__init__(*sizes, batch_first, dropout, bidirectional, device, dtype)
