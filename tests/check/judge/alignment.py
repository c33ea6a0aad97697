"""Alignment: dynamic programming over sequences, hard and smooth; edit costs; chains; paths."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SHIFT, ZERO, Book, at, mends, t

BOOK = Book("alignment")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 2, (4, 5))),), {}),
    "the shares of the three steps in the gradient take gamma for 1",
    at("gamma"),
    r"gamma.{0,40}(?:missing|ignored|unused|left out|not used)|gamma (?:for|as|is|was|were) 1\b",
    r"(?:divi\w+ by|missing|without|lacks?|left out|over) (?:the )?(?:ctx\.)?gamma\b",
    r"temperature|smoothing|right (?:only )?(?:if|when|where|for) .{0,20}gamma",
    mends("/ ctx.gamma", "R[i, j]) /", "/ s.gamma", "gamma = ctx.gamma"),
    where="gamma is not 1",
    shows=lambda rng: ((t(rng.uniform(0, 2, (4, 5))),), {"gamma": 0.3}),
)
def soft_time_warping():
    @pb.autograd_function
    def soft_time_warping(ctx, distances, gamma=1.0):
        """Soft dynamic time warping of the distances (n, m) between two series."""
        n, m = distances.shape
        D = distances.numpy()
        R = np.full((n + 2, m + 2), np.inf)
        R[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                before = np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]])
                R[i, j] = D[i - 1, j - 1] - gamma * logsumexp(-before / gamma)
        ctx.save_for_backward(distances=distances, R=R)
        ctx.gamma = gamma
        return pb.asarray(np.array(R[n, m]))

    @soft_time_warping.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        D, R = ctx.saved_variables.distances.numpy(), ctx.saved_variables.R
        n, m = D.shape
        E = np.zeros((n + 2, m + 2))
        E[n, m] = grad_output.item()
        for i in reversed(range(1, n + 1)):
            for j in reversed(range(1, m + 1)):
                for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if a <= n and b <= m:
                        share = np.exp(R[a, b] - D[a - 1, b - 1] - R[i, j])
                        E[i, j] += share * E[a, b]
        return {"distances": pb.asarray(E[1:-1, 1:-1].copy())}

    return soft_time_warping


INSIDE = np.array([[-2.0, -1, -3, -2], [-1, 3, -2, -1], [-2, -1, 2, -2], [-3, -1, -2, 4]])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.5, 2, (4, 5))), t(0.4)), {}),
    "the way back does not stop where the local alignment begins, at a score of zero, but goes on "
    "to the border",
    ZERO,
    r"\blocal(?:ly)?\b|\bstops?\b|\b(?:begin|start)s?\b|\bborder\b|\bpath\b.{0,40}(?:long|far)",
    r"trace.?back|too (?:far|many|long)|before the alignment|outside the align",
    r"(?:first|upper|leading) (?:rows?|columns?)",
    mends(
        "while H[i, j] > 0",
        "and H[i, j] > 0",
        "and H[i, j]:",
        "and s.H[i, j]",
        "H[i, j] == 0",
        "H[i, j] <= 0",
        "if not H[i, j]",
    ),
    where="the best alignment begins inside",
    shows=lambda rng: ((t(INSIDE + rng.uniform(-0.2, 0.2, (4, 4))), t(0.8)), {}),
)
def local_alignment():
    class LocalAlignment(pb.Function):
        """Smith-Waterman score; similarity: (n, m) of all pairs, gap: cost of a letter skipped."""

        @staticmethod
        def forward(ctx, similarity, gap):
            S, c = similarity.numpy(), gap.item()
            H = np.zeros((S.shape[0] + 1, S.shape[1] + 1))
            for i in range(1, len(H)):
                for j in range(1, H.shape[1]):
                    up, left = H[i - 1, j] - c, H[i, j - 1] - c
                    H[i, j] = max(0.0, H[i - 1, j - 1] + S[i - 1, j - 1], up, left)
            ctx.save_for_backward(S=S, c=c, H=H)
            return pb.asarray(np.array(H.max()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            S, c, H = ctx.saved_variables
            g, grad_S, grad_c = grad_output.item(), np.zeros_like(S), 0.0
            i, j = np.unravel_index(H.argmax(), H.shape)
            while i > 0 and j > 0:
                steps = [H[i - 1, j - 1] + S[i - 1, j - 1], H[i - 1, j] - c, H[i, j - 1] - c]
                best = int(np.argmax(steps))
                if best == 0:
                    grad_S[i - 1, j - 1] += g
                else:
                    grad_c -= g
                i, j = i - (best != 2), j - (best != 1)
            return pb.asarray(grad_S), pb.asarray(np.array(grad_c))

    return LocalAlignment.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 2, (3, 7))), t(1.0), t(0.3)), {}),
    "a gap of k letters is extended k - 1 times; the gradient of extend counts k",
    SHIFT,
    r"k ?- ?1|length (?:-|minus|less) (?:1|one)|\bone (?:too|more|less)|too (?:large|many|much)",
    r"first letter|\bopen\w*\b.{0,40}(?:counted|too|includ)|number of gaps|once (?:per|a|for)",
    r"\b(?:by|differs? .{0,30}) (?:the )?(?:number of gaps|gradient of .?open)",
    mends("(k - 1", "(length - 1)", "(gap - 1)", "g * k - g", "(up + left - 1)"),
)
def affine_gap_score():
    @pb.autograd_function
    def affine_gap_score(ctx, similarity, opening, extend):
        """Best global alignment; a gap costs opening, and extend a letter after its first."""
        S, first, more = similarity.numpy(), opening.item(), extend.item()
        if first < more or more < 0:
            raise ValueError("it must cost more to open a gap than to extend it")
        n, m = S.shape
        best, back = np.full((n + 1, m + 1), -np.inf), {}
        best[0, 0] = 0.0
        costs = first + more * np.arange(-1, max(n, m))
        for i in range(n + 1):
            for j in range(m + 1):
                options = [(best[i - 1, j - 1] + S[i - 1, j - 1], 1, 1)] if i and j else []
                options += [(best[i - k, j] - costs[k], k, 0) for k in range(1, i + 1)]
                options += [(best[i, j - k] - costs[k], 0, k) for k in range(1, j + 1)]
                if options:
                    best[i, j], *back[i, j] = max(options)
        ctx.save_for_backward(back=back, shape=S.shape)
        return pb.asarray(np.array(best[n, m]))

    @affine_gap_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        back, (i, j) = ctx.saved_variables
        g, grad_S, grad_open, grad_extend = grad_output.item(), np.zeros((i, j)), 0.0, 0.0
        while i or j:
            up, left = back[i, j]
            if up and left:
                grad_S[i - 1, j - 1] = g
            else:
                k = up + left
                grad_open -= g
                grad_extend -= g * k
            i, j = i - up, j - left
        grads = grad_S, np.array(grad_open), np.array(grad_extend)
        return tuple(pb.asarray(grad) for grad in grads)

    return affine_gap_score


def words(first, second):
    def given(rng):
        costs = 0.4 + rng.uniform(0, 0.2, (4, 4))
        return (t(costs), t(rng.uniform(0.9, 1.2, 4)), np.array(first), np.array(second)), {}

    return given


@BOOK.wrong(
    words([0, 1, 2, 3], [0, 2, 2, 1, 3]),
    "a substitution that is made twice is counted once: its gradient is set, not added to",
    REPEATED,
    MISSING,
    FACTOR,
    r"accumulat|overwrit|\b(?:set|assigned),? (?:not|instead)|\btwice\b|(?:counted|only) once",
    r"(?:added|summed|add) (?:to|up|together)|\bsame (?:substitution|pair|letters)|several times",
    mends("by_pair[a, b] += g", "substitution[a, b] += g", "np.add.at(by_pair", "[a, b] += g"),
    where="the same substitution more than once",
    shows=words([0, 1, 2, 0, 3], [1, 1, 2, 1, 3]),
)
def weighted_edit_distance():
    def forward(ctx, substitution, indel, source, target):
        """Least cost of turning source into target, sequences of letters 0 ... k - 1.

        substitution: (k, k), used where letters differ; indel: (k,) to insert or delete one.
        """
        W, c = substitution.numpy(), indel.numpy()
        n, m = len(source), len(target)
        d, ctx.back = np.zeros((n + 1, m + 1)), {}
        for i in range(n + 1):
            for j in range(m + 1):
                options = []
                if i and j:
                    a, b = source[i - 1], target[j - 1]
                    options.append((d[i - 1, j - 1] + (W[a, b] if a != b else 0.0), 1, 1))
                if i:
                    options.append((d[i - 1, j] + c[source[i - 1]], 1, 0))
                if j:
                    options.append((d[i, j - 1] + c[target[j - 1]], 0, 1))
                if options:
                    d[i, j], *ctx.back[i, j] = min(options)
        ctx.source, ctx.target, ctx.letters = source, target, len(c)
        return pb.asarray(np.array(d[n, m]))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        g, k = grad_output.item(), ctx.letters
        by_pair, by_letter = np.zeros((k, k)), np.zeros(k)
        i, j = len(ctx.source), len(ctx.target)
        while i or j:
            down, right = ctx.back[i, j]
            if down and right:
                a, b = ctx.source[i - 1], ctx.target[j - 1]
                if a != b:
                    by_pair[a, b] = g
            else:
                by_letter[ctx.source[i - 1] if down else ctx.target[j - 1]] += g
            i, j = i - down, j - right
        return {"substitution": pb.asarray(by_pair), "indel": pb.asarray(by_letter)}

    return pb.autograd_function(forward, backward, name="weighted_edit_distance")


def two_series(rng):
    return (t(np.sin(np.arange(7)) + rng.normal(0, 0.1, 7)), t(rng.normal(size=6))), {}


@BOOK.wrong(
    two_series,
    "the weight of diagonal steps is left out in the gradient",
    MISSING,
    FACTOR,
    at("diagonal"),
    r"diagonal (?:steps?|moves?|weight)|weight .{0,20}diagonal|diagonal.{0,30}(?:ignored|unused)",
    mends(
        "ctx.diagonal",
        "s.diagonal",
        "* weight",
        "weight *",
        "* scale",
        "diagonal if",
    ),
    where="diagonal is not 1",
    shows=lambda rng: (two_series(rng)[0], {"diagonal": 1.4}),
)
def banded_dtw():
    @pb.autograd_function
    def banded_dtw(ctx, x, y, band=3, diagonal=1.0):
        """Dynamic time warping with squared differences, at most `band` off the diagonal.

        diagonal: how often the difference of a diagonal step counts.
        """
        a, b = x.numpy(), y.numpy()
        if abs(len(a) - len(b)) > band:
            raise ValueError("no path lies within the band")
        R, back = np.full((len(a) + 1, len(b) + 1), np.inf), {}
        R[0, 0] = 0
        for i in range(1, len(a) + 1):
            for j in range(max(1, i - band), min(len(b), i + band) + 1):
                d = (a[i - 1] - b[j - 1]) ** 2
                steps = [(R[i - 1, j - 1] + diagonal * d, 1, 1)]
                steps += [(R[i - 1, j] + d, 1, 0), (R[i, j - 1] + d, 0, 1)]
                R[i, j], *back[i, j] = min(steps)
        ctx.save_for_backward(x=x, y=y, back=back)
        return pb.asarray(np.array(R[-1, -1]))

    @banded_dtw.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        a, b = s.x.numpy(), s.y.numpy()
        grad_x, grad_y = np.zeros_like(a), np.zeros_like(b)
        i, j = len(a), len(b)
        while i and j:
            slope = 2 * g.item() * (a[i - 1] - b[j - 1])
            grad_x[i - 1] += slope
            grad_y[j - 1] -= slope
            down, right = s.back[i, j]
            i, j = i - down, j - right
        return {"x": pb.asarray(grad_x), "y": pb.asarray(grad_y)}

    return banded_dtw


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 3))), t(rng.normal(size=(3, 3)))), {}),
    "the step from the first to the second place is missing in the gradient of the transitions",
    MISSING + r"|too small",
    SHIFT,
    r"\bfirst (?:step|transition|place|time|pair|position)",
    r"\bsums? to\b|\bone (?:transition|term|pair)|number of (?:steps|transitions)|\bloop\b",
    mends(
        "range(1, len(e)): pairs",
        "range(1, len(alpha))",
        "range(1, n)",
        "range(len(e) - 1): pairs",
        "range(len(alpha) - 1)",
        "beta[1:]",
    ),
)
def path_log_partition():
    @pb.autograd_function
    def path_log_partition(ctx, emissions, transitions):
        """Log of the sum over all paths; emissions: (n, states), transitions: (states, states)."""
        e, w = emissions.numpy(), transitions.numpy()
        alpha = np.empty_like(e)
        alpha[0] = e[0]
        for k in range(1, len(e)):
            alpha[k] = e[k] + logsumexp(alpha[k - 1][:, None] + w, axis=0)
        ctx.save_for_backward(emissions=emissions, transitions=transitions, alpha=alpha)
        return pb.asarray(np.array(logsumexp(alpha[-1])))

    @path_log_partition.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        e, w, alpha = s.emissions.numpy(), s.transitions.numpy(), s.alpha
        beta, total = np.zeros_like(e), logsumexp(alpha[-1])
        for k in reversed(range(len(e) - 1)):
            beta[k] = logsumexp(w + e[k + 1] + beta[k + 1], axis=1)
        pairs = np.zeros_like(w)
        for k in range(2, len(e)):
            pairs += np.exp(alpha[k - 1][:, None] + w + e[k] + beta[k] - total)
        g = grad_output.item()
        return {
            "emissions": pb.asarray(g * np.exp(alpha + beta - total)),
            "transitions": pb.asarray(g * pairs),
        }

    return path_log_partition


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 5))), t(0.7)), {"temperature": 0.5}))
def alignment_free_energy():
    @pb.autograd_function
    def alignment_free_energy(ctx, similarity, gap, temperature=1.0):
        """Smooth best score of all global alignments; similarity: (n, m), gap: cost a letter."""
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        S, c = similarity.numpy() / temperature, gap.item() / temperature
        n, m = S.shape
        F, shares = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1, 3))
        for i, j in np.ndindex(n + 1, m + 1):
            steps = np.full(3, -np.inf)
            if i and j:
                steps[0] = F[i - 1, j - 1] + S[i - 1, j - 1]
            if i:
                steps[1] = F[i - 1, j] - c
            if j:
                steps[2] = F[i, j - 1] - c
            if i or j:
                F[i, j] = logsumexp(steps)
                shares[i, j] = np.exp(steps - F[i, j])
        ctx.shares = shares
        return pb.asarray(np.array(temperature * F[n, m]))

    @alignment_free_energy.backward
    @pb.once_differentiable
    def _(ctx, g):
        through = np.zeros(ctx.shares.shape[:2])
        through[-1, -1] = g.item()
        for i, j in reversed(list(np.ndindex(through.shape))):
            both, down, right = through[i, j] * ctx.shares[i, j]
            if i and j:
                through[i - 1, j - 1] += both
            if i:
                through[i - 1, j] += down
            if j:
                through[i, j - 1] += right
        flows = through[..., None] * ctx.shares
        return {
            "similarity": pb.asarray(flows[1:, 1:, 0].copy()),
            "gap": pb.asarray(np.array(-flows[..., 1:].sum())),
        }

    return alignment_free_energy


@BOOK.right(lambda rng: ((t(rng.normal(size=(7, 3))), t(rng.normal(size=(3, 3)))), {"lengths": 5}))
def best_path_score():
    class BestPath(pb.Function):
        """Score of the best path through (n, states), and its states; lengths: places used."""

        @staticmethod
        def forward(ctx, emissions, transitions, lengths=None):
            e, w = emissions.numpy()[:lengths], transitions.numpy()
            if len(e) == 0:
                raise ValueError("there must be one place or more")
            score, came = e[0], []
            for row in e[1:]:
                options = score[:, None] + w
                came.append(options.argmax(axis=0))
                score = options.max(axis=0) + row
            path = [int(score.argmax())]
            for before in reversed(came):
                path.append(int(before[path[-1]]))
            ctx.path = np.array(path[::-1])
            ctx.shapes = emissions.shape, w.shape
            return pb.asarray(np.array(score.max())), pb.asarray(ctx.path.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_score, g_path):
            path = ctx.path
            by_place, by_step = (np.zeros(shape) for shape in ctx.shapes)
            by_place[np.arange(len(path)), path] = g_score.item()
            np.add.at(by_step, (path[:-1], path[1:]), g_score.item())
            return pb.asarray(by_place), pb.asarray(by_step), None

    return BestPath.apply


@BOOK.right(lambda rng: ((np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3]), t(rng.uniform(1, 3, 10))), {}))
def heaviest_increasing():
    @pb.autograd_function
    def heaviest_increasing(ctx, keys, weights, strict=True):
        """Largest sum of weights along places whose keys increase, 0 if there is none."""
        w, total = weights.numpy(), []
        came = np.full(len(w), -1)
        for i, key in enumerate(keys):
            total.append(w[i])
            for j in range(i):
                rises = keys[j] < key or (not strict and keys[j] == key)
                if rises and total[j] + w[i] > total[i]:
                    total[i], came[i] = total[j] + w[i], j
        ctx.chosen = np.zeros(len(w))
        i = int(np.argmax(total))
        best = total[i]
        while best > 0 and i >= 0:
            ctx.chosen[i], i = 1.0, came[i]
        return pb.asarray(np.array(max(best, 0.0)))

    @heaviest_increasing.backward
    def _(ctx, g):
        return {"weights": g * pb.asarray(ctx.chosen)}

    return heaviest_increasing


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 5))), t(2.5)), {"axis": 0}))
def mellowmax():
    def forward(ctx, x, sharpness, axis=-1):
        """log(mean(exp(sharpness x))) / sharpness: between the mean and the largest."""
        if sharpness.item() == 0:
            raise ValueError("sharpness must not be zero")
        ctx.save_for_backward(x=x, sharpness=sharpness, out=smooth(x, sharpness, axis))
        ctx.axis = axis
        return ctx.saved_variables.out

    def smooth(x, sharpness, axis):
        scaled = sharpness * x
        top = scaled.detach().max(axis, keepdim=True)
        top = top[0] if isinstance(top, tuple) else top
        return ((scaled - top).exp().mean(axis, keepdim=True).log() + top).sum(axis) / sharpness

    def backward(ctx, g):
        x, omega, axis = ctx.saved_variables.x, ctx.saved_variables.sharpness, ctx.axis
        out = smooth(x, omega, axis)
        share = (omega * (x - out.unsqueeze(axis))).exp() / x.shape[axis]
        centre = (share * x).sum(axis)
        return {"x": share * g.unsqueeze(axis), "sharpness": (g * (centre - out)).sum() / omega}

    return pb.autograd_function(forward, backward, name="mellowmax")


SEEDS = np.array([0.0, 3.0, 7.5, 9.0, 14.0, 18.5])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 5, 6)), t(SEEDS + rng.uniform(0, 0.9, 6)), t(0.8)),
        {"longest": 6.0},
    )
)
def chained_anchors():
    @pb.autograd_function
    def chained_anchors(ctx, scores, positions, penalty, longest=10.0):
        """Best chain of anchors by position; a gap costs penalty * log(1 + gap) if not too long."""
        s, x, c = scores.numpy(), positions.numpy(), penalty.item()
        if (np.diff(x) <= 0).any():
            raise ValueError("positions must increase")
        total, came = s.copy(), np.full(len(s), -1)
        for i in range(len(s)):
            for j in range(i):
                gap = x[i] - x[j]
                value = total[j] + s[i] - c * np.log1p(gap)
                if gap <= longest and value > total[i]:
                    total[i], came[i] = value, j
        ctx.save_for_backward(positions=positions, penalty=penalty)
        ctx.came, ctx.end = came, int(total.argmax())
        return pb.asarray(np.array(total.max())), pb.asarray(np.array(ctx.end))

    @chained_anchors.backward
    @pb.once_differentiable
    def _(ctx, grad_output, g_end):
        x, c = (value.numpy() for value in ctx.saved_variables)
        g, i = grad_output.item(), ctx.end
        grad_s, grad_x, grad_c = np.zeros_like(x), np.zeros_like(x), 0.0
        while i >= 0:
            j = ctx.came[i]
            grad_s[i] = g
            if j >= 0:
                pull = g * c / (1 + x[i] - x[j])
                grad_x[i] -= pull
                grad_x[j] += pull
                grad_c -= g * np.log1p(x[i] - x[j])
            i = j
        return {
            "scores": pb.asarray(grad_s),
            "positions": pb.asarray(grad_x),
            "penalty": pb.asarray(np.array(grad_c)),
        }

    return chained_anchors
