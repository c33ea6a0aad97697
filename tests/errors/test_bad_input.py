"""Bad input to every public operation: a complete message of pullback's own, and nothing changed.

The calls are drawn from the declarations, one category a test.
"""

import inspect

import pytest
from tests.errors import _bad_input as bad
from tests.errors._bad_input import PUBLIC, REGISTRY

ANY_PART = "either part makes a number infinite or NaN"
SINGULAR = "bools count as numbers, and these make a singular matrix"
# (operation, category, call): why it is right that the call computes, or says something else.
RIGHT_AS_IT_IS = {
    ("roll", "axis_repeated", "axis=(0, 0)"): "the shifts along one axis add up, as in NumPy",
    ("roll", "axis_repeated", "axis=(0, -2)"): "the shifts along one axis add up, as in NumPy",
    ("roll", "axis_repeated", "axis=(0, -1)"): "the shifts along one axis add up, as in NumPy",
    ("isfinite", "wrong_dtype", "input 0 complex128"): ANY_PART,
    ("isinf", "wrong_dtype", "input 0 complex128"): ANY_PART,
    ("isnan", "wrong_dtype", "input 0 complex128"): ANY_PART,
    ("cholesky", "wrong_dtype", "input 0 complex128"): "complex is fine, not Hermitian is not",
    ("tensorinv", "wrong_dtype", "input 0 bool"): SINGULAR,
    ("tensorsolve", "wrong_dtype", "input 0 bool"): SINGULAR,
    ("tensorsolve", "wrong_dtype", "all bool"): SINGULAR,
    ("batch_norm", "no_array", "input 1 NoneType"): "in training there need be no statistics",
    ("batch_norm", "no_array", "input 2 NoneType"): "in training there need be no statistics",
}


def check(name, category, builtin, every_sample, *, may_compute=False):
    """Make the wrong calls of a category and report what each error lacks."""
    found, ignored = {}, {}
    for wrong in bad.wrongs(category, name, every_sample):
        came = bad.outcome(name, wrong)
        lacking = [f"changed the {part}" for part in came.changed]
        if came.error is not None:
            lacking += bad.lacks(name, wrong, came.error, builtin)
        elif not may_compute:
            lacking.append("computes")
        is_complex = category is bad.wrong_dtype and bad.is_complex(wrong)
        if every_sample and is_complex and came.results is not None:
            ignores = bad.ignores_the_imaginary_part(name, wrong, came.results)
            ignored.setdefault(wrong.label, []).append(ignores)
        if lacking:
            found.setdefault(wrong.label, []).extend(lacking)
    for label, answers in ignored.items():
        if all(answers):  # an empty sample, or a lucky one, says nothing
            found.setdefault(label, []).append("ignores the imaginary part")
    excused = {label for op, of, label in RIGHT_AS_IT_IS if (op, of) == (name, category.__name__)}
    assert {k: v for k, v in found.items() if k not in excused} == {}
    assert excused <= set(found) or not every_sample, "an exception that is not needed"


def every(test):
    """Run a test on every operation, on all of its samples under stress."""
    stress = pytest.param(True, marks=pytest.mark.stress, id="every sample")
    samples = pytest.mark.parametrize("every_sample", [pytest.param(False, id="one"), stress])
    return pytest.mark.parametrize("name", PUBLIC)(samples(test))


@every
def test_an_axis_out_of_range(name, every_sample):
    check(name, bad.axis_out_of_range, IndexError, every_sample)


@every
def test_an_axis_of_a_wrong_type(name, every_sample):
    check(name, bad.axis_of_a_wrong_type, TypeError, every_sample)


@every
def test_an_axis_twice(name, every_sample):
    check(name, bad.axis_repeated, (ValueError, TypeError), every_sample)


@every
def test_a_wrong_rank(name, every_sample):
    check(name, bad.wrong_rank, (ValueError, IndexError), every_sample, may_compute=True)


@every
def test_a_wrong_length(name, every_sample):
    check(name, bad.wrong_length, (ValueError, IndexError), every_sample, may_compute=True)


@every
def test_a_wrong_dtype(name, every_sample):
    check(name, bad.wrong_dtype, TypeError, every_sample, may_compute=True)


@every
def test_two_libraries(name, every_sample):
    check(name, bad.mixed_libraries, RuntimeError, every_sample)


@every
def test_no_array(name, every_sample):
    check(name, bad.no_array, TypeError, every_sample)


@pytest.mark.parametrize("name", [name for name in PUBLIC if not bad.takes_any_number(name)])
def test_no_argument_at_all(name):
    function = REGISTRY[name].public
    with pytest.raises(TypeError, match=function.__name__):
        function()


@pytest.mark.parametrize("name", PUBLIC)
def test_an_unknown_keyword(name):
    function = REGISTRY[name].public
    arrays = bad.right(name).arrays
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:  # further arrays of a sample are settings
        arrays = arrays[: len(kinds) - kinds.count(inspect.Parameter.KEYWORD_ONLY)]
    with pytest.raises(TypeError, match=rf"{function.__name__}.*unheard_of"):
        function(*arrays, unheard_of=1)


def test_every_exception_is_about_a_call_that_is_made():
    categories = {category for _, category, _ in RIGHT_AS_IT_IS}
    made = {
        (name, category, wrong.label)
        for name in {name for name, _, _ in RIGHT_AS_IT_IS}
        for category in categories
        for wrong in bad.wrongs(getattr(bad, category), name)
    }
    assert set(RIGHT_AS_IT_IS) <= made
