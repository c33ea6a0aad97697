"""Optimal transport: Sinkhorn iterations, distances of samples on a line, assignments."""

from __future__ import annotations

from itertools import permutations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REVERSED, SHAPE, SQUARE, UNSORTED, Book, at, t

BOOK = Book("transport")


def simplex(rng, n):
    p = rng.random(n) + 0.3
    return p / p.sum()


def log_sinkhorn(cost, a, b, epsilon, tol=1e-13):
    """Potentials over epsilon, f: (n, 1) and g: (1, m), when both marginals agree to tol."""
    g = np.zeros((1, cost.shape[1]))
    for _ in range(20000):
        f = np.log(a)[:, None] - np.log(np.exp(g - cost / epsilon).sum(axis=1, keepdims=True))
        g = np.log(b)[None] - np.log(np.exp(f - cost / epsilon).sum(axis=0, keepdims=True))
        plan = np.exp(f + g - cost / epsilon)
        if np.abs(plan.sum(axis=1) - a).max() < tol:
            return f, g, plan
    raise ArithmeticError("log_sinkhorn: no convergence; epsilon is too small for this cost")


@BOOK.wrong(
    lambda rng: ((t(rng.random((4, 5))), simplex(rng, 4), simplex(rng, 5)), {"epsilon": 0.5}),
    "the plan is taken for a constant, so the term from its change with the cost is missing",
    MISSING,
    r"\bconstant\b|envelope|\bdepend",
)
def transport_cost():
    @pb.autograd_function
    def transport_cost(ctx, cost: pb.Tensor, a, b, epsilon: float = 0.1) -> pb.Tensor:
        """Cost <P, cost> of the entropic plan P between the histograms a and b."""
        _, _, plan = log_sinkhorn(cost.numpy(), a, b, epsilon)
        ctx.save_for_backward(plan=plan)
        return pb.asarray(np.asarray((plan * cost.numpy()).sum()))

    @transport_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"cost": pb.asarray(g.item() * ctx.saved_variables.plan)}

    return transport_cost


@BOOK.right(
    lambda rng: ((t(rng.random((4, 3))), simplex(rng, 4), simplex(rng, 3)), {"epsilon": 0.3})
)
def entropic_plan():
    class EntropicPlan(pb.Function):
        """The converged plan; its gradient comes from the equations that it solves."""

        @staticmethod
        def forward(ctx, cost, a, b, epsilon=0.1):
            _, _, plan = log_sinkhorn(cost.numpy(), a, b, epsilon)
            ctx.save_for_backward(plan=plan.copy(), epsilon=epsilon)
            return pb.asarray(plan)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            P, epsilon = ctx.saved_variables
            n = len(P)
            system = np.block([[np.diag(P.sum(axis=1)), P], [P.T, np.diag(P.sum(axis=0))]])
            weighted = g.numpy() * P
            side = np.r_[weighted.sum(axis=1), weighted.sum(axis=0)]
            # the system is singular: a constant moves between the two potentials freely
            z = np.linalg.lstsq(system, side, rcond=1e-12)[0]
            return {"cost": pb.asarray(P * (z[:n, None] + z[None, n:] - g.numpy()) / epsilon)}

    return EntropicPlan.apply


@BOOK.right(
    lambda rng: (
        (t(rng.random((5, 4))), t(simplex(rng, 5)), t(simplex(rng, 4))),
        {"epsilon": 0.4, "iterations": 7},
    )
)
def sinkhorn_steps():
    def forward(ctx, cost, a, b, epsilon=1.0, iterations=10):
        """Plan after a fixed number of scalings, which need not have converged."""
        K, an, bn = np.exp(-cost.numpy() / epsilon), a.numpy(), b.numpy()
        trail = [(np.ones(K.shape[0]), np.ones(K.shape[1]))]
        for _ in range(iterations):
            u = an / (K @ trail[-1][1])
            trail.append((u, bn / (K.T @ u)))
        ctx.save_for_backward(a=a, b=b, K=K, epsilon=epsilon)
        ctx.trail = trail
        return pb.asarray(trail[-1][0][:, None] * K * trail[-1][1])

    @pb.once_differentiable
    def backward(ctx, grad_plan):
        s, g = ctx.saved_variables, grad_plan.numpy()
        K, (u, v) = s.K, ctx.trail[-1]
        by_K, by_a, by_b = g * np.outer(u, v), np.zeros(len(u)), np.zeros(len(v))
        gu, gv = (g * K) @ v, (g * K).T @ u
        for i in range(len(ctx.trail) - 1, 0, -1):
            (u, v), before = ctx.trail[i], ctx.trail[i - 1][1]
            by_b += gv * v / s.b.numpy()
            down = -gv * v**2 / s.b.numpy()
            by_K += np.outer(u, down)
            gu = gu + K @ down
            by_a += gu * u / s.a.numpy()
            down = -gu * u**2 / s.a.numpy()
            by_K += np.outer(down, before)
            gu, gv = 0.0, K.T @ down
        return {
            "cost": pb.asarray(-by_K * K / s.epsilon),
            "a": pb.asarray(by_a),
            "b": pb.asarray(by_b),
        }

    return pb.autograd_function(forward, backward, name="sinkhorn_steps")


def two_samples(order):
    def given(rng):
        return (t(order(rng.normal(size=7))), t(order(rng.normal(1, 2, size=7)))), {}

    return given


@BOOK.wrong(
    two_samples(np.sort),
    "the gradient stays in sorted order and is not put back to the order of the samples",
    UNSORTED,
    where="samples not sorted",
    shows=two_samples(lambda x: x),
)
def line_distance():
    @pb.autograd_function
    def line_distance(ctx, x, y, p=2):
        """Wasserstein distance to the power p of two samples of the same size on a line."""
        if x.shape != y.shape:
            raise ValueError(f"line_distance: sizes differ, {x.shape} and {y.shape}")
        d = np.sort(x.numpy()) - np.sort(y.numpy())
        ctx.save_for_backward(d=d, p=p)
        return pb.asarray(np.asarray((np.abs(d) ** p).mean()))

    @line_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        d, p = ctx.saved_variables
        pull = g.item() * p * np.abs(d) ** (p - 1) * np.sign(d) / len(d)
        return {"x": pb.asarray(pull), "y": pb.asarray(-pull)}

    return line_distance


@BOOK.right(lambda rng: ((t(rng.normal(size=6)), t(rng.normal(1, 2, size=4))), {"p": 1.5}))
def unequal_samples_distance():
    @pb.autograd_function
    def unequal_samples_distance(ctx, x, y, p=1.0):
        """Integral of |difference of the quantile functions|^p of two samples."""
        n, m = len(x), len(y)
        ends = np.unique(np.r_[np.arange(1, n + 1) * m, np.arange(1, m + 1) * n])
        width = np.diff(ends, prepend=0) / (n * m)
        left = np.argsort(x.numpy(), kind="stable")[(ends - 1) // m]
        right = np.argsort(y.numpy(), kind="stable")[(ends - 1) // n]
        gap = x.numpy()[left] - y.numpy()[right]
        ctx.save_for_backward(left=left, right=right, gap=gap, width=width, p=p, sizes=(n, m))
        return pb.asarray(np.asarray(width @ np.abs(gap) ** p))

    @unequal_samples_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        pull = g.item() * s.p * s.width * np.sign(s.gap) * np.abs(s.gap) ** (s.p - 1)
        n, m = s.sizes
        by_x = np.bincount(s.left, weights=pull, minlength=n)
        return {
            "x": pb.asarray(by_x),
            "y": pb.asarray(-np.bincount(s.right, weights=pull, minlength=m)),
        }

    return unequal_samples_distance


@BOOK.wrong(
    lambda rng: ((t(simplex(rng, 6)), t(simplex(rng, 6))), {"spacing": 0.5}),
    "the cumulated signs are summed from the front instead of backwards from the end",
    REVERSED,
    r"from the (end|back)",
)
def histogram_emd():
    def forward(ctx, p, q, spacing=1.0):
        flow = np.cumsum(p.numpy() - q.numpy())
        ctx.save_for_backward(sign=np.sign(flow), spacing=spacing)
        return pb.asarray(np.asarray(spacing * np.abs(flow).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        sign, spacing = ctx.saved_variables
        potential = g.item() * spacing * np.cumsum(sign)
        return {"p": pb.asarray(potential), "q": pb.asarray(-potential)}

    return pb.autograd_function(forward, backward, name="histogram_emd")


def best_assignment(cost):
    """Column for each row of cost: (n, m) with n <= m; the first of equally good ones."""
    rows = np.arange(cost.shape[0])
    choices = (np.array(c) for c in permutations(range(cost.shape[1]), len(rows)))
    return min(choices, key=lambda columns: cost[rows, columns].sum())


def match_inputs(columns):
    return lambda rng: ((t(rng.random((3, columns))), t(0.3)), {})


@BOOK.wrong(
    match_inputs(3),
    "unmatched columns are counted like unmatched rows, which holds for a square cost only",
    SQUARE,
    SHAPE,
    r"unmatched",
    where="cost not square",
    shows=match_inputs(5),
)
def gated_matching():
    @pb.autograd_function
    def gated_matching(ctx, cost, miss):
        """Match tracks (rows) and detections (columns); each one left over costs `miss`."""
        c, gate = cost.numpy(), 2 * miss.item()
        rows = np.arange(c.shape[0])
        columns = best_assignment(np.minimum(c, gate))
        kept = c[rows, columns] < gate
        unmatched = sum(c.shape) - 2 * kept.sum()
        ctx.pairs, ctx.shape = (rows[kept], columns[kept]), c.shape
        return pb.asarray(np.asarray(c[ctx.pairs].sum() + unmatched * miss.item()))

    @gated_matching.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_cost = np.zeros(ctx.shape)
        by_cost[ctx.pairs] = g.item()
        unmatched_rows = ctx.shape[0] - len(ctx.pairs[0])
        return {"cost": pb.asarray(by_cost), "miss": 2.0 * unmatched_rows * g.item()}

    return gated_matching


@BOOK.right(lambda rng: ((t(rng.normal(size=(2, 3, 4))),), {}))
def optimal_assignment():
    class Assign(pb.Function):
        """Smallest cost of each problem in a batch (b, n, m), n <= m, and the columns chosen."""

        @staticmethod
        def forward(ctx, costs):
            b, n, m = costs.shape
            if n > m:
                raise ValueError(f"optimal_assignment: more rows than columns, {n} > {m}")
            columns = np.stack([best_assignment(c) for c in costs.numpy()])
            ctx.where = np.arange(b)[:, None], np.arange(n)[None], columns.copy()
            ctx.shape = costs.shape
            return pb.asarray(costs.numpy()[ctx.where].sum(axis=1)), pb.asarray(columns)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_cost, g_columns):
            grad = np.zeros(ctx.shape)
            grad[ctx.where] = g_cost.numpy()[:, None]
            return {"costs": pb.asarray(grad)}

    return Assign.apply


def dual_inputs(**settings):
    def given(rng):
        return (t(rng.random((4, 3))), t(rng.normal(size=4)), simplex(rng, 3)), settings

    return given


@BOOK.wrong(
    dual_inputs(),
    "the potential in the gradient of the logits lacks the factor epsilon",
    FACTOR,
    at("epsilon"),
    where="epsilon other than 1",
    shows=dual_inputs(epsilon=0.4),
)
def entropic_value():
    @pb.autograd_function
    def entropic_value(ctx, cost, logits, b, epsilon=1.0):
        """Least <P, cost> - epsilon H(P) with the marginals softmax(logits) and b."""
        a = np.exp(logits.numpy() - logits.numpy().max())
        a /= a.sum()
        f, _, plan = log_sinkhorn(cost.numpy(), a, b, epsilon)
        ctx.save_for_backward(plan=plan, a=a, f=f[:, 0])
        value = (plan * cost.numpy()).sum() + epsilon * (plan * (np.log(plan) - 1)).sum()
        return pb.asarray(np.asarray(value))

    @entropic_value.backward
    @pb.once_differentiable
    def _(ctx, g):
        plan, a, f = ctx.saved_variables
        return {
            "cost": pb.asarray(g.item() * plan),
            "logits": pb.asarray(g.item() * a * (f - a @ f)),
        }

    return entropic_value


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(6, 2))), t(rng.normal(1, 2, size=(6, 2)))),
        {"directions": rng.normal(size=(4, 2))},
    ),
    "the permutation of the last direction is used for all of them",
    UNSORTED,
    r"last (direction|projection)|each (direction|projection)",
)
def sliced_distance():
    @pb.autograd_function
    def sliced_distance(ctx, x, y, directions):
        """Mean over directions: (k, d) of squared distances of projections; x, y: (n, d)."""
        total, gaps = 0.0, []
        for direction in directions:
            px, py = x.numpy() @ direction, y.numpy() @ direction
            order_x, order_y = np.argsort(px), np.argsort(py)
            gaps.append(px[order_x] - py[order_y])
            total += (gaps[-1] ** 2).mean()
        ctx.save_for_backward(directions=directions, gaps=gaps)
        ctx.order_x, ctx.order_y = order_x, order_y
        return pb.asarray(np.asarray(total / len(directions)))

    @sliced_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        directions, gaps = ctx.saved_variables
        by_x, by_y = (np.zeros((len(gaps[0]), directions.shape[1])) for _ in range(2))
        for direction, gap in zip(directions, gaps, strict=True):
            pull = 2 * g.item() * np.outer(gap, direction) / (len(gap) * len(directions))
            by_x[ctx.order_x] += pull
            by_y[ctx.order_y] -= pull
        return {"x": pb.asarray(by_x), "y": pb.asarray(by_y)}

    return sliced_distance


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 6))), t(simplex(rng, 3))), {}))
def line_barycenter():
    @pb.autograd_function
    def line_barycenter(ctx, samples: pb.Tensor, weights: pb.Tensor) -> pb.Tensor:
        """Weighted mean of the quantiles of samples: (k, n); returns them in rising order."""
        x = samples.numpy()
        order = np.argsort(x, axis=1, kind="stable")
        quantiles = np.take_along_axis(x, order, axis=1)
        ctx.save_for_backward(weights=weights, order=order, quantiles=quantiles)
        return pb.asarray(weights.numpy() @ quantiles)

    @line_barycenter.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        grad = np.zeros(s.order.shape)
        np.put_along_axis(grad, s.order, np.outer(s.weights.numpy(), g.numpy()), axis=1)
        return {"samples": pb.asarray(grad), "weights": pb.asarray(s.quantiles @ g.numpy())}

    return line_barycenter
