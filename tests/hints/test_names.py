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
    return eval(re.sub(r"\b(torch|jax)\.", "pb.", expression), known)


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


def test_a_name_that_is_imported_is_an_import_error_that_names_the_way():
    for module, name, way in (
        ("pullback", "device", "a device is a string here"),
        ("pullback.autograd", "Variable", "tensors themselves"),
        ("pullback.optim", "NAdam", "SGD, Adam"),
    ):
        with pytest.raises(ImportError, match=f"cannot import name '{name}' .*: {way}"):
            exec(f"from {module} import {name}")
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'pullback' \("):
        exec("from pullback import nothing")
    assert not hasattr(pb, "device")


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: pb.vjp(np.sin, 1.0, v=1.0), "pb.vjp(fun, *primals, has_aux=False)"),
        (
            lambda: pb.nn.functional.l1_loss(1, 2, weight=3),
            "pb.nn.functional.l1_loss(input, target, reduction='mean')",
        ),
        (lambda: pb.autograd.grad(1), "pb.autograd.grad(outputs, inputs, "),
        (lambda: pb.nn.utils.clip_grad_norm_([], 1.0, foreach=None), "leave it out"),
    ],
)
def test_a_call_that_does_not_fit_shows_how_the_function_is_called(call, hint):
    with pytest.raises(TypeError) as caught:
        call()
    assert caught.value.__notes__[0].startswith(f"hint: {hint}")


def test_a_type_error_inside_a_function_gets_no_hint_of_its_call():
    def f(x):
        return x.sum() + len(3)

    with pytest.raises(TypeError) as caught:
        pb.value_and_grad(f)(np.ones(2))
    assert not hasattr(caught.value, "__notes__")


def test_pytorchs_words_of_var_triu_roll_linspace_searchsorted_and_meshgrid():
    x = pb.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]], dtype=pb.float64)
    n = x.numpy()
    for unbiased in (False, True):
        ours = pb.var(x, dim=1, unbiased=unbiased, keepdim=True)
        assert np.allclose(ours, np.var(n, 1, ddof=unbiased, keepdims=True))
        assert np.isclose(pb.std(x, unbiased=unbiased), np.std(n, ddof=unbiased))
    assert np.array_equal(pb.triu(x, diagonal=1), np.triu(n, 1))
    assert np.array_equal(pb.tril(x, diagonal=-1), np.tril(n, -1))
    assert np.array_equal(pb.roll(x, shifts=(1, 2), dims=(0, 1)), np.roll(n, (1, 2), (0, 1)))
    assert pb.linspace(0, 1, steps=3).tolist() == [0.0, 0.5, 1.0]
    assert pb.searchsorted(x[0], x[0], right=True).tolist() == [1, 2, 3]
    a, b = pb.meshgrid([x[0], x[1]], indexing="ij")
    assert np.array_equal(a, np.broadcast_to(n[0][:, None], (3, 3)))
    assert np.array_equal(b, np.broadcast_to(n[1], (3, 3)))


def test_the_conjugate_of_the_gradient_of_the_real_part_is_a_holomorphic_derivative():
    z = 1.0 + 2.0j
    gradient = pb.grad(lambda z: (z**3).real)(z)
    assert np.isclose(np.conj(gradient), 3 * z**2)


@pytest.mark.parametrize(
    ("call", "way"),
    [
        (lambda: pb.nn.Conv2d(1, 2), "pb.nn.Conv2d(in_channels, out_channels, kernel_size, "),
        (lambda: pb.nn.LSTM(2, 3, hidden=4), "pb.nn.LSTM(input_size, hidden_size, num_layers=1"),
        (lambda: pb.nn.Linear(2, 3, activation="relu"), "pb.nn.Linear(in_features, out_features"),
        (lambda: pb.data.batches(np.ones(4), batch_size=2), "size=32"),
        (lambda: pb.data.batches(np.ones(4), size=2, shuffle=True), "seed=0, or another number"),
    ],
)
def test_a_layer_or_batches_made_with_wrong_arguments_shows_how(call, way):
    with pytest.raises(TypeError) as caught:
        call()
    assert caught.value.__notes__[0].startswith(f"hint: {way}")


W = pb.ones(2, requires_grad=True)
OBJECTS = {
    "pb.nn.Linear(1, 1).normal_()": "a parameter's, such as module.weight",
    "pb.optim.SGD([W], lr=0.1).lr": 'optimizer.param_groups[0]["lr"]',
    "pb.optim.SGD([W], lr=0.1).minimize(W)": "loss.backward(), then optimizer.step()",
    "pb.Generator().initial_seed()": "manual_seed(n)",
    "pb.data.DataLoader": "pb.data.batches(x, y, size=32, seed=0)",
    "W.block_until_ready()": "leave it out: results are there when a function returns",
    "pb.max(pb.ones(2, 2), dim=1).values": "x.max(dim=1) has both",
    "pb.optim.SGD([W], lr=0.1).step(3)": "step takes a function that computes the loss, got int",
    "pb.optim.lr_scheduler.StepLR([W], 1)": "StepLR: an Optimizer required, got list",
    "pb.optim.lr_scheduler.LambdaLR(pb.optim.SGD([W], lr=0.1), 0.5)": "one function, or one for",
    "pb.nn.utils.clip_grad_norm_(pb.nn.Linear(1, 1), 1.0)": "write model.parameters()",
    "setattr(W, 'data', np.ones(2))": "wrap it with pullback.asarray",
}


@pytest.mark.parametrize("expression", OBJECTS)
def test_what_an_object_has_not_is_answered_with_the_way(expression):
    with pytest.raises((AttributeError, TypeError)) as caught:
        eval(expression, {"pb": pb, "np": np, "W": W})
    assert OBJECTS[expression] in str(caught.value)


@pytest.mark.parametrize("name", ["view", "repeat", "sum", "scatter_", "cuda", "backward"])
def test_an_error_of_pythons_own_names_a_method_as_one_of_tensor(name):
    with pytest.raises(TypeError, match=rf"Tensor\.{name}\(\) got an unexpected keyword"):
        getattr(W, name)(unknown=1)
