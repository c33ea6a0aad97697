"""Pictures of training: curves of losses, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.errors import ArgumentTypeError, compose
from pullback.extras import optional
from pullback.public_names import listed as _listed

__all__ = ["history"]
__dir__ = _listed(__name__)


def history(losses: Mapping[str, Sequence[Any]], *, ax: Any = None) -> Any:
    """Draw a curve for each key of a dict of lists.

    Parameters
    ----------
    losses : mapping
        From labels to numbers, or tensors of one, one an epoch.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentTypeError
        If `losses` is no mapping.

    Examples
    --------
    >>> import matplotlib, pullback as pb
    >>> matplotlib.use("agg")
    >>> ax = pb.plot.history({"train": [3.0, 2.0, 1.0], "test": [3.0, 2.5, 2.4]})
    >>> [line.get_label() for line in ax.lines]
    ['train', 'test']
    """
    if not isinstance(losses, Mapping):
        required = "a dict from labels to lists of numbers required"
        hint = 'write {"loss": losses}'
        raise ArgumentTypeError(compose("history", required, type(losses).__name__, hint=hint))
    if ax is None:
        plt = optional("history", "matplotlib.pyplot", "matplotlib", "plot")
        _, ax = plt.subplots()
    for label, values in losses.items():
        ax.plot(range(1, len(values) + 1), [float(v) for v in values], label=label)
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.legend()
    return ax
