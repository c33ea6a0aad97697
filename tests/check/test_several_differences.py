"""Mistakes that show only where several things differ from the call, or at odd values."""

import numpy as np
from tests.check._situations import checked, situation

import pullback as pb

X = np.array([[0.3, 1.2], [-0.7, 2.1], [0.9, -1.4]])


# ---- several at once -----------------------------------------------------------------------------
def test_another_limit_and_values_between_the_two_are_tried_together():
    def forward(ctx, x, limit=1.0):
        ctx.save_for_backward(x)
        return pb.asarray(np.minimum(x.numpy(), limit))

    def backward(ctx, g):  # the limit is the default's
        return {"x": pb.asarray(g.numpy() * (ctx.saved_tensors[0].numpy() < 1.0))}

    text = situation(checked(forward, backward, X))
    assert "`limit`" in text
    assert "limit" in text


def test_a_loop_that_ends_too_early_does_not_accuse_at_random_values():
    def forward(ctx, x):
        a = root = np.abs(x.numpy()) + 1.0
        while np.abs(root * root - a).max() > 16 * np.finfo(a.dtype).eps * a.max():
            root = (root + a / root) / 2
        ctx.save_for_backward(sign=np.sign(x.numpy()), root=root)
        return pb.asarray(root)

    def backward(ctx, g):
        return {
            "x": pb.asarray(g.numpy() * ctx.saved_variables.sign / ctx.saved_variables.root / 2)
        }

    assert checked(forward, backward, X).outcome == "right"


# ---- values --------------------------------------------------------------------------------------


def test_a_pole_may_have_any_gradient():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with np.errstate(divide="ignore"):
            return pb.asarray(np.sqrt(x.numpy()))

    def backward(ctx, g):
        with np.errstate(all="ignore"):
            return {
                "x": pb.asarray(0.5 * g.numpy() * np.sqrt(ctx.saved_tensors[0].numpy()) ** -1.0)
            }

    assert checked(forward, backward, np.array([0.3, 1.2, 0.7])).outcome == "right"


def test_nothing_is_asked_beyond_the_domain_that_a_guard_hides():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        zero = x.numpy() == 0
        with np.errstate(all="ignore"):
            return pb.asarray(np.where(zero, 0.0, x.numpy() * np.log(y.numpy())))

    def backward(ctx, g):
        x, y = (v.numpy() for v in ctx.saved_variables)
        with np.errstate(all="ignore"):
            grads = {"x": g.numpy() * np.log(y), "y": g.numpy() * x / y}
        return {name: pb.asarray(grad) for name, grad in grads.items()}

    x, y = np.array([0.5, 1.2, 0.0]), np.array([2.0, 1.5, 0.7])
    assert checked(forward, backward, x, y).outcome == "right"


# ---- settings ------------------------------------------------------------------------------------
def test_an_index_that_is_left_out_becomes_one_that_occurs():
    def forward(ctx, table, index, ignored_idx=None):
        ctx.save_for_backward(index=index, shape=table.shape)
        rows = table.numpy()[index]
        if ignored_idx is not None:
            rows = rows * (index != ignored_idx)[:, None]
        return pb.asarray(rows)

    def backward(ctx, g):
        grad = np.zeros(ctx.saved_variables.shape)
        np.add.at(grad, ctx.saved_variables.index, g.numpy())
        return {"table": pb.asarray(grad)}

    report = checked(forward, backward, X, np.array([2, 0, 2]))
    assert "`ignored_idx` given" in situation(report)


def test_indices_of_a_single_group_become_those_of_two_when_it_grows():
    def forward(ctx, demand, share, pair):
        ctx.save_for_backward(demand=demand.numpy(), share=share.numpy(), pair=pair)
        return pb.asarray(demand.numpy()[pair] * share.numpy())

    def backward(ctx, g):
        s, g = ctx.saved_variables, g.numpy()
        by_demand = np.zeros_like(s.demand)
        by_demand[0] = (g * s.share).sum()
        return {"demand": pb.asarray(by_demand), "share": pb.asarray(g * s.demand[s.pair])}

    pair = np.zeros(3, dtype=int)
    report = checked(forward, backward, np.array([900.0]), np.array([0.3, 0.2, 0.5]), pair)
    assert "wrong for length 2: " in situation(report)


# ---- loops that would not end --------------------------------------------------------------------
def test_no_change_of_the_source_or_of_a_setting_is_tried_without_end():
    def forward(ctx, x, duration=1.0, dt=0.25):
        c, path, time = x.numpy(), [], 0.0
        while duration - time > 1e-9:
            h = min(dt, duration - time)
            path.append(c)
            c = c - h * c * c
            time += h
        ctx.path, ctx.dt = path, dt
        return pb.asarray(c.copy())

    def backward(ctx, g):
        adjoint = g.numpy()
        for c in reversed(ctx.path):
            adjoint = adjoint * (1 - ctx.dt * c)
        return {"x": pb.asarray(adjoint)}

    assert checked(forward, backward, np.array([0.3, 1.2, 0.7])).outcome == "wrong"


def test_a_forward_that_never_ends_in_float32_is_stopped_there():
    def forward(ctx, x):
        a = root = np.abs(x.numpy()) + 1.0
        while np.abs(root * root - a).max() > 1e-12:
            root = (root + a / root) / 2
        ctx.save_for_backward(sign=np.sign(x.numpy()), root=root)
        return pb.asarray(root)

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": pb.asarray(g.numpy() * s.sign / s.root / 2)}

    report = checked(forward, backward, X)
    assert report.outcome == "right"
    assert "forward does not end in float32: it waits for what never holds there" in report.notes
