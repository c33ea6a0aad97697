"""Arrays with a structure: drawn, kept by differences, recognised, asked for in a text."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import draw
from pullback.check.inputs.domains import DOMAINS, recognised
from pullback.check.inputs.shape_text import parse

SHAPES = {word: "(b, n, n)" if domain.square else "(b, n)" for word, domain in DOMAINS.items()}


def drawn(text, seed=0, **sizes):
    (described,) = parse("here", text, None)
    return draw(described, sizes, np.random.default_rng(seed))


@pytest.mark.parametrize("word", DOMAINS)
def test_arrays_of_a_domain_have_its_structure(word):
    for seed in range(20):
        array = drawn(f"x: {SHAPES[word]} {word}", seed, b=2, n=4)
        assert DOMAINS[word].holds(array)
        assert recognised(array) in (word, "spd", "rotation")


@pytest.mark.parametrize("word", [word for word, domain in DOMAINS.items() if domain.project])
def test_the_map_onto_a_domain_leaves_its_members_and_brings_back_what_was_moved(word):
    array = drawn(f"x: {SHAPES[word]} {word}", b=2, n=3)
    project = DOMAINS[word].project
    np.testing.assert_allclose(project(pb.asarray(array)).numpy(), array, 1e-12, 1e-12)
    moved = array + 1e-3 * np.random.default_rng(1).normal(size=array.shape)
    assert not DOMAINS[word].holds(moved)
    assert DOMAINS[word].holds(project(pb.asarray(moved)).numpy())


@pytest.mark.parametrize("word", DOMAINS)
def test_an_operation_that_refuses_other_arrays_is_checked_on_its_domain(word):
    holds = DOMAINS[word].holds if word != "sorted" else lambda a: (np.diff(a) > 0).all()

    def forward(ctx, x):
        if not holds(x.numpy()):
            raise ValueError(f"x has to be {word}")
        ctx.save_for_backward(x=x)
        return x * x * x

    def right(ctx, g):
        return {"x": 3.0 * ctx.saved_variables.x**2 * g}

    def wrong(ctx, g):
        return {"x": 2.0 * ctx.saved_variables.x**2 * g}

    text = f"x: {SHAPES[word]} {word}"
    options = {"skip": ["shapes"], "raise_exception": False}
    assert check_op(pb.autograd_function(forward, right), text, **options).outcome == "right"
    assert check_op(pb.autograd_function(forward, wrong), text, **options).outcome == "wrong"


def test_a_number_may_be_a_size_and_a_function_any_smooth_one():
    seen = []

    @pb.autograd_function
    def padded(ctx, x, length, transform, seed):
        seen.append((length, x.shape[0], seed))
        ctx.save_for_backward(x=x)
        return transform(x)

    @padded.backward
    def _(ctx, g):
        return {"x": g * (1.0 - ctx.saved_variables.x.tanh() ** 2)}

    options = {"only": ["mutation", "first"]}
    assert check_op(padded, "x: (n,), length: n, transform: callable, seed: seed", **options).ok
    assert all(length == n for length, n, _ in seen)


def test_a_plain_array_with_a_structure_suggests_the_word():
    def forward(ctx, a):
        if not np.allclose(a.numpy() @ a.numpy().T, np.eye(2), 0.0, 1e-15):
            raise ValueError("a has to be orthogonal")
        return a * 2.0

    op = pb.autograd_function(forward, lambda ctx, g: {"a": 2.0 * g})
    turned = np.array([[0.6, -0.8], [0.8, 0.6]])
    report = check_op(op, turned, raise_exception=False)
    assert report.outcome == "not checked"
    assert report.notes[-1] == (
        "`a` has the structure rotation: if forward needs that, describe it, so that it is "
        'kept: "a: (2, 2) rotation"'
    )
    assert check_op(op, "a: (2, 2) rotation").outcome == "right"
