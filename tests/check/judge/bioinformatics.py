"""Bioinformatics: motifs, normalisations, codons, primers, cells, enrichment, spectra, trees."""

from __future__ import annotations

import numpy as np
from scipy.cluster import hierarchy

import pullback as pb

from .entries import CHANGED, FACTOR, MISSING, ODD, Book, mends, t

BOOK = Book("bioinformatics")

TATA = np.log(np.array([[1, 1, 1, 9], [9, 1, 1, 1], [1, 1, 1, 9], [9, 1, 1, 2], [8, 2, 1, 1]]) / 3)


def motif(*sequences):
    return lambda rng: ((t(TATA + rng.normal(0, 0.1, TATA.shape)),), {"sequences": sequences})


@BOOK.wrong(
    motif("GCCTATAACG", "TATAAGGC", "CGTCTATACG"),
    "for a site on the other strand the letters are reversed but not complemented",
    r"\bstrand|complement|\bpalindrom|\bminus\b",
    r"(?:A|C|0|1)`? (?:and|with|for) `?(?:T|G|3|2)\b.{0,30}(?:swap|exchang|interchang|each other)",
    r"columns?.{0,30}(?:revers|flip|mirror|swap|exchang|wrong order|3, 2, 1, 0)",
    r"(?:revers|flip|mirror)\w*.{0,40}(?:columns?|last axis|axis 1|letters|axis -1)",
    mends("[:, ::-1]", "3 - window[::-1]", "3 - np.array(window", "3 - ", "reverse_complement"),
    where="a best site on the other strand",
    shows=motif("GCCTATAACG", "CGTTATAGGC", "GGCCATTATACC"),
)
def motif_hits():
    LETTERS = {letter: i for i, letter in enumerate("ACGT")}

    def windows(sequence, width):
        codes = [LETTERS[letter] for letter in sequence]
        if len(codes) < width:
            raise ValueError("a sequence shorter than the motif")
        return [codes[i : i + width] for i in range(len(codes) - width + 1)]

    @pb.autograd_function
    def motif_hits(ctx, matrix, sequences):
        """Score of the best site in each sequence, on either strand.

        matrix: (width, 4) log odds of A, C, G, T, in the direction of the given strand.
        """
        M, ctx.best = matrix.numpy(), []
        rows, both, scores = np.arange(len(M)), (M, M[::-1, ::-1]), []
        for sequence in sequences:
            hits = [
                (strand[rows, window].sum(), side, window)
                for window in windows(sequence, len(M))
                for side, strand in enumerate(both)
            ]
            score, *where = max(hits)
            scores.append(score)
            ctx.best.append(where)
        return pb.asarray(np.array(scores))

    @motif_hits.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        width = len(ctx.best[0][1])
        grad, rows = np.zeros((width, 4)), np.arange(width)
        for g, (side, window) in zip(grad_output.tolist(), ctx.best, strict=True):
            if side:
                grad[rows, window[::-1]] += g
            else:
                grad[rows, window] += g
        return {"matrix": pb.asarray(grad)}

    return motif_hits


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5, 90, (5, 3))),), {}),
    "with an even number of genes the median lies between two of them, but the upper one gets all",
    ODD,
    r"\bmedian\b.{0,60}(?:two|middle|between|mean|average|both|half)|\bmiddle\b",
    r"(?:two|both|lower|average of).{0,30}(?:central|middle|genes|ratios|elements)",
    FACTOR,
    mends("(n - 1) // 2", "n // 2 - 1", "n % 2", "0.5"),
    where="an even number of genes",
    shows=lambda rng: ((t(rng.uniform(5, 90, (6, 3))),), {}),
)
def size_factors():
    @pb.autograd_function
    def size_factors(ctx, counts):
        """Size factors of the samples, medians of ratios; counts: (genes, samples).

        Genes that some sample lacks do not take part.
        """
        ctx.kept = (counts.numpy() > 0).all(axis=1)
        if not ctx.kept.any():
            raise ValueError("no gene is seen in all samples")
        logs = np.log(counts.numpy()[ctx.kept])
        ratios = logs - logs.mean(axis=1, keepdims=True)
        ctx.save_for_backward(counts=counts, order=ratios.argsort(axis=0))
        ctx.factors = np.exp(np.median(ratios, axis=0))
        return pb.asarray(ctx.factors.copy())

    @size_factors.backward
    @pb.once_differentiable
    def _(ctx, g):
        counts, order = ctx.saved_variables.counts.numpy(), ctx.saved_variables.order
        n, samples = order.shape
        g_ratios = np.zeros((n, samples))
        g_ratios[order[n // 2], np.arange(samples)] = g.numpy() * ctx.factors
        grad = np.zeros_like(counts)
        grad[ctx.kept] = g_ratios - g_ratios.mean(axis=1, keepdims=True)
        grad[ctx.kept] /= counts[ctx.kept]
        return pb.asarray(grad)

    return size_factors


@BOOK.wrong(
    lambda rng: ((t(rng.normal(3, 1, (4, 7))),), {}),
    "backward centres the expression in the caller's own array, in place",
    CHANGED,
    r"\bcaller|\bcopy\b|\bcopied\b|writes? (?:in)?to|\balias",
    r"shares? (?:its )?memory|\binput\b.{0,30}alter",
    mends(
        "x = x - x.mean", ".copy()", "centred = x - ", "np.array(ctx", "z = x - x.mean", "- x.mean("
    ),
    where="input changed by backward",
)
def coexpression():
    class Coexpression(pb.Function):
        """Pearson correlations of genes; expression: (genes, samples)."""

        @staticmethod
        def forward(ctx, expression):
            ctx.save_for_backward(expression=expression)
            return pb.asarray(np.corrcoef(expression.numpy()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            x, g = ctx.saved_variables.expression.numpy(), grad_output.numpy()
            x -= x.mean(axis=1, keepdims=True)
            norm = np.sqrt((x**2).sum(axis=1, keepdims=True))
            z = x / norm
            pull = (g + g.T) @ z
            return {"expression": pb.asarray((pull - z * (pull * z).sum(1, keepdims=True)) / norm)}

    return Coexpression.apply


CODONS = np.array([0, 0, 1, 1, 1, 1, 2, 2, 2])


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.1, 0.9, 9)), CODONS),
        {"counts": np.array([3, 5, 2, 0, 4, 1, 2, 2, 6])},
    ),
    "the usage of the most frequent codon of each amino acid, by which the others are divided, is "
    "held for a constant: its part is missing",
    MISSING,
    r"\bmaxim(?:um|a|al)\b(?! (?:absolute |relative )?(?:error|diff|dev))|np\.max|max\(",
    r"most (?:frequent|used|common)|preferred|\bbest codon|largest (?:usage|codon|of)|arg ?max",
    r"normali[sz]|\bdenominator|divisor|relative (?:to|usage|adaptive)",
    r"(?:held|taken|treated|seen|regarded) (?:as|for) (?:a )?constant|synonym",
    mends(
        "np.subtract.at(",
        "np.add.at(",
        "np.bincount(",
        "grad[ctx.best",
        "grad[best",
        "top ==",
        "== top",
    ),
)
def codon_adaptation():
    def forward(ctx, usage, group, counts):
        """Logarithm of the codon adaptation index of a gene.

        usage: (codons,) in highly expressed genes, group: their amino acids, counts: in the gene.
        """
        u = usage.numpy()
        if (u <= 0).any():
            raise ValueError("each codon must be used")
        best = np.zeros(group.max() + 1)
        np.maximum.at(best, group, u)
        ctx.usage, ctx.share = u, counts / counts.sum()
        return pb.asarray(np.array(ctx.share @ np.log(u / best[group])))

    @pb.once_differentiable
    def backward(ctx, g):
        return {"usage": g * pb.asarray(ctx.share / ctx.usage)}

    return pb.autograd_function(forward, backward, name="codon_adaptation")


STACKS = ["AA", "AT", "TA", "CA", "GT", "CT", "GA", "CG", "GC", "GG"]
ENTHALPY = np.array([7.9, 7.2, 7.2, 8.5, 8.4, 7.8, 8.2, 10.6, 9.8, 8.0])
ENTROPY = np.array([22.2, 20.4, 21.3, 22.7, 22.4, 21.0, 22.2, 27.2, 24.4, 19.9]) / 1000


def primer(rng):
    tables = {"enthalpy": t(ENTHALPY), "entropy": t(ENTROPY)}
    return ("ATGCCGTAGGCT",), {"oligo": t(rng.uniform(0.2, 0.5)), "salt": t(0.05), **tables}


@BOOK.wrong(
    primer,
    "the correction for salt has a logarithm of base 10, but its slope is that of the natural one: "
    "the factor 1 / log(10) is missing",
    FACTOR,
    r"log(?:arithm)?s?.{0,20}\b(?:base|10|decimal|decadic|natural)",
    r"\blog10\b|\bln ?\(?10|base (?:of|10)",
    r"2\.30|0\.434",
    mends("np.log(10", "math.log(10", "M_LN10", "np.log10(np.e", "2.302", "0.4342", "/ LN10"),
)
def melting_temperature():
    R, COMPLEMENT = 1.987e-6, str.maketrans("ACGT", "TGCA")

    def numbers(primer):
        pairs = [primer[i : i + 2] for i in range(len(primer) - 1)]
        return [STACKS.index(p if p in STACKS else p.translate(COMPLEMENT)[::-1]) for p in pairs]

    @pb.autograd_function
    def melting_temperature(ctx, primer, *, oligo, salt, enthalpy, entropy):
        """Melting temperature in Celsius by nearest neighbours.

        oligo: concentration in micromol, salt: of sodium in mol; enthalpy in kcal and entropy in
        kcal / K of the ten stacks, as released.
        """
        stacks = numbers(primer)
        heat = enthalpy.numpy()[stacks].sum()
        loss = entropy.numpy()[stacks].sum() + 0.0108
        fall = loss - 1000 * R * np.log(oligo.item() * 1e-6 / 4)
        ctx.save_for_backward(oligo=oligo, salt=salt, stacks=stacks, heat=heat, fall=fall)
        return pb.asarray(np.array(heat / fall - 273.15 + 16.6 * np.log10(salt.item())))

    @melting_temperature.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, each = ctx.saved_variables, np.bincount(ctx.saved_variables.stacks, minlength=10)
        by_fall = -s.heat / s.fall**2
        return {
            "enthalpy": g * pb.asarray(each / s.fall),
            "entropy": g * pb.asarray(each * by_fall),
            "oligo": g * (-1000 * R * by_fall) / s.oligo,
            "salt": g * 16.6 / s.salt,
        }

    return melting_temperature


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 2))),), {"k": 2}),
    "each bandwidth stands in the rows and in the columns, but only the pairs of its row count",
    MISSING,
    r"(?:over|by|of|in|and|its|the) columns?\b",
    r"symmetri[csz]|both (?:cells|ends|places|sides)|\btranspos",
    r"\bother (?:cell|end|bandwidth|one of the pair|sigma)|second (?:cell|bandwidth)",
    r"\baxis 0\b",
    r"bandwidth.{0,40}(?:missing|half|twice|two|\bj\b)|\bhalf\b|sigma\[?_?j|width.{0,20}\bj\b",
    mends("axis=0)", ".sum(0)", "pull.T", "(pull + pull.T)", "2 * pull", "np.add.outer"),
)
def cell_affinity():
    @pb.autograd_function
    def cell_affinity(ctx, cells, k=5):
        """Affinities of cells, scaled by the distances of both to their k-th neighbours.

        cells: (n, components).
        """
        x = cells.numpy()
        gap = x[:, None] - x
        squared = (gap**2).sum(axis=-1)
        kth = squared.argsort(axis=1)[:, k]
        width = np.sqrt(squared[np.arange(len(x)), kth])
        affinity = np.exp(-squared / np.outer(width, width))
        ctx.gap, ctx.squared, ctx.kth, ctx.width, ctx.out = gap, squared, kth, width, affinity
        return pb.asarray(affinity.copy())

    @cell_affinity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        rows, width = np.arange(len(ctx.width)), ctx.width
        pull = grad_output.numpy() * ctx.out / width[:, None] / width
        to_squared = -pull
        to_width = (pull * ctx.squared).sum(axis=1) / width
        to_squared[rows, ctx.kth] += to_width / (2 * width)
        to_gap = 2 * to_squared[..., None] * ctx.gap
        return pb.asarray(np.einsum("ijk->ik", to_gap) - np.einsum("ijk->jk", to_gap))

    return cell_affinity


@BOOK.right(lambda rng: ((t(rng.gamma(2, 20, (6, 3))),), {}))
def quantile_normalise():
    @pb.autograd_function
    def quantile_normalise(ctx, x):
        """Give all samples the same distribution, the mean of theirs; x: (genes, samples)."""
        order = x.numpy().argsort(axis=0, kind="stable")
        ranks = order.argsort(axis=0)
        ctx.order, ctx.ranks = order, ranks
        return pb.asarray(np.take_along_axis(x.numpy(), order, 0).mean(axis=1)[ranks])

    @quantile_normalise.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_rank = np.take_along_axis(g.numpy(), ctx.order, 0).mean(axis=1)
        return {"x": pb.asarray(by_rank[ctx.ranks])}

    return quantile_normalise


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 2, 12)), np.isin(np.arange(12), [1, 4, 5, 10])),
        {"power": 1.5},
    )
)
def enrichment_score():
    def forward(ctx, metric, members, power=1.0):
        """Enrichment score of a set of genes: the largest deviation of the running sum."""
        if members.shape != metric.shape or members.all() or not members.any():
            raise ValueError("the set must have some of the genes, not all")
        if power < 1:
            raise ValueError("power must be 1 or more")
        r = metric.numpy()
        order = (-r).argsort(kind="stable")
        hit = members[order]
        weight = np.where(hit, np.abs(r[order]) ** power, 0.0)
        running = weight.cumsum() / weight.sum() - (~hit).cumsum() / (~hit).sum()
        peak = int(np.abs(running).argmax())
        ctx.save_for_backward(r=r, power=power, total=weight.sum())
        ctx.ahead, ctx.set = order[: peak + 1], members
        return pb.asarray(np.array(running[peak])), pb.asarray(np.array(peak))

    @pb.once_differentiable
    def backward(ctx, g_score, g_peak):
        r, power, total = ctx.saved_variables
        inside = np.zeros(len(r), dtype=bool)
        inside[ctx.ahead] = True
        reached = (np.abs(r) ** power)[inside & ctx.set].sum() / total
        slope = power * np.abs(r) ** (power - 1) * np.sign(r) / total
        grad = np.where(ctx.set, (inside - reached) * slope, 0.0)
        return {"metric": g_score * pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="enrichment_score")


@BOOK.right(lambda rng: ((t(rng.uniform(0, 50, (3, 4))),), {"length": 3}))
def molecule_counts():
    class MoleculeCounts(pb.Function):
        """Molecules behind the distinct barcodes that were seen, collisions considered."""

        @staticmethod
        def forward(ctx, barcodes, length=10):
            ctx.pool = 4**length
            if (barcodes.numpy() >= ctx.pool).any():
                raise ValueError("more barcodes than there can be")
            ctx.save_for_backward(barcodes=barcodes)
            return -ctx.pool * pb.log1p(-barcodes / ctx.pool)

        @staticmethod
        def backward(ctx, g):
            return {"barcodes": g / (1 - ctx.saved_variables.barcodes / ctx.pool)}

    return MoleculeCounts.apply


MASSES = np.array([101.1, 147.11, 204.13, 262.1, 375.2, 390.3, 488.3])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 90, 7)), t(rng.uniform(1, 90, 6)), MASSES),
        {"library": MASSES[[0, 1, 3, 4, 5, 6]] + np.array([0.004, -0.01, 0.3, 0.01, -0.006, 0.0])},
    )
)
def spectral_similarity():
    def weighted(intensity, mass, powers):
        return intensity ** powers[0] * pb.asarray(mass ** powers[1])

    @pb.autograd_function
    def spectral_similarity(ctx, seen, known, masses, library, tolerance=0.02, powers=(0.5, 1.3)):
        """Cosine of two spectra; peaks match if their masses differ by the tolerance or less.

        seen: intensities at masses, known: intensities at those of the library, all sorted.
        """
        apart = np.abs(masses[:, None] - library)
        if (seen.numpy() <= 0).any() or (known.numpy() <= 0).any():
            raise ValueError("intensities must be positive")
        near = apart.argmin(axis=1)
        own = np.flatnonzero(apart[np.arange(len(masses)), near] <= tolerance)
        ctx.pairs = own, near[own]
        if len(set(near[own])) < len(own):
            raise ValueError("two peaks match the same one")
        ctx.masses, ctx.powers = (masses, library), powers
        ctx.save_for_backward(seen=seen, known=known)
        a, b = weighted(seen, masses, powers), weighted(known, library, powers)
        return (a[ctx.pairs[0]] * b[ctx.pairs[1]]).sum() / ((a * a).sum() * (b * b).sum()).sqrt()

    @spectral_similarity.backward
    @pb.once_differentiable
    def _(ctx, g):
        seen, known = (x.numpy() for x in ctx.saved_tensors)
        p, q = ctx.powers
        a, b = seen**p * ctx.masses[0] ** q, known**p * ctx.masses[1] ** q
        left, right = a / np.linalg.norm(a), b / np.linalg.norm(b)
        i, j = ctx.pairs
        cosine = left[i] @ right[j]
        to_a, to_b = -cosine * left, -cosine * right
        to_a[i] += right[j]
        to_b[j] += left[i]
        return {
            "seen": g * pb.asarray(p * to_a * left / seen),
            "known": g * pb.asarray(p * to_b * right / known),
        }

    return spectral_similarity


@BOOK.right(lambda rng: ((t(rng.uniform(1, 9, 15)),), {}))
def upgma():
    @pb.autograd_function
    def upgma(ctx, distances):
        """Heights of the inner nodes of the UPGMA tree; distances: (n * (n - 1) / 2,) by pairs."""
        tree = hierarchy.linkage(distances.numpy(), method="average")
        n = len(tree) + 1
        members = [[i] for i in range(n)]
        for left, right in tree[:, :2].astype(int):
            members.append(members[left] + members[right])
        ctx.splits = [(members[int(i)], members[int(j)]) for i, j in tree[:, :2]]
        ctx.n = n
        return pb.asarray(tree[:, 2] / 2)

    @upgma.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros((ctx.n, ctx.n))
        for g, (left, right) in zip(grad_output.tolist(), ctx.splits, strict=True):
            grad[np.ix_(left, right)] += g / (2 * len(left) * len(right))
        return pb.asarray((grad + grad.T)[np.triu_indices(ctx.n, 1)])

    return upgma
