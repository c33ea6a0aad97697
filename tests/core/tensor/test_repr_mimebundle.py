"""`_repr_mimebundle_`: text always, HTML without script, for tensors, modules and optimizers."""

import numpy as np
import pytest

import pullback as pb


def shown(value):
    bundle = value._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == repr(value)
    assert "<script" not in bundle["text/html"]
    return bundle["text/html"]


def test_repr_mimebundle_of_a_tensor_says_its_kind_and_colours_its_values():
    w = pb.tensor([[1.0, -2.0], [0.0, np.nan]], dtype=pb.float64, requires_grad=True)
    html = shown(w * 2)
    for text in ("<td>(2, 2)</td>", "<td>float64</td>", "<td>cpu</td>", "<td>MulBackward</td>"):
        assert text in html
    for text in ('title="2"', 'title="-4"', "rgba(31,119,180,0.50)", "rgba(214,39,40,1.00)"):
        assert text in html
    assert html.count("&times;") == 1
    assert "grad_fn" not in shown(w).replace("grad_fn=", "")


@pytest.mark.parametrize(
    "tensor",
    [
        pb.tensor(3.0),
        pb.ones((2, 2, 2)),
        pb.tensor([1 + 2j, 3.0]),
        pb.ones((0, 3)),
        pb.tensor([np.inf, np.nan]),
        pb.tensor([True, False]),
    ],
    ids=["0-d", "3-d", "complex", "empty", "not finite", "bool"],
)
def test_repr_mimebundle_of_any_tensor_has_its_text(tensor):
    assert "tensor(" in shown(tensor)


def test_repr_mimebundle_shows_at_most_16_rows_and_columns():
    assert shown(pb.ones((100, 100))).count("title=") == 256


def test_repr_mimebundle_within_vmap_has_no_values():
    texts = []
    pb.vmap(lambda x: (texts.append(shown(x)), x)[1])(pb.ones((3, 2)))
    assert texts[0].count("title=") == 0


def test_repr_mimebundle_of_a_module_lists_its_parameters():
    net = pb.nn.Sequential(pb.nn.Linear(2, 3), pb.nn.Linear(3, 1, bias=False))
    html = shown(net)
    for name, shape, numbers in (("0.weight", (3, 2), 6), ("0.bias", (3,), 3)):
        assert f"<tr><td>{name}</td><td>{shape}</td><td>{numbers}</td></tr>" in html
    assert "SGD" in shown(pb.optim.SGD(net.parameters(), lr=0.1))
