"""`check_op`: the check of an operation on explicit, described, drawn or guessed inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.check.api import checked_options, chosen_parts, judged, running
from pullback.check.inputs.arguments import callable_of
from pullback.check.naming import name_of
from pullback.check.report import Report
from pullback.check.runner import Runner
from pullback.errors import ArgumentTypeError


def check_op(
    op: Any,
    *inputs: Any,
    kwargs: dict[str, Any] | None = None,
    seed: int = 0,
    fast: bool = False,
    only: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
    raise_exception: bool = True,
    allow_unchecked: bool = False,
    time_limit: float = 60.0,
    surrogate: str = "",
    order: int = 1,
    ignore: Mapping[str, str] | None = None,
    repair: bool = True,
) -> Report:
    """Check the gradients of an operation, on explicit, described, drawn or guessed inputs.

    Parameters
    ----------
    op : callable
        An operation of `autograd_function`, a `Function` class, a built-in operation, or any
        differentiable function.
    *inputs : object
        Its positional arguments: tensors, arrays and others. Or one text that describes them, as
        ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``: shapes of symbols and numbers (a
        text without a colon is an argument of the operation itself),
        followed by a dtype and ``positive``, ``unit``, ``distinct``, ``spd`` or ``in [a, b]``; a
        name that occurs several times is a list of arrays. A tuple of all arguments, as PyTorch's
        gradcheck takes it, is taken apart.
        Or strategies of Hypothesis: one that draws all arguments, as `arguments` does, or one for
        each argument. Or nothing: then they are guessed from names, hints and defaults.
    kwargs : dict, optional
        Keyword arguments; if there are no positional ones, the remaining arguments are guessed.
    seed : int, default 0
        Seeds all random numbers; a check with the same seed repeats exactly.
    fast : bool, default False
        Compare along random directions only, with fewer inputs.
    only, skip : sequence of str, optional
        The parts to run, or not to run, by name: ``[part.name for part in pb.check.PARTS]``.
    rtol, atol : float, optional
        Tolerances, added to the error of the differences; the default depends on the dtype.
    raise_exception : bool, default True
        Whether a failure raises; otherwise look at ``report.outcome``.
    allow_unchecked : bool, default False
        Whether to warn, not raise, of what could not be checked.
    time_limit : float, default 60
        How long the check may take, in seconds. What is left by then counts as not checked.
    surrogate : str, optional
        Why the gradient is meant to differ from the derivative; then it is not compared with
        differences, and everything else is checked. An operation may declare it itself.
    order : int, default 1
        2 asks for second derivatives: a backward that cannot be differentiated is then wrong.
        Otherwise that is a note.
    ignore : dict of str to str, optional
        What may be wrong, by the name of the part that finds it, with the reason, as
        ``{"second_order": "used once only"}``. The report shows both.
    repair : bool, default True
        Whether the report seeks a change of the source that makes a wrong gradient right, once it
        is read. `fast` leaves it out.

    Returns
    -------
    Report
        On all sets of inputs; its notes show those that were described, drawn or guessed.

    Raises
    ------
    GradcheckError
        If a gradient is wrong; its attribute ``report`` is the report. `UncheckedError`, one of
        these, if nothing is wrong and something could not be checked, such as an operation whose
        inputs could not be guessed.
    ArgumentError, ArgumentTypeError
        If a text is not a valid description, or an argument of this function is wrong.
    MissingExtraError
        If an input is a strategy and Hypothesis is not installed.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, w):
    ...     ctx.save_for_backward(x=x, w=w)
    ...     return x @ w.T
    >>> def backward(ctx, grad_output):
    ...     x, w = ctx.saved_tensors
    ...     return {"x": grad_output @ w, "w": grad_output.T @ x}
    >>> dense = pb.autograd_function(forward, backward, name="dense")
    >>> report = pb.check.check_op(dense, "x: (n, d), w: (m, d)")
    >>> report.ok, report.notes[0]
    (True, 'inputs: x (4, 2), w (3, 2)')
    """
    __tracebackhide__ = True
    fn = callable_of(op)
    if not isinstance(kwargs, (dict, type(None))):
        raise ArgumentTypeError(
            f"check_op: kwargs must be a dict of arguments by name, got {type(kwargs).__name__}"
        )
    parts = chosen_parts("check_op", only, skip)
    options = checked_options("check_op", seed, fast, rtol, atol, order, ignore, repair, only)
    runner = Runner(fn, options, parts, kwargs or {}, surrogate)
    with running("check_op", name_of(fn), time_limit, only):
        report = runner.report(inputs)
    return judged(report, options, raise_exception, allow_unchecked)
