"""Losses on text and graphs: alignments, contrasts, label smoothing, PageRank."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import (
    AXIS,
    BATCH,
    FACTOR,
    MASK,
    MISSING,
    NONE,
    SECOND,
    SHIFT,
    SIGN,
    SUMMED,
    TRANSPOSED,
    ZERO,
    Book,
    at,
    t,
)

BOOK = Book("losses")


def classes(n=5, k=4):
    return lambda rng: ((t(rng.normal(size=(n, k))), rng.integers(0, k, size=n)), {})


def alignment(logp, labels, blank=0):
    """CTC's forward and backward scores over the labels with blanks between them."""
    ext = np.full(2 * len(labels) + 1, blank)
    ext[1::2] = labels
    T, S = len(logp), len(ext)
    skip = np.r_[False, False, (ext[2:] != blank) & (ext[2:] != ext[:-2])]
    a, b = np.full((T, S), -np.inf), np.full((T, S), -np.inf)
    a[0, :2], b[-1, -2:] = logp[0, ext[:2]], 0.0
    for i in range(1, T):
        stay = np.logaddexp(a[i - 1], np.r_[-np.inf, a[i - 1, :-1]])
        jump = np.where(skip, np.r_[-np.inf, -np.inf, a[i - 1, :-2]], -np.inf)
        a[i] = np.logaddexp(stay, jump) + logp[i, ext]
    for i in range(T - 2, -1, -1):
        after = b[i + 1] + logp[i + 1, ext]
        stay = np.logaddexp(after, np.r_[after[1:], -np.inf])
        jump = np.r_[np.where(skip, after, -np.inf)[2:], -np.inf, -np.inf]
        b[i] = np.logaddexp(stay, jump)
    return ext, a, b, np.logaddexp(a[-1, -1], a[-1, -2])


def ctc_given(rng):
    return (t(rng.normal(size=(7, 4))), np.array([1, 3, 3])), {}


@BOOK.right(ctc_given)
def ctc():
    @pb.autograd_function
    def ctc(ctx, logits: pb.Tensor, labels: np.ndarray) -> pb.Tensor:
        """Negative log likelihood of labels: (l,) under logits: (t, k); 0 is the blank."""
        if (labels <= 0).any() or (labels >= logits.shape[1]).any():
            raise IndexError("ctc: labels must lie in [1, k)")
        logp = special.log_softmax(logits.numpy(), axis=1)
        ext, a, b, total = alignment(logp, labels)
        if not np.isfinite(total):
            raise ValueError("ctc: too few steps for the labels")
        post = np.zeros_like(logp)
        np.add.at(post.T, ext, np.exp(a + b - total).T)
        ctx.save_for_backward(p=np.exp(logp), post=post)
        return pb.asarray(-total)

    @ctc.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"logits": g * pb.asarray(ctx.saved_variables.p - ctx.saved_variables.post)}

    return ctc


@BOOK.wrong(
    ctc_given,
    "the term through the normalisation of the logits is missing",
    MISSING,
    r"softmax|normali[sz]|\bterm\b",
)
def ctc_loss():
    def forward(ctx, activations, labels, blank=0):
        logp = special.log_softmax(activations.numpy(), axis=1)
        ext, a, b, total = alignment(logp, labels, blank)
        post = np.zeros_like(logp)
        for s, k in enumerate(ext):
            post[:, k] += np.exp(a[:, s] + b[:, s] - total)
        ctx.post = post
        return pb.asarray(-total)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"activations": g * pb.asarray(-ctx.post)}

    return pb.autograd_function(forward, backward, name="ctc_loss")


def soft_dtw_tables(D, gamma):
    n, m = D.shape
    R, W = np.full((n + 1, m + 1), np.inf), np.zeros((n, m, 3))
    R[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            z = -np.array([R[i, j], R[i, j + 1], R[i + 1, j]]) / gamma
            R[i + 1, j + 1] = D[i, j] - gamma * special.logsumexp(z)
            W[i, j] = special.softmax(z)
    return R[n, m], W


def soft_dtw_path(W):
    n, m, _ = W.shape
    E = np.zeros((n + 1, m + 1))
    E[n - 1, m - 1] = 1.0
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            if i + 1 < n:
                E[i, j] += E[i + 1, j] * W[i + 1, j, 1]
            if j + 1 < m:
                E[i, j] += E[i, j + 1] * W[i, j + 1, 2]
            if i + 1 < n and j + 1 < m:
                E[i, j] += E[i + 1, j + 1] * W[i + 1, j + 1, 0]
    return E[:n, :m]


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 2))), t(rng.normal(size=(4, 2)))), {"gamma": 0.5}))
def soft_dtw():
    @pb.autograd_function
    def soft_dtw(ctx, x, y, gamma: float = 1.0):
        """Soft dynamic time warping of x: (n, d) and y: (m, d)."""
        diff = x.numpy()[:, None] - y.numpy()[None]
        value, W = soft_dtw_tables((diff**2).sum(axis=-1), gamma)
        ctx.save_for_backward(diff=diff, W=W)
        return pb.asarray(value)

    @soft_dtw.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = 2 * g.item() * soft_dtw_path(s.W)[..., None] * s.diff
        return {"x": pb.asarray(flow.sum(axis=1)), "y": pb.asarray(-flow.sum(axis=0))}

    return soft_dtw


@BOOK.wrong(
    lambda rng: ((t(rng.random((4, 4))),), {}),
    "the path's weights come back transposed",
    TRANSPOSED,
)
def warped_cost():
    @pb.autograd_function
    def warped_cost(ctx, cost, gamma=0.3):
        value, W = soft_dtw_tables(cost.numpy(), gamma)
        ctx.path = soft_dtw_path(W)
        return pb.asarray(value)

    @warped_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.numpy() * ctx.path.T), None

    return warped_cost


@BOOK.wrong(
    classes(),
    "with smoothing backward still uses the plain target",
    at("smoothing"),
    where="smoothing other than 0",
    shows=lambda rng: (
        (t(rng.normal(size=(5, 4))), rng.integers(0, 4, size=5)),
        {"smoothing": 0.1},
    ),
)
def cross_entropy():
    @pb.autograd_function
    def cross_entropy(ctx, logits: pb.Tensor, target: np.ndarray, smoothing: float = 0.0):
        """Mean cross entropy with label smoothing; logits: (n, k), target: (n,)."""
        logp = special.log_softmax(logits.numpy(), axis=1)
        n, k = logp.shape
        q = np.full((n, k), smoothing / k)
        q[np.arange(n), target] += 1 - smoothing
        ctx.save_for_backward(p=np.exp(logp), target=target)
        return pb.asarray(-(q * logp).sum() / n)

    @cross_entropy.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, n = ctx.saved_variables.p.copy(), len(ctx.saved_variables.p)
        p[np.arange(n), ctx.saved_variables.target] -= 1
        return {"logits": g * pb.asarray(p / n)}

    return cross_entropy


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(6, 4))), np.array([0, 3, -1, 2, -1, 1])),
        {"smoothing": 0.1, "ignore_index": -1},
    )
)
def smoothed_cross_entropy():
    def forward(ctx, logits, target, smoothing=0.0, ignore_index=-100, reduction="mean"):
        logp = special.log_softmax(logits.numpy(), axis=1)
        n, k = logp.shape
        keep = target != ignore_index
        q = np.full((n, k), smoothing / k)
        q[np.arange(n)[keep], target[keep]] += 1 - smoothing
        q *= keep[:, None]
        count = max(int(keep.sum()), 1) if reduction == "mean" else 1
        ctx.save_for_backward(grad=(np.exp(logp) * keep[:, None] - q) / count)
        return pb.asarray(-(q * logp).sum() / count)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"logits": pb.asarray(g.numpy() * ctx.saved_variables.grad)}

    return pb.autograd_function(forward, backward, name="smoothed_cross_entropy")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), rng.integers(0, 2, size=6).astype(float)), {}),
    "the modulating factor is taken for a constant",
    MISSING,
    r"\bconstant\b|\bterm\b|dependent",
    at("gamma"),
    where="gamma other than 0",
    shows=lambda rng: (
        (t(rng.normal(size=6)), rng.integers(0, 2, size=6).astype(float)),
        {"gamma": 2.0},
    ),
)
def focal_loss():
    @pb.autograd_function
    def focal_loss(ctx, logits, labels, gamma=0.0):
        """(1 - p)**gamma * cross entropy."""
        z = logits.numpy() * (2 * labels - 1)
        p = special.expit(z)
        ctx.save_for_backward(p=p, side=2 * labels - 1, gamma=gamma)
        return pb.asarray(-((1 - p) ** gamma) * special.log_expit(z))

    @focal_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        return {"logits": pb.asarray(-g.numpy() * s.side * (1 - s.p) ** s.gamma * (1 - s.p))}

    return focal_loss


@BOOK.right(
    lambda rng: ((t(rng.normal(size=6)), rng.integers(0, 2, size=6).astype(float)), {"gamma": 2.0})
)
def focal():
    @pb.autograd_function
    def focal(ctx, logits: pb.Tensor, labels: np.ndarray, gamma: float = 2.0) -> pb.Tensor:
        z = logits.numpy() * (2 * labels - 1)
        p, logp = special.expit(z), special.log_expit(z)
        weight = (1 - p) ** gamma
        slope = weight * (gamma * p * logp - (1 - p))
        ctx.slope = slope * (2 * labels - 1)
        return pb.asarray(-weight * logp)

    @focal.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"logits": pb.asarray(g.numpy() * ctx.slope)}

    return focal


def triplets(rng, n=4, d=3):
    return tuple(t(rng.normal(size=(n, d))) for _ in range(3)), {}


@BOOK.wrong(
    triplets,
    "the negative's term is missing in the anchor's gradient",
    MISSING,
    r"\bterm\b",
)
def triplet_loss():
    @pb.autograd_function
    def triplet_loss(ctx, anchor, positive, negative, margin=2.0):
        """Hinge of squared distances, each (n, d); returns (n,)."""
        near, far = anchor - positive, anchor - negative
        value = (near * near).sum(dim=1) - (far * far).sum(dim=1) + margin
        ctx.save_for_backward(anchor=anchor, positive=positive, negative=negative)
        ctx.active = (value.numpy() > 0)[:, None]
        return value.clamp(min=0)

    @triplet_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, p, n = ctx.saved_tensors
        g = 2 * g[:, None] * pb.asarray(ctx.active.astype(float))
        return {"anchor": g * (a - p), "positive": -g * (a - p), "negative": g * (a - n)}

    return triplet_loss


@BOOK.right(triplets)
def triplet_margin():
    class TripletMargin(pb.Function):
        @staticmethod
        def forward(ctx, anchor, positive, negative, margin=1.0):
            ctx.save_for_backward(anchor=anchor, positive=positive, negative=negative)
            ctx.margin = margin
            return TripletMargin.value(anchor, positive, negative, margin).clamp(min=0)

        @staticmethod
        def value(a, p, n, margin):
            return ((a - p) * (a - p) - (a - n) * (a - n)).sum(dim=1) + margin

        @staticmethod
        def backward(ctx, g):
            a, p, n = ctx.saved_tensors
            active = TripletMargin.value(a, p, n, ctx.margin) > 0
            g = 2 * (g * active)[:, None]
            return {"anchor": g * (n - p), "positive": g * (p - a), "negative": g * (a - n)}

    return TripletMargin.apply


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {}),
    "the softmax over the columns is missing: only the rows' half of the loss has a gradient",
    MISSING,
    FACTOR,
    r"\bhalf\b|columns|\bterm\b",
)
def contrastive():
    @pb.autograd_function
    def contrastive(ctx, text, image):
        """Symmetric contrastive loss; row i of text: (n, d) belongs to row i of image: (n, d)."""
        L = text.numpy() @ image.numpy().T
        rows, cols = special.log_softmax(L, axis=1), special.log_softmax(L, axis=0)
        ctx.save_for_backward(text=text, image=image, rows=rows)
        return pb.asarray(-(np.trace(rows) + np.trace(cols)) / (2 * len(L)))

    @contrastive.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        G = (np.exp(s.rows) - np.eye(len(s.rows))) / len(s.rows) * g.item()
        return pb.asarray(G @ s.image.numpy()), pb.asarray(G.T @ s.text.numpy())

    return contrastive


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(5, 3))), t(rng.normal(size=(5, 3)))),
        {"log_temperature": t(0.3)},
    )
)
def info_nce():
    @pb.autograd_function
    def info_nce(ctx, queries, keys, log_temperature):
        q, k, scale = queries.numpy(), keys.numpy(), np.exp(-log_temperature.numpy())
        S = q @ k.T
        logp = special.log_softmax(S * scale, axis=1)
        ctx.save_for_backward(q=queries, k=keys, S=S, p=np.exp(logp), scale=float(scale))
        return pb.asarray(-np.trace(logp) / len(S))

    @info_nce.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        G = g.item() * s.scale * (s.p - np.eye(len(s.p))) / len(s.p)
        return {
            "queries": pb.asarray(G @ s.k.numpy()),
            "keys": pb.asarray(G.T @ s.q.numpy()),
            "log_temperature": pb.asarray(-(G * s.S).sum()),
        }

    return info_nce


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4))), np.ones((3, 4), bool)),
        {},
    ),
    "places that are not selected still get a gradient",
    MASK,
    r"not selected|false in|places? left out",
    where="select not all true",
    shows=lambda rng: (
        (t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4))), np.eye(3, 4) > 0),
        {},
    ),
)
def selected_mse():
    @pb.autograd_function
    def selected_mse(ctx, prediction, target, select):
        """Mean squared error over the places where select is true; all (n, m)."""
        diff = (prediction.numpy() - target.numpy()) * select
        ctx.save_for_backward(prediction=prediction, target=target, count=max(select.sum(), 1))
        return pb.asarray((diff**2).sum() / max(select.sum(), 1))

    @selected_mse.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = 2 * g * (s.prediction - s.target) / float(s.count)
        return {"prediction": flow, "target": -flow}

    return selected_mse


@BOOK.wrong(
    lambda rng: ((t(rng.random((5, 5))),), {}),
    "the power iteration's last step alone is differentiated; the ranks are taken for constants",
    MISSING,
    r"\bconstant\b|implicit|iterat",
)
def pagerank():
    @pb.autograd_function
    def pagerank(ctx, weights, damping=0.85):
        """Stationary ranks for weights: (n, n) from row to column."""
        P = weights.numpy() / weights.numpy().sum(axis=1, keepdims=True)
        n = len(P)
        r = np.linalg.solve(np.eye(n) - damping * P.T, np.full(n, (1 - damping) / n))
        ctx.save_for_backward(P=P, r=r, total=weights.numpy().sum(axis=1), damping=damping)
        return pb.asarray(r)

    @pagerank.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        gP = s.damping * np.outer(s.r, g.numpy())
        grad = (gP - (gP * s.P).sum(axis=1, keepdims=True)) / s.total[:, None]
        return {"weights": pb.asarray(grad)}

    return pagerank


@BOOK.right(lambda rng: ((t(0.1 + rng.random((5, 5))),), {"damping": t(0.8)}))
def stationary_ranks():
    def forward(ctx, links: pb.Tensor, damping: pb.Tensor, tol: float = 1e-12) -> pb.Tensor:
        """PageRank by power iteration; links: (n, n) positive weights from row to column."""
        W, d = links.numpy(), damping.numpy()
        if (W < 0).any() or (W.sum(axis=1) == 0).any():
            raise ValueError("stationary_ranks: every row needs a link, and none may be negative")
        total = W.sum(axis=1, keepdims=True)
        P, n = W / total, len(W)
        r = np.full(n, 1 / n)
        for _ in range(1000):
            new = d * r @ P + (1 - d) / n
            done, r = np.abs(new - r).sum() < tol, new
            if done:
                break
        ctx.save_for_backward(P=P, r=r, total=total, d=float(d))
        return pb.asarray(r)

    @pb.once_differentiable
    def backward(ctx, g):
        s, n = ctx.saved_variables, len(ctx.saved_variables.r)
        u = np.linalg.solve(np.eye(n) - s.d * s.P, g.numpy())
        gP = s.d * np.outer(s.r, u)
        by_links = (gP - (gP * s.P).sum(axis=1, keepdims=True)) / s.total
        by_damping = u @ (s.r @ s.P) - u.sum() / n
        return {"links": pb.asarray(by_links), "damping": pb.asarray(by_damping)}

    return pb.autograd_function(forward, backward, name="stationary_ranks")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 4))), np.array([2, 0, 3, 1, 1])), {}),
    "off by one: the target is taken off the prediction of the step before",
    SHIFT,
)
def next_token_loss():
    @pb.autograd_function
    def next_token_loss(ctx, logits, tokens):
        """Predict tokens[1:] from logits[:-1]; logits: (t, k), tokens: (t,)."""
        logp = special.log_softmax(logits.numpy(), axis=1)
        ctx.save_for_backward(p=np.exp(logp), tokens=tokens)
        return pb.asarray(-logp[np.arange(len(tokens) - 1), tokens[1:]].sum())

    @next_token_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, tokens = ctx.saved_variables.p.copy(), ctx.saved_variables.tokens
        p[np.arange(1, len(tokens)), tokens[1:]] -= 1
        p[0] = 0
        return {"logits": pb.asarray(g.item() * p)}

    return next_token_loss


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))), t(rng.normal(size=3)), rng.integers(0, 2, 5)), {}),
    "the bias's gradient is the mean over the batch where it should be the sum",
    SUMMED,
    BATCH,
    r"mean (?:over|instead)|instead of the sum",
    FACTOR,
    AXIS,
)
def logistic_head():
    @pb.autograd_function
    def logistic_head(ctx, features, bias, labels):
        """Summed logistic loss of the rows' sums."""
        side = 2.0 * labels - 1
        z = (features.numpy() + bias.numpy()).sum(axis=1) * side
        ctx.flow = -side * special.expit(-z)
        ctx.d = len(bias)
        return pb.asarray(np.logaddexp(0, -z).sum())

    @logistic_head.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = np.repeat(g.item() * ctx.flow[:, None], ctx.d, axis=1)
        return pb.asarray(flow), pb.asarray(flow.mean(axis=0)), None

    return logistic_head


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), t(rng.normal(size=6))), {}),
    "the weights of the robust loss are plain numbers, so the second derivative lacks their part",
    SECOND,
    where="second derivative",
)
def charbonnier():
    @pb.autograd_function
    def charbonnier(ctx, prediction, target):
        """Smooth absolute error, summed; prediction and target: (n,)."""
        d = prediction - target
        ctx.save_for_backward(prediction=prediction, target=target)
        return pb.sqrt(d * d + 0.01).sum()

    @charbonnier.backward
    def _(ctx, g):
        s = ctx.saved_variables
        d = s.prediction - s.target
        weight = pb.asarray([1 / (v * v + 0.01) ** 0.5 for v in d.tolist()], dtype=d.dtype)
        return {"prediction": g * weight * d, "target": -g * weight * d}

    return charbonnier


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=5))), {}),
    "residuals beyond delta get no gradient",
    ZERO,
    NONE,
    MASK,
    where="residual above delta",
    shows=lambda rng: ((t(5 + rng.normal(size=5)), t(rng.normal(size=5))), {}),
)
def huber():
    def forward(ctx, x, y, delta=4.0):
        ctx.save_for_backward(d=x.numpy() - y.numpy(), delta=delta)
        a = np.abs(x.numpy() - y.numpy())
        return pb.asarray(np.where(a <= delta, 0.5 * a**2, delta * (a - 0.5 * delta)))

    @pb.once_differentiable
    def backward(ctx, g):
        d, delta = ctx.saved_variables.d, ctx.saved_variables.delta
        flow = g.numpy() * np.where(np.abs(d) <= delta, d, 0.0)
        return pb.asarray(flow), pb.asarray(-flow), None

    return pb.autograd_function(forward, backward, name="huber")


@BOOK.wrong(
    lambda rng: ((t(rng.random((4, 3))), t(rng.random((4, 3)))), {}),
    "the union's derivative has the wrong sign",
    SIGN,
)
def soft_dice():
    @pb.autograd_function
    def soft_dice(ctx, p, q):
        """1 - 2 |pq| / (|p| + |q|), the sums over all entries."""
        ctx.save_for_backward(p=p, q=q)
        return 1 - 2 * (p * q).sum() / (p.sum() + q.sum())

    @soft_dice.backward
    def _(ctx, g):
        p, q = ctx.saved_tensors
        total = p.sum() + q.sum()
        shared = 2 * (p * q).sum() / (total * total)
        return -g * (2 * q / total + shared), -g * (2 * p / total + shared)

    return soft_dice
