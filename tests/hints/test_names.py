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


def test_an_error_in_a_property_of_a_module_is_the_one_that_comes():
    class Net(pb.nn.Module):
        @property
        def depth(self):
            return self.layres

    with pytest.raises(AttributeError, match=r"'Net' object has no attribute 'layres'$"):
        _ = Net().depth
    assert not hasattr(Net(), "cuda")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pb.nn.Tanh(1), r"Tanh\(\) required, got a call with an error: too many"),
        (lambda: pb.nn.MaxPool2d(), r"MaxPool2d\(kernel_size, .*missing.*'kernel_size'"),
        (
            lambda: pb.nn.Dropout(inplce=True),
            r"(?s)Dropout\(p=0.5, .* got 'inplce'\n.*did you mean 'inplace'",
        ),
    ],
)
def test_a_layer_made_with_wrong_settings_shows_those_it_takes(call, text):
    with pytest.raises(pb.errors.ArgumentTypeError, match=text):
        call()


def test_numpy_with_force_shares_the_memory_of_a_leaf():
    w = pb.ones(2, requires_grad=True)
    w.numpy(force=True)[0] = 5.0
    assert w.tolist() == [5.0, 1.0]
