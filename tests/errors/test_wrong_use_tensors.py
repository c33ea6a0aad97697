"""What a user gets wrong with tensors, backward, hooks and modes: the rows of mistakes/.

`leaf` has three float32 numbers.
"""

import builtins
from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import mistakes

import pullback as pb

ROWS = mistakes(Path(__file__).with_name("mistakes"))


@pytest.mark.parametrize(("used", "call", "kind", "words"), ROWS)
def test_a_mistake_with_tensors_is_refused(refused, used, call, kind, words):
    def mistake(leaf):
        names = {"pb": pb, "np": np, "leaf": leaf}
        exec(used, names)
        exec(call, names)

    refused(mistake, getattr(builtins, kind), *words)


@pytest.mark.case("RG2")
def test_reading_the_gradient_of_a_result_warns():
    leaf = pb.tensor([1.0], requires_grad=True)
    y = leaf * 2
    y.sum().backward()
    with pytest.warns(UserWarning, match="retain_grad") as caught:
        assert y.grad is None
    assert len(caught) == 1
    assert leaf.grad.tolist() == [2.0]


@pytest.mark.parametrize("mode", [pb.no_grad, pb.inference_mode, pb.enable_grad])
def test_a_mode_ends_with_the_error_that_leaves_it(mode):
    leaf = pb.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(pb.AutogradError), mode():
        leaf.mm(leaf)
    assert pb.is_grad_enabled()
    assert (leaf * 2).requires_grad
