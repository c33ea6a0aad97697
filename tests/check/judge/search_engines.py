"""Search engines: term weights, link analysis, click models, fusion, passages, late interaction."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, ZERO, Book, mends, t

BOOK = Book("search_engines")


def counted(rng, docs=5, terms=4):
    return rng.poisson(1.5, (docs, terms)).astype(float), rng.integers(40, 900, docs)


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.5, 6, 4)), t(np.array(1.2)), t(np.array(0.75)), *counted(rng)),
        {"average": 310.0},
    ),
    "k1 stands in the denominator as well: that term of its gradient is missing",
    MISSING,
    r"denominator|quotient rule|saturat|numerator",
    mends(
        "s.norm / s.below",
        "* s.norm",
        "s.norm *",
        "(s.counts - s.norm)",
        "/ s.below**2",
    ),
)
def bm25_scores():
    @pb.autograd_function
    def bm25_scores(ctx, idf, k1, b, counts, lengths, average):
        """Okapi BM25.

        idf: (terms,); k1, b: (); counts: (docs, terms) of the query's terms; lengths: (docs,);
        average: length of a document. Returns (docs,).
        """
        relative = np.asarray(lengths) / average
        norm = (1 - b.item() + b.item() * relative)[:, None]
        below = counts + k1.item() * norm
        parts = idf.numpy() * counts * (k1.item() + 1) / below
        ctx.save_for_backward(counts=counts, norm=norm, below=below, parts=parts)
        ctx.idf, ctx.k1, ctx.relative = idf.numpy(), k1.item(), relative
        return pb.asarray(parts.sum(axis=1))

    @bm25_scores.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        flow = gn[:, None] * s.parts
        by_norm = -(flow * ctx.k1 / s.below).sum(axis=1)
        return {
            "idf": pb.asarray(gn @ (s.counts * (ctx.k1 + 1) / s.below)),
            "k1": float(flow.sum() / (ctx.k1 + 1)),
            "b": float(by_norm @ (ctx.relative - 1)),
        }

    return bm25_scores


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.05, 0.7, 7)),), {}),
    "backward divides by 1 - attraction: at 1 the result is zero, not the clicks below it",
    ZERO,
    r"divi(?:d|s)|\bcertain|\bequal to 1\b|\bat 1\b|\bis 1\b|\b1\.0\b|\b1 -",
    mends("np.cumprod(", "to_next", "below[k]", "np.delete", "for k in reversed"),
    where="a result attracts a click for certain",
    shows=lambda rng: ((t(np.array([0.2, 0.35, 1.0, 0.6, 0.15])),), {}),
)
def cascade_clicks():
    @pb.autograd_function
    def cascade_clicks(ctx, attraction):
        """Chance that the first click falls on each result, by the cascade model."""
        a = attraction.numpy()
        examined = np.append(1.0, np.cumprod(1 - a)[:-1])
        ctx.save_for_backward(a=a, examined=examined)
        return pb.asarray(a * examined)

    @cascade_clicks.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        a, examined = ctx.saved_variables
        gn = grad_output.numpy()
        clicks = gn * a * examined
        later = clicks.sum() - np.cumsum(clicks)
        return {"attraction": pb.asarray(gn * examined - later / np.maximum(1 - a, 1e-12))}

    return cascade_clicks


def links(rng, target):
    source = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4])
    teleport = rng.dirichlet(np.ones(5))
    return (t(rng.uniform(0.5, 3, 9)), t(teleport), source, np.array(target)), {}


def with_sink(rng):
    source = np.array([0, 0, 1, 1, 2, 2, 4, 4])
    target = np.array([1, 3, 2, 3, 0, 4, 0, 3])
    return (t(rng.uniform(0.5, 3, 8)), t(rng.dirichlet(np.ones(5))), source, target), {}


@BOOK.wrong(
    lambda rng: links(rng, [1, 3, 2, 3, 0, 4, 1, 0, 3]),
    "from pages without links the walk jumps by teleport: the adjoint leaves that jump out",
    MISSING,
    r"dangling|\bsinks?\b|without (?:out)?(?:going )?links|no (?:out)?(?:going )?links|\bjump",
    mends("s.dangling", "dangling", "np.outer(", "s.moves.T", "system.T"),
    where="a page has no links",
    shows=with_sink,
)
def weighted_pagerank():
    @pb.autograd_function
    def weighted_pagerank(ctx, weights, teleport, source, target, damping=0.85):
        # weights: (links,), teleport: (pages,); pages without links lead to the teleport pages
        w, v, n = weights.numpy(), teleport.numpy(), len(teleport)
        out = np.bincount(source, w, minlength=n)
        stuck = out == 0
        moves = np.zeros((n, n))
        np.add.at(moves, (target, source), w / out[source])
        jumps = np.outer(v, stuck)
        rank = np.linalg.solve(np.eye(n) - damping * (moves + jumps), (1 - damping) * v)
        ctx.save_for_backward(w=w, out=out, moves=moves, rank=rank)
        ctx.source, ctx.target, ctx.damping = source, target, damping
        return pb.asarray(rank.copy())

    @weighted_pagerank.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        w, out, moves, rank = ctx.saved_variables
        n, source = len(rank), ctx.source
        adjoint = np.linalg.solve(np.eye(n) - ctx.damping * moves.T, grad_output.numpy())
        by_move = ctx.damping * adjoint[ctx.target] * rank[source]
        mean = np.bincount(source, by_move * w / out[source], minlength=n)
        return {
            "weights": pb.asarray((by_move - mean[source]) / out[source]),
            "teleport": pb.asarray((1 - ctx.damping) * adjoint),
        }

    return weighted_pagerank


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.2, 1.5, 3)), t(np.array(60.0))),
        {"ranks": np.array([[1, 4, 0, 2, 17], [3, 0, 0, 1, 250], [0, 2, 0, 5, 1]])},
    )
)
def reciprocal_rank_fusion():
    @pb.autograd_function
    def reciprocal_rank_fusion(ctx, weights, k, ranks):
        """Scores of documents from their ranks in several lists; rank 0: not in the list."""
        found = ranks > 0
        parts = np.where(found, 1.0 / np.where(found, k.item() + ranks, 1.0), 0.0)
        ctx.save_for_backward(weights=weights, parts=parts)
        return pb.asarray(weights.numpy() @ parts)

    @reciprocal_rank_fusion.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        weights, parts = ctx.saved_variables
        gn = grad_output.numpy()
        return {
            "weights": pb.asarray(parts @ gn),
            "k": -float(weights.numpy() @ parts**2 @ gn),
        }

    return reciprocal_rank_fusion


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 2, 9)),),
        {"labels": np.array([2, 0, 1, 1, 0, 0, 3, 0, 3]), "sizes": [4, 2, 3], "sigma": 0.8},
    )
)
def ranknet_loss():
    def forward(ctx, scores, labels, sizes, sigma=1.0):
        """Mean logistic loss of the pairs of one query whose labels differ.

        Parameters
        ----------
        scores : (n,) of the documents of all queries, one query after the other
        labels : (n,) grades, the higher the better
        sizes : documents of each query
        """
        if sum(sizes) != len(scores):
            raise ValueError("sizes do not add up to the number of scores")
        better, worse, first = [], [], 0
        for size in sizes:
            part = labels[first : first + size]
            i, j = np.nonzero(part[:, None] > part)
            better.extend(first + i)
            worse.extend(first + j)
            first += size
        ctx.better, ctx.worse = np.array(better, int), np.array(worse, int)
        ctx.n, ctx.sigma = len(scores), sigma
        s = scores.numpy()
        ctx.lead = sigma * (s[ctx.better] - s[ctx.worse])
        return pb.asarray(np.asarray(np.logaddexp(0, -ctx.lead).sum() / max(1, len(ctx.lead))))

    @pb.once_differentiable
    def backward(ctx, g):
        pairs = max(1, len(ctx.lead))
        # the logistic function without overflow
        by_lead = -g.item() * ctx.sigma / pairs * np.exp(-np.logaddexp(0, ctx.lead))
        grad = np.zeros(ctx.n)
        np.add.at(grad, ctx.better, by_lead)
        np.subtract.at(grad, ctx.worse, by_lead)
        return {"scores": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="ranknet_loss")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(3, 8)) / 3), t(rng.normal(size=(4, 6, 8)) / 3)),
        {"lengths": np.array([6, 2, 0, 5])},
    )
)
def late_interaction():
    class LateInteraction(pb.Function):
        """Sum over the query's tokens of the best match among a document's tokens.

        query: (q, d), documents: (n, m, d) padded, lengths: (n,) tokens in each; an empty
        document has the score 0. Returns (n,).
        """

        @staticmethod
        def forward(ctx, query, documents, lengths=None):
            q, d = query.numpy(), documents.numpy()
            match = np.einsum("qe,nme->nqm", q, d)
            if lengths is not None:
                padding = np.arange(d.shape[1]) >= np.asarray(lengths)[:, None]
                match[np.broadcast_to(padding[:, None], match.shape)] = -np.inf
            best = match.argmax(axis=2)
            score = np.take_along_axis(match, best[..., None], axis=2)[..., 0]
            ctx.empty = np.isneginf(score).any(axis=1)
            ctx.save_for_backward(q=q, d=d, best=best)
            return pb.asarray(np.where(ctx.empty, 0.0, score.sum(axis=1)))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            q, d, best = ctx.saved_variables
            gn = np.where(ctx.empty, 0.0, grad_output.numpy())
            rows = np.arange(len(d))[:, None]
            by_documents = np.zeros_like(d)
            np.add.at(by_documents, (rows, best), gn[:, None, None] * q)
            by_query = np.einsum("n,nqe->qe", gn, d[rows, best])
            return pb.asarray(by_query), pb.asarray(by_documents), None

    return LateInteraction.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6)), t(rng.normal(size=(3, 4, 2)))),
        {"codes": np.array([[0, 3, 1], [2, 3, 0], [0, 0, 1], [1, 3, 1], [0, 3, 1]])},
    )
)
def coded_distances():
    @pb.autograd_function
    def coded_distances(ctx, query, codebooks, codes):
        """Squared distances to vectors held as product-quantised codes.

        query: (parts * width,); codebooks: (parts, words, width); codes: (n, parts) integers.
        """
        parts, _, width = codebooks.shape
        apart = query.numpy().reshape(parts, 1, width) - codebooks.numpy()
        table = (apart**2).sum(axis=2)
        ctx.apart, ctx.codes = apart, codes
        return pb.asarray(table[np.arange(parts), codes].sum(axis=1))

    @coded_distances.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        parts, words, _ = ctx.apart.shape
        by_table = np.zeros((parts, words))
        np.add.at(by_table, (np.arange(parts), ctx.codes), grad_output.numpy()[:, None])
        by_apart = 2 * by_table[..., None] * ctx.apart
        return {
            "query": pb.asarray(by_apart.sum(axis=1).reshape(-1)),
            "codebooks": pb.asarray(-by_apart),
        }

    return coded_distances


@BOOK.right(lambda rng: ((t(rng.gamma(0.5, 2.0, 14)),), {"window": 5}))
def best_passage():
    @pb.autograd_function
    def best_passage(ctx, weights, window=50):
        # the densest run of words: its mean weight, and where it begins
        w = weights.numpy()
        if window < 1 or len(w) == 0:
            raise ValueError("a passage has one word at least")
        size = min(window, len(w))
        sums = np.array([w[i : i + size].sum() for i in range(len(w) - size + 1)])
        start = int(sums.argmax())
        ctx.n, ctx.run = len(w), slice(start, start + size)
        ctx.size = size
        return pb.asarray(np.asarray(sums[start] / size)), pb.asarray(np.asarray(start))

    @best_passage.backward
    @pb.once_differentiable
    def _(ctx, g_weight, g_start):
        grad = np.zeros(ctx.n)
        grad[ctx.run] = g_weight.item() / ctx.size
        return {"weights": pb.asarray(grad)}

    return best_passage


@BOOK.right(
    lambda rng: (
        (t(rng.gamma(2, 0.7, 8)), t(np.array([0.9, 0.6, 0.41, 0.3, 0.17, 0.12, 0.05, 0.02]))),
        {"clicks": np.array([1, 0, 1, 1, 0, 1, 1, 1]), "normalise": True},
    )
)
def unbiased_loss():
    @pb.autograd_function
    def unbiased_loss(ctx, losses, propensity, clicks, floor=0.1, normalise=False):
        """Loss of the clicked results, weighted by 1 / propensity (not below the floor)."""
        loss, p = losses.numpy(), propensity.numpy()
        weight = clicks / np.maximum(p, floor)
        total = weight.sum() if normalise else len(loss)
        mean = weight @ loss / total if total > 0 else 0.0
        ctx.save_for_backward(loss=loss, p=p, weight=weight)
        ctx.free, ctx.total = p > floor, total
        ctx.centre = mean if normalise else 0.0
        return pb.asarray(np.asarray(mean))

    @unbiased_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        loss, p, weight = ctx.saved_variables
        if ctx.total == 0:
            return {"losses": pb.asarray(0 * loss), "propensity": pb.asarray(0 * p)}
        share = g.item() * weight / ctx.total
        by_p = np.zeros_like(p)
        free = ctx.free
        by_p[free] = -(share * (loss - ctx.centre))[free] / p[free]
        return {"losses": pb.asarray(share), "propensity": pb.asarray(by_p)}

    return unbiased_loss


@BOOK.right(
    lambda rng: (
        (t(np.array([1.0, 1.0, 2.0, 0.5])), t(rng.uniform(3e-3, 3e-2, 4)), t(np.array(1500.0))),
        dict(zip(("counts", "lengths"), counted(rng), strict=True)),
    )
)
def query_likelihood():
    def forward(ctx, query, background, mu, counts, lengths):
        """Log likelihood of a query under documents with Dirichlet smoothing.

        query, background: (terms,) weights and frequencies in the collection; mu: ();
        counts: (docs, terms); lengths: (docs,).
        """
        p, m = background.numpy(), mu.item()
        above, below = counts + m * p, np.asarray(lengths) + m
        ctx.save_for_backward(q=query.numpy(), p=p, above=above, below=below)
        ctx.mu = m
        return pb.asarray(np.log(above / below[:, None]) @ query.numpy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        q, p, above, below = ctx.saved_variables
        gn = grad_output.numpy()
        by_above = gn[:, None] * q / above
        return {
            "query": pb.asarray(gn @ np.log(above / below[:, None])),
            "background": pb.asarray(ctx.mu * by_above.sum(axis=0)),
            "mu": float((by_above @ p).sum() - (gn / below).sum() * q.sum()),
        }

    return pb.autograd_function(forward, backward, name="query_likelihood")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.95, 6)), t(rng.uniform(0, 1, (6, 6))), t(np.array(0.6))),
        {"k": 4},
    )
)
def marginal_relevance():
    @pb.autograd_function
    def marginal_relevance(ctx, relevance, similarity, trade, k=10):
        """Greedy choice of k results that are relevant and unlike those before them.

        relevance: (n,); similarity: (n, n), row i against those chosen; trade: () from 0 to 1.
        Returns the scores with which they were chosen, and which they are.
        """
        r, sim, a = relevance.numpy(), similarity.numpy(), trade.item()
        chosen, like, scores = [], [], []
        for _ in range(min(k, len(r))):
            penalty = sim[:, chosen].max(axis=1) if chosen else np.zeros(len(r))
            value = a * r - (1 - a) * penalty
            value[chosen] = -np.inf
            i = int(value.argmax())
            like.append(chosen[int(sim[i, chosen].argmax())] if chosen else -1)
            chosen.append(i)
            scores.append(value[i])
        ctx.chosen, ctx.like = np.array(chosen, int), np.array(like, int)
        ctx.save_for_backward(r=r, sim=sim, a=a)
        return pb.asarray(np.array(scores)), pb.asarray(ctx.chosen.copy())

    @marginal_relevance.backward
    @pb.once_differentiable
    def _(ctx, g_scores, g_chosen):
        r, sim, a = ctx.saved_variables
        gn, i = g_scores.numpy(), ctx.chosen
        by_r, by_sim = np.zeros_like(r), np.zeros_like(sim)
        by_r[i] = a * gn
        pairs = i[1:], ctx.like[1:]
        by_sim[pairs] = -(1 - a) * gn[1:]
        return {
            "relevance": pb.asarray(by_r),
            "similarity": pb.asarray(by_sim),
            "trade": float(gn @ r[i] + gn[1:] @ sim[pairs]),
        }

    return marginal_relevance


@BOOK.right(lambda rng: ((t(np.array([0.06, 0.44, 1.0, 0.0, 0.19, 0.94])),), {"depth": 5}))
def expected_reciprocal_rank():
    @pb.autograd_function
    def expected_reciprocal_rank(ctx, satisfied, depth=None):
        p = satisfied.numpy()
        n = len(p) if depth is None else min(depth, len(p))
        value = np.zeros(n + 1)
        for r in reversed(range(n)):
            value[r] = p[r] / (r + 1) + (1 - p[r]) * value[r + 1]
        ctx.p, ctx.n, ctx.value = p, n, value
        return pb.asarray(np.asarray(value[0]))

    @expected_reciprocal_rank.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad, reached = np.zeros_like(ctx.p), g.item()
        for r in range(ctx.n):
            grad[r] = reached * (1 / (r + 1) - ctx.value[r + 1])
            reached *= 1 - ctx.p[r]
        return {"satisfied": pb.asarray(grad)}

    return expected_reciprocal_rank


@BOOK.right(
    lambda rng: (
        (t(np.array([3.0, 14.5, 61.0, 22.4, 240.0])), t(np.array(12.0)), t(np.array(30.0))),
        {"offset": 4.0, "mode": "linear"},
    )
)
def decay_score():
    @pb.autograd_function
    def decay_score(ctx, value, origin, scale, offset=0.0, decay=0.5, mode="gauss"):
        """1 up to `offset` from the origin, `decay` one scale farther on."""
        side = value.numpy() - origin.item()
        far = np.maximum(np.abs(side) - offset, 0.0) / scale.item()
        if mode == "gauss":
            score = decay ** (far**2)
            slope = 2 * far * np.log(decay) * score
        elif mode == "exp":
            score = decay**far
            slope = np.log(decay) * score
        elif mode == "linear":
            score = np.maximum(1 - (1 - decay) * far, 0.0)
            slope = np.where(score > 0, decay - 1, 0.0)
        else:
            raise ValueError(f"unknown mode {mode!r}")
        slope = np.where(far > 0, slope, 0.0) / scale.item()
        ctx.save_for_backward(side=np.sign(side), far=far, slope=slope)
        return pb.asarray(score)

    @decay_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        side, far, slope = ctx.saved_variables
        by_far = grad_output.numpy() * slope
        by_value = by_far * side
        return {
            "value": pb.asarray(by_value),
            "origin": -float(by_value.sum()),
            "scale": -float((by_far * far).sum()),
        }

    return decay_score


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=(3, 5)) * np.array([[1.0], [40.0], [0.02]]) + 7.0),
            t(np.array([0.5, 0.3, 0.2])),
        ),
        {},
    )
)
def min_max_fusion():
    @pb.autograd_function
    def min_max_fusion(ctx, scores, weights):
        # scores: (systems, docs); a system that gives all documents the same score has no say
        s = scores.numpy()
        rows = np.arange(len(s))
        low, high = s.argmin(axis=1), s.argmax(axis=1)
        span = s[rows, high] - s[rows, low]
        silent = span == 0
        span = np.where(silent, 1.0, span)
        unit = (s - s[rows, low][:, None]) / span[:, None]
        ctx.save_for_backward(unit=unit, span=span, silent=silent, weights=weights)
        ctx.ends = rows, low, high
        return pb.asarray(weights.numpy() @ unit)

    @min_max_fusion.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        unit, span, silent, weights = ctx.saved_variables
        rows, low, high = ctx.ends
        gn = grad_output.numpy()
        share = np.where(silent, 0.0, weights.numpy() / span)
        by_scores = share[:, None] * gn
        by_scores[rows, high] -= share * (unit @ gn)
        by_scores[rows, low] -= share * ((1 - unit) @ gn)
        return {"scores": pb.asarray(by_scores), "weights": pb.asarray(unit @ gn)}

    return min_max_fusion


@BOOK.right(
    lambda rng: (
        (t(rng.normal(8, 3, 7)), t(rng.uniform(0, 2, 5))),
        {"site": np.array([2, 0, 2, 4, 4, 2, 0])},
    )
)
def collapsed_sites():
    @pb.autograd_function
    def collapsed_sites(ctx, scores, boosts, site, missing=0.0):
        """Best score of each site and the site's boost; `missing` where a site has no result."""
        s, sites = scores.numpy(), len(boosts)
        # of a site's results the best comes last, and overwrites the others
        order = np.argsort(s, kind="stable")
        winner = np.full(sites, -1)
        winner[site[order]] = order
        ctx.has = winner >= 0
        ctx.winner, ctx.n = winner[ctx.has], len(s)
        out = np.full(sites, float(missing))
        out[ctx.has] = s[ctx.winner] + boosts.numpy()[ctx.has]
        return pb.asarray(out)

    @collapsed_sites.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_scores = np.zeros(ctx.n)
        by_scores[ctx.winner] = gn[ctx.has]
        return {"scores": pb.asarray(by_scores), "boosts": pb.asarray(gn * ctx.has)}

    return collapsed_sites
