"""Recommending: factors of users and items, pairwise ranking, sampled negatives, sessions."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SIGN, STATE, TRANSPOSED, Book, t

BOOK = Book("recommending")


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def rated(rng):
    seen = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 0, 1], [1, 1, 1, 1, 0]], bool)
    return (t(rng.normal(size=(5, 2))), t(rng.normal(size=(3, 5)))), {"seen": seen, "ridge": 0.2}


@BOOK.wrong(
    rated,
    "of the normal matrix Y'Y only one of the symmetric halves is counted: the other is missing",
    MISSING,
    TRANSPOSED,
    r"\bhalf\b|\bhalves\b|symmetri|\bonly part\b|\bpart of\b|\bonly one\b|product rule|\ba term\b",
    r"\bconstant\b",
)
def user_factors():
    @pb.autograd_function
    def user_factors(ctx, items, ratings, seen=None, ridge=0.1):
        """Users' least squares factors: (u, d); items: (i, d), ratings, seen: (u, i)."""
        Y, R = items.numpy(), ratings.numpy()
        w = np.ones(R.shape) if seen is None else seen.astype(R.dtype)
        A = np.einsum("ui,id,ie->ude", w, Y, Y) + ridge * np.eye(Y.shape[1])
        X = np.linalg.solve(A, ((w * R) @ Y)[..., None])[..., 0]
        ctx.save_for_backward(items=items, A=A, X=X.copy(), w=w, R=w * R)
        return pb.asarray(X)

    @user_factors.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        Y = s.items.numpy()
        Z = np.linalg.solve(s.A, g.numpy()[..., None])[..., 0]
        by_items = s.R.T @ Z - (s.w * (Z @ Y.T)).T @ s.X
        return {"items": pb.asarray(by_items), "ratings": pb.asarray(s.w * (Z @ Y.T))}

    return user_factors


def triples(rng):
    users, liked = np.array([0, 1, 1, 3]), np.array([2, 0, 4, 2])
    return (t(rng.normal(size=(4, 3))), t(rng.normal(size=(6, 3))), t(rng.normal(size=6))), {
        "users": users,
        "liked": liked,
        "others": np.array([1, 5, 3, 3]),
    }


@BOOK.wrong(
    triples,
    "the biases of the items not chosen are raised, not lowered: wrong sign",
    SIGN,
    r"\babsolute\b|\bsame direction|\bsubtract|\badded instead\b",
)
def pairwise_preference():
    @pb.autograd_function
    def pairwise_preference(ctx, user_factors, item_factors, bias, users, liked, others):
        """Mean -log sigmoid of the liked item's lead; users, liked, others: (n,) indices."""
        U, V = user_factors.numpy()[users], item_factors.numpy()
        apart = V[liked] - V[others]
        lead = (U * apart).sum(axis=1) + bias.numpy()[liked] - bias.numpy()[others]
        ctx.shapes = user_factors.shape, item_factors.shape
        ctx.rows, ctx.U, ctx.apart, ctx.lead = (users, liked, others), U, apart, lead
        return pb.asarray(np.asarray(np.logaddexp(0, -lead).mean()))

    @pairwise_preference.backward
    @pb.once_differentiable
    def _(ctx, g):
        users, liked, others = ctx.rows
        by_lead = -g.item() * sigmoid(-ctx.lead)[:, None] / len(users)
        by_users, by_items = (np.zeros(shape) for shape in ctx.shapes)
        by_bias = np.zeros((len(by_items), 1))
        np.add.at(by_users, users, by_lead * ctx.apart)
        for table, rows in ((by_items, by_lead * ctx.U), (by_bias, by_lead)):
            np.add.at(table, liked, rows)
        np.add.at(by_items, others, -by_lead * ctx.U)
        np.add.at(by_bias, others, by_lead)
        return {
            "user_factors": pb.asarray(by_users),
            "item_factors": pb.asarray(by_items),
            "bias": pb.asarray(by_bias[:, 0]),
        }

    return pairwise_preference


SESSIONS = np.array([[3, 1, 4, -1], [0, 3, -1, -1], [2, 2, 1, 0]])


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 3))), t(rng.normal(size=4))), {"clicks": SESSIONS}),
    "the places that are padded with -1 add to the gradient of the last item",
    r"\bpadd|\bpad\b",
    r"\blast (row|item|index|element|slice|entry)|\brow (5|-1)\b",
    r"\b(index|indices|values?|at|is|are) (of )?-1",
    r"\[(5|-1)\b.{0,60}(expected|should be|instead of) 0",
    r"(should|must|expected|ought to)( be)? (0|zero)\b|negative ind",
)
def session_vector():
    @pb.autograd_function
    def session_vector(ctx, items, recency, clicks):
        """Weighted means of clicked items: (n, d); items: (i, d), clicks: (n, L), -1 for none."""
        real = clicks >= 0
        raw = np.where(real, np.exp(recency.numpy()), 0)
        weight = raw / raw.sum(axis=1, keepdims=True)
        rows = items.numpy()[clicks]
        vector = (weight[..., None] * rows).sum(axis=1)
        ctx.shape, ctx.real, ctx.raw = items.shape, real, raw
        ctx.clicks, ctx.weight, ctx.apart = clicks, weight, rows - vector[:, None]
        return pb.asarray(vector)

    @session_vector.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, by_items = g.numpy()[:, None], np.zeros(ctx.shape)
        share = 1 / ctx.real.sum(axis=1, keepdims=True)
        spread = np.where(ctx.real, ctx.weight, share)
        np.add.at(by_items, ctx.clicks, spread[..., None] * gn)
        by_weight = (gn * ctx.apart).sum(axis=-1)
        return {
            "items": pb.asarray(by_items),
            "recency": pb.asarray((ctx.weight * by_weight).sum(axis=0)),
        }

    return session_vector


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(5, 4)))), {}),
    "the items' norms are cached by shape, so a later call uses those of the first",
    STATE,
    where="second use",
)
def cosine_scores():
    cache = {}

    def lengths(rows):
        key = rows.shape
        if key not in cache:
            cache[key] = np.sqrt((rows**2).sum(axis=1, keepdims=True))
        return cache[key]

    @pb.autograd_function
    def cosine_scores(ctx, users, items):
        """users: (u, d), items: (i, d); returns (u, i)."""
        u, v = users.numpy(), items.numpy()
        u_hat = u / np.sqrt((u**2).sum(axis=1, keepdims=True))
        v_hat = v / np.sqrt((v**2).sum(axis=1, keepdims=True))
        ctx.save_for_backward(users=users, items=items, u_hat=u_hat, v_hat=v_hat)
        return pb.asarray(u_hat @ v_hat.T)

    @cosine_scores.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_u, by_v = gn @ s.v_hat, gn.T @ s.u_hat
        by_u = by_u - (by_u * s.u_hat).sum(axis=1, keepdims=True) * s.u_hat
        by_v = by_v - (by_v * s.v_hat).sum(axis=1, keepdims=True) * s.v_hat
        norm = np.sqrt((s.users.numpy() ** 2).sum(axis=1, keepdims=True))
        return {"users": pb.asarray(by_u / norm), "items": pb.asarray(by_v / lengths(s.items))}

    return cosine_scores


def draws(hit):
    def given(rng):
        sampled = np.array([5, 0, 3, 7])
        targets = np.array([1, 3, 6]) if hit else np.array([1, 2, 6])
        return (t(rng.normal(size=(3, 4))), t(rng.normal(size=(8, 4)))), {
            "targets": targets,
            "sampled": sampled,
            "odds": np.linspace(0.05, 0.2, 8),
        }

    return given


@BOOK.wrong(
    draws(hit=False),
    "a sampled negative that equals the target is left out of forward, not of the gradient",
    REPEATED,
    r"\b(equal|coincid|match|occur|also|both|same|overlap|contain)\w*.{0,40}\b(targets?|sampled)\b",
    r"\b(targets?|sampled)\b.{0,40}\b(equal|coincid|match|occur|also|both|same|overlap|common)",
    r"\bmasked\b|accidental|collision|\bhits?\b",
    where="a target among the sampled",
    shows=draws(hit=True),
)
def sampled_softmax():
    @pb.autograd_function
    def sampled_softmax(ctx, context, items, targets, sampled, odds):
        """Softmax loss of each target: (n,) against shared negatives sampled: (m,) with odds."""
        V, h = items.numpy(), context.numpy()
        true = (h * V[targets]).sum(axis=1) - np.log(odds[targets])
        noise = h @ V[sampled].T - np.log(odds[sampled])
        logits = np.column_stack([true, noise])
        hits = sampled == targets[:, None]
        allowed = logits + np.column_stack([np.zeros(len(h)), np.where(hits, -1e9, 0)])
        top = allowed.max(axis=1, keepdims=True)
        norm = top + np.log(np.exp(allowed - top).sum(axis=1, keepdims=True))
        ctx.save_for_backward(h=context, V=items, logits=logits)
        ctx.norm, ctx.rows = norm, (targets, sampled)
        return pb.asarray(norm[:, 0] - true)

    @sampled_softmax.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn, (targets, sampled) = ctx.saved_variables, g.numpy()[:, None], ctx.rows
        by_logits = gn * np.exp(s.logits - ctx.norm)
        by_logits[:, 0] -= gn[:, 0]
        h, V = s.h.numpy(), s.V.numpy()
        by_context = by_logits[:, :1] * V[targets] + by_logits[:, 1:] @ V[sampled]
        by_items = np.zeros_like(V)
        np.add.at(by_items, targets, by_logits[:, :1] * h)
        np.add.at(by_items, sampled, by_logits[:, 1:].T @ h)
        return {"context": pb.asarray(by_context), "items": pb.asarray(by_items)}

    return sampled_softmax


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=8)), t(1.3), t(-0.2)),
        {"clicked": rng.random(8) < 0.4, "weights": 0.5 + 2 * rng.random(8)},
    ),
    "a gradient off by a factor: divided by the number of scores, not by the weights' total",
    FACTOR,
    r"\boff by\b|\b[0-2]\.\d+ ?(times|x)\b|\bproportional|\bnormali[sz]|\bdivided by\b",
)
def calibration_loss():
    @pb.autograd_function
    def calibration_loss(ctx, scores, slope, shift, clicked, weights=None):
        """Weighted mean log loss of sigmoid(slope * scores + shift); scores, clicked: (n,)."""
        x = scores.numpy()
        w = np.ones_like(x) if weights is None else weights
        z = slope.item() * x + shift.item()
        loss = np.logaddexp(0, z) - clicked * z
        ctx.save_for_backward(scores=scores, slope=slope, z=z, w=w, clicked=clicked)
        return pb.asarray(np.asarray((w * loss).sum() / w.sum()))

    @calibration_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_z = g.item() * s.w * (sigmoid(s.z) - s.clicked) / len(s.z)
        return {
            "scores": pb.asarray(by_z * s.slope.item()),
            "slope": (by_z * s.scores.numpy()).sum(),
            "shift": by_z.sum(),
        }

    return calibration_loss


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 5))), t(0.2), t(rng.normal(size=5)), t(rng.normal(size=(5, 3)))),
        {},
    )
)
def factorisation_machine():
    class Machine(pb.Function):
        """Scores of features: (n, p) with a term for each pair of them; twice differentiable."""

        @staticmethod
        def forward(ctx, features, base, linear, factors):
            ctx.save_for_backward(features, linear, factors)
            both = features @ factors
            own = (features * features) @ (factors * factors)
            return base + features @ linear + 0.5 * (both * both - own).sum(axis=1)

        @staticmethod
        def backward(ctx, grad_output):
            x, linear, factors = ctx.saved_variables
            g = grad_output.unsqueeze(1)
            both = x @ factors
            by_x = linear + both @ factors.t() - x * (factors * factors).sum(axis=1)
            by_factors = x.t() @ (g * both) - ((x * x * g).sum(axis=0)).unsqueeze(1) * factors
            return g * by_x, grad_output.sum(), x.t() @ grad_output, by_factors

    return Machine.apply


@BOOK.right(
    lambda rng: (
        (t(30 * rng.normal(size=(3, 5))),),
        {
            "order": np.array([[4, 0, 1, 2, 3], [1, 3, 0, 4, 2], [2, 4, 3, 1, 0]]),
            "shown": [5, 3, 2],
        },
    )
)
def plackett_luce_nll():
    @pb.autograd_function
    def plackett_luce_nll(ctx, scores, order, shown=None):
        """-log chance of orders: (n, m), best first, of which the first shown[i] are known."""
        ranked = np.take_along_axis(scores.numpy(), order, axis=1)
        counts = np.full(len(order), order.shape[1]) if shown is None else np.asarray(shown)
        known = np.arange(order.shape[1]) < counts[:, None]
        rest = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
        ctx.ranked, ctx.rest, ctx.known, ctx.order = ranked, rest, known, order
        return pb.asarray(np.where(known, rest - ranked, 0).sum(axis=1))

    @plackett_luce_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        ranked, rest = ctx.ranked, ctx.rest
        by_ranked = -ctx.known.astype(ranked.dtype)
        for place in range(ranked.shape[1]):
            share = np.exp(ranked[:, place:] - rest[:, place : place + 1])
            by_ranked[:, place:] += ctx.known[:, place : place + 1] * share
        by_scores = np.empty_like(ranked)
        np.put_along_axis(by_scores, ctx.order, by_ranked * g.numpy()[:, None], axis=1)
        return {"scores": pb.asarray(by_scores)}

    return plackett_luce_nll


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 3))), t(rng.normal(size=(7, 3)))),
        {"users": np.array([0, 2, 2, 3, 0]), "liked": np.array([1, 1, 6, 0, 4]), "seed": 5},
    )
)
def hardest_negative_loss():
    @pb.autograd_function
    def hardest_negative_loss(
        ctx, user_factors, item_factors, users, liked, tries=3, margin=1.0, seed=None
    ):
        """Hinge loss against the best scored of a few random items that were not liked."""
        U, V = user_factors.numpy()[users], item_factors.numpy()
        drawn = np.random.default_rng(seed).integers(0, len(V) - 1, size=(len(users), tries))
        drawn += drawn >= liked[:, None]
        scores = np.einsum("nd,nkd->nk", U, V[drawn])
        worst = drawn[np.arange(len(users)), scores.argmax(axis=1)]
        slack = margin - (U * V[liked]).sum(axis=1) + scores.max(axis=1)
        ctx.save_for_backward(U=user_factors, V=item_factors)
        ctx.rows, ctx.active = (users, liked, worst), slack > 0
        return pb.asarray(np.maximum(slack, 0)), pb.asarray(worst)

    @hardest_negative_loss.backward
    @pb.once_differentiable
    def _(ctx, g_loss, g_worst):
        s, (users, liked, worst) = ctx.saved_variables, ctx.rows
        U, V = s.U.numpy(), s.V.numpy()
        weight = (g_loss.numpy() * ctx.active)[:, None]
        by_U, by_V = np.zeros_like(U), np.zeros_like(V)
        np.add.at(by_U, users, weight * (V[worst] - V[liked]))
        np.add.at(by_V, worst, weight * U[users])
        np.add.at(by_V, liked, -weight * U[users])
        return {"user_factors": pb.asarray(by_U), "item_factors": pb.asarray(by_V)}

    return hardest_negative_loss


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(4, 2))), t(rng.normal(size=(5, 2)))),
        {
            "rows": np.array([0, 1, 1, 3, 3]),
            "columns": np.array([4, 0, 2, 2, 1]),
            "confidence": 1 + rng.random(5),
        },
    )
)
def implicit_cost():
    @pb.autograd_function
    def implicit_cost(ctx, users, items, rows, columns, confidence, unseen=0.1):
        """Squared errors of scores against 1 at rows, columns, else 0, without the full table."""
        U, V = users.numpy(), items.numpy()
        scores = (U[rows] * V[columns]).sum(axis=1)
        cost = unseen * ((U.T @ U) * (V.T @ V)).sum()
        cost += (confidence * (1 - scores) ** 2 - unseen * scores**2).sum()
        by_score = -2 * confidence * (1 - scores) - 2 * unseen * scores
        ctx.save_for_backward(users=users, items=items)
        ctx.seen, ctx.by_score, ctx.unseen = (rows, columns), by_score[:, None], unseen
        return pb.asarray(np.asarray(cost))

    @implicit_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        U, V = (v.numpy() for v in ctx.saved_variables)
        rows, columns = ctx.seen
        by_U, by_V = 2 * ctx.unseen * U @ (V.T @ V), 2 * ctx.unseen * V @ (U.T @ U)
        np.add.at(by_U, rows, ctx.by_score * V[columns])
        np.add.at(by_V, columns, ctx.by_score * U[rows])
        return {"users": pb.asarray(g.item() * by_U), "items": pb.asarray(g.item() * by_V)}

    return implicit_cost


@BOOK.right(
    lambda rng: (
        (
            np.array([[0, 2], [1, 1], [0, 0], [3, 2]]),
            t(rng.normal(size=(4, 3))),
            t(rng.normal(size=(3, 3))),
        ),
        {"clip": 1.5},
    )
)
def side_features():
    def forward(ctx, ids, *tables, clip=None):
        """Sum of one row of each table: (n, d), shortened to the length clip."""
        total = sum(table.numpy()[ids[:, i]] for i, table in enumerate(tables))
        length = np.sqrt((total**2).sum(axis=1, keepdims=True))
        shrink = np.ones_like(length) if clip is None else np.minimum(1, clip / length)
        ctx.ids, ctx.shapes = ids, [table.shape for table in tables]
        ctx.unit, ctx.shrink = total / length, shrink
        return pb.asarray(total * shrink)

    @pb.once_differentiable
    def backward(ctx, g):
        gn, unit = g.numpy(), ctx.unit
        along = (gn * unit).sum(axis=1, keepdims=True) * unit
        by_total = ctx.shrink * np.where(ctx.shrink < 1, gn - along, gn)
        grads = [np.zeros(shape) for shape in ctx.shapes]
        for i, grad in enumerate(grads):
            np.add.at(grad, ctx.ids[:, i], by_total)
        return (None, *map(pb.asarray, grads), None)

    return pb.autograd_function(forward, backward, name="side_features")
