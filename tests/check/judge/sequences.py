"""Sequences: hidden Markov models, conditional random fields, alignments of two sequences."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MASK,
    MISSING,
    REPEATED,
    STATE,
    SWAPPED,
    TRANSPOSED,
    Book,
    at,
    t,
)

BOOK = Book("sequences")


def lse(x, axis=None):
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def rows(rng, *shape):
    p = rng.random(shape) + 0.2
    return p / p.sum(axis=-1, keepdims=True)


def hmm(*observed):
    def given(rng):
        args = (t(rows(rng, 3)), t(rows(rng, 3, 3)), t(rows(rng, 3, 4)), np.array(observed))
        return args, {}

    return given


def forward_backward_tables(pi, A, likelihood):
    """Unscaled forward and backward tables of a short sequence; likelihood: (T, K)."""
    n = len(likelihood)
    alpha, beta = np.zeros(likelihood.shape), np.ones(likelihood.shape)
    alpha[0] = pi * likelihood[0]
    for i in range(1, n):
        alpha[i] = alpha[i - 1] @ A * likelihood[i]
    for i in range(n - 2, -1, -1):
        beta[i] = A @ (likelihood[i + 1] * beta[i + 1])
    return alpha, beta


@BOOK.wrong(
    hmm(2, 0, 3, 1),
    "a symbol observed more than once keeps the gradient of its last occurrence only",
    REPEATED,
    r"add\.at|accumulat|occurrence",
    where="repeated symbols",
    shows=hmm(2, 0, 2, 2, 1),
)
def hmm_evidence():
    @pb.autograd_function
    def hmm_evidence(ctx, pi, A, B, obs):
        """Log-likelihood of obs: (T,) under pi: (K,), A: (K, K), B: (K, symbols)."""
        likelihood = B.numpy()[:, obs].T
        alpha, beta = forward_backward_tables(pi.numpy(), A.numpy(), likelihood)
        ctx.save_for_backward(A=A, pi=pi, B=B, alpha=alpha, beta=beta, obs=obs)
        return pb.asarray(np.log(alpha[-1].sum()))

    @hmm_evidence.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        B, scale = s.B.numpy(), g.item() / s.alpha[-1].sum()
        e = B[:, s.obs].T
        grad_B = np.zeros_like(B)
        grad_B[:, s.obs] = (s.alpha * s.beta / e).T
        return {
            "pi": pb.asarray(scale * e[0] * s.beta[0]),
            "A": pb.asarray(scale * (s.alpha[:-1].T @ (e[1:] * s.beta[1:]))),
            "B": pb.asarray(scale * grad_B),
        }

    return hmm_evidence


@BOOK.right(hmm(1, 1, 0, 3, 1, 2))
def filtered_states():
    class Filter(pb.Function):
        """State probabilities after each observation, and the log-likelihood."""

        @staticmethod
        def forward(ctx, start, transition, emission, symbols):
            A, e = transition.numpy(), emission.numpy()[:, symbols].T
            f, predicted = np.zeros_like(e), np.zeros_like(e)
            norm = np.zeros(len(e))
            predicted[0] = start.numpy()
            for i in range(len(e)):
                if i:
                    predicted[i] = f[i - 1] @ A
                norm[i] = (predicted[i] * e[i]).sum()
                f[i] = predicted[i] * e[i] / norm[i]
            ctx.save_for_backward(transition=transition, shape=emission.shape, symbols=symbols)
            ctx.tables = e, f.copy(), predicted, norm
            return pb.asarray(f), pb.asarray(np.log(norm).sum())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_filtered, g_loglik):
            s, (e, f, predicted, norm) = ctx.saved_variables, ctx.tables
            A, gf = s.transition.numpy(), g_filtered.numpy().copy()
            by_A, by_B = np.zeros_like(A), np.zeros(s.shape)
            for i in range(len(e) - 1, -1, -1):
                joint = (gf[i] - gf[i] @ f[i] + g_loglik.item()) / norm[i]
                by_B[:, s.symbols[i]] += joint * predicted[i]
                down = joint * e[i]
                if i:
                    by_A += np.outer(f[i - 1], down)
                    gf[i - 1] += A @ down
            return {
                "start": pb.asarray(down),
                "transition": pb.asarray(by_A),
                "emission": pb.asarray(by_B),
            }

    return Filter.apply


def chain_marginals(unary, pairwise):
    """Log partition, marginals (T, K) and pair marginals summed over steps (K, K)."""
    n, k = unary.shape
    fwd, bwd = unary.copy(), np.zeros((n, k))
    for i in range(1, n):
        fwd[i] += lse(fwd[i - 1][:, None] + pairwise, axis=0)
    for i in range(n - 2, -1, -1):
        bwd[i] = lse(pairwise + (unary[i + 1] + bwd[i + 1])[None], axis=1)
    log_z = lse(fwd[-1])
    pairs = np.zeros((k, k))
    for i in range(1, n):
        pairs += np.exp(fwd[i - 1][:, None] + pairwise + unary[i] + bwd[i] - log_z)
    return log_z, np.exp(fwd + bwd - log_z), pairs


def tagged(lengths):
    def given(rng):
        tags = rng.integers(0, 3, size=(2, 5))
        scores = t(rng.normal(size=(2, 5, 3)))
        return (scores, t(rng.normal(size=(3, 3))), tags, np.array(lengths)), {}

    return given


@BOOK.wrong(
    tagged([5, 5]),
    "the tags' own transitions are counted over the padding too: the mask is left out there",
    MASK,
    r"\bpadd",
    r"\blength.{0,20}(short|differ|less)",
    where="sequences shorter than the batch",
    shows=tagged([5, 3]),
)
def tagger_nll():
    @pb.autograd_function
    def tagger_nll(ctx, emissions, transitions, tags, lengths):
        """Sum of -log p(tags) of a linear chain; emissions: (b, T, K), tags: (b, T)."""
        E, P, total = emissions.numpy(), transitions.numpy(), 0.0
        by_e, by_p = np.zeros_like(E), np.zeros_like(P)
        for b, n in enumerate(lengths):
            log_z, single, pairs = chain_marginals(E[b, :n], P)
            y = tags[b, :n]
            total += log_z - E[b, np.arange(n), y].sum() - P[y[:-1], y[1:]].sum()
            by_e[b, :n] = single
            by_e[b, np.arange(n), y] -= 1
            by_p += pairs
        np.add.at(by_p, (tags[:, :-1], tags[:, 1:]), -1.0)
        ctx.by_e, ctx.by_p = by_e, by_p
        return pb.asarray(np.asarray(total))

    @tagger_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {
            "emissions": pb.asarray(g.item() * ctx.by_e),
            "transitions": pb.asarray(g.item() * ctx.by_p),
        }

    return tagger_nll


@BOOK.right(tagged([3, 5]))
def chain_crf_losses():
    def forward(ctx, emissions, transitions, tags, lengths):
        E, P = emissions.numpy(), transitions.numpy()
        losses, by_e, by_p = np.zeros(len(E)), np.zeros_like(E), np.zeros((len(E), *P.shape))
        for b, n in enumerate(lengths):
            log_z, by_e[b, :n], by_p[b] = chain_marginals(E[b, :n], P)
            y, steps = tags[b, :n], np.arange(n)
            losses[b] = log_z - E[b, steps, y].sum() - P[y[:-1], y[1:]].sum()
            by_e[b, steps, y] -= 1
            np.subtract.at(by_p[b], (y[:-1], y[1:]), 1)
        ctx.save_for_backward(by_e=by_e, by_p=by_p)
        return pb.asarray(losses)

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "emissions": pb.asarray(gn[:, None, None] * s.by_e),
            "transitions": pb.asarray(np.einsum("b,bij->ij", gn, s.by_p)),
        }

    return pb.autograd_function(forward, backward, name="chain_crf_losses")


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(6, 4))), t(rng.normal(size=(4, 4))), np.array([0, 2, 1, 3, 3, 1])),
        {},
    ),
    "the gradient of the transitions is transposed: it goes to [next, previous]",
    TRANSPOSED,
    SWAPPED,
)
def path_score():
    @pb.autograd_function
    def path_score(ctx, unary: pb.Tensor, jumps: pb.Tensor, path: np.ndarray) -> pb.Tensor:
        """Score of one path: (T,) through unary: (T, K) and jumps: (K, K)."""
        steps = np.arange(len(path))
        ctx.save_for_backward(path=path, shapes=(unary.shape, jumps.shape))
        total = unary.numpy()[steps, path].sum() + jumps.numpy()[path[:-1], path[1:]].sum()
        return pb.asarray(np.asarray(total))

    @path_score.backward
    @pb.once_differentiable
    def _(ctx, g):
        path, (unary, jumps) = ctx.saved_variables.path, ctx.saved_variables.shapes
        by_unary, by_jumps = np.zeros(unary), np.zeros(jumps)
        by_unary[np.arange(len(path)), path] = g.item()
        np.add.at(by_jumps, (path[1:], path[:-1]), g.item())
        return {"unary": pb.asarray(by_unary), "jumps": pb.asarray(by_jumps)}

    return path_score


def align_tables(scores, gap, temperature):
    """Soft Needleman-Wunsch: the table, and the weights of (match, down, right) at each cell."""
    n, m = scores.shape
    H, W = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1, 3))
    for i in range(n + 1):
        for j in range(m + 1):
            if i == j == 0:
                continue
            options = np.full(3, -np.inf)
            if i and j:
                options[0] = H[i - 1, j - 1] + scores[i - 1, j - 1]
            if i:
                options[1] = H[i - 1, j] - gap
            if j:
                options[2] = H[i, j - 1] - gap
            H[i, j] = temperature * lse(options / temperature)
            W[i, j] = np.exp((options - H[i, j]) / temperature)
    return H, W


def align_visits(W):
    """Expected visits of each cell, from the last one back."""
    n, m = W.shape[0] - 1, W.shape[1] - 1
    visits = np.zeros((n + 2, m + 2))
    for i in range(n, -1, -1):
        for j in range(m, -1, -1):
            if (i, j) == (n, m):
                visits[i, j] = 1.0
                continue
            if i < n and j < m:
                visits[i, j] += visits[i + 1, j + 1] * W[i + 1, j + 1, 0]
            if i < n:
                visits[i, j] += visits[i + 1, j] * W[i + 1, j, 1]
            if j < m:
                visits[i, j] += visits[i, j + 1] * W[i, j + 1, 2]
    return visits[: n + 1, : m + 1]


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 5))), t(0.7)), {"temperature": 0.8}),
    "gaps in the other sequence are left out of the gap's gradient: insertions do not count",
    MISSING,
    r"insertion|deletion",
)
def global_alignment():
    @pb.autograd_function
    def global_alignment(ctx, similarity, gap, temperature=1.0):
        table, ctx.weights = align_tables(similarity.numpy(), gap.item(), temperature)
        return pb.asarray(np.asarray(table[-1, -1]))

    @global_alignment.backward
    @pb.once_differentiable
    def _(ctx, g):
        W = ctx.weights
        visits = align_visits(W)
        return {
            "similarity": pb.asarray(g.item() * (visits * W[..., 0])[1:, 1:]),
            "gap": pb.asarray(np.asarray(-g.item() * (visits * W[..., 1]).sum())),
        }

    return global_alignment


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(5, 5))), np.array([0, 3, 3, 1]), np.array([3, 1, 4]), t(0.5)),
        {"temperature": 0.5},
    )
)
def substitution_alignment():
    @pb.autograd_function
    def substitution_alignment(ctx, table, left, right, gap, temperature=1.0):
        """Soft alignment score of two strings of symbols under a substitution table."""
        if temperature <= 0:
            raise ValueError("substitution_alignment: temperature must be positive")
        H, W = align_tables(table.numpy()[np.ix_(left, right)], gap.item(), temperature)
        ctx.save_for_backward(W=W, left=left, right=right, shape=table.shape)
        return pb.asarray(np.asarray(H[-1, -1]))

    @substitution_alignment.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        flow = align_visits(s.W)[..., None] * s.W
        grad = np.zeros(s.shape)
        np.add.at(grad, np.ix_(s.left, s.right), flow[1:, 1:, 0])
        return {
            "table": pb.asarray(g.item() * grad),
            "gap": pb.asarray(np.asarray(-g.item() * flow[..., 1:].sum())),
        }

    return substitution_alignment


def monotonic(log_p):
    """Log-probability of reaching the last label, staying or moving one on, and the visits."""
    n, m = log_p.shape
    fwd = np.full((n, m), -np.inf)
    bwd = fwd.copy()
    fwd[0, 0], bwd[-1, -1] = log_p[0, 0], 0.0
    for i in range(1, n):
        before = np.r_[-np.inf, fwd[i - 1, :-1]]
        fwd[i] = np.logaddexp(fwd[i - 1], before) + log_p[i]
    for i in range(n - 2, -1, -1):
        after = bwd[i + 1] + log_p[i + 1]
        bwd[i] = np.logaddexp(after, np.r_[after[1:], -np.inf])
    return fwd[-1, -1], np.exp(fwd + bwd - fwd[-1, -1])


def frames_labels(**settings):
    def given(rng):
        labels = [[2, 0, 2], [1, 3]]
        return (t(np.log(rows(rng, 2, 5, 4))), labels), settings

    return given


@BOOK.wrong(
    frames_labels(),
    "the gradient of the mean is not divided by the number of labels, a wrong factor",
    FACTOR,
    at("reduction"),
    r"\bmean\b",
    where='reduction="mean"',
    shows=frames_labels(reduction="mean"),
)
def alignment_free_loss():
    @pb.autograd_function
    def alignment_free_loss(ctx, log_probs, labels, reduction="sum"):
        """-log p(labels) over monotonic alignments without blanks; log_probs: (b, T, V)."""
        lp = log_probs.numpy()
        grad, losses = np.zeros_like(lp), np.zeros(len(labels))
        for b, label in enumerate(labels):
            loglik, visits = monotonic(lp[b][:, label])
            losses[b] = -loglik
            for k, symbol in enumerate(label):
                grad[b, :, symbol] -= visits[:, k]
        ctx.save_for_backward(grad=grad, reduction=reduction, n=len(labels))
        if reduction == "mean":
            return pb.asarray(np.asarray((losses / [len(x) for x in labels]).mean()))
        return pb.asarray(np.asarray(losses.sum()))

    @alignment_free_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        scale = 1 / s.n if s.reduction == "mean" else 1.0
        return {"log_probs": pb.asarray(g.item() * scale * s.grad)}

    return alignment_free_loss


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))), t(rng.normal(size=(3, 3)))), {}),
    "the table of a workspace kept between calls: a later call overwrites what this one needs",
    STATE,
    r"workspace|later call|second call",
    where="second use before backward",
)
def chain_log_partition():
    tables = {}

    @pb.autograd_function
    def chain_log_partition(ctx, unary, pairwise):
        """Log partition function of a chain; unary: (T, K), pairwise: (K, K)."""
        U, P = unary.numpy(), pairwise.numpy()
        fwd = tables.setdefault(U.shape, np.empty(U.shape))
        fwd[0] = U[0]
        for i in range(1, len(U)):
            fwd[i] = U[i] + lse(fwd[i - 1][:, None] + P, axis=0)
        ctx.save_for_backward(pairwise=pairwise)
        ctx.fwd = fwd
        return pb.asarray(np.asarray(lse(fwd[-1])))

    @chain_log_partition.backward
    @pb.once_differentiable
    def _(ctx, g):
        P, fwd = ctx.saved_variables.pairwise.numpy(), ctx.fwd
        single, by_p = np.zeros_like(fwd), np.zeros_like(P)
        single[-1] = np.exp(fwd[-1] - lse(fwd[-1]))
        for i in range(len(fwd) - 2, -1, -1):
            arrive = fwd[i][:, None] + P
            joint = np.exp(arrive - lse(arrive, axis=0)) * single[i + 1]
            by_p += joint
            single[i] = joint.sum(axis=1)
        return {"unary": pb.asarray(g.item() * single), "pairwise": pb.asarray(g.item() * by_p)}

    return chain_log_partition


@BOOK.right(lambda rng: ((t(rng.normal(size=(5, 2))), t(rng.normal(size=(4, 2)))), {}))
def dtw_with_path():
    def forward(ctx, left, right):
        """Squared warped distance of left: (n, d) and right: (m, d), and the path taken."""
        x, y = left.numpy(), right.numpy()
        cost = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
        D = np.full((len(x) + 1, len(y) + 1), np.inf)
        D[0, 0] = 0.0
        for i in range(len(x)):
            for j in range(len(y)):
                D[i + 1, j + 1] = cost[i, j] + min(D[i, j], D[i, j + 1], D[i + 1, j])
        path, i, j = [], len(x), len(y)
        while i and j:
            path.append((i - 1, j - 1))
            moves = ((i - 1, j - 1), (i - 1, j), (i, j - 1))
            i, j = min(moves, key=lambda move: D[move])
        path = np.array(path[::-1])
        ctx.save_for_backward(left=left, right=right, path=path)
        return pb.asarray(np.asarray(D[-1, -1])), pb.asarray(path.copy())

    @pb.once_differentiable
    def backward(ctx, g_cost, g_path):
        s = ctx.saved_variables
        i, j = s.path.T
        x, y = s.left.numpy(), s.right.numpy()
        pull = 2 * g_cost.item() * (x[i] - y[j])
        by_x, by_y = np.zeros_like(x), np.zeros_like(y)
        np.add.at(by_x, i, pull)
        np.subtract.at(by_y, j, pull)
        return {"left": pb.asarray(by_x), "right": pb.asarray(by_y)}

    return pb.autograd_function(forward, backward, name="dtw_with_path")


@BOOK.right(lambda rng: ((t(0.1 + 0.8 * rng.random((3, 6))),), {}))
def monotonic_attention():
    @pb.autograd_function
    def monotonic_attention(ctx, stop):
        """Probability that query i ends at place j, which never goes back; stop: (n, m)."""
        p = stop.numpy()
        if p.min() < 0 or p.max() > 1:
            raise ValueError("monotonic_attention: stop must lie in [0, 1]")
        before = np.eye(1, p.shape[1])[0]
        reach = np.zeros_like(p)
        for i in range(len(p)):
            carry = 0.0
            for j in range(p.shape[1]):
                reach[i, j] = carry + before[j]
                carry = reach[i, j] * (1 - p[i, j])
            before = reach[i] * p[i]
        ctx.save_for_backward(stop=stop, reach=reach)
        return pb.asarray(reach * p)

    @monotonic_attention.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, reach = ctx.saved_variables.stop.numpy(), ctx.saved_variables.reach
        ga, grad = g.numpy().copy(), np.zeros_like(p)
        for i in range(len(p) - 1, -1, -1):
            later = 0.0
            for j in range(p.shape[1] - 1, -1, -1):
                grad[i, j] = reach[i, j] * (ga[i, j] - later)
                later = ga[i, j] * p[i, j] + later * (1 - p[i, j])
                if i:
                    ga[i - 1, j] += later
        return {"stop": pb.asarray(grad)}

    return monotonic_attention
