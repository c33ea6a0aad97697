"""Libraries that not every user has, imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from pullback.errors import MissingExtraError, compose

__all__ = ["optional"]


def optional(api: str, module: str, name: str, extra: str) -> Any:
    """Import a module of an optional library.

    Parameters
    ----------
    api : str
        What the user called.
    module, name : str
        The module, and the library as it is known.
    extra : str
        The extra of pullback that installs it.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        hint = f"pip install 'pullback[{extra}]'"
        raise MissingExtraError(compose(api, f"{name} required", str(error), hint=hint)) from None
