"""The page of names, docs/names.md: what is the same works, what is not is answered as it says."""

import re
from pathlib import Path

import numpy as np
import pullback.compat.autograd.scipy.special
import pytest

import pullback as pb
import pullback.compat.autograd.misc.optimizers
import pullback.compat.autograd.numpy as anp
import pullback.compat.autograd.test_util
from pullback.compat import autograd

PAGE = (Path(__file__).parents[2] / "docs" / "names.md").read_text()
ROWS = re.findall(r"^\| `(.+?)` \| (.+) \|$", PAGE, re.MULTILINE)


def typed(expression):
    """Evaluate an expression of the page; a name by itself is asked of pb."""
    if expression.isidentifier():
        return getattr(pb, expression)
    w, b = (pb.ones(shape, requires_grad=True) for shape in ((3, 2), (3,)))
    known = {
        "optimize": pb.optimize,
        "implicit": pb.implicit,
        "f": lambda x: (x - 2.0) ** 2,
        "pb": pb,
        "np": np,
        "anp": anp,
        "autograd": autograd,
        "w": w,
        "b": b,
    }
    return eval(re.sub(r"\btorch\.", "pb.", expression), known)


def test_every_row_of_the_page_is_read():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if line.endswith(" | here |")]
    assert len(ROWS) == len(lines) - len(heads)
    assert len(ROWS) > 110


@pytest.mark.parametrize(("expression", "here"), ROWS, ids=[row[0] for row in ROWS])
def test_an_expression_works_or_its_error_names_the_way(expression, here):
    if here == "the same":
        typed(expression)
        return
    kind, way = here.split(": ", 1)
    if kind == "MissingExtraError" and pb.cuda.is_available():
        pytest.skip("CuPy is installed")
    with pytest.raises(Exception, match=re.escape(way)) as caught:
        typed(expression)
    assert type(caught.value).__name__ == kind
