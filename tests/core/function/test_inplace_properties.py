"""In-place programs on bases and views do what the same program does out of place.

Random programs make views of views of a base, change them in place and read them in between. The
model keeps the base as one flat tensor that is never changed: a view is an array of positions in
it, and a change makes a new flat tensor with the positions replaced. Values and gradients agree.
"""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.tensors import leaf

import pullback as pb
from pullback.errors import InplaceError

# name: (of a tensor, of an array, whether it applies to a shape)
VIEWS = {
    "rest": (lambda t: t[1:], lambda a: a[1:], lambda s: len(s) > 0 and s[0] > 1),
    "first": (lambda t: t[0], lambda a: a[0], lambda s: len(s) > 0),
    "last": (lambda t: t[..., -1:], lambda a: a[..., -1:], lambda s: len(s) > 0),
    "every second": (lambda t: t[..., ::2], lambda a: a[..., ::2], lambda s: len(s) > 0),
    "reversed": (lambda t: t[::-1], lambda a: a[::-1], lambda s: len(s) > 0),
    "new axis": (lambda t: t.unsqueeze(0), lambda a: a[None], lambda s: len(s) < 3),
    "squeezed": (lambda t: t.squeeze(0), lambda a: a[0], lambda s: len(s) > 0 and s[0] == 1),
    "transposed": (
        lambda t: t.transpose(0, -1),
        lambda a: np.swapaxes(a, 0, -1),
        lambda s: len(s) > 1,
    ),
    "flat": (lambda t: t.reshape(-1), lambda a: a.reshape(-1), lambda s: len(s) > 0),
    "diagonal": (lambda t: t.diagonal(), lambda a: np.diagonal(a), lambda s: len(s) == 2),
    "whole": (lambda t: t[...], lambda a: a[...], lambda s: True),
}

# name: (in place, out of place); `p` is a parameter tensor of the view's shape
CHANGES = {
    "scale": (lambda t, p: t.mul_(1.5), lambda t, p: t * 1.5),
    "shift": (lambda t, p: t.add_(0.25), lambda t, p: t + 0.25),
    "negate": (lambda t, p: t.neg_(), lambda t, p: -t),
    "add a parameter": (lambda t, p: t.add_(p), lambda t, p: t + p),
    "subtract a parameter": (lambda t, p: t.sub_(p), lambda t, p: t - p),
    "multiply by a parameter": (lambda t, p: t.mul_(p), lambda t, p: t * p),
    "square": (lambda t, p: t.pow_(2), lambda t, p: t**2),
    "sine": (lambda t, p: t.sin_(), lambda t, p: t.sin()),
    "add itself": (lambda t, p: t.add_(t), lambda t, p: t + t),
    "multiply by a copy of itself": (lambda t, p: t.mul_(t.clone()), lambda t, p: t * t),
    "copy a parameter": (lambda t, p: t.copy_(p), lambda t, p: t * 0.0 + p),
    "zero": (lambda t, p: t.zero_(), lambda t, p: t * 0.0),
    "fill": (lambda t, p: t.fill_(0.5), lambda t, p: t * 0.0 + 0.5),
    "assign a parameter": (lambda t, p: t.__setitem__(..., p), lambda t, p: t * 0.0 + p),
    "assign a number": (lambda t, p: t.__setitem__(..., 2.0), lambda t, p: t * 0.0 + 2.0),
    "augmented": (lambda t, p: t.__imul__(p * 2.0), lambda t, p: t * (p * 2.0)),
    "clamp": (lambda t, p: t.clamp_(min=-0.5, max=1.0), lambda t, p: t.clamp(min=-0.5, max=1.0)),
    "masked fill": (
        lambda t, p: t.masked_fill_(p.detach() > 1.0, 3.0),
        lambda t, p: pb.where(p.detach() > 1.0, t * 0.0 + 3.0, t),
    ),
}
# These may keep their result, which a later change of the same memory makes stale.
KEEPING = {
    "exponential": (lambda t, p: t.exp_(), lambda t, p: t.exp()),
    "tanh": (lambda t, p: t.tanh_(), lambda t, p: t.tanh()),
    "divide by a parameter": (lambda t, p: t.div_(p), lambda t, p: t / p),
    "sigmoid": (lambda t, p: t.sigmoid_(), lambda t, p: t.sigmoid()),
    "multiply by itself": (lambda t, p: t.mul_(t), lambda t, p: t * t),
}
READS = {
    "sum": lambda t: t.sum(),
    "square of a copy": lambda t: (t.clone() ** 2).sum(),
    "expanded": lambda t: (t.unsqueeze(0) * 2.0).sum(),
}


class Program:
    """One program, run in place on tensors and out of place on the model at the same time."""

    def __init__(self, shape, tracked):
        rng = np.random.default_rng(0)
        count = int(np.prod(shape))
        start = rng.uniform(0.5, 1.5, count)
        pool = rng.uniform(0.5, 1.5, 18)
        self.leaves = [pb.tensor(v, requires_grad=True) for v in (start, pool)]
        self.model_leaves = [pb.tensor(v, requires_grad=True) for v in (start, pool)]
        if tracked:
            base = (self.leaves[0] * 1.0).reshape(*shape).clone()
            self.flat = self.model_leaves[0] * 1.0
        else:
            base = pb.tensor(start.reshape(shape))
            self.flat = pb.tensor(start)
        self.handles = [base]
        self.positions = [np.arange(count).reshape(shape)]
        self.loss = self.leaves[0].sum() * 0.0
        self.model_loss = self.model_leaves[0].sum() * 0.0
        self.changed_since_kept = False
        self.kept = False

    def look(self, i, name):
        """Make a view of handle `i`, if that gives one."""
        of_tensor, of_array, applies = VIEWS[name]
        positions = self.positions[i]
        if not applies(positions.shape):
            return
        seen = of_array(positions)
        if np.shares_memory(seen, positions):  # a reshape may have to copy
            self.handles.append(of_tensor(self.handles[i]))
            self.positions.append(seen)

    def parameter(self, leaf, i, offset):
        """Return part of the second leaf, in the shape of handle `i`."""
        positions = self.positions[i]
        return leaf[offset : offset + positions.size].clone().reshape(*positions.shape)

    def change(self, i, name, offset, recorded=True):
        """Change handle `i` in place, and replace its positions in the model."""
        in_place, out_of_place = {**CHANGES, **KEEPING}[name]
        self.changed_since_kept = self.changed_since_kept or self.kept
        self.kept = self.kept or name in KEEPING
        positions = self.positions[i]
        with pb.set_grad_enabled(recorded):
            in_place(self.handles[i], self.parameter(self.leaves[1], i, offset))
        old = self.flat[positions.reshape(-1)].reshape(*positions.shape)
        new = out_of_place(old, self.parameter(self.model_leaves[1], i, offset))
        if not recorded:  # the values change, the graph does not
            new = old + (new - old).detach()
        spread = np.zeros((positions.size, self.flat.numel()))
        spread[np.arange(positions.size), positions.reshape(-1)] = 1.0
        mask = pb.tensor(spread.any(axis=0))
        spread_new = new.reshape(1, -1).mm(pb.tensor(spread)).reshape(-1)
        self.flat = pb.where(mask, spread_new, self.flat)

    def read(self, i, name, weight):
        """Let the loss depend on handle `i` as it is now."""
        positions = self.positions[i]
        self.loss = self.loss + READS[name](self.handles[i]) * weight
        now = self.flat[positions.reshape(-1)].reshape(*positions.shape)
        self.model_loss = self.model_loss + READS[name](now) * weight

    def finish(self):
        """Compare all values, then let the loss depend on everything."""
        for i, (handle, positions) in enumerate(zip(self.handles, self.positions, strict=True)):
            now = self.flat.detach().numpy()[positions]
            np.testing.assert_allclose(handle.detach().numpy(), now, rtol=1e-12)
            assert handle.requires_grad == self.handles[0].requires_grad
            self.read(i, "square of a copy", 1.0 + i)

    def gradients(self, create_graph=False):
        """Return the gradients of the program and of the model."""
        options = {"materialize_grads": True, "create_graph": create_graph}
        got = pb.autograd.grad(self.loss, self.leaves, **options)
        expected = pb.autograd.grad(self.model_loss, self.model_leaves, **options)
        return got, expected


def agree(got, expected):
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)


handle = st.integers(0, 20)
looks = st.tuples(st.just("look"), handle, st.sampled_from(sorted(VIEWS)))
reads = st.tuples(st.just("read"), handle, st.sampled_from(sorted(READS)))
offsets = st.integers(0, 12)


def changes(names, recorded):
    return st.tuples(st.just("change"), handle, st.sampled_from(sorted(names)), offsets, recorded)


always = st.just(True)


def programs(names, recorded=always, most=8):
    step = st.one_of(looks, changes(names, recorded), looks, changes(names, recorded), reads)
    shapes = st.sampled_from([(6,), (2, 3), (3, 1), (2, 1, 2), (1,), ()])
    return st.tuples(shapes, st.booleans(), st.lists(step, min_size=1, max_size=most))


def run(described):
    """Run a described program and return it."""
    shape, tracked, steps = described
    program = Program(shape, tracked)
    for kind, i, *rest in steps:
        i %= len(program.handles)
        if kind == "look":
            program.look(i, *rest)
        elif kind == "read":
            program.read(i, *rest, 3.0)
        else:
            name, offset, recorded = rest
            program.change(i, name, offset, recorded)
    program.finish()
    return program


@settings(max_examples=300)
@given(programs(CHANGES))
def test_changes_in_place_give_the_values_and_gradients_of_the_program_out_of_place(described):
    agree(*run(described).gradients())


@settings(max_examples=150)
@given(programs(CHANGES, recorded=st.booleans()))
def test_changes_under_no_grad_change_values_and_keep_the_graph(described):
    # A base that is not tracked yet gets no node from a change that is not recorded.
    agree(*run(described).gradients())


@settings(max_examples=150)
@given(programs(set(CHANGES) - {"clamp", "masked fill"}, most=5))
def test_second_derivatives_agree_too(described):
    program = run(described)
    got, expected = program.gradients(create_graph=True)
    agree(got, expected)
    options = {"materialize_grads": True}
    norm = sum(((g * g).sum() for g in got), start=pb.tensor(0.0, dtype=pb.float64))
    model_norm = sum(((g * g).sum() for g in expected), start=pb.tensor(0.0, dtype=pb.float64))
    if norm.requires_grad:
        agree(
            pb.autograd.grad(norm, program.leaves, **options),
            pb.autograd.grad(model_norm, program.model_leaves, **options),
        )


@settings(max_examples=250)
@given(programs({**CHANGES, **KEEPING}))
def test_a_result_that_was_kept_and_changed_since_raises_and_is_never_silently_wrong(described):
    program = run(described)
    try:
        got, expected = program.gradients()
    except InplaceError:
        assert program.changed_since_kept or "multiply by itself" in str(described)
    else:
        agree(got, expected)


# -- the same by hand ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["exponential", "tanh"])
def test_a_change_after_an_operation_that_keeps_its_result_raises(name):
    in_place, out_of_place = KEEPING[name]
    x, model = leaf([0.5, 1.0]), leaf([0.5, 1.0])
    y = x * 1.0
    in_place(y, None)
    pb.autograd.backward(y.sum(), retain_graph=True)
    out_of_place(model * 1.0, None).sum().backward()
    assert np.allclose(x.grad.numpy(), model.grad.numpy(), rtol=1e-15)
    y.add_(1.0)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_of_each_kind_of_view_reaches_base_and_siblings(name):
    of_tensor, of_array, _ = VIEWS[name]
    shape = (1, 3) if name == "squeezed" else (3, 3)
    positions = np.arange(shape[0] * shape[1]).reshape(shape)
    x = leaf(positions * 1.0)
    base = x * 1.0
    sibling = base[:]
    view = of_tensor(base)
    version = base._version
    view.mul_(10.0)
    expected = positions * 1.0
    expected.reshape(-1)[of_array(positions).reshape(-1)] *= 10.0
    assert base.tolist() == expected.tolist()
    assert sibling.tolist() == expected.tolist()
    assert (view._version, base._version, sibling._version) == (version + 1,) * 3
    (sibling.sum() + base.sum()).backward()
    scale = np.ones(shape)
    scale.reshape(-1)[of_array(positions).reshape(-1)] = 10.0
    assert x.grad.tolist() == (2.0 * scale).tolist()


def test_a_view_made_before_an_untracked_base_was_tracked_is_tracked_too():
    x = leaf([1.0, 2.0])
    base = pb.zeros(2, 2, dtype=pb.float64)
    row = base[0]
    other = base[1]
    row.copy_(x)
    assert (base.requires_grad, row.requires_grad, other.requires_grad) == (True, True, True)
    (row.sum() * 3.0 + other.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0]


ALIASING = {
    "multiply by itself": lambda y, a: y.mul_(a),
    "multiply by its first element": lambda y, a: y.mul_(a[0]),
    "multiply by its reverse": lambda y, a: y.mul_(a[::-1]),
    "add its reverse": lambda y, a: y.add_(a[::-1]),
    "subtract its first element": lambda y, a: y.sub_(a[0]),
    "divide by its last element": lambda y, a: y.div_(a[-1]),
    "raise to itself": lambda y, a: y.pow_(a),
    "copy its reverse": lambda y, a: y.copy_(a[::-1]),
    "add the rest to the beginning": lambda y, a: y[:-1].add_(a[1:]),
    "multiply the rest by the beginning": lambda y, a: y[1:].mul_(a[:-1]),
    "assign the beginning to the rest": lambda y, a: y.__setitem__(slice(1, None), a[:-1]),
    "augmented": lambda y, a: y.__imul__(a),
}


@pytest.mark.parametrize("change", ALIASING.values(), ids=ALIASING.keys())
def test_a_change_by_a_tensor_that_shares_the_memory_is_right_or_raises(change):
    x, model = leaf([1.5, 2.0, 3.0]), leaf([1.5, 2.0, 3.0])
    y, z = x * 1.0, model * 1.0
    change(y, y)
    change(z, z.clone())
    assert y.tolist() == z.tolist()
    weights = pb.tensor([1.0, 10.0, 100.0], dtype=pb.float64)
    (z * weights).sum().backward()
    try:
        (y * weights).sum().backward()
    except InplaceError:
        assert x.grad is None
    else:
        assert np.allclose(x.grad.numpy(), model.grad.numpy(), rtol=1e-12)
