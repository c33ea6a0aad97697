"""What ``dir`` and completion list of a module: its public names, and nothing that it imports."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["listed"]


def listed(module: str) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module, by its name: the names in ``__all__``, sorted."""

    def names() -> list[str]:
        return sorted(sys.modules[module].__all__)

    return names
