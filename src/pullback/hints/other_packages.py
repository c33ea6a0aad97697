"""What to hand to packages that only show, store or tabulate values."""

from __future__ import annotations

__all__ = ["WAYS"]

_SHOWN = "it shows values alone: give it t.detach().numpy()"
_HELD = "it holds values alone: give it t.detach().numpy()"

WAYS = {
    "matplotlib": _SHOWN,
    "seaborn": _SHOWN,
    "plotly": _SHOWN,
    "bokeh": _SHOWN,
    "pandas": f"{_HELD}; series.to_numpy() @ t keeps the graph",
    "xarray": f"{_HELD}; array.to_numpy() @ t keeps the graph",
    "sklearn": "it computes with values alone: give it t.detach().numpy()",
}
