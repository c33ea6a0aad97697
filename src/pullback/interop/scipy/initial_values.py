"""`scipy.integrate.solve_ivp`: SciPy's steps, taken again on tensors, and its events.

SciPy chooses the steps, on values, and finds the events. The derivatives are those of the numbers
that were computed from these steps, of every order; those of an event follow from the equation
that it is the root of. LSODA keeps no record of its steps: those of Radau are taken for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as theirs
from scipy.optimize import OptimizeResult

from pullback.arrays import real_of
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    AutogradError,
    BatchedValueError,
    ConvergenceError,
    ShapeError,
    compose,
)
from pullback.implicit.refinement import jacobian_of
from pullback.implicit.solution import solution
from pullback.interop.scipy import implicit_steps
from pullback.interop.scipy.initial_checks import (
    Watch,
    bounds_of,
    check_jacobian,
    check_start,
    slope_like,
    span_of,
)
from pullback.interop.scipy.reading import as_scipy, may_be_derived, named
from pullback.interop.scipy.runge_kutta import Piece, Slope, Taken, replayed
from pullback.ops.declare import by_sample
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.joining import stack

__all__ = ["solve_ivp"]

_EXPLICIT = ("RK23", "RK45", "DOP853")
# SciPy's class of each method.
METHODS = {
    **{name: getattr(theirs, name) for name in (*_EXPLICIT, "Radau", "BDF")},
    "LSODA": theirs.Radau,
}
_OF_LSODA = ("min_step", "lband", "uband")


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    **options: Any,
) -> Any:
    """Solve ``dy/dt = fun(t, y, *args)``, as `scipy.integrate.solve_ivp`.

    Parameters
    ----------
    fun : callable
        Is given t as a tensor of shape () and y as one of shape (n,), and returns the shape of y.
    t_span : (number, number)
        May be tensors. The second may be infinite where an event is terminal.
    y0 : (n,) array or Tensor
        Real for Radau and LSODA.
    method : str
        ``"RK45"``, ``"RK23"``, ``"DOP853"``, or for stiff equations ``"Radau"``, ``"BDF"`` or
        ``"LSODA"``. LSODA takes the steps of Radau: its values agree to the tolerances.
    t_eval : array or Tensor, optional
        Times at which y is returned.
    dense_output : bool
        Whether the result has a function ``sol(t)``.
    events : callable or list of them, optional
        Functions ``event(t, y, *args)`` of one number, whose roots are found; with SciPy's
        attributes `terminal` and `direction`.
    vectorized : bool
        Whether `fun` takes y of shape (n, k).
    args : tuple, optional
    **options
        SciPy's: `rtol`, `atol`, `first_step`, `max_step`; for stiff methods `jac`, which is used to
        find the solution alone, and `jac_sparsity`.

    Returns
    -------
    OdeResult
        SciPy's, with tensors for `y` (and `t`, where the times are tensors, and `t_events` and
        `y_events`) where one came in or `fun` depends on one. It has derivatives by `y0`, `args`,
        `t_span`, `t_eval` and what `fun` and `events` close over. Under `vmap` all but `message`
        has a value for each sample.

    Raises
    ------
    ArgumentError
        If the method is unknown, a number has no meaning, an event does not cross zero with a
        slope, or slopes are NaN or infinite where no step can avoid them. Where shorter steps
        avoid them, the solution ends before, with SciPy's status -1 and message.
    ArgumentTypeError, DTypeError, ShapeError
        If what is given, or what `fun` returns, has another type or shape.
    ConvergenceError
        If the equation of an implicit step cannot be solved to rounding.

    Notes
    -----
    `vmap` solves for each sample, with steps of its own: all have as many times where `t_eval` is
    given. What differs between samples goes in `y0`, `args` and times.

    The time of an event moves by ``-dg/dtheta / (dg/dt)``, the derivatives along the solution.

    Examples
    --------
    >>> import pullback as pb
    >>> rate = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    >>> solve_ivp = pb.interop.scipy.integrate.solve_ivp
    >>> end = solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0], rtol=1e-9, atol=1e-9).y[0, -1]
    >>> end.backward()
    >>> print(round(end.item(), 6), round(rate.grad.item(), 6))
    0.135335 -0.135335

    A ball that was thrown up lands after ``2 v / 9.81``:

    >>> def height(t, y):
    ...     return y[0]
    >>> height.terminal, height.direction = True, -1
    >>> def landing(v):
    ...     start = pb.stack([v * 0, v])
    ...     fall = lambda t, y: pb.stack([y[1], y[1] * 0 - 9.81])
    ...     return solve_ivp(fall, (0.0, 9.0), start, events=height).t_events[0][0]
    >>> round(pb.grad(landing)(3.0), 6), round(2 / 9.81, 6)
    (0.203874, 0.203874)
    """
    arguments = (fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args)
    try:
        return _solve(*arguments, **options)
    except BatchedValueError as error:
        return _of_each_sample(error, arguments, options)


def _solve(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: str,
    t_eval: Any,
    dense_output: bool,
    events: Any,
    vectorized: bool,
    args: Any,
    **options: Any,
) -> Any:
    """Return the solution of one sample."""
    _check(fun, method, options)
    args, y = _tuple_of(args), named("solve_ivp", "y0", y0)
    on_tensors = functools.partial(_called, fun, vectorized, y, method in _EXPLICIT, args)
    found_events = _events(events, args)
    t_span = span_of(t_span, events)
    check_start(y, method)
    result, log = _by_scipy(on_tensors, t_span, y, method, found_events, args, options)
    inputs = [*t_span, y0, t_eval, *args]
    times, curved = _times(t_span, log), found_events is not None or t_eval is not None
    try:
        pieces = _pieces(method, on_tensors, times, y, log, curved or dense_output)
    except ConvergenceError as error:
        raise (_ended(result, method) if result.status == -1 else error) from None
    curve = Curve(pieces, [step.t for step in log], y)
    last = _fill_events(result, found_events, curve, inputs)
    if t_eval is None:
        ts, ys = _at_steps(result.t, curve, times, last)
    else:
        ts = _reached(t_eval, float(result.t[-1]), t_span)
        ys = curve(ts) if len(ts) else stack([y], axis=1)[:, :0]
    result.t, result.y = as_scipy(ts, inputs), as_scipy(ys, inputs)
    result.sol = curve if dense_output else None
    return result


# -- a batch ---------------------------------------------------------------------------------------
_COUNTS = ("status", "nfev", "njev", "nlu")


def _of_each_sample(error: BatchedValueError, arguments: Any, options: dict[str, Any]) -> Any:
    """Return the solutions of a batch, for each sample by steps of its own."""
    if arguments[5]:
        required, hint = "dense_output=False required in vmap", "give t_eval"
        raise BatchedValueError(compose("solve_ivp", required, "True", hint=hint)) from error
    try:
        result = by_sample(error, _tensors, arguments, options)
    except BatchedValueError as raised:
        is_shape = raised is not error and raised.each is not None
        raise (_of_other_shapes() if is_shape else _batched()) from raised
    message = "The equation was solved for each sample: see status."
    return OptimizeResult(**result, success=result["status"] >= 0, message=message, sol=None)


def _tensors(*arguments: Any, **options: Any) -> Any:
    """Return what has an axis of samples in a result."""
    try:
        result = _solve(*arguments, **options)
    except BatchedValueError as error:
        return by_sample(error, _tensors, arguments, options)
    tensors: dict[str, Any] = {name: asarray(np.asarray(result[name])) for name in _COUNTS}
    for name in ("t_events", "y_events"):
        tensors[name] = None if result[name] is None else [asarray(x) for x in result[name]]
    return {"t": asarray(result.t), "y": asarray(result.y), **tensors}


# -- what is asked ---------------------------------------------------------------------------------
def _check(fun: Any, method: Any, options: dict[str, Any]) -> None:
    if not callable(fun):
        raise ArgumentTypeError(compose("solve_ivp", "a function required", type(fun).__name__))
    if not isinstance(method, str) or method not in METHODS:
        required = f"a method of {', '.join(METHODS)} required"
        hint = "a method of your own is SciPy's alone: scipy.integrate.solve_ivp, on values"
        raise ArgumentError(compose("solve_ivp", required, repr(method), hint=hint))
    unknown = [name for name in _OF_LSODA if name in options]
    if unknown:
        required = "the options of Radau, whose steps are taken for LSODA, required"
        hint = f"leave it out, or give jac_sparsity for a banded Jacobian, with {method!r}"
        raise ArgumentError(compose("solve_ivp", required, unknown[0], hint=hint))


def _ended(result: Any, method: str) -> ConvergenceError:
    """Return the error of steps that became too short to be taken again."""
    required = f"a solution as long as t_span required for the method {method}"
    came = f"an end at t = {result.t[-1]:.6g}: {result.message.rstrip('.').lower()}"
    hint = "the solution may grow beyond bounds there: end t_span before, or with an event"
    return ConvergenceError(compose("solve_ivp", required, came, hint=hint))


def _batched() -> BatchedValueError:
    required = "what differs between the samples of vmap required among y0, args and times"
    came = "a function that closes over it"
    hint = "hand it over in args, or solve for each sample in a loop and pb.stack the results"
    return BatchedValueError(compose("solve_ivp", required, came, hint=hint))


def _of_other_shapes() -> BatchedValueError:
    required = "as many times and events for all samples of vmap required"
    hint = "give t_eval, the first time alone where events are all that is wanted"
    came = "steps or events that differ in number"
    return BatchedValueError(compose("solve_ivp", required, came, hint=hint))


def _tuple_of(args: Any) -> tuple[Any, ...]:
    try:
        return () if args is None else tuple(args)
    except (TypeError, AutogradError):
        required, hint = "a tuple required as args", "args=(value,) for one"
        came = type(args).__name__
        raise ArgumentTypeError(compose("solve_ivp", required, came, hint=hint)) from None


def _called(
    fun: Callable[..., Any],
    vectorized: bool,
    start: Tensor,
    is_explicit: bool,
    args: tuple[Any, ...],
    t: Any,
    y: Any,
) -> Tensor:
    """Return the slope of tensors, `start` for their shape and dtype."""
    now = _moment(t, start.dtype)
    result = fun(now, y.reshape((-1, 1)) if vectorized else y, *args)
    if vectorized and result is not None:
        result = asarray(result).reshape((-1,))
    return slope_like(result, start, is_explicit)


def _moment(t: Any, dtype: Any) -> Tensor:
    # A number of Python would have the default precision beside a tensor.
    return t if isinstance(t, Tensor) else asarray(np.asarray(t)).to(real_of(dtype))


def _number(value: Any) -> Any:
    """Return values without history."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    return np.asarray(value, dtype=float)


def _events(events: Any, args: tuple[Any, ...]) -> list[Callable[..., Any]] | None:
    """Return the events as functions of time and y, with SciPy's attributes."""
    if events is None:
        return None
    listed = [events] if callable(events) else list(events)
    if not all(map(callable, listed)):
        required = "functions required in events"
        came = ", ".join(type(event).__name__ for event in listed)
        raise ArgumentTypeError(compose("solve_ivp", required, came))
    return [functools.partial(_event, event, args) for event in listed]


def _event(event: Callable[..., Any], args: tuple[Any, ...], t: Any, y: Any) -> Tensor:
    result = asarray(event(_moment(t, y.dtype), y, *args))
    if result.numel() != 1 or result.is_complex():
        name = getattr(event, "__name__", type(event).__name__)
        required = f"one real number required of the event {name}"
        came = f"shape {tuple(result.shape)}, {result.dtype.name}"
        raise ShapeError(compose("solve_ivp", required, came))
    return result.reshape(())


# -- SciPy's steps ---------------------------------------------------------------------------------
@functools.cache
def _logged(method: type) -> type:
    """Return SciPy's solver as one that notes its steps."""

    class Logged(method):  # type: ignore[misc]
        def __init__(self, *args: Any, log: list[Taken], watch: Watch, **options: Any) -> None:
            super().__init__(*args, **options)
            self._log, self._watch = log, watch
            if np.isnan(self.h_abs):
                watch.check("slopes of fun", self.h_abs, self.t)
            for name in ("lu", "solve_lu"):
                if hasattr(self, name):
                    setattr(self, name, functools.partial(self._finite, getattr(self, name)))
            log.append(Taken(self.t, self.y, 1, 1, self._planned(), None))

        def _finite(self, function: Any, *arrays: Any) -> Any:
            self._watch.check("slopes of fun and their derivatives", arrays[-1], self.t)
            return function(*arrays)

        def _planned(self) -> float:
            return float(self.h_abs * self.direction)

        def step(self) -> Any:
            order = getattr(self, "order", 1)
            message = super().step()
            if self.status != "failed":
                self._watch.seen = None
                # Radau's curve is where the search for its stages starts.
                curve = self.dense_output() if method is theirs.Radau else None
                state = (order, getattr(self, "order", 1), self._planned(), curve)
                self._log.append(Taken(float(self.t), np.array(self.y), *state))
            return message

    return Logged


def _by_scipy(
    slope: Slope, t_span: Any, y: Tensor, method: str, events: Any, args: Any, options: Any
) -> tuple[Any, list[Taken]]:
    """Return SciPy's result, and what its steps were."""
    log: list[Taken] = []
    watch = Watch(method)
    result = theirs.solve_ivp(
        _on_values(slope, y, watch),
        [_number(t) for t in t_span],
        y.detach().numpy(),
        _logged(METHODS[method]),
        events=events and [_watched(event, y) for event in events],
        log=log,
        watch=watch,
        **_options(options, t_span, y, method, args),
    )
    return result, log


def _on_values(slope: Slope, like: Tensor, watch: Watch) -> Callable[..., Any]:
    """Return the function of arrays that SciPy calls."""

    def call(t: float, y: Any) -> Any:
        with no_grad():
            result = slope(t, asarray(y).to(like.dtype)).detach().numpy()
        watch.note(t, result)
        return result

    return call


def _watched(event: Any, like: Tensor) -> Callable[..., Any]:
    def call(t: float, y: Any) -> float:
        with no_grad():
            return float(event(t, asarray(np.asarray(y)).to(like.dtype)).detach())

    for name in ("terminal", "direction"):
        if hasattr(event.args[0], name):
            setattr(call, name, getattr(event.args[0], name))
    return call


def _options(
    options: dict[str, Any], t_span: Any, like: Tensor, method: str, args: Any
) -> dict[str, Any]:
    """Return SciPy's options, with numbers and a Jacobian of values."""
    n, jac = like.shape[0], options.get("jac")
    result = {**options, **bounds_of(options, t_span, n)}
    if options.get("jac_sparsity") is not None:
        result["jac_sparsity"] = check_jacobian("jac_sparsity", options["jac_sparsity"], n)
    if jac is not None and not callable(jac):
        result["jac"] = check_jacobian("jac", jac, n)
    elif jac is not None:

        def on_values(t: float, y: Any) -> Any:
            with no_grad():
                matrix = jac(_moment(t, like.dtype), asarray(y).to(like.dtype), *args)
            return check_jacobian("jac", matrix, n, f" by the method {method} at t = {t:.6g}")

        result["jac"] = on_values
    return result


def _times(t_span: Any, log: list[Taken]) -> list[Any]:
    """Return the times of the steps, as shares of a span that has a derivative."""
    first, last = t_span
    if not isinstance(first, Tensor) and not isinstance(last, Tensor):
        return [float(step.t) for step in log]
    whole = float(_number(last)) - float(_number(first))
    if np.isinf(whole):  # an event ends it, and the last time says nothing
        return [first + float(step.t - log[0].t) for step in log]
    shares = [
        float(step.t - log[0].t) / whole if whole else float(i > 0) for i, step in enumerate(log)
    ]
    return [first + (last - first) * share for share in shares]


def _pieces(
    method: str, f: Slope, times: list[Any], y: Tensor, log: list[Taken], curved: bool
) -> list[Piece]:
    """Take the steps on tensors."""
    is_empty = log[0].t == log[-1].t  # for which a multistep method has no formula
    if method in _EXPLICIT or is_empty:
        return replayed(METHODS["RK45" if is_empty else method], f, times, y, curved)
    take = implicit_steps.bdf if method == "BDF" else implicit_steps.radau
    return take(f, times, y, log)


# -- results ---------------------------------------------------------------------------------------
class Curve:
    """The solution between its steps, a function of time."""

    def __init__(self, pieces: list[Piece], times: list[float], y: Tensor) -> None:
        self.pieces, self.y = pieces, y
        self.ts = np.asarray(times)

    def __call__(self, t: Any) -> Any:
        """Return y at a time, of shape (n,), or at several, of shape (n, m)."""
        if np.ndim(t) == 0:
            return self._at(t)
        return stack([self._at(t[i]) for i in range(len(t))], axis=1)

    def _at(self, t: Any) -> Tensor:
        return self.around(t)(t if isinstance(t, Tensor) else float(t))

    def around(self, t: Any) -> Callable[[Any], Tensor]:
        """Return the curve of the step that a time is in."""
        if not self.pieces:
            return lambda t: self.y
        way = 1 if self.ts[-1] >= self.ts[0] else -1
        index = int(np.searchsorted(way * self.ts, way * _number(t), side="left")) - 1
        return self.pieces[min(max(index, 0), len(self.pieces) - 1)].at


def _at_steps(ts: Any, curve: Curve, times: list[Any], last: Any) -> tuple[Any, Tensor]:
    """Return the times of the steps, an array where none is a tensor, and y there.

    `last` are time and value of the event that ended the solution.
    """
    values = [curve.y, *(piece.after for piece in curve.pieces)][: len(ts)]
    times = times[: len(ts)]
    if last is not None:
        times[-1], values[-1] = last
    if not isinstance(times[-1], Tensor):
        return ts, stack(values, axis=1)
    return stack([_moment(time, curve.y.dtype) for time in times]), stack(values, axis=1)


def _reached(t_eval: Any, end: float, t_span: Any) -> Any:
    """Return those of the times wanted that the steps reached: all, unless they ended early."""
    wanted, (first, last) = _number(t_eval), (float(_number(t)) for t in t_span)
    way, (low, high) = 1 if last >= first else -1, sorted((first, last))
    inside = (wanted >= low) & (wanted <= high)
    if wanted.ndim != 1 or not np.all(inside) or np.any(np.diff(way * wanted) <= 0):
        required = f"times of one axis from {low} to {high}, in order, required in t_eval"
        came = "others" if wanted.ndim != 1 or np.all(inside) else f"{wanted[~inside][0]:g}"
        raise ArgumentError(compose("solve_ivp", required, came, ("t_eval", t_eval)))
    reached = way * wanted <= way * end
    return (t_eval if isinstance(t_eval, Tensor) else wanted)[: int(reached.sum())]


def _fill_events(result: Any, events: Any, curve: Curve, inputs: list[Any]) -> Any:
    """Put tensors for the times and values of events into SciPy's result.

    Returns time and value of the event that ended the solution, None if it went to its end.
    """
    last, end = None, float(result.t[-1])
    for i, event in enumerate(events or ()):
        pairs = [_happened(event, curve, float(t)) for t in result.t_events[i]]
        if result.status == 1 and pairs and float(result.t_events[i][-1]) == end:
            last = pairs[-1]
        if pairs:
            ts, ys = stack([t for t, _ in pairs]), stack([y for _, y in pairs])
            result.t_events[i], result.y_events[i] = (as_scipy(x, inputs) for x in (ts, ys))
    return last


def _happened(event: Any, curve: Curve, t: float) -> tuple[Tensor, Tensor]:
    """Return time and value of an event, with their derivatives."""
    at = curve.around(t)

    def residual(time: Any) -> Tensor:
        return event(time, at(time))  # type: ignore[no-any-return]

    start = _moment(t, curve.y.dtype)
    if not any(map(may_be_derived, (residual(start), at(start)))):
        return start, at(start)
    with no_grad():
        slope = float(abs(jacobian_of(residual, start).detach()).max())
    if not 0 < slope < np.inf:
        name = getattr(event.args[0], "__name__", type(event.args[0]).__name__)
        required = f"an event that crosses zero with a slope required, {name}"
        hint = "compute it from t and y with functions of pullback, without float() or a jump"
        came = f"a slope of {slope:.3g} at t = {t:.6g}"
        raise ArgumentError(compose("solve_ivp", required, came, hint=hint))
    time = solution("solve_ivp", residual, start)
    return time, at(time)
