"""What `pullback` has at its top, and what its error says of a function that is elsewhere."""

import re

import pytest

import pullback as pb
from pullback.nn import functional

ELSEWHERE = sorted(set(functional.__all__) - set(pb.__all__))


def test_every_name_of_the_table_of_contents_is_there():
    assert [name for name in pb.__all__ if not hasattr(pb, name)] == []
    assert {"Tensor", "tensor", "add", "nn", "linalg", "float32", "__version__"} <= {*pb.__all__}
    assert not {"ops", "core", "arrays", "numpy_protocol", "transforms"} & {*pb.__all__}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_function_of_nn_alone_is_named_by_the_error(name):
    text = f"module 'pullback' has no attribute {name!r}: it is pb.nn.functional.{name}"
    with pytest.raises(AttributeError, match=f"^{re.escape(text)}$"):
        getattr(pb, name)


def test_any_other_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match=r"^module 'pullback' has no attribute 'lineal'$"):
        pb.lineal  # noqa: B018
    assert not hasattr(pb, "linear")


def test_what_torch_has_at_its_top_stays_there_though_it_is_a_function_of_nn():
    for name in ("conv2d", "dropout", "layer_norm", "embedding", "celu", "max_pool2d"):
        assert getattr(pb, name) is getattr(functional, name)
