"""Random programs, run by the library and by the reference model side by side."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.core.tensor import reference_model as model

import pullback as pb

WHICH = st.integers(0, 1000)
SEED = st.integers(0, 10_000)
SHAPE = st.sampled_from([(), (1,), (3,), (4,), (1, 3), (3, 1), (2, 3), (3, 3), (2, 1, 3)])
UNARY = st.sampled_from(["neg", "scale", "shift", "sin", "square", "exp", "tanh", "relu"])
BINARY = st.sampled_from(["add", "sub", "mul"])
MODE = st.sampled_from([True, True, True, False])
LARGEST = 1000.0  # beyond it sums of rounding errors say nothing

OUT_OF_PLACE = {
    "neg": lambda x: -x,
    "scale": lambda x: x * 3.0,
    "shift": lambda x: 1.5 + x,
    "sin": lambda x: x.sin(),
    "square": lambda x: x**2,
    "exp": lambda x: x.exp(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}
IN_PLACE = {
    "neg": lambda x: x.neg_(),
    "scale": lambda x: x.mul_(3.0),
    "shift": lambda x: x.add_(1.5),
    "sin": lambda x: x.sin_(),
    "square": lambda x: x.pow_(2),
    "exp": lambda x: x.exp_(),
    "tanh": lambda x: x.tanh_(),
    "relu": lambda x: x.relu_(),
    "add": lambda x, y: x.add_(y),
    "sub": lambda x, y: x.sub_(y),
    "mul": lambda x, y: x.mul_(y),
}


def numbers(shape, seed):
    """Return quarters between -2 and 2, so that ties and zeros do occur."""
    return np.random.default_rng(seed).integers(-8, 9, shape) / 4


def close(actual, expected):
    """Compare within what rounding explains."""
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10 * scale)


def comparable(name, refs):
    """Return whether an operation gives numbers that are worth comparing."""
    if name == "exp" and np.max(refs[0].values) > 5:
        return False
    made = model.compute(name, refs, grad_mode=True)
    return all(np.all(np.abs(a) < LARGEST) for a in (made.values, *made.jacobian.values()))


def broadcast(*shapes):
    """Return the shape that `shapes` broadcast to, or None."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def fits(shape, target):
    """Return whether `shape` broadcasts to `target`."""
    return broadcast(shape, target) == target


def has_steps(ref):
    """Return whether a backward pass from a tensor has something to do."""
    return isinstance(ref.node, model.Step)


def may_change(ref):
    """Return whether a tensor is no leaf and no view of one."""
    return not isinstance(ref.owner.node, model.Leaf)


def some_index(data, shape):
    """Draw a basic index that selects something from an array of `shape`."""
    index = []
    for n in shape[: data.draw(st.integers(0, len(shape)), label="dims")]:
        kinds = [slice(None), slice(None, None, 2), *range(-n, n)]
        kinds += [slice(1, None), slice(None, -1)] if n > 1 else []
        index.append(data.draw(st.sampled_from(kinds), label="index"))
    extra = data.draw(st.sampled_from([None, "ellipsis", "new axis"]), label="extra")
    if extra == "ellipsis":
        index.append(...)
    elif extra == "new axis":
        index.insert(0, None)
    return tuple(index)


class Programs(RuleBasedStateMachine):
    """Each tensor exists twice: in the library (`real`) and in the model (`ref`)."""

    def __init__(self):
        super().__init__()
        self.pool = []
        self.leaves = []

    # --- bookkeeping -------------------------------------------------------------------------
    def pick(self, i, likely=lambda ref: True):
        """Return one of the tensors, mostly a likely one; small numbers mean the newest."""
        chosen = [pair for pair in self.pool if i % 8 == 7 or likely(pair[1])] or self.pool
        return chosen[-1 - i // 8 % len(chosen)]

    def keep(self, real, ref):
        self.pool.append((real, ref))

    def fails(self, call, phrases):
        with pytest.raises(RuntimeError, match="|".join(sorted(phrases))):
            call()

    @initialize(seed=SEED, shape=SHAPE, name=UNARY)
    def start(self, seed, shape, name):
        self.make(seed, shape, False)
        self.make(seed + 1, shape, True)
        self.compute(name, [self.leaves[0]], True)

    @rule(seed=SEED, shape=SHAPE, leaf=st.booleans())
    def make(self, seed, shape, leaf):
        values = numbers(shape, seed)
        if leaf:
            self.leaves.append((pb.tensor(values, requires_grad=True), model.new_leaf(values)))
            self.keep(*self.leaves[-1])
        else:
            self.keep(pb.tensor(values), model.constant(values))

    # --- operations --------------------------------------------------------------------------
    @rule(i=WHICH, name=UNARY, grad_mode=MODE)
    def unary(self, i, name, grad_mode):
        self.compute(name, [self.pick(i, lambda ref: ref.requires_grad)], grad_mode)

    @rule(i=WHICH, j=WHICH, name=BINARY, grad_mode=MODE)
    def binary(self, i, j, name, grad_mode):
        x = self.pick(i, lambda ref: ref.requires_grad)
        y = self.pick(j, lambda ref: broadcast(ref.shape, x[1].shape) is not None)
        if broadcast(x[1].shape, y[1].shape) is not None:
            self.compute(name, [x, y], grad_mode)

    def compute(self, name, pairs, grad_mode):
        refs = [ref for _, ref in pairs]
        if comparable(name, refs):
            with pb.set_grad_enabled(grad_mode):
                real = OUT_OF_PLACE[name](*(real for real, _ in pairs))
            self.keep(real, model.compute(name, refs, grad_mode=grad_mode))

    # --- views -------------------------------------------------------------------------------
    @rule(i=WHICH, data=st.data())
    def index(self, i, data):
        real, ref = self.pick(i)
        at = some_index(data, ref.shape)
        self.keep(real[at], ref.select(np.asarray(ref.where[at])))

    @rule(i=WHICH, kind=st.sampled_from(["t", "unsqueeze", "expand", "unbind"]), dim=WHICH)
    def view(self, i, kind, dim):
        real, ref = self.pick(i, lambda ref: kind in ("expand", "unsqueeze") or ref.where.ndim)
        where = ref.where
        if kind == "t" and where.ndim == 2:
            self.keep(real.t(), ref.select(where.T))
        elif kind == "unsqueeze" and where.ndim < 4:
            dim %= where.ndim + 1
            self.keep(real.unsqueeze(dim), ref.select(np.expand_dims(where, dim)))
        elif kind == "expand" and where.size <= 6:
            shape = (2,) * (dim % 2) + tuple(2 if n == 1 else n for n in ref.shape)
            self.keep(real.expand(shape), ref.select(np.broadcast_to(where, shape)))
        elif kind == "unbind" and where.ndim:
            dim %= where.ndim
            parts = [np.asarray(at) for at in np.moveaxis(where, dim, 0)]
            pairs = zip(real.unbind(dim), ref.select_all(parts, one_of_many=True), strict=True)
            self.pool.extend(pairs)

    @rule(i=WHICH, kind=st.sampled_from(["flat", "column", "same"]))
    def reshape(self, i, kind):
        real, ref = self.pick(i)
        n = ref.where.size
        shape = {"flat": (n,), "column": (n, 1), "same": ref.shape}[kind]
        made = real.reshape(shape)
        before, after = real.detach().numpy(), made.detach().numpy()
        shares = np.shares_memory(before, after)
        assert shares or not before.flags.c_contiguous  # a view where that is possible
        self.keep(
            made, ref.select(ref.where.reshape(shape)) if shares else model.copied(ref, shape)
        )

    @rule(i=WHICH)
    def detach(self, i):
        real, ref = self.pick(i)
        self.keep(real.detach(), ref.detach())

    # --- in place ----------------------------------------------------------------------------
    @rule(i=WHICH, name=UNARY, grad_mode=MODE)
    def change(self, i, name, grad_mode):
        real, ref = self.pick(i, has_steps)
        if comparable(name, [ref]):
            self.in_place(
                (ref, []),
                lambda: IN_PLACE[name](real),
                lambda: model.change(name, ref, [], grad_mode=grad_mode),
                grad_mode,
            )

    @rule(i=WHICH, j=WHICH, name=BINARY, grad_mode=MODE)
    def change_by(self, i, j, name, grad_mode):
        real, ref = self.pick(i, may_change)
        by, by_ref = self.pick(j, lambda other: fits(other.shape, ref.shape))
        if fits(by_ref.shape, ref.shape) and comparable(name, [ref, by_ref]):
            self.in_place(
                (ref, [by_ref]),
                lambda: IN_PLACE[name](real, by),
                lambda: model.change(name, ref, [by_ref], grad_mode=grad_mode),
                grad_mode,
            )

    @rule(i=WHICH, j=WHICH, grad_mode=MODE, data=st.data())
    def set_item(self, i, j, grad_mode, data):
        real, ref = self.pick(i, may_change)
        at = some_index(data, ref.shape)
        part = ref.select(np.asarray(ref.where[at]))
        if part.overlaps:
            return
        value, value_ref = self.pick(j, lambda other: fits(other.shape, part.shape))
        if not fits(value_ref.shape, part.shape):
            value, value_ref = 0.75, model.constant(np.asarray(0.75))
        self.in_place(
            (part, [value_ref]),
            lambda: real.__setitem__(at, value),
            lambda: model.assign(part, value_ref, grad_mode=grad_mode),
            grad_mode,
        )

    def in_place(self, involved, call, change, grad_mode):
        """Make the call and the same change of the model, or see it refused."""
        phrase = model.refusal(*involved, grad_mode=grad_mode)
        with pb.set_grad_enabled(grad_mode):
            if phrase is not None:
                self.fails(call, {phrase})
            else:
                call()
                change()

    # --- backward ----------------------------------------------------------------------------
    @rule(i=WHICH, seed=SEED, retain_graph=MODE)
    def backward(self, i, seed, retain_graph):
        real, ref = self.pick(i, has_steps)
        weights = numbers(ref.shape, seed)

        def call():
            real.backward(pb.tensor(weights), retain_graph=retain_graph)

        if self.runs(call, foretold := model.plan(ref), retain_graph):
            for leaf, grad in model.gradients(ref, weights, foretold).items():
                leaf.grad = grad if leaf.grad is None else leaf.grad + grad

    @rule(i=WHICH, seed=SEED, retain_graph=MODE, chosen=st.sets(st.integers(0, 9), min_size=1))
    def grad(self, i, seed, retain_graph, chosen):
        real, ref = self.pick(i, has_steps)
        weights = numbers(ref.shape, seed)
        inputs = [self.leaves[k % len(self.leaves)] for k in sorted(chosen)]
        wanted = [leaf_ref.owner.node for _, leaf_ref in inputs]
        results = []

        def call():
            results.extend(
                pb.autograd.grad(
                    real,
                    [leaf for leaf, _ in inputs],
                    pb.tensor(weights),
                    retain_graph=retain_graph,
                    allow_unused=True,
                )
            )

        if self.runs(call, foretold := model.plan(ref, wanted), retain_graph):
            expected = model.gradients(ref, weights, foretold)
            assert len(results) == len(wanted)
            for result, leaf in zip(results, wanted, strict=True):
                assert (result is None) == (leaf not in expected)
                if result is not None:
                    close(result.numpy(), expected[leaf])

    def runs(self, call, foretold, retain_graph):
        """Make the call; return whether it worked, having checked that it had to (or had not)."""
        if foretold.must:
            self.fails(call, foretold.must | foretold.may)
        else:
            try:
                call()
            except RuntimeError as error:
                if not any(phrase in str(error) for phrase in foretold.may):
                    raise
            else:
                for step in foretold.steps:
                    step.released = not retain_graph
                return True
        self.forget(foretold)
        return False

    def forget(self, foretold):
        """Drop what a failed pass left half done: some gradients, some released steps."""
        for step in foretold.steps:
            step.lost = not step.released
        self.pool = [pair for pair in self.pool if not model.is_lost(pair[1])]
        self.pool = self.pool or [self.leaves[-1]]
        for real, ref in self.leaves:
            real.grad = None
            ref.owner.node.grad = None

    @rule(i=WHICH)
    def drop(self, i):
        if len(self.pool) > 1:
            del self.pool[i % len(self.pool)]

    # --- what must hold after every step -----------------------------------------------------
    @invariant()
    def tensors_agree(self):
        for real, ref in self.pool:
            assert tuple(real.shape) == ref.shape
            assert real.requires_grad == ref.requires_grad
            assert real.is_leaf == ref.is_leaf
            assert real._version == ref.owner.storage.version
            close(real.detach().numpy(), ref.values)

    @invariant()
    def gradients_agree(self):
        for real, ref in self.leaves:
            expected = ref.owner.node.grad
            assert (real.grad is None) == (expected is None)
            if expected is not None:
                assert tuple(real.grad.shape) == expected.shape
                close(real.grad.numpy(), expected)


class TestPrograms(Programs.TestCase):
    """Short programs, the same in every run."""

    settings = settings(
        max_examples=60,
        stateful_step_count=20,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


@pytest.mark.stress
class TestLongPrograms(Programs.TestCase):
    """Many and longer programs."""

    settings = settings(
        max_examples=1000,
        stateful_step_count=50,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


# --- programs that once went wrong -----------------------------------------------------------


def test_changing_a_part_of_an_expanded_tensor_that_overlaps_nothing():
    x = pb.tensor([[1.0], [2.0]], dtype=pb.float64, requires_grad=True)
    base = x * 1
    expanded = base.expand(2, 3)
    expanded[:, 0].mul_(3)
    assert expanded.tolist() == [[3.0, 3.0, 3.0], [6.0, 6.0, 6.0]]
    expanded.sum().backward()
    assert x.grad.tolist() == [[9.0], [9.0]]
    expanded = base.expand(2, 3)
    expanded[:, -1] = pb.tensor([7.0, 8.0], dtype=pb.float64)
    assert base.tolist() == [[7.0], [8.0]]
    flat = pb.tensor([1.0, 2.0])
    flat.expand(1, 2).neg_()
    assert flat.tolist() == [-1.0, -2.0]


@pytest.mark.parametrize(
    ("other", "value", "expected"),
    [
        (lambda y: y, [[1.0, 4.0], [9.0, 16.0]], [[2.0, 4.0], [6.0, 8.0]]),
        (lambda y: y.t(), [[1.0, 6.0], [6.0, 16.0]], [[2.0, 6.0], [4.0, 8.0]]),
        (lambda y: y.detach(), [[1.0, 4.0], [9.0, 16.0]], [[1.0, 2.0], [3.0, 4.0]]),
    ],
    ids=["itself", "its transpose", "its detached alias"],
)
def test_multiplying_in_place_by_the_same_memory_is_right_or_an_error(other, value, expected):
    x = pb.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=pb.float64, requires_grad=True)
    y = x * 1
    y.mul_(other(y))
    assert y.tolist() == value
    error = None
    try:
        y.sum().backward()
    except RuntimeError as raised:
        error = str(raised)
    if error is None:
        assert x.grad.tolist() == expected
    else:
        assert model.MODIFIED in error
        assert x.grad is None


def test_a_rule_that_reduces_a_0d_gradient_to_a_scalar():
    x = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    view = pb.tensor(1.0, dtype=pb.float64)[()]
    view.add_(x)
    view[()] = 0.75
    view.neg_()
    view.backward()
    assert x.grad.item() == 0.0
