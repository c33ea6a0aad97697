"""How a notebook shows a report: as HTML without scripts, and as a plot of the wrong gradients.

The only module of the checker that needs Matplotlib, which is imported when a plot is drawn.
"""

from __future__ import annotations

import functools
import html
import importlib
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pullback.check.values import Array
from pullback.errors import MissingExtraError


# -- HTML ------------------------------------------------------------------------------------------
def html_of(report: Any) -> str:
    """Return a report as HTML: what came out, each finding, a table of the parts."""
    pieces = [_tag("b", report.headline)]
    for failure in report.failures:
        more = [failure.cause.hint, failure.repair]
        pieces += [_tag("p", failure.text), _table(failure.table), *_lines(more)]
    for found in report.unchecked:
        pieces += [_tag("p", found.text), *_lines([found.hint])]
    pieces += _lines([f"ignored: {failure.text}" for failure in report.ignored])
    pieces += _lines([f"note: {note}" for note in report.notes])
    return f"<div>{''.join(pieces)}{_table(report.table)}</div>"


def _tag(name: str, text: str) -> str:
    return f"<{name}>{html.escape(text)}</{name}>"


def _lines(texts: Iterable[str]) -> list[str]:
    return [_tag("pre", text) for text in texts if text]


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a table; a cell that is alone in its row takes all columns."""
    width = max(map(len, rows), default=0)
    cell = '<td style="text-align: left" colspan="{}">{}</td>'
    lines = []
    for row in rows:
        span = width if len(row) == 1 else 1
        cells = "".join(cell.format(span, html.escape(text)) for text in row)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>" if rows else ""


# -- the plot --------------------------------------------------------------------------------------
def figure_of(report: Any) -> Any:
    """Return a figure with one row for each failing gradient, or a line that there is none."""
    try:
        figures = importlib.import_module("matplotlib.figure")
    except ImportError:
        raise MissingExtraError(
            "Report.plot: Matplotlib is required.\nhint: pip install 'pullback[plot]'"
        ) from None
    shown = [f for f in report.failures if f.expected is not None and f.expected.size]
    figure = figures.Figure(figsize=(9.0, 3.6 * max(1, len(shown))), layout="constrained")
    figure._repr_png_ = functools.partial(_as_png, figure)  # shown once, with pyplot and without
    figure.suptitle(report.headline)
    axes = figure.subplots(max(1, len(shown)), 2, squeeze=False)
    for (left, right), failure in zip(axes, shown, strict=False):
        _scatter(left, failure)
        _error_map(figure, right, failure)
    if not shown:
        for ax in axes[0]:
            ax.set_axis_off()
        axes[0][0].text(0.5, 0.5, "no gradient to show", ha="center")
    return figure


def _as_png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _scatter(ax: Any, failure: Any) -> None:
    expected, got = _pair(failure)
    wrong = _wrong(failure)
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    for mask, color, label in ((~wrong, "tab:green", "right"), (wrong, "tab:red", "wrong")):
        if mask.any():
            ax.scatter(expected[mask], got[mask], s=14, color=color, label=label)
    ax.set_xlabel("numerical")
    ax.set_ylabel("backward's")
    ax.set_title(failure.cause.text, fontsize=9, wrap=True)
    ax.legend(loc="best", fontsize=8)


def _error_map(figure: Any, ax: Any, failure: Any) -> None:
    expected, got = _pair(failure)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - expected)
    shape = failure.expected.shape
    columns = shape[-1] if len(shape) > 1 else error.size
    image = ax.imshow(error.reshape(-1, columns), aspect="auto", cmap="magma_r")
    figure.colorbar(image, ax=ax, label="|error|")
    rows, columns_wrong = np.nonzero(_wrong(failure).reshape(-1, columns))
    ax.plot(columns_wrong, rows, "x", color="tab:red", markersize=5)
    ax.set_xlabel("index along the last axis")
    ax.set_ylabel("the other axes, flat")
    ax.set_title(f"where `{failure.argument}` is wrong (x)", fontsize=9)


def _pair(failure: Any) -> tuple[Array, Array]:
    """Return the two gradients flat and real: the absolute values of complex ones."""
    pair = [np.asarray(a).ravel() for a in (failure.expected, failure.got)]
    if any(a.dtype.kind == "c" for a in pair):
        pair = [np.abs(a) for a in pair]
    return pair[0], pair[1]


def _wrong(failure: Any) -> Array:
    expected, _ = _pair(failure)
    if failure.wrong is None:
        return np.ones(expected.shape, bool)
    return np.asarray(failure.wrong).ravel()
