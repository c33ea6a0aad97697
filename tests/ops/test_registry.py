"""Every declared operation: value, dtypes, memory, array libraries, what is kept.

The tests are drawn from the declarations: an operation that is declared is tested here, with no
test written for it but its reference value (a line in `_cases`).
"""

import inspect
import re
import weakref

import array_api_strict
import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import LAYOUTS, REGISTRY, every, host, mostly

import pullback as pb

CASES = _cases.cases()
SMOOTH = _cases.cases(differentiable=True)
SAME = {"rtol": 1e-12, "atol": 1e-13}


def agree(ours, theirs, **tolerance):
    """Check two lists of arrays for shape, dtype and values."""
    for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), number
        np.testing.assert_allclose(a, b, err_msg=str(number), **tolerance)


# -- the declarations -----------------------------------------------------------------------------
def test_every_declaration_has_a_reference_value_and_no_reference_is_left_over():
    assert set(REGISTRY) == set(_cases.REFERENCES)
    assert set(REGISTRY) >= {*_cases.RESULTS}
    declared = {name for name, declaration in REGISTRY.items() if declaration.reference}
    assert declared & _cases.LONG_REFERENCES.keys() == set()


@pytest.mark.parametrize("name", REGISTRY)
def test_every_declaration_is_complete(name):
    declaration = REGISTRY[name]
    op = declaration.primitive
    assert declaration.samples != ()
    assert op.differentiable == bool(op.declared or op.vjp_all)
    assert set(op.declared) <= set(op.inputs)
    assert set(declaration.domain) >= set(op.inputs)
    assert declaration.public.__doc__


def test_the_samples_cover_scalars_and_empty_arrays():
    def have(shape_is):
        return {c.name for c in CASES if any(map(shape_is, c.sample.shapes))}

    no_scalars = {name for name, declaration in REGISTRY.items() if not declaration.scalars}
    assert set(REGISTRY) - have(lambda shape: shape == ()) <= no_scalars
    assert len(have(lambda shape: 0 in shape)) > 60


# -- value and derivatives ------------------------------------------------------------------------
@every(CASES)
def test_the_value_is_that_of_numpy_or_of_a_plain_formula(case):
    arrays = case.arrays()
    results = [host(out) for out in case.call(_cases.leaves(arrays))]
    agree(results, _cases.expected(case, arrays), rtol=1e-12, atol=1e-14)


@every(SMOOTH)
def test_recording_the_backward_changes_no_gradient(case):
    arrays = case.arrays()
    tensors = _cases.leaves(arrays, case.wanted)
    seeds = _cases.seeds_for(case.call(tensors), case.rng())
    recorded = [host(g) for g in _cases.gradients(case, tensors, seeds, create_graph=True)]
    agree(recorded, _cases.first_order(case, arrays, seeds), **SAME)


# -- dtypes ---------------------------------------------------------------------------------------
DTYPES = [
    (case, dtype)
    for case in CASES
    for dtype in (("complex64", "complex128") if case.complex else ("float32", "float64"))
]


@pytest.mark.parametrize(("case", "dtype"), DTYPES, ids=lambda value: str(value))
def test_results_and_gradients_have_the_dtype_of_the_inputs(case, dtype):
    arrays = case.arrays(dtype)
    tensors = _cases.leaves(arrays, case.wanted)
    outputs = case.call(tensors)
    assert {out.dtype.name for out in outputs} == set(_cases.expected_dtypes(case, dtype))
    if not case.wanted:
        return
    seeds = _cases.seeds_for(outputs, case.rng())
    ours = [host(g) for g in _cases.gradients(case, tensors, seeds)]
    exact = _cases.first_order(case, case.arrays(), [wide(s) for s in seeds])
    exact = [g.astype(arrays[i].dtype) for g, i in zip(exact, case.wanted, strict=True)]
    agree(ours, exact, rtol=2e-4, atol=2e-5)


def wide(array):
    return array.astype(np.promote_types(array.dtype, np.float64))


# -- memory ---------------------------------------------------------------------------------------
def values(case, arrays):
    """Return a case's values, and check that the inputs were not written to."""
    before = [a.tobytes() for a in arrays]
    outputs = [host(out).copy() for out in case.call(_cases.leaves(arrays))]
    assert [a.tobytes() for a in arrays] == before
    return outputs


@pytest.mark.parametrize("layout", LAYOUTS)
@every([case for case in CASES if not case.wanted])
def test_the_layout_of_inputs_without_gradient_does_not_matter(case, layout):
    arrays = case.arrays()
    agree(values(case, [LAYOUTS[layout](a) for a in arrays]), values(case, arrays), **SAME)


@every(CASES)
def test_a_result_that_is_no_view_has_memory_of_its_own(case):
    arrays = case.arrays()
    tensors = _cases.leaves(arrays)
    for out in case.call(tensors):
        if out._base is None and not any(out is t for t in tensors):
            assert not any(np.may_share_memory(host(out), a) for a in arrays)


# -- array libraries ------------------------------------------------------------------------------
def on_strict(arrays):
    return [array_api_strict.asarray(a) for a in arrays]


@every(CASES)
def test_array_api_strict_gives_the_same_values(case):
    arrays = case.arrays()
    ours = case.call(_cases.leaves(on_strict(arrays)))
    theirs = case.call(_cases.leaves(arrays))
    agree([host(out) for out in ours], [host(out) for out in theirs], **SAME)


@mostly(SMOOTH)
def test_array_api_strict_gives_the_same_gradients_of_both_orders(case):
    arrays = case.arrays()
    outputs = case.call(_cases.leaves(arrays))
    seeds = _cases.seeds_for(outputs, case.rng())
    weights = [_cases.random_like(arrays[i], case.rng()) for i in case.wanted]
    theirs = _cases.first_order(case, arrays, seeds)
    theirs += _cases.second_order(case, arrays, seeds, weights)
    seeds = seeds if case.name == "toDevice" else on_strict(seeds)  # that op's results are NumPy's
    arrays, weights = on_strict(arrays), on_strict(weights)
    ours = _cases.first_order(case, arrays, seeds)
    ours += _cases.second_order(case, arrays, seeds, weights)
    agree(ours, theirs, **SAME)


# -- Python's numbers ------------------------------------------------------------------------------
def second_order(case, arguments, tensor):
    """Return the result, its gradient and that one's, None where there is none."""
    result = case.declaration.call(*arguments)
    (first,) = pb.autograd.grad(result.sum(), [tensor], create_graph=True)
    if not first.requires_grad:
        return [result, first]
    return [result, first, *pb.autograd.grad((first * first).sum(), [tensor], allow_unused=True)]


BESIDE_A_NUMBER = [
    (case, i)
    for case in SMOOTH
    if case.has_rules and case.number == 0 and not case.complex
    if case.op.broadcasts and len(case.op.inputs) == 2
    for i in case.wanted
    if case.declaration.scalars
]


@pytest.mark.parametrize(("case", "tracked"), BESIDE_A_NUMBER, ids=str)
def test_a_python_number_gives_what_a_tensor_without_dimensions_gives(case, tracked):
    arrays = case.arrays()
    number = float(arrays[1 - tracked].flat[0])
    found = []
    for other in (number, pb.tensor(np.array(number))):
        tensor = pb.tensor(arrays[tracked], requires_grad=True)
        arguments = [tensor, other] if tracked == 0 else [other, tensor]
        found.append(second_order(case, arguments, tensor))
    agree(*([host(value) for value in values if value is not None] for values in found), **SAME)


# -- what is kept ---------------------------------------------------------------------------------
def named_by_rules(case, tracked):
    """Return what the rules of the tracked inputs name, read off their signatures."""
    rules = [case.op.vjp_all, *(case.op.declared.get(case.op.inputs[i]) for i in tracked)]
    named = {name for rule in rules if rule for name in inspect.signature(rule).parameters}
    return named - {"g"}  # always the gradient, also where an input has that name


KEEPING = [
    (case, tracked)
    for case in SMOOTH
    if case.number == 0 and case.has_rules and not case.op.view and not case.op.variadic
    for tracked in ([i] for i in case.wanted)
]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(("case", "tracked"), KEEPING, ids=str)
def test_an_input_that_no_rule_of_a_tracked_input_names_is_not_kept(case, tracked):
    arrays = [host(t) for t in case.within(_cases.leaves(case.arrays()))]
    tensors = [t * 1 if t.dtype.is_inexact else t.clone() for t in _cases.leaves(arrays, tracked)]
    named = named_by_rules(case, tracked)
    alive = [weakref.ref(t._data) for t in tensors]
    pairs = zip(case.op.inputs, tensors, strict=True)
    floating = {name for name, t in pairs if t.dtype.is_inexact}
    output = case.results(tensors)[0]
    del tensors, arrays, pairs
    kept = {name for name, ref in zip(case.op.inputs, alive, strict=True) if ref() is not None}
    assert kept <= named
    assert kept >= named & floating  # a mask may be kept as numbers
    result = weakref.ref(output._data)
    further = -output  # keeps nothing of its own
    del output
    assert (result() is not None) == (case.op.results[0] in named)
    del further
    assert [ref() for ref in (*alive, result)] == [None] * (len(alive) + 1)


# -- in place -------------------------------------------------------------------------------------
# Their methods take the arguments in other places, or do more; test_inplace.py has them.
OTHERWISE = {"index_put", "index_reduce", "masked_scatter", "put", "scatter_reduce"}

KEEP_THEIR_SHAPE = {"squeeze", "t", "transpose", "unsqueeze"}  # those methods raise


def twin_of(case):
    """Return the method of Tensor that does the operation in place, if there is one."""
    if case.name in OTHERWISE | KEEP_THEIR_SHAPE:
        return None
    if case.name == "setitem":
        return lambda x, value, *, index: x.__setitem__(index, value)
    names = [f"{name}_" for name in (case.name, *case.declaration.names)]
    twin = next((getattr(pb.Tensor, name) for name in names if hasattr(pb.Tensor, name)), None)
    if twin is not None and by_index(case):
        return lambda x, index, src, *, axis: twin(x, axis, index, src)
    return twin


def by_index(case):
    """Return whether it writes by index: those methods take the dimension first."""
    return case.op.inputs[1:2] == ("index",)


def keeps_its_shape(case):
    result = case.call(_cases.leaves(case.arrays()))[0]
    return case.name == "setitem" or result.shape == case.sample.shapes[0]


IN_PLACE = [case for case in SMOOTH if twin_of(case) and keeps_its_shape(case)]


def test_the_in_place_twins_are_found():
    assert {case.name for case in IN_PLACE} >= {
        *("abs", "add", "ceil", "clamp", "copy", "cos", "div", "exp", "fill", "floor", "log"),
        *("masked_fill", "mul", "neg", "pow", "reciprocal", "relu", "round", "setitem"),
        *("sigmoid", "sin", "sqrt", "square", "sub", "tanh"),
    }


@every([case for case in IN_PLACE if not (case.complex and case.name == "abs")])
def test_the_in_place_twin_gives_the_same_value_and_gradients(case):
    arrays = case.arrays()
    outside = _cases.leaves(arrays, case.wanted)
    result = case.call(outside)
    seeds = _cases.seeds_for(result, case.rng())
    gradients = [host(g) for g in _cases.gradients(case, outside, seeds)]

    inside = _cases.leaves(arrays, case.wanted)
    changed = inside[0].clone()
    returned = twin_of(case)(changed, *inside[1:], **case.settings())
    assert returned is (None if case.name == "setitem" else changed)
    assert changed._version == 1
    wanted = [inside[i] for i in case.wanted]
    ours = pb.autograd.grad(changed, wanted, pb.asarray(seeds[0]), materialize_grads=True)
    agree([host(changed)], [host(result[0])], **SAME)
    agree([host(g) for g in ours], gradients, **SAME)


# -- no gradient ----------------------------------------------------------------------------------
@every([case for case in CASES if not case.op.differentiable])
def test_an_operation_without_a_derivative_does_not_require_grad(case):
    arrays = case.arrays()
    inexact = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
    outputs = case.call(_cases.leaves(arrays, inexact))
    assert [out.requires_grad for out in outputs] == [False] * len(outputs)
    assert [out.grad_fn for out in outputs] == [None] * len(outputs)


BY_MASK = {"masked_select", "masked_put"}  # index by a mask, which has to be one
UNUSED = [
    case
    for case in SMOOTH
    if case.has_rules and None in case.op.declared.values() and case.name not in BY_MASK
]


@every(UNUSED)
def test_an_input_declared_without_gradient_keeps_none(case):
    arrays = [a.astype(np.float64) for a in case.arrays("float64")]
    tensors = _cases.leaves(arrays, range(len(arrays)))
    case.op.public(*tensors, **case.settings()).sum().backward()
    assert [t.grad is None for t in tensors] == [i not in case.wanted for i in range(len(arrays))]


def said_to_have_no_rule(docstring):
    """Return the parameters of which a docstring says that they have no rule."""
    section = inspect.cleandoc(docstring).partition("Parameters\n----------\n")[2]
    entries = re.findall(r"^(\w[\w, ]*) : .*\n((?:    .*\n|\n)+)", section + "\n", re.MULTILINE)
    texts = ((names, " ".join(text.split())) for names, text in entries)
    return [n for names, text in texts if "no rule" in text for n in names.split(", ")]


def test_no_docstring_says_no_rule_of_an_argument_that_has_one():
    found = {
        (name, parameter): getattr(declaration.primitive, "declared", {}).get(parameter)
        for name, declaration in REGISTRY.items()
        for parameter in said_to_have_no_rule(declaration.public.__doc__ or "")
    }
    assert len(found) >= 3
    assert [pair for pair, rule in found.items() if rule is not None] == []
    assert said_to_have_no_rule(
        "Do.\n\nParameters\n----------\na, b : float\n    No: no rule.\n"
    ) == [*("a", "b")]
