"""No function of NumPy falls through to a conversion: each maps to a counterpart or raises."""

import inspect

import numpy as np
import numpy.fft
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions
from scipy import special
from tests.numpy_protocol._calls import CALLS, INTEGERS, UFUNCS
from tests.numpy_protocol._document import MAPPED, UFUNCS as UFUNC_NAMES

import pullback as pb
from pullback.numpy_protocol.arguments import ADAPTERS
from pullback.numpy_protocol.protocol import names, ufunc_counterpart
from pullback.numpy_protocol.renamings import renamed
from pullback.numpy_protocol.table import (
    ARRAYS_LIKE,
    NO_COUNTERPART,
    OF_VALUES,
    REDUCING,
)
from pullback.ops.declare import NUMPY

# What the lists are compared with: since then, compiled functions tell what they take.
pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="the lists are those of NumPy 2.4"
)
OVERRIDABLE = get_overridable_numpy_array_functions()
SPACES = {
    "": np,
    "linalg.": np.linalg,
    "fft.": np.fft,
    "lib.stride_tricks.": np.lib.stride_tricks,
}
FUNCTIONS = sorted(
    {
        (prefix + name, getattr(space, name))
        for prefix, space in SPACES.items()
        for name in dir(space)
        if callable(getattr(space, name)) and getattr(space, name) in OVERRIDABLE
    },
    key=lambda pair: pair[0],
)


def counterpart_of(name):
    return ADAPTERS.get(name) or renamed(name)


def kinds_of(name):
    """Return in which of the lists a function stands."""
    lists = (ADAPTERS, NUMPY, OF_VALUES, ARRAYS_LIKE, NO_COUNTERPART)
    return [i for i, listed in enumerate(lists) if name in listed]


def test_there_are_functions_to_look_at():
    assert len(FUNCTIONS) > 250
    assert len(UFUNC_NAMES) >= 90


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_every_function_that_dispatches_is_in_one_list(name, function):
    listed = names()[function]  # one of its names, where it has several
    assert len(kinds_of(listed)) == 1


@pytest.mark.parametrize("name", UFUNC_NAMES)
def test_every_ufunc_has_a_counterpart_or_a_reason(name):
    mapped = name in ADAPTERS or name in OF_VALUES or name in NUMPY or hasattr(pb, name)
    assert mapped != (name in NO_COUNTERPART)


@pytest.mark.parametrize("name", sorted(MAPPED))
def test_a_counterpart_takes_the_arguments_of_numpys_function(name):
    prefix, _, short = name.rpartition(".")
    function = getattr(SPACES[f"{prefix}." if prefix else ""], short)
    if isinstance(function, np.ufunc):
        assert function.nin == len(inspect.signature(counterpart_of(name)).parameters)
        return
    theirs = inspect.signature(function).parameters
    ours = list(inspect.signature(counterpart_of(name)).parameters)
    assert [p for p in ours if p not in theirs] == []


@pytest.mark.parametrize("name", sorted(MAPPED))
def test_every_counterpart_is_called_in_the_tests(name):
    other_name = {"amax": "max", "amin": "min", "round": "around"}.get(name, name)
    written_to = {"copyto", "fill_diagonal"}  # in test_protocol.py
    assert other_name in {**CALLS, **UFUNCS, **INTEGERS, **dict.fromkeys(written_to)}


@pytest.mark.parametrize("name", sorted(NO_COUNTERPART))
def test_what_has_no_counterpart_raises_by_name_and_says_why(name):
    prefix, _, short = name.rpartition(".")
    function = getattr(SPACES[f"{prefix}." if prefix else ""], short)
    t = pb.tensor([1.0, 2.0, 3.0])
    given = len(_required(function))
    with pytest.raises(TypeError) as caught:
        function(*(t,) * given)
    message = str(caught.value)
    assert isinstance(caught.value, pb.AutogradError)
    assert message.startswith(f"np.{name}: ")
    assert NO_COUNTERPART[name] in message
    assert f"np.{name}(t.detach().numpy(), ...)" in message


def _required(function):
    if isinstance(function, np.ufunc):
        return ["x"] * function.nin
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]


def test_a_function_of_another_module_raises_by_name():
    with pytest.raises(TypeError, match=r"^np\.lib\.scimath\.sqrt: a function that has a counterp"):
        np.emath.sqrt(pb.tensor([1.0]))


@pytest.mark.parametrize(("ufunc", "method"), sorted(REDUCING))
def test_a_method_of_a_ufunc_is_the_reduction_over_the_first_axis(ufunc, method):
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 4))
    call = getattr(getattr(np, ufunc), method)
    t = pb.tensor(x, requires_grad=True)
    np.testing.assert_allclose(call(t).detach().numpy(), call(x), rtol=1e-12)
    np.testing.assert_allclose(call(t, axis=1).detach().numpy(), call(x, axis=1), rtol=1e-12)
    assert call(t).requires_grad is (ufunc not in ("logical_and", "logical_or"))


def test_the_table_is_built_once():
    assert ufunc_counterpart(np.sin) is ufunc_counterpart(np.sin) is pb.sin


# SciPy's ufuncs, whose names may mean something else here ------------------------------------


@pytest.mark.parametrize("name", ["erf", "psi", "expit", "gammaln", "xlogy", "ndtri", "i0", "entr"])
def test_a_ufunc_of_scipys_is_the_operation_that_computes_the_same(name):
    ufunc = getattr(special, name)
    arrays = [np.linspace(0.2, 0.8, 4)] * ufunc.nin
    leaves = [pb.tensor(x, requires_grad=True) for x in arrays]
    result = ufunc(*leaves)
    assert result.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), ufunc(*arrays), rtol=1e-12)


@pytest.mark.parametrize("name", ["kl_div", "huber", "poch"])
def test_another_ufunc_of_scipys_raises_by_its_own_name(name):
    ufunc = getattr(special, name)
    t = pb.tensor([0.5, 1.5])
    with pytest.raises(TypeError, match=rf"^scipy\.special\.{name}: a function that has a coun"):
        ufunc(*(t,) * ufunc.nin)


def test_scipys_names_are_those_of_the_public_module():
    for name in pb.special.__all__:
        ufunc = getattr(special, name)
        # sinc, polygamma and zeta are no ufuncs; exp2, expm1 and log1p are those of NumPy's table.
        if isinstance(ufunc, np.ufunc) and not hasattr(np, name):
            assert ufunc_counterpart(ufunc) is getattr(pb.special, name)
