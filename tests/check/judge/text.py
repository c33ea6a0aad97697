"""Text: word weights, similarity of documents, soft edits, language models, copying, beams."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MASK,
    MISSING,
    STATE,
    Book,
    t,
)

BOOK = Book("text")


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def softmax(z):
    return np.exp(log_softmax(z))


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(2, 5, 7))), np.array([[3, 1, 6, 0, 0], [2, 2, 5, 4, 0]])),
        {"skip": 0},
    ),
    "the loss is a mean over the words, its gradient is divided by their number with the padding",
    FACTOR,
    MASK,
    r"\bpad|\bnumber of\b|\bcounts?\b|\bnormali[sz]er\b",
)
def word_loss():
    @pb.autograd_function
    def word_loss(ctx, logits: pb.Tensor, words: np.ndarray, skip: int | None = None):
        """Mean of -log p(word); logits: (b, n, v), words: (b, n), those equal to skip apart."""
        z = log_softmax(logits.numpy())
        live = np.ones(words.shape) if skip is None else (words != skip).astype(float)
        picked = np.take_along_axis(z, words[..., None], axis=-1)[..., 0]
        ctx.save_for_backward(z=z, live=live, words=words)
        return pb.asarray(-(picked * live).sum() / live.sum())

    @word_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        grad = np.exp(s.z)
        b, n = np.indices(s.words.shape)
        grad[b, n, s.words] -= 1
        grad *= s.live[..., None] / s.words.size
        return {"logits": grad_output * pb.asarray(grad)}

    return word_loss


@BOOK.wrong(
    lambda rng: (
        (
            t(softmax(rng.normal(size=(3, 8)))),
            t(softmax(rng.normal(size=(3, 4)))),
            t(0.2 + 0.6 * rng.random(3)),
            np.array([[5, 1, 5, 2], [0, 7, 3, 3], [6, 2, 4, 1]]),
        ),
        {},
    ),
    "the gate's gradient counts what is generated; what is copied is missing in it",
    MISSING,
    r"\bcop(?:y|ied|ying)\b|1 ?- ?`?gate\b|\bsecond (?:term|part|summand)\b",
)
def pointer_mixture():
    @pb.autograd_function
    def pointer_mixture(ctx, vocabulary, attention, gate, source):
        """gate * vocabulary + (1 - gate) * (attention, put at the words of the source).

        vocabulary: (b, v), attention: (b, n), gate: (b,), source: (b, n) words.
        """
        copied = np.zeros(vocabulary.shape)
        rows = np.arange(len(source))[:, None]
        np.add.at(copied, (rows, source), attention.numpy())
        p = gate.numpy()[:, None]
        ctx.save_for_backward(vocabulary=vocabulary, gate=gate, source=source)
        return pb.asarray(p * vocabulary.numpy() + (1 - p) * copied)

    @pointer_mixture.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        p = s.gate.numpy()[:, None]
        return {
            "vocabulary": pb.asarray(g * p),
            "attention": pb.asarray((1 - p) * np.take_along_axis(g, s.source, axis=1)),
            "gate": pb.asarray((g * s.vocabulary.numpy()).sum(axis=1)),
        }

    return pointer_mixture


def soft_minimum(options, temperature):
    z = -np.array(options) / temperature
    weights = np.exp(z - z.max())
    value = -temperature * (np.log(weights.sum()) + z.max())
    return value, weights / weights.sum()


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(4, 3))), t(rng.normal(size=(5, 3))), t(1.2)),
        {"temperature": 0.6},
    ),
    "the cost of a gap gets the gradient of the deletions only; that of the insertions is missing",
    MISSING,
    r"\binsert|\bdeletions?\b|\bhorizontal|\bvertical\b|\bhalf\b",
)
def soft_edit_distance():
    def forward(ctx, left, right, gap, temperature=1.0):
        """Soft cost of turning one row of words into the other; left: (n, d), right: (m, d)."""
        d = left.numpy()[:, None] - right.numpy()
        cost, (n, m) = (d**2).sum(axis=-1), d.shape[:2]
        table, weights = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1, 3))
        table[:, 0], table[0] = gap.item() * np.arange(n + 1), gap.item() * np.arange(m + 1)
        for i, j in np.ndindex(n, m):
            options = (table[i, j + 1] + gap.item(), table[i + 1, j] + gap.item())
            options = (*options, table[i, j] + cost[i, j])
            table[i + 1, j + 1], weights[i + 1, j + 1] = soft_minimum(options, temperature)
        ctx.d, ctx.weights = d, weights
        return pb.asarray(table[n, m])

    @pb.once_differentiable
    def backward(ctx, grad_output):
        n, m = ctx.d.shape[:2]
        g, by_cost, by_gap = np.zeros((n + 1, m + 1)), np.zeros((n, m)), 0.0
        g[n, m] = grad_output.item()
        for i, j in np.ndindex(n, m):
            i, j = n - i, m - j
            delete, insert, replace = g[i, j] * ctx.weights[i, j]
            g[i - 1, j] += delete
            g[i, j - 1] += insert
            g[i - 1, j - 1] += replace
            by_cost[i - 1, j - 1] = replace
            by_gap += delete
        by_gap += g[:, 0] @ np.arange(n + 1)
        by_d = 2 * by_cost[..., None] * ctx.d
        return {
            "left": pb.asarray(by_d.sum(axis=1)),
            "right": pb.asarray(-by_d.sum(axis=0)),
            "gap": pb.asarray(by_gap),
        }

    return pb.autograd_function(forward, backward, name="soft_edit_distance")


@BOOK.wrong(
    lambda rng: (
        (t(-3 * rng.random((4, 6))), t(0.8), np.array([6, 3, 4, 2])),
        {},
    ),
    "the words beyond the length of a beam get a gradient: backward forgets the mask",
    MASK,
    r"\bpad|\bbeyond\b|\bafter (?:the|its) (?:end|length)|\bpast (?:the|its) end|\bended\b",
    r"(?:should|must|ought to) be (?:0|zero)\b|\bnon-?zero\b",
)
def beam_scores():
    @pb.autograd_function
    def beam_scores(ctx, log_probs, alpha, lengths):
        """Sum of log_probs: (beams, n) to the lengths: (beams,), over a penalty for short ones."""
        live = np.arange(log_probs.shape[1]) < lengths[:, None]
        size = (5 + lengths) / 6
        penalty = size ** alpha.item()
        scores = (log_probs.numpy() * live).sum(axis=1) / penalty
        ctx.save_for_backward(scores=scores, penalty=penalty, size=size, n=log_probs.shape[1])
        return pb.asarray(scores)

    @beam_scores.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        by_word = np.repeat((g / s.penalty)[:, None], s.n, axis=1)
        by_alpha = -(g * s.scores * np.log(s.size)).sum()
        return {"log_probs": pb.asarray(by_word), "alpha": pb.asarray(by_alpha)}

    return beam_scores


def counts(rng, docs=4, words=6):
    return rng.poisson(1.5, size=(docs, words)) + rng.random((docs, words))


def an_empty_document(rng):
    table = counts(rng)
    table[2] = 0
    return (t(table), t(1 + rng.random(6))), {}


@BOOK.wrong(
    lambda rng: ((t(counts(rng)), t(1 + rng.random(6))), {}),
    "a document without words has norm 0: forward guards against it, backward gives nan",
    r"\bnan\b|not finite|non-?finite|\bempty\b|\bzero (?:row|norm|vector)|divi\w+ by (?:0|zero)",
    where="a document without words",
    shows=an_empty_document,
)
def document_similarity():
    @pb.autograd_function
    def document_similarity(ctx, table, weights):
        """Cosines between the rows of table: (docs, v), the words weighted; 0 without words."""
        x = table.numpy() * weights.numpy()
        norm = np.sqrt((x**2).sum(axis=1, keepdims=True))
        with np.errstate(invalid="ignore"):
            unit = np.nan_to_num(x / norm)
        ctx.save_for_backward(table=table, weights=weights, norm=norm)
        return pb.asarray(unit @ unit.T)

    @document_similarity.backward
    @pb.once_differentiable
    @np.errstate(invalid="ignore")
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        unit = s.table.numpy() * s.weights.numpy() / s.norm
        by_unit = (g + g.T) @ unit
        along = (by_unit * unit).sum(axis=1, keepdims=True)
        by_x = (by_unit - unit * along) / s.norm
        return {
            "table": pb.asarray(by_x * s.weights.numpy()),
            "weights": pb.asarray((by_x * s.table.numpy()).sum(axis=0)),
        }

    return document_similarity


@BOOK.right(lambda rng: ((t(np.floor(counts(rng))), t(1 + rng.random(6))), {"floor": 0.01}))
def tfidf_vectors():
    def scaled(frequencies, idf, floor):
        x = frequencies.log1p() * idf
        return x, ((x**2).sum(dim=1, keepdim=True) + floor**2).sqrt()

    @pb.autograd_function
    def tfidf_vectors(ctx, frequencies, idf, floor=1e-3):
        """Damped frequencies: (docs, v), at least 0, times idf: (v,), as rows of length 1."""
        ctx.save_for_backward(frequencies=frequencies, idf=idf, floor=floor)
        x, norm = scaled(frequencies, idf, floor)
        return x / norm

    @tfidf_vectors.backward
    def _(ctx, g):
        s = ctx.saved_variables
        x, norm = scaled(s.frequencies, s.idf, s.floor)
        by_x = (g - x * (g * x).sum(dim=1, keepdim=True) / norm**2) / norm
        return {
            "frequencies": by_x * s.idf / (1 + s.frequencies),
            "idf": (by_x * s.frequencies.log1p()).sum(dim=0),
        }

    return tfidf_vectors


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 5))), t(softmax(rng.normal(size=(3, 5))))), {}),
    "the probabilities stay in a buffer that the next call of the operation overwrites",
    STATE,
    r"\bbuffer|workspace|\bscratch\b|\bnext call|\bsecond call|\breused?\b",
    where="second use before backward",
)
def distillation_loss():
    buffers = {}

    @pb.autograd_function
    def distillation_loss(ctx, logits, teacher):
        """Mean cross entropy of the student's logits: (n, v) to the teacher's probabilities."""
        z = logits.numpy()
        p = buffers.setdefault((z.shape, z.dtype), np.empty_like(z))
        np.subtract(z, z.max(axis=1, keepdims=True), out=p)
        log_total = np.log(np.exp(p).sum(axis=1, keepdims=True))
        log_p = p - log_total
        np.exp(log_p, out=p)
        ctx.save_for_backward(p=p, log_p=log_p, teacher=teacher)
        return pb.asarray(-(teacher.numpy() * log_p).sum() / len(z))

    @distillation_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item() / len(ctx.saved_variables.log_p)
        q = s.teacher.numpy()
        return {
            "logits": pb.asarray(g * (s.p * q.sum(axis=1, keepdims=True) - q)),
            "teacher": pb.asarray(-g * s.log_p),
        }

    return distillation_loss


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=(7, 3))),
            t(rng.normal(size=(7, 3))),
            np.array([1, 4, 4, 0]),
            np.array([2, 4, 6, 2]),
            np.array([[3, 3, 2], [0, 4, 5], [6, 6, 6], [1, 0, 2]]),
        ),
        {"reduction": "mean"},
    )
)
def skipgram_loss():
    @pb.autograd_function
    def skipgram_loss(ctx, inner, outer, centres, contexts, negatives, reduction="sum"):
        """Negative sampling with two tables: (v, d); words may repeat.

        centres and contexts: (b,), negatives: (b, k); reduction: sum or mean over b.
        """
        words = np.concatenate([contexts[:, None], negatives], axis=1)
        sign = np.where(np.arange(words.shape[1]) == 0, 1, -1).astype(inner.numpy().dtype)
        u, v = inner.numpy()[centres], outer.numpy()[words]
        logits = sign * (v @ u[:, :, None])[..., 0]
        ctx.scale = 1 / len(centres) if reduction == "mean" else 1.0
        ctx.save_for_backward(shape=inner.shape, centres=centres, words=words, u=u, v=v)
        ctx.slope = -sign * np.exp(-np.logaddexp(0, logits))
        return pb.asarray(np.asarray(ctx.scale * np.logaddexp(0, -logits).sum(), u.dtype))

    @skipgram_loss.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        slope = grad_output.item() * ctx.scale * ctx.slope
        inner, outer = np.zeros(s.shape, s.u.dtype), np.zeros(s.shape, s.u.dtype)
        np.add.at(inner, s.centres, (slope[..., None] * s.v).sum(axis=1))
        np.add.at(outer, s.words, slope[..., None] * s.u[:, None, :])
        return {"inner": pb.asarray(inner), "outer": pb.asarray(outer)}

    return skipgram_loss


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=6)), t(8 * rng.normal(size=(6, 6))), t(0.4)),
        {"words": np.array([2, 0, 5, 5, 1])},
    )
)
def interpolated_bigram():
    def parts(unigram, bigram, mix, words):
        one = (unigram - unigram.logsumexp(dim=0)).index_select(0, words[1:])
        rows = bigram.index_select(0, words[:-1])
        two = rows - rows.logsumexp(dim=1, keepdim=True)
        pick = pb.asarray(np.eye(len(unigram))).to(unigram.dtype).index_select(0, words[1:])
        low = one - pb.nn.functional.softplus(mix)
        high = (two * pick).sum(dim=1) - pb.nn.functional.softplus(-mix)
        return two, pick, low, high, pb.logaddexp(low, high)

    @pb.autograd_function
    def interpolated_bigram(ctx, unigram, bigram, mix, *, words):
        """-log p of the words: (n,), each a mixture; unigram: (v,), bigram: (v, v) logits.

        sigmoid(mix) is the share of the bigrams.
        """
        ctx.save_for_backward(unigram=unigram, bigram=bigram, mix=mix)
        ctx.words = pb.asarray(words)
        return -parts(unigram, bigram, mix, ctx.words)[-1]

    @interpolated_bigram.backward
    def _(ctx, g):
        s = ctx.saved_variables
        two, pick, _, high, total = parts(s.unigram, s.bigram, s.mix, ctx.words)
        share = (high - total).exp()
        by_one = -(g * (1 - share)).unsqueeze(1) * (pick - s.unigram.softmax(dim=0))
        by_two = -(g * share).unsqueeze(1) * (pick - two.exp())
        before = pb.asarray(np.eye(len(s.unigram))).to(g.dtype).index_select(0, ctx.words[:-1])
        return {
            "unigram": by_one.sum(dim=0),
            "bigram": before.t() @ by_two,
            "mix": -(g * (share - s.mix.sigmoid())).sum(),
        }

    return interpolated_bigram


@BOOK.right(
    lambda rng: (
        (
            t(rng.normal(size=(4, 3))),
            t(rng.normal(size=(5, 3))),
            t(softmax(rng.normal(size=4))),
            t(softmax(rng.normal(size=5))),
        ),
        {"eps": 1e-6},
    )
)
def relaxed_mover_distance():
    @pb.autograd_function
    def relaxed_mover_distance(ctx, left, right, left_weights, right_weights, eps=1e-8):
        """Each word goes to the nearest of the other text; the larger of the two directions.

        left: (n, d) and right: (m, d) with weights: (n,) and (m,).
        """
        d = left.numpy()[:, None] - right.numpy()
        length = np.sqrt((d**2).sum(axis=-1) + eps)
        costs = left_weights.numpy() @ length.min(1), right_weights.numpy() @ length.min(0)
        ctx.save_for_backward(d=d, length=length, weights=(left_weights, right_weights))
        ctx.way = int(costs[1] > costs[0])
        return pb.asarray(costs[ctx.way])

    @relaxed_mover_distance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.item()
        nearest = s.length.argmin(axis=1 - ctx.way)
        places = [np.arange(len(nearest)), nearest]
        i, j = places[:: -1 if ctx.way else 1]
        moved = g * s.weights[ctx.way].numpy()[:, None] * s.d[i, j] / s.length[i, j][:, None]
        grads = [np.zeros_like(s.d[:, 0]), np.zeros_like(s.d[0])]
        np.add.at(grads[0], i, moved)
        np.subtract.at(grads[1], j, moved)
        by_weight = [np.zeros_like(w.numpy()) for w in s.weights]
        by_weight[ctx.way] += g * s.length[i, j]
        return (*map(pb.asarray, (*grads, *by_weight)), None)

    return relaxed_mover_distance


PIECES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 2], [1, 3], [2, 4], [0, 3], [1, 4], [4, 5]])


@BOOK.right(lambda rng: ((t(2 * rng.normal(size=10)), PIECES), {}))
def segmentation_score():
    @pb.autograd_function
    def segmentation_score(ctx, scores: pb.Tensor, pieces: np.ndarray) -> pb.Tensor:
        """Log of the sum over all ways to cut a word of exp(the sum of its pieces' scores).

        pieces: (k, 2) integers, start and end, in any order; scores: (k,).
        """
        x, n = scores.numpy(), int(pieces[:, 1].max())
        order = np.argsort(pieces[:, 1], kind="stable")
        before, after = (np.full(n + 1, -np.inf, x.dtype) for _ in range(2))
        before[0] = after[n] = 0
        for k in order:
            start, end = pieces[k]
            before[end] = np.logaddexp(before[end], before[start] + x[k])
        if before[n] == -np.inf:
            raise ValueError("segmentation_score: the pieces do not make up a word")
        for k in np.argsort(-pieces[:, 0], kind="stable"):
            start, end = pieces[k]
            after[start] = np.logaddexp(after[start], after[end] + x[k])
        starts, ends = pieces.T
        ctx.share = np.exp(before[starts] + x + after[ends] - before[n])
        return pb.asarray(before[n])

    @segmentation_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"scores": grad_output * pb.asarray(ctx.share)}

    return segmentation_score
