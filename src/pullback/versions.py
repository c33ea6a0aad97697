"""What a report of a bug has to say of the machine: versions of Python and of libraries."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

__all__ = ["show_versions"]

_LIBRARIES = (
    *("pullback", "numpy", "array-api-compat", "scipy", "cupy", "torch", "jax", "dask"),
    *("hypothesis", "matplotlib", "rich", "safetensors", "tqdm", "threadpoolctl"),
)


def show_versions() -> None:
    """Print the versions of Python, the platform and every library that pullback may use.

    Nothing is imported for it.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.show_versions()  # doctest: +ELLIPSIS
    Python ...
    """
    print(f"Python {sys.version.split()[0]} ({platform.python_implementation()})")
    print(f"{platform.system()} {platform.machine()}")
    for name in _LIBRARIES:
        try:
            print(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
