"""The lists of docs/scipy.md are what these tests expect: a function is moved there, by hand."""

import importlib
import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "scipy.md").read_text(encoding="utf-8")
TABLES = ("special", "stats", "signal", "ndimage", "spatial", "others")


def every_call():
    """Return the calls of all functions by name."""
    found = {}
    for name in TABLES:
        found.update(importlib.import_module(f"tests.scipy_support._{name}").CALLS)
    return found


def functions_under(heading):
    """Return the names of the functions that are listed between a heading and the next one."""
    text = re.split(r"\n#", TEXT.partition(f"# {heading}\n")[2])[0]
    paragraphs = re.findall(r"^\*\*([\w.]+)\*\*: (.*?)\.$", text, re.MULTILINE | re.DOTALL)
    return [
        f"{module}.{name}" for module, text in paragraphs for name in re.findall("`(.*?)`", text)
    ]


GRADIENT = functions_under("With a gradient")
# Nothing that comes back changes with the arguments, but by jumps; or there are no arguments.
VALUES = functions_under("Without a gradient by nature")
# Why a function is refused, and what is raised, by its beginning.
ERRORS = {
    "Compiled code: SciPy asks for NumPy arrays, which carry no gradient": (
        "pullback.errors.GraphError: numpy: can't convert a Tensor that requires grad"
    ),
    "SciPy converts the argument to a plain number: a warning says that it carries no gradient": (
        "pullback.errors.UntrackedTensorWarning: float: a tensor that requires grad becomes"
    ),
    "SciPy makes a range of frequencies, whose ends are plain numbers": (
        "pullback.errors.GraphError: linspace: a number required as 'start'"
    ),
    "SciPy writes into an array that backward needs, or into a view that is read-only": (
        "pullback.errors.InplaceError: "
    ),
    "SciPy calls methods that NumPy's arrays have and the standard does not": (
        "pullback.errors.ArgumentTypeError: ",
        "builtins.AttributeError: a Tensor has no",
    ),
    "Compiled code that raises an error of its own": (
        "builtins.ValueError: could not convert b, a, and x to a common type"
    ),
}
FAILING = {name: reason for reason in ERRORS for name in functions_under(reason)}
