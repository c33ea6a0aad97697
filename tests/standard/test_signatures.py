"""Every function of the Array API standard is there, with the standard's signature.

The reference is array-api-strict, which has the standard's functions and nothing else.
"""

import inspect

import array_api_strict
import pytest

import pullback as pb

POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY

# Of a later version of the standard.
LATER = {"isin"}
# The name of each function; a name in `linalg` or `fft` with a dot.
FUNCTIONS = [
    *(
        name
        for name in array_api_strict.__all__
        if inspect.isfunction(getattr(array_api_strict, name))
        and not name.endswith("array_api_strict_flags")
        and name not in LATER
    ),
    *(f"linalg.{name}" for name in array_api_strict.linalg.__all__),
    *(f"fft.{name}" for name in array_api_strict.fft.__all__),
]
ARRAY = type(array_api_strict.ones(1))
METHODS = [
    name
    for name, value in vars(ARRAY).items()
    if inspect.isfunction(value) and name not in ("_new", "__new__", "__reduce__", "__buffer__")
    if name.startswith("__") or not name.startswith("_")
]
ATTRIBUTES = [name for name, value in vars(ARRAY).items() if isinstance(value, property)]
# How a parameter is printed of which array-api-strict can tell that it was not given.
NOT_GIVEN = "Undef.UNDEF"


def find(namespace, dotted):
    for name in dotted.split("."):
        namespace = getattr(namespace, name)
    return namespace


def parameters(function):
    """Return the parameters of a function, with nothing of their types."""
    found = inspect.signature(function).parameters.values()
    return [p.replace(annotation=p.empty, default=default(p)) for p in found]


def default(parameter):
    return None if str(parameter.default) == NOT_GIVEN else parameter.default


def differences(ours, theirs):
    """Say what the parameters `ours` lack of `theirs`; further keyword-only ones are welcome."""
    found = []
    positional = [p for p in theirs if p.kind in (POSITIONAL, EITHER)]
    for number, expected in enumerate(positional):
        if number >= len(ours) or ours[number].kind is not expected.kind:
            found.append(f"parameter {number}: {expected}")
        elif expected.kind is EITHER and ours[number].name != expected.name:
            found.append(f"name of parameter {number}: {expected.name}")
        elif ours[number].default != expected.default:
            found.append(f"default of parameter {number}: {expected}")
    further = [p for p in ours[len(positional) :] if p.kind in (POSITIONAL, EITHER)]
    found += [f"not in the standard: {p}" for p in further]
    keywords = {p.name: p for p in ours if p.kind is KEYWORD}
    for expected in (p for p in theirs if p.kind is KEYWORD):
        mine = keywords.get(expected.name)
        if mine is None or mine.default != expected.default:
            found.append(f"keyword {expected}")
    if any(p.kind is p.VAR_POSITIONAL for p in theirs):
        found += [] if any(p.kind is p.VAR_POSITIONAL for p in ours) else ["*arguments"]
    return found


def test_the_functions_of_the_standard_are_found():
    assert {"asarray", "matmul", "sort", "linalg.qr", "fft.rfft"} <= set(FUNCTIONS)
    assert {"__add__", "__imatmul__", "__dlpack__", "to_device"} <= set(METHODS)
    assert len(FUNCTIONS) > 160
    assert len(METHODS) > 60


# They take PyTorch's arguments as well.
EXTENDED = {"tensordot", "linalg.tensordot"}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in EXTENDED])
def test_a_function_has_the_signature_of_the_standard(name):
    ours, theirs = find(pb, name), find(array_api_strict, name)
    assert differences(parameters(ours), parameters(theirs)) == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_the_arguments_of_the_standard(name):
    theirs = parameters(getattr(ARRAY, name))
    values = [object() for p in theirs if p.kind in (POSITIONAL, EITHER)]
    keywords = {p.name: p.default for p in theirs if p.kind is KEYWORD}
    inspect.signature(getattr(pb.Tensor, name)).bind(*values, **keywords)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_of_the_standard_is_there(name):
    assert hasattr(pb.ones((2, 2)), name)


@pytest.mark.parametrize("name", ["default_device", "default_dtypes", "dtypes", "devices"])
def test_the_namespace_info_has_the_signatures_of_the_standard(name):
    ours = getattr(pb.__array_namespace_info__(), name)
    theirs = getattr(array_api_strict.__array_namespace_info__(), name)
    assert differences(parameters(ours), parameters(theirs)) == []


# -- the comparison itself ------------------------------------------------------------------------
def standard(x, /, axis=0, *, dtype=None): ...


DIFFERENT = [
    (lambda x, axis=0, *, dtype=None: ..., "parameter 0: x"),
    (lambda x, /, dim=0, *, dtype=None: ..., "name of parameter 1: axis"),
    (lambda x, /, axis=1, *, dtype=None: ..., "default of parameter 1: axis=0"),
    (lambda x, /, *, axis=0, dtype=None: ..., "parameter 1: axis=0"),
    (lambda x, /, axis=0: ..., "keyword dtype=None"),
    (lambda x, /, axis=0, *, dtype=1: ..., "keyword dtype=None"),
    (lambda x, /, axis=0, more=0, *, dtype=None: ..., "not in the standard: more=0"),
]


@pytest.mark.parametrize(("function", "difference"), DIFFERENT, ids=[d for _, d in DIFFERENT])
def test_a_difference_is_seen(function, difference):
    assert differences(parameters(function), parameters(standard)) == [difference]


def test_further_keywords_are_no_difference():
    def mine(y, /, axis=0, *more, dtype=None, out=None): ...

    assert differences(parameters(mine), parameters(standard)) == []
