"""Programs for the rows of the tables of "Coming from": theirs, ours, and what both give.

A row is found by its left cell. A program binds `result`; `$0`, `$1` in it are the pieces of code
in its own cell as they stand, and a piece that is not run so has all its names in the program.
"""

import importlib
import re
import warnings
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"`([^`]+)`")


def rows(page):
    """The two cells of each row of a page's tables."""
    lines = (DOCS / page).read_text().splitlines()
    found = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("| ") and not below.startswith("|--"):
            found.append(tuple(cell.strip() for cell in line.strip("|").split(" | ")))
    return found


def run(program, cell, **names):
    """What a program of a row binds to `result`, its cell's code put in."""
    pieces = CODE.findall(cell)
    for number, piece in enumerate(pieces):
        program = program.replace(f"${number}", piece)
    said = set(re.findall(r"[A-Za-z_]\w*", program))
    unsaid = {name for piece in pieces for name in re.findall(r"[A-Za-z_]\w*", piece)} - said
    assert not unsaid, f"the program of {cell} does not run {sorted(unsaid)}"
    exec(program, names)
    return plain(names["result"])


def plain(value):
    """A result as NumPy's arrays, numbers and tuples."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(item) for item in value)
    if hasattr(value, "detach"):
        value = value.detach()
    return value if isinstance(value, (str, bool)) else np.asarray(value)


def assert_same(result, wanted):
    if isinstance(wanted, (tuple, list)):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, (str, bool)):
        assert result == wanted
    else:
        np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=1e-7)  # JAX's are float32


def hips_names(autograd):
    """The names that programs use of HIPS autograd, or of what stands for it."""
    extend = importlib.import_module(f"{autograd.__name__}.extend")
    names = {"np": autograd.numpy, "grad": autograd.grad, "numpy": np, "warnings": warnings}
    return {**names, "primitive": extend.primitive, "defvjp": extend.defvjp}


def on_both(package, program, wanted):
    """The entry of a row whose two programs are one, of their package or of pb."""
    return program, program.replace(f"{package}.", "pb."), wanted


def square(x):
    return x**2


def cubes(x):
    return (x**3).sum(axis=0)


X, A = np.arange(3.0), np.arange(6.0).reshape(2, 3)
