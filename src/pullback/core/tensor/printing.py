"""How a tensor prints, and what notebooks show: text always, and HTML without script.

Owns the layout only: four decimals, aligned columns, summarised above 1000 elements; NumPy does the
formatting. Must not know Tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pullback.arrays import DType, get_default_dtype

_SILENT = {"float32", "int64", "bool", "complex64"}  # with float32 the default, these go unsaid


def _real_formatter(values: Any) -> Any:
    """Return a function that formats one real number so that all of `values` line up."""
    finite = values[np.isfinite(values)]
    whole = bool(np.all(finite == np.trunc(finite)))
    largest = float(np.max(np.abs(finite))) if finite.size else 0.0
    nonzero = np.abs(finite[finite != 0])
    smallest = float(np.min(nonzero)) if nonzero.size else 1.0
    if whole and largest < 1e8:
        pattern = "{:.0f}."
    elif largest >= 1e8 or smallest < 1e-4 or largest / smallest > 1e8:
        pattern = "{:.4e}"
    else:
        pattern = "{:.4f}"

    def one(value: float) -> str:
        return pattern.format(value) if np.isfinite(value) else str(float(value))

    width = max((len(one(v)) for v in values.ravel()), default=0)
    return lambda value: one(value).rjust(width)


def _complex_formatter(values: Any) -> Any:
    real, imag = _real_formatter(values.real), _real_formatter(np.abs(values.imag))
    return lambda v: f"{real(v.real)}{'-' if np.signbit(v.imag) else '+'}{imag(abs(v.imag))}j"


def _body(array: Any, prefix: str) -> str:
    shown = array
    if array.size > 1000:  # only what the summary shows decides on width and pattern
        for axis, length in enumerate(array.shape):
            if length > 6:
                keep = np.r_[0:3, length - 3 : length]
                shown = np.take(shown, keep, axis=axis)
    kind = array.dtype.kind
    formatter = None
    if kind == "f":
        formatter = {"float_kind": _real_formatter(shown)}
    elif kind == "c":
        formatter = {"complex_kind": _complex_formatter(shown)}
    return str(
        np.array2string(
            array,
            separator=", ",
            prefix=prefix,
            threshold=1000,
            max_line_width=80,
            formatter=formatter,  # type: ignore[arg-type]
        )
    )


def tensor_repr(name: str, array: Any, dtype: DType, device: str, *suffixes: str) -> str:
    """Return ``tensor(...)`` with the values, and what is not the default about them."""
    prefix, notes = f"{name}(", list[str]()
    if array.size == 0 and array.ndim > 1:
        notes.append(f"size={array.shape}")
    if device != "cpu":
        notes.append(f"device='{device}'")
    default = get_default_dtype()
    implied = default.name == "float32" and dtype.name in _SILENT and array.size > 0
    if not implied and dtype is not default:
        notes.append(f"dtype={dtype.name}")
    notes += [suffix for suffix in suffixes if suffix]
    body = "[]" if array.size == 0 else _body(array, prefix)
    return f"{prefix}{', '.join([body, *notes])})"


# -- notebooks -------------------------------------------------------------------------------------
_CELLS = 16  # rows and columns of a heat map
_BLUE, _RED = "31,119,180", "214,39,40"  # of positive and negative numbers


def _escaped(text: str) -> str:
    import html  # when it is needed: its table of entities takes a millisecond to load

    return html.escape(text)


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return rows of texts as a table."""
    kinds = [*(("th", cells) for cells in (head,) if cells), *(("td", row) for row in rows)]
    lines = ("".join(f"<{tag}>{_escaped(c)}</{tag}>" for c in row) for tag, row in kinds)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def mimebundle(text: str, shown: str = "") -> dict[str, str]:
    """Return what a notebook shows for an object that prints as a text; HTML `shown` below it."""
    return {"text/plain": text, "text/html": f"<div><pre>{_escaped(text)}</pre>{shown}</div>"}


def heat_map(array: Any) -> str:
    """Return the first numbers of an array as coloured cells that say them; "" where none fit."""
    if array.dtype.kind not in "fiub" or not 0 < array.ndim <= 2 or array.size < 2:
        return ""
    shown = np.atleast_2d(array)[:_CELLS, :_CELLS].astype(float)
    largest = float(np.max(np.abs(shown), initial=0.0, where=np.isfinite(shown))) or 1.0
    rows = ("".join(_cell(float(value), largest) for value in row) for row in shown)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{lines}</table>'


def _cell(value: float, largest: float) -> str:
    share = min(1.0, abs(value) / largest) if np.isfinite(value) else 0.0
    back = f"rgba({_BLUE if value >= 0 else _RED},{share:.2f})"
    mark = "" if np.isfinite(value) else "&times;"
    style = f"width:14px;height:14px;padding:0;text-align:center;background:{back}"
    return f'<td title="{value:.4g}" style="{style}">{mark}</td>'
