"""What to hand to packages that only show, store or tabulate values."""

from __future__ import annotations

__all__ = ["WAYS"]

_SHOWN = "it shows values alone: give it t.detach().numpy()"

WAYS = {
    "matplotlib": _SHOWN,
    "seaborn": _SHOWN,
    "plotly": _SHOWN,
    "bokeh": _SHOWN,
    "pandas": "it holds values alone: give it t.detach().numpy()",
    "xarray": "it holds values alone: give it t.detach().numpy()",
    "sklearn": "it computes with values alone: give it t.detach().numpy()",
}
