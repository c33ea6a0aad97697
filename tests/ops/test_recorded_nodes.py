"""The written call of every operation makes the node that the general path makes."""

import contextlib
import itertools

import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import host

import pullback as pb
from pullback.core.function.record import apply
from pullback.core.graph.modes import ModeContext
from pullback.core.graph.node import MultiNode
from pullback.core.graph.observer import Observer
from pullback.core.tensor.versions import ITSELF, counter_of
from pullback.core.tensor.views import path_of

RECORDED = [case for case in _cases.cases(differentiable=True) if case.has_rules]
every = pytest.mark.parametrize("case", RECORDED, ids=str)


class Calls(Observer):
    """Notes down the calls of one operation."""

    def __init__(self, name):
        self.name, self.found = name, []

    def result(self, op, inputs, results, settings=None, moves=False):
        if op == self.name:
            self.found.append(([host(value).copy() for _, value in inputs], dict(settings)))


def call_of(case):
    """Return the arrays and settings with which the function of a case calls its operation."""
    calls = Calls(case.op.name)
    with ModeContext({"observer": calls}):
        case.results(case.within(_cases.leaves(case.arrays())))
    return calls.found[-1] if calls.found else ([], {})


def subsets(arrays):
    """Return every set of the arrays that can be tracked; of many arrays, each one and all."""
    places = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
    sizes = range(1, len(places) + 1) if len(arrays) <= 3 else {1, len(places)}
    return [set(s) for size in sizes for s in itertools.combinations(places, size)]


def both(op, args, settings):
    """Call an operation as users do, and by the general path; return the lists of results."""
    public, general = op.public(*args, **settings), apply(op, args, dict(settings))
    return tuple(list(r) if op.multi else [r] for r in (public, general))


def node_of(tensor):
    node = tensor._node
    return node.node if node is not None and not node.runs else node


def same(a, b):
    """Return whether two saved values are the same kind of thing, with the same numbers."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if type(a) is not type(b) or (a.dtype, a.shape) != (b.dtype, b.shape):
            return False
        if a.dtype.kind not in "fc":
            return np.array_equal(a, b)
        return np.allclose(a, b, rtol=1e-13, atol=0.0, equal_nan=True)  # another kernel may round
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def compare_nodes(op, ours, theirs, outs, general):
    """Check that two nodes are alike: `ours` of the written call, `theirs` of the general path."""
    assert (type(ours), ours.op) == (type(theirs), theirs.op)
    assert (ours.count, ours.released, ours.extra) == (theirs.count, False, None)
    assert ours.shapes == theirs.shapes
    assert len(ours.record) == len(theirs.record)
    edges = zip(ours.edges, theirs.edges, strict=True)
    assert all(a is b for a, b in edges)
    slots = slice(ours.count, ours.count + op.width)
    for name, a, b in zip(op.layout, ours.record[slots], theirs.record[slots], strict=True):
        assert same(a, b), (name, a, b)
    counters, versions = (slice(ours.count + op.width + i, None, 2) for i in (0, 1))
    for a, b in zip(ours.record[counters], theirs.record[counters], strict=True):
        assert counted_by(a, outs) == counted_by(b, general)
    assert ours.record[versions] == theirs.record[versions]


def counted_by(counter, results):
    """Return the number of the result that a counter in a record counts, or the counter."""
    if counter is ITSELF:
        return 0
    return next((i for i, t in enumerate(results) if counter_of(t) is counter), counter)


def compare_results(op, outs, general):
    """Check that the results of the two calls are alike in everything that a tensor has."""
    for ours, theirs in zip(outs, general, strict=True):
        assert type(ours) is type(theirs)
        assert same(ours._data, theirs._data)
        assert (ours._grad, ours._version) == (None, theirs._version)
        assert (ours._base is None) == (theirs._base is None)
        if ours._base is not None:
            assert ours._base is theirs._base
            assert path_of(ours) == path_of(theirs)
            assert ours._kind is theirs._kind
            assert ours._base_node is theirs._base_node
            assert ours._base_data is theirs._base_data
            assert counter_of(ours) is counter_of(theirs)
        mine, other = node_of(ours), node_of(theirs)
        assert (mine is None) == (other is None)
        if mine is not None:
            compare_nodes(op, mine, other, outs, general)
            if isinstance(mine, MultiNode):
                assert (mine.metas, ours._node.index) == (other.metas, theirs._node.index)


# -- every set of tracked inputs ------------------------------------------------------------------
def test_every_operation_is_called_by_some_sample():
    assert {case.name for case in RECORDED} == {case.name for case in RECORDED if call_of(case)[0]}


@every
def test_the_node_is_that_of_the_general_path_for_every_set_of_tracked_inputs(case):
    arrays, settings = call_of(case)
    for tracked in subsets(arrays):
        tensors = _cases.leaves(arrays, tracked)
        compare_results(case.op, *both(case.op, tensors, settings))


@every
def test_the_node_is_that_of_the_general_path_for_results_and_views(case):
    arrays, settings = call_of(case)
    for tracked in subsets(arrays)[-1:]:
        tensors = _cases.leaves(arrays, tracked)
        tensors = [t * 1 if i in tracked else t for i, t in enumerate(tensors)]
        compare_results(case.op, *both(case.op, tensors, settings))
        tensors = [pb.stack([t, t])[0] for t in tensors]
        compare_results(case.op, *both(case.op, tensors, settings))


@every
@pytest.mark.parametrize("mode", [pb.no_grad, pb.inference_mode])
def test_the_results_are_those_of_the_general_path_where_nothing_is_recorded(case, mode):
    arrays, settings = call_of(case)
    for tracked in [set(), *subsets(arrays)[-1:]] if arrays else []:
        tensors = _cases.leaves(arrays, tracked)
        with mode():
            compare_results(case.op, *both(case.op, tensors, settings))
            tensors = [pb.stack([t, t])[0] for t in tensors]
            compare_results(case.op, *both(case.op, tensors, settings))


# -- numbers and bare arrays ----------------------------------------------------------------------
SEVERAL = [
    case
    for case in RECORDED
    if not case.op.variadic and len(case.op.inputs) > 1 and not case.complex
]


@pytest.mark.parametrize("case", SEVERAL, ids=str)
def test_a_bare_array_in_the_place_of_an_untracked_tensor_gives_the_same_node(case):
    (arrays, settings), op = call_of(case), case.op
    for tracked in subsets(arrays):
        tensors = _cases.leaves(arrays, tracked)
        bare = [t if i in tracked else arrays[i] for i, t in enumerate(tensors)]
        outs, _ = both(op, bare, settings)
        _, general = both(op, tensors, settings)
        for ours, theirs in zip(outs, general, strict=True):
            assert same(ours._data, theirs._data)
            mine, other = node_of(ours), node_of(theirs)
            assert (mine is None) == (other is None)
            if mine is None:
                continue
            kept, wanted = (n.record[n.count : n.count + op.width] for n in (mine, other))
            assert same(kept, wanted)
            assert all(a is b for a, b in zip(mine.edges, other.edges, strict=True))
            for i, array in enumerate(arrays):
                if i not in tracked:  # the caller's memory, which may change before backward
                    memory = [v for v in kept if isinstance(v, np.ndarray) and v.size]
                    assert not any(np.may_share_memory(v, array) for v in memory)


@pytest.mark.parametrize("case", SEVERAL, ids=str)
def test_a_number_in_the_place_of_an_untracked_tensor_gives_the_same_gradients(case):
    (arrays, settings), op = call_of(case), case.op
    for tracked in subsets(arrays):
        tensors = _cases.leaves(arrays, tracked)
        floating = {i for i, a in enumerate(arrays) if a.dtype.kind == "f"}
        values = [0.75 if i in floating - tracked else t for i, t in enumerate(tensors)]
        found = []
        for call in (op.public, lambda *args, **more: apply(op, args, more)):
            with contextlib.suppress(pb.AutogradError):
                outs = call(*values, **settings)
                outs = list(outs) if op.multi else [outs]
                wanted = [tensors[i] for i in tracked]
                seeds = [pb.ones_like(out) for out in outs]
                grads = pb.autograd.grad(outs, wanted, seeds, materialize_grads=True)
                found.append([host(x) for x in (*outs, *grads)])
        assert len(found) in (0, 2)
        assert len(found) == 0 or same(*found)
