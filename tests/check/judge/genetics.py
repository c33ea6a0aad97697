"""Genetics: linkage, coalescents, selection, haplotypes, pedigrees, spectra, breeding values."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, REPEATED, SIGN, TRANSPOSED, Book, at, mends, t

BOOK = Book("genetics")

RECOMBINANTS, MEIOSES = np.array([1, 0, 2, 1]), np.array([6, 4, 7, 5])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.25)), RECOMBINANTS, MEIOSES), {}),
    "the gradient takes the phase as known, also where phase_known is False",
    at("phase_known"),
    r"\bphases?(?:_known)?\b.{0,40}(?:ignored|not used|False|whatever|always|second|other)",
    r"(?:unknown|ignor\w+|other|second) phases?\b|\bmixture\b|\bposterior\b|both phases (?:in|for)",
    r"(?:term|likelihood).{0,40}(?:n - k|exchanged|meioses - recombinants).{0,30}missing",
    mends(
        "if not ctx.phase_known",
        "if ctx.phase_known",
        "if ctx.phase_known else",
        "posterior *",
        "np.exp(coupled)",
    ),
    where="phase_known=False",
    shows=lambda rng: (
        (t(rng.uniform(0.1, 0.25)), RECOMBINANTS, MEIOSES),
        {"phase_known": False},
    ),
)
def lod_score():
    def log_likelihood(r, k, n):
        return k * np.log(r) + (n - k) * np.log1p(-r)

    @pb.autograd_function
    def lod_score(ctx, distance, recombinants, meioses, phase_known=True):
        """LOD score of families at a map distance in morgans (Haldane's map function).

        Where the phase is unknown, both phases have the same prior.
        """
        k, n, d = recombinants, meioses, distance.item()
        if d <= 0:
            raise ValueError("the map distance must be positive")
        r = -np.expm1(-2 * d) / 2
        score = log_likelihood(r, k, n)
        if not phase_known:
            score = np.logaddexp(score, log_likelihood(r, n - k, n)) - np.log(2)
        ctx.save_for_backward(k=k, n=n, r=r)
        ctx.phase_known = phase_known
        return pb.asarray(np.array((score + n * np.log(2)).sum() / np.log(10)))

    @lod_score.backward
    @pb.once_differentiable
    def _(ctx, g):
        k, n, r = ctx.saved_variables
        slope = (k / r - (n - k) / (1 - r)).sum() / np.log(10)
        return {"distance": pb.asarray(np.array(g.item() * slope * (1 - 2 * r)))}

    return lod_score


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0, 0.3, 5)), t(rng.uniform(0.1, 0.6, 5)), np.arange(5)), {}),
    "where several intervals have the same group, only the last of them counts",
    REPEATED,
    r"accumulat|np\.add\.at|bincount|\boverwrit",
    r"(?:several|two|all|many|other) (?:\w+ )?intervals|(?:same|shared?|common) (?:\w+ )?group",
    r"only the last|last (?:interval|one|of)|groups? .{0,30}(?:shared|distinct|unique|alone)",
    mends("np.add.at(", "np.bincount(", "grad[j] +=", "group == j", "np.eye(len("),
    where="a group of several intervals",
    shows=lambda rng: (
        (t(rng.normal(0, 0.3, 2)), t(rng.uniform(0.1, 0.6, 5)), np.array([0, 0, 0, 1, 1])),
        {},
    ),
)
def skyline_loglik():
    class Skyline(pb.Function):
        """Log likelihood of a genealogy; log_size: (groups,), durations: (lineages - 1,).

        Interval i has n - i lineages, and the population size of its group.
        """

        @staticmethod
        def forward(ctx, log_size, durations, group):
            u = durations.numpy()
            if (u < 0).any():
                raise ValueError("intervals must not be negative")
            k = np.arange(len(u) + 1, 1, -1)
            ctx.rate = k * (k - 1) / 2 * np.exp(-log_size.numpy()[group])
            ctx.group, ctx.groups = group, len(log_size)
            ctx.save_for_backward(durations=durations)
            return pb.asarray(np.array((np.log(ctx.rate) - ctx.rate * u).sum()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            u = ctx.saved_variables.durations.numpy()
            grad = np.zeros(ctx.groups)
            grad[ctx.group] += ctx.rate * u - 1
            return {
                "log_size": pb.asarray(g.item() * grad),
                "durations": pb.asarray(-g.item() * ctx.rate),
            }

    return Skyline.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.2, 0.4)), t(rng.uniform(0.1, 0.5, 7))), {"dominance": 0.4}),
    "heterozygotes count once, not twice, in the slope of the mean fitness in s: a factor 2",
    FACTOR + r"|multipl|divided by",
    r"heterozyg\w+|mean fitness|\b(?:w_?bar|mean)\b.{0,40}(?:wrong|twice|2)",
    r"2 ?\* ?p ?\* ?(?:q|\(1 ?- ?p\)|h)|p ?\* ?(?:q|\(1 ?- ?p\)) ?\* ?h.{0,30}missing",
    r"right (?:only )?(?:if|when|where|for) .{0,12}(?:dominance|h)\b.{0,8}(?:0|zero)",
    mends(
        "p**2 + 2 * p * (1 - p) * h",
        "p**2 + 2 * h * p * (1 - p)",
        "p * p + 2 * p * (1 - p) * h",
        "p * (p + 2 * (1 - p) * h)",
        "2 * p * (1 - p) * h",
    ),
)
def selected_allele():
    def fitness(s, h):
        return 1 + s, 1 + h * s

    def step(p, s, h):
        both, one = fitness(s, h)
        gain = p * (p * both + (1 - p) * one)
        return gain, gain + (1 - p) * (p * one + (1 - p))

    @pb.autograd_function
    def selected_allele(ctx, start, s, dominance=0.5):
        """Frequency of an allele in each generation under selection s: (generations,)."""
        path = [start.item()]
        for strength in s.numpy():
            gain, mean = step(path[-1], strength, dominance)
            path.append(gain / mean)
        ctx.save_for_backward(s=s, path=np.array(path))
        ctx.h = dominance
        return pb.asarray(np.array(path[1:]))

    @selected_allele.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, path = ctx.saved_variables.s.numpy(), ctx.saved_variables.path
        gn, h, carried = grad_output.numpy(), ctx.h, 0.0
        grad_s = np.zeros(len(s))
        for k in reversed(range(len(s))):
            p, carried = path[k], carried + gn[k]
            both, one = fitness(s[k], h)
            gain, mean = step(p, s[k], h)
            d_gain, d_mean = p * (p + (1 - p) * h), p**2 + p * (1 - p) * h
            grad_s[k] = carried * (d_gain - gain / mean * d_mean) / mean
            d_gain = 2 * p * both + (1 - 2 * p) * one
            d_mean = 2 * p * both + 2 * (1 - 2 * p) * one - 2 * (1 - p)
            carried *= (d_gain - gain / mean * d_mean) / mean
        return {"start": pb.asarray(np.array(carried)), "s": pb.asarray(grad_s)}

    return selected_allele


PANEL = np.array([[0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 1, 0, 0]])
HAPLOTYPE = np.array([0, 1, 1, 1, 0, 1])


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.4, 5)), t(rng.uniform(0.02, 0.1)), HAPLOTYPE, PANEL), {}),
    "with more switching there is less staying: this second term, - before, is missing in switch",
    MISSING,
    r"\bstay\w*|\b1 ?- ?(?:s\.)?(?:switch|rho)\b.{0,40}(?:ignored|forgot|missing|constant)",
    r"(?:missing|subtract|lacks?|without|forgot\w*).{0,50}(?:before|alpha)|too (?:large|big|high)",
    r"no (?:switch|recombination|jump)|as if .{0,40}constant|product.rule",
    mends(
        "before.sum() / n - before",
        "before.mean() - before",
        "- to_mixed @ before",
        "- (to_mixed * before).sum()",
        "-= to_mixed @ before",
    ),
)
def copying_loglik():
    @pb.autograd_function
    def copying_loglik(ctx, switch, error, haplotype, panel):
        """Log likelihood that a haplotype is a mosaic of those of a panel (Li and Stephens).

        switch: (sites - 1,), error: scalar, haplotype: (sites,), panel: (n, sites).
        """
        rho, eps = switch.numpy(), error.item()
        same = panel == haplotype
        emit = np.where(same, 1 - eps, eps).T
        alpha = [emit[0] / len(panel)]
        for r, e in zip(rho, emit[1:], strict=True):
            alpha.append(e * ((1 - r) * alpha[-1] + r * alpha[-1].mean()))
        ctx.save_for_backward(switch=switch, emit=emit, alpha=alpha, same=same.T)
        return pb.asarray(np.log(np.array(alpha[-1].sum())))

    @copying_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, n = ctx.saved_variables, ctx.saved_variables.emit.shape[1]
        rho, grad_rho = s.switch.numpy(), np.zeros(len(s.switch))
        adjoint, grad_emit = np.full(n, g.item() / s.alpha[-1].sum()), np.zeros_like(s.emit)
        for k in reversed(range(len(rho))):
            before = s.alpha[k]
            grad_emit[k + 1] = adjoint * s.alpha[k + 1] / s.emit[k + 1]
            to_mixed = adjoint * s.emit[k + 1]
            grad_rho[k] = to_mixed.sum() * before.sum() / n
            adjoint = (1 - rho[k]) * to_mixed + rho[k] * to_mixed.mean()
        grad_emit[0] = adjoint / n
        grad_error = np.where(s.same, -grad_emit, grad_emit).sum()
        return pb.asarray(grad_rho), pb.asarray(np.array(grad_error)), None, None

    return copying_loglik


@BOOK.wrong(
    lambda rng: ((t(rng.binomial(2, 0.4, (8, 4)) + rng.normal(0, 0.1, (8, 4))),), {}),
    "the gradient of the correlations is taken for symmetric and doubled: transpose missing",
    TRANSPOSED,
    r"symmetr|\bboth (?:sides|markers|rows|snps)|other (?:marker|snp|site|score)",
    r"\bgn\[None|gn\[:, None\] \+ gn|right (?:only )?(?:if|when|where).{0,50}(?:equal|same|ones)",
    r"(?:sum|average|mean) of (?:the )?(?:two|both)|score of the other",
    mends(
        "by_r + by_r.T",
        "by_r.T + by_r",
        "z @ by_r + z @ by_r.T",
        "z @ by_r.T + z @ by_r",
        "gn[:, None] + gn[None, :]",
        "gn[:, None] + gn",
        "gn + gn[:, None]",
        "gn[None, :] + gn[:, None]",
    ),
)
def ld_scores():
    def forward(ctx, dosages):
        """Sum of squared correlations of each marker with all; dosages: (people, markers)."""
        x = dosages.numpy()
        spread = x.std(axis=0)
        if (spread == 0).any():
            raise ValueError("a marker is the same in all people")
        z = (x - x.mean(axis=0)) / spread
        ctx.z, ctx.spread, ctx.r = z, spread, z.T @ z / len(z)
        return pb.asarray((ctx.r**2).sum(axis=1))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        z, r, gn = ctx.z, ctx.r, grad_output.numpy()
        by_r = 2 * gn[:, None] * r / len(z)
        by_z = 2 * z @ by_r
        by_z = by_z - by_z.mean(axis=0) - z * (by_z * z).mean(axis=0)
        return {"dosages": pb.asarray(by_z / ctx.spread)}

    return pb.autograd_function(forward, backward, name="ld_scores")


def family(rng):
    penetrance = np.array([0.1, 0.4, 0.8]) + rng.uniform(0, 0.1, 3)
    return t(penetrance), t(rng.uniform(0.15, 0.3))


@BOOK.wrong(
    lambda rng: ((*family(rng), np.array([True, False]), np.array([True, True])), {}),
    "the sign of unaffected children is lost: they count as affected ones in the penetrance",
    SIGN,
    r"\b(?:un|not |non-?)affected\b|\baffected\b.{0,30}(?:ignored|False|children|kids|all)",
    r"healthy|\bchild(?:ren)?\b`?.{0,40}(?:False|ignored|not used)|\b1 ?- ?(?:pen|f\b)",
    at("children"),
    mends(
        "towards(ill) * np.einsum",
        "grad += towards(ill)",
        "towards(ill) * (",
        "for kid, ill in",
        "for ill, kid in",
        "(1 if ill else -1)",
        "towards(child)",
    ),
    where="an unaffected child",
    shows=lambda rng: (
        (*family(rng), np.array([True, False]), np.array([True, False, False])),
        {},
    ),
)
def family_loglik():
    a, b = np.meshgrid([0, 0.5, 1], [0, 0.5, 1], indexing="ij")
    PASSED = np.stack([(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b], axis=-1)

    def towards(ill):
        return 1.0 if ill else -1.0

    @pb.autograd_function
    def family_loglik(ctx, penetrance, frequency, parents, children):
        """Log likelihood of who is affected in a family of two parents and their children.

        penetrance: (3,) for 0, 1, 2 risk alleles; frequency: of the allele, scalar;
        parents: (2,) bools, children: (n,) bools.
        """
        f, q = penetrance.numpy(), frequency.item()
        prior = np.array([(1 - q) ** 2, 2 * q * (1 - q), q**2])
        seen = [f if ill else 1 - f for ill in parents]
        kids = [PASSED @ (f if ill else 1 - f) for ill in children]
        joint = np.outer(prior * seen[0], prior * seen[1]) * np.prod(kids, axis=0)
        ctx.save_for_backward(q=q, prior=prior, seen=seen, kids=kids, joint=joint)
        ctx.parents, ctx.children = parents, children
        return pb.asarray(np.log(np.array(joint.sum())))

    @family_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        posterior = s.joint / s.joint.sum()
        single = posterior.sum(axis=1), posterior.sum(axis=0)
        of_parents = zip(ctx.parents, single, s.seen, strict=True)
        grad = sum(towards(ill) * p / f for ill, p, f in of_parents)
        for kid in s.kids:
            grad = grad + np.einsum("fm,fmc->c", posterior / kid, PASSED)
        slope = np.array([-2 * (1 - s.q), 2 - 4 * s.q, 2 * s.q])
        by_q = (slope * (single[0] + single[1]) / s.prior).sum()
        return {
            "penetrance": pb.asarray(g.item() * grad),
            "frequency": pb.asarray(np.array(g.item() * by_q)),
        }

    return family_loglik


@BOOK.right(
    lambda rng: (
        (t(np.cumsum(rng.uniform(5, 20, 5))), np.array([3, 1, 4, 2]), 40),
        {"unit": "cM"},
    )
)
def map_loglik():
    PER_MORGAN = {"cM": 100.0, "M": 1.0}

    @pb.autograd_function
    def map_loglik(ctx, positions, recombinants, meioses, unit="M"):
        """Log likelihood of recombinants between neighbours (Kosambi's map function)."""
        gaps = np.diff(positions.numpy()) / PER_MORGAN[unit]
        if (gaps <= 0).any():
            raise ValueError("markers must be in ascending order")
        r = np.tanh(2 * gaps) / 2
        ctx.r, ctx.unit, ctx.k, ctx.n = r, PER_MORGAN[unit], recombinants, meioses
        return pb.asarray(np.array((ctx.k * np.log(r) + (ctx.n - ctx.k) * np.log1p(-r)).sum()))

    @map_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_gap = (ctx.k / ctx.r - (ctx.n - ctx.k) / (1 - ctx.r)) * (1 - 4 * ctx.r**2) / ctx.unit
        grad = np.zeros(len(ctx.r) + 1)
        grad[1:] += by_gap
        grad[:-1] -= by_gap
        return {"positions": pb.asarray(g.item() * grad)}

    return map_loglik


@BOOK.right(lambda rng: ((t(rng.uniform(0.8, 1.2, 4) * np.array([186.0, 38, 13, 284])),), {}))
def abo_frequencies():
    def fractions(p, q, r):
        """Return the share of the phenotypes A and B that is homozygous."""
        return p / (p + 2 * r), q / (q + 2 * r)

    @pb.autograd_function
    def abo_frequencies(ctx, counts, tol=1e-14):
        """Frequencies of the alleles A, B and O by gene counting; counts of A, B, AB and O."""
        c = counts.numpy()
        if (c <= 0).any():
            raise ValueError("each phenotype must have been seen")
        freq = np.full(3, 1 / 3)
        for _ in range(10_000):
            u, v = fractions(*freq)
            alleles = [
                c[0] * (1 + u) + c[2],
                c[1] * (1 + v) + c[2],
                c[0] * (1 - u) + c[1] * (1 - v) + 2 * c[3],
            ]
            freq, before = np.array(alleles) / (2 * c.sum()), freq
            if np.abs(freq - before).max() < tol:
                break
        ctx.save_for_backward(counts=counts, freq=freq)
        return pb.asarray(freq.copy())

    @abo_frequencies.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        c, (p, q, r) = ctx.saved_variables.counts.numpy(), ctx.saved_variables.freq
        u, v = fractions(p, q, r)
        by_u = c[0] * np.array([2 * r, 0, -2 * p]) / (p + 2 * r) ** 2
        by_v = c[1] * np.array([0, 2 * r, -2 * q]) / (q + 2 * r) ** 2
        jacobian = np.stack([by_u, by_v, -by_u - by_v]) / (2 * c.sum())
        adjoint = np.linalg.solve(np.eye(3) - jacobian.T, grad_output.numpy())
        carried = np.array([[1 + u, 0, 1 - u], [0, 1 + v, 1 - v], [1, 1, 0], [0, 0, 2]])
        total = 2 * np.array([p, q, r])
        return {"counts": pb.asarray((carried - total) @ adjoint / (2 * c.sum()))}

    return abo_frequencies


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 8)), t(rng.uniform(0.02, 0.1)), np.array([7, 3, 1, 2, 1, 0, 1])),
        {"folded": bool(rng.uniform() < 0.5)},
    )
)
def spectrum_nll():
    class SpectrumNLL(pb.Function):
        """Poisson loss of the counts of sites with 1 to n - 1 derived alleles.

        theta: mutation rate, flipped: share of sites whose ancestral allele is mistaken.
        """

        @staticmethod
        def forward(ctx, theta, flipped, counts, folded=False):
            unit = 1 / np.arange(1, len(counts) + 1)
            turned = unit[::-1]
            if folded:
                keep = (len(counts) + 1) // 2
                both = np.arange(len(counts)) != np.arange(len(counts))[::-1]
                unit = (unit + both * turned)[:keep]
                counts = (counts + both * counts[::-1])[:keep]
                turned = unit
            shape = (1 - flipped.item()) * unit + flipped.item() * turned
            mean = theta.item() * shape
            ctx.save_for_backward(theta=theta, shape=shape, tilt=turned - unit, counts=counts)
            return pb.asarray(np.array((mean - counts * np.log(mean)).sum()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            theta = s.theta.item()
            by_mean = g.item() * (1 - s.counts / (theta * s.shape))
            return {
                "theta": pb.asarray(np.array(by_mean @ s.shape)),
                "flipped": pb.asarray(np.array(theta * (by_mean @ s.tilt))),
            }

    return SpectrumNLL.apply


PEDIGREE = np.array([[-1, -1], [-1, -1], [0, 1], [0, 1], [2, 3], [2, -1]])


@BOOK.right(lambda rng: ((t(rng.normal(10, 2, 6)), t(rng.uniform(0.2, 0.6)), PEDIGREE), {}))
def breeding_values():
    def relationship(parents):
        """Return the numerator relationship matrix; -1 is an unknown parent."""
        A = np.zeros((len(parents) + 1, len(parents) + 1))
        for i, (father, mother) in enumerate(parents):
            if max(father, mother) >= i:
                raise ValueError("parents must come before their children")
            A[i, :i] = A[:i, i] = (A[father, :i] + A[mother, :i]) / 2
            A[i, i] = 1 + A[father, mother] / 2
        return A[:-1, :-1]

    def forward(ctx, phenotypes: pb.Tensor, heritability: pb.Tensor, parents) -> pb.Tensor:
        """Predict breeding values (BLUP); parents: (n, 2) places of father and mother."""
        y, h2 = phenotypes.numpy(), heritability.item()
        if not 0 < h2 < 1:
            raise ValueError("heritability must lie between 0 and 1")
        A, ones = relationship(parents), np.ones(len(y))
        V = h2 * A + (1 - h2) * np.eye(len(y))
        weights = np.linalg.solve(V, ones)
        mean = weights @ y / weights.sum()
        rest = np.linalg.solve(V, y - mean)
        ctx.save_for_backward(h2=h2, A=A, V=V, weights=weights, rest=rest)
        return pb.asarray(h2 * A @ rest)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        h2, A, V, weights, rest = ctx.saved_variables

        def project(b):
            solved = np.linalg.solve(V, b)
            return solved - weights * (solved.sum() / weights.sum())

        back = project(h2 * A @ grad_output.numpy())
        by_h2 = grad_output.numpy() @ A @ rest - back @ (A @ rest - rest)
        return {"phenotypes": pb.asarray(back), "heritability": pb.asarray(np.array(by_h2))}

    return pb.autograd_function(forward, backward, name="breeding_values")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.1, 0.5, 6)), t(rng.uniform(0.4, 0.9, 6))),
        {"sizes": (12, 20)},
    )
)
def hudson_fst():
    @pb.autograd_function
    def hudson_fst(ctx, p, q, sizes=(2, 2)):
        """F_ST of two populations, Hudson's estimator as a ratio of sums, not below 0."""
        ctx.save_for_backward(p=p, q=q)
        ctx.corrections = [1 / (n - 1) for n in sizes]
        between, total = parts(p, q, *ctx.corrections)
        if total.item() == 0:
            raise ValueError("no site varies")
        return (between / total).clamp(min=0.0)

    def parts(p, q, a, b):
        within = a * p * (1 - p) + b * q * (1 - q)
        return ((p - q) ** 2 - within).sum(), (p * (1 - q) + q * (1 - p)).sum()

    @hudson_fst.backward
    def _(ctx, g):
        p, q = ctx.saved_tensors
        a, b = ctx.corrections
        between, total = parts(p, q, a, b)
        if between.item() <= 0:
            return {"p": pb.zeros_like(p), "q": pb.zeros_like(q)}
        value, h = between / total, g / total
        return {
            "p": h * (2 * (p - q) - a * (1 - 2 * p) - value * (1 - 2 * q)),
            "q": h * (2 * (q - p) - b * (1 - 2 * q) - value * (1 - 2 * p)),
        }

    return hudson_fst
