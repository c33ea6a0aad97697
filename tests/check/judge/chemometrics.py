"""Chemometrics: spectra cleaned and corrected, calibrations, mixtures, chromatograms."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("chemometrics")


def spectra(rng, rows=4, points=16):
    x = np.linspace(0, 1, points)
    peaks = 0.9 * np.exp(-((x - 0.4) ** 2) / 0.02) + 0.5 * np.exp(-((x - 0.75) ** 2) / 0.01)
    return rng.uniform(0.6, 1.4, (rows, 1)) * peaks + 0.1 + 0.03 * rng.normal(size=(rows, points))


@BOOK.wrong(
    lambda rng: ((t(spectra(rng)),), {}),
    "the standard deviation depends on the spectrum as well: that term is missing",
    MISSING,
    r"\bstd\b|standard deviation|\bspread\b|\bvariance\b|normali[sz]|as (?:a )?constant|projection",
    mends("s.out * (gn * s.out)", "(gn * s.out).sum", "(s.out * gn).sum", "- s.out *"),
)
def normal_variate():
    @pb.autograd_function
    def normal_variate(ctx, spectra):
        """Centre and scale each row (standard normal variate)."""
        x = spectra.numpy()
        scale = x.std(axis=1, ddof=1, keepdims=True)
        out = (x - x.mean(axis=1, keepdims=True)) / scale
        ctx.save_for_backward(out=out.copy(), scale=scale)
        return pb.asarray(out)

    @normal_variate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {"spectra": pb.asarray((gn - gn.mean(axis=1, keepdims=True)) / s.scale)}

    return normal_variate


@BOOK.wrong(
    lambda rng: ((t(spectra(rng)),), {"gap": 2}),
    "backward does not divide by the spacing: a factor is missing unless that is 1",
    FACTOR + r"|\bdivid",
    at("spacing"),
    mends("2 * ctx.gap * ctx.spacing", "ctx.spacing", "ctx.step", "ctx.width"),
    where="spacing is not 1",
    shows=lambda rng: ((t(spectra(rng)),), {"gap": 3, "spacing": 4.0}),
)
def gap_derivative():
    @pb.autograd_function
    def gap_derivative(ctx, spectra, gap=1, spacing=1.0):
        """First derivative over a gap of points on either side.

        spectra: (rows, points); returns (rows, points - 2 gap). spacing: of the points in nm.
        """
        x = spectra.numpy()
        if x.shape[1] <= 2 * gap:
            raise ValueError("the spectra are shorter than the gap")
        ctx.gap, ctx.points = gap, x.shape[1]
        return pb.asarray((x[:, 2 * gap :] - x[:, : -2 * gap]) / (2 * gap * spacing))

    @gap_derivative.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy() / (2 * ctx.gap)
        grad = np.zeros((len(gn), ctx.points))
        grad[:, 2 * ctx.gap :] += gn
        grad[:, : -2 * ctx.gap] -= gn
        return {"spectra": pb.asarray(grad)}

    return gap_derivative


@BOOK.wrong(
    lambda rng: ((t(spectra(rng)), spectra(rng, 1)[0]), {}),
    "without a reference it is the mean of the spectra, whose gradient is left out",
    MISSING + r"|\bleft out\b",
    at("reference"),
    r"\bmean (?:of|over)|average|reference.{0,40}(?:constant|depend)|other (?:rows|spectra)",
    r"\bbatch|across (?:the )?(?:rows|spectra|samples)",
    where="reference is None",
    shows=lambda rng: ((t(spectra(rng)),), {}),
)
def scatter_correction():
    def forward(ctx, spectra, reference=None):
        x = spectra.numpy()
        ref = x.mean(axis=0) if reference is None else reference
        centred = ref - ref.mean()
        away = x - x.mean(axis=1, keepdims=True)
        slope = x @ centred / (centred @ centred)
        ctx.save_for_backward(centred=centred, away=away, slope=slope[:, None])
        return pb.asarray(away / slope[:, None] + ref.mean())

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_slope = -(gn * s.away).sum(axis=1, keepdims=True) / s.slope**2
        by_away = (gn - gn.mean(axis=1, keepdims=True)) / s.slope
        return {"spectra": pb.asarray(by_away + by_slope * s.centred / (s.centred @ s.centred))}

    return pb.autograd_function(forward, backward, name="scatter_correction")


@BOOK.right(lambda rng: ((t(spectra(rng)), 7, 2), {"deriv": 1, "spacing": 2.0}))
def polynomial_smoothing():
    def weights(points, window, order, deriv, spacing):
        half = window // 2
        powers = np.arange(order + 1)
        fit = np.linalg.pinv(np.arange(-half, half + 1.0)[:, None] ** powers)
        matrix = np.zeros((points, points))
        for i in range(points):
            middle = min(max(i, half), points - 1 - half)
            at_i = np.zeros(order + 1)
            for p in range(deriv, order + 1):
                falling = np.prod(np.arange(p - deriv + 1, p + 1))
                at_i[p] = falling * float(i - middle) ** (p - deriv)
            matrix[i, middle - half : middle + half + 1] = at_i @ fit / spacing**deriv
        return matrix

    @pb.autograd_function
    def polynomial_smoothing(ctx, spectra, window, order, deriv=0, spacing=1.0):
        """Savitzky-Golay filter along the last axis, whose ends come from the outmost fits.

        window: odd, not more than the points; order: of the polynomials, below window.
        """
        if window % 2 == 0 or not order < window <= spectra.shape[-1]:
            raise ValueError("window must be odd, above order, and not above the points")
        ctx.matrix = weights(spectra.shape[-1], window, order, deriv, spacing)
        return pb.asarray(spectra.numpy() @ ctx.matrix.T)

    @polynomial_smoothing.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"spectra": pb.asarray(g.numpy() @ ctx.matrix)}

    return polynomial_smoothing


@BOOK.right(
    lambda rng: (
        (t(spectra(rng, 1)[0]), t(np.array(1.3)), t(rng.uniform(0.3, 1, 16))),
        {"order": 2},
    )
)
def whittaker():
    @pb.autograd_function
    def whittaker(ctx, signal, stiffness, weights=None, order=2):
        """Smooth a signal against the penalty 10^stiffness on its differences."""
        y, lam = signal.numpy(), 10.0 ** stiffness.item()
        w = np.ones_like(y) if weights is None else weights.numpy()
        D = np.diff(np.eye(len(y)), order, axis=0)
        penalty = lam * D.T @ D
        A = np.diag(w) + penalty
        z = np.linalg.solve(A, w * y)
        ctx.save_for_backward(y=y, w=w, A=A, penalty=penalty, z=z)
        ctx.weighted = weights is not None
        return pb.asarray(z.copy())

    @whittaker.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        u = np.linalg.solve(s.A, g.numpy())
        return {
            "signal": pb.asarray(s.w * u),
            "stiffness": -np.log(10) * (u @ s.penalty @ s.z),
            "weights": pb.asarray(u * (s.y - s.z)) if ctx.weighted else None,
        }

    return whittaker


@BOOK.right(lambda rng: ((t(40 * spectra(rng, 1, 24)[0]), t(2.5)), {"low": 0.02}))
def above_baseline():
    class Baseline(pb.Function):
        """The signal less its baseline, which points above it draw by the weight `low` only."""

        @staticmethod
        def forward(ctx, signal, stiffness, low=0.01, rounds=100):
            y = signal.numpy()
            D = np.diff(np.eye(len(y)), 2, axis=0)
            penalty = 10.0 ** stiffness.item() * D.T @ D
            w, before = np.ones(len(y)), None
            for _ in range(rounds):
                z = np.linalg.solve(np.diag(w) + penalty, w * y)
                if before is not None and (w == before).all():
                    break
                before, w = w, np.where(y > z, low, 1 - low)
            else:
                raise ArithmeticError("the weights of the baseline do not settle")
            ctx.w, ctx.z, ctx.penalty = w, z, penalty
            return pb.asarray(y - z)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            gn = g.numpy()
            u = np.linalg.solve(np.diag(ctx.w) + ctx.penalty, gn)
            by_stiffness = np.log(10) * (u @ ctx.penalty @ ctx.z)
            return pb.asarray(gn - ctx.w * u), by_stiffness, None, None

    return Baseline.apply


@BOOK.right(
    lambda rng: (
        (
            np.linspace(1600, 1700, 13),
            t(rng.uniform(20, 60, 2)),
            t(np.array([1632.0, 1661.0]) + rng.normal(0, 2, 2)),
            t(rng.uniform(15, 30, 2)),
        ),
        {"mixing": t(0.35)},
    )
)
def band_shapes():
    @pb.autograd_function
    def band_shapes(ctx, grid, area, centre, width, mixing):
        A, w = area.numpy(), width.numpy()
        u = 2 * (grid[:, None] - centre.numpy()) / w
        lorentz = 2 / (np.pi * w) / (1 + u**2)
        gauss = 2 / w * np.sqrt(np.log(2) / np.pi) * np.exp(-np.log(2) * u**2)
        eta = mixing.item()
        shape = eta * lorentz + (1 - eta) * gauss
        by_u = -2 * u * (eta * lorentz / (1 + u**2) + (1 - eta) * gauss * np.log(2))
        ctx.save_for_backward(A=A, w=w, u=u, shape=shape, by_u=by_u, apart=lorentz - gauss)
        return pb.asarray(shape @ A)

    @band_shapes.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        return {
            "area": pb.asarray(gn @ s.shape),
            "centre": pb.asarray(-2 * s.A / s.w * (gn @ s.by_u)),
            "width": pb.asarray(-s.A / s.w * (gn @ (s.shape + s.u * s.by_u))),
            "mixing": gn @ s.apart @ s.A,
        }

    return band_shapes


@BOOK.right(
    lambda rng: (
        (t(spectra(rng, 7, 10)), t(rng.uniform(5, 12, 7)), t(spectra(rng, 3, 10)), t(0.05)),
        {},
    )
)
def ridge_calibration():
    @pb.autograd_function
    def ridge_calibration(ctx, spectra, content, samples, ridge):
        """Contents of samples by ridge regression on calibration spectra.

        spectra: (n, points) with content: (n,); samples: (m, points); ridge: positive.
        """
        X, y = spectra.numpy(), content.numpy()
        mean, Xc, yc = X.mean(axis=0), X - X.mean(axis=0), y - y.mean()
        A = Xc.T @ Xc + ridge.item() * np.eye(X.shape[1])
        beta = np.linalg.solve(A, Xc.T @ yc)
        new = samples.numpy() - mean
        ctx.save_for_backward(Xc=Xc, residual=yc - Xc @ beta, A=A, beta=beta, new=new)
        return pb.asarray(y.mean() + new @ beta)

    @ridge_calibration.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        u = np.linalg.solve(s.A, gn @ s.new)
        by_y = s.Xc @ u
        by_X = np.outer(s.residual, u) - np.outer(by_y, s.beta)
        total = gn.sum()
        return {
            "spectra": pb.asarray(by_X - by_X.mean(axis=0) - total * s.beta / len(by_X)),
            "content": pb.asarray(by_y - by_y.mean() + total / len(by_y)),
            "samples": pb.asarray(np.outer(gn, s.beta)),
            "ridge": -(u @ s.beta),
        }

    return ridge_calibration


PURE = np.abs(np.sin(np.outer(np.arange(1, 13), [0.21, 0.33, 0.52, 0.7])))


@BOOK.right(
    lambda rng: (
        (t(PURE @ [1.2, 0.0, 0.7, 0.0] + 0.1 * rng.normal(size=12)), t(PURE + 0.01 * rng.random())),
        {},
    )
)
def unmix():
    @pb.autograd_function
    def unmix(ctx, mixture, pure):
        """Concentrations, none below 0, whose spectra add up best; also the misfit."""
        y, S = mixture.numpy(), pure.numpy()
        c, _ = optimize.nnls(S, y)
        on = np.flatnonzero(c > 0)
        c[on] = np.linalg.lstsq(S[:, on], y, rcond=None)[0]
        residual = y - S @ c
        ctx.save_for_backward(S=S, c=c, on=on, residual=residual)
        return pb.asarray(c.copy()), pb.asarray(np.array(0.5 * residual @ residual))

    @unmix.backward
    @pb.once_differentiable
    def _(ctx, g_c, g_misfit):
        S, c, on, residual = ctx.saved_variables
        used, u = S[:, on], np.zeros_like(c)
        u[on] = np.linalg.solve(used.T @ used, g_c.numpy()[on])
        moved = S @ u
        by_residual = g_misfit.item() * residual
        by_S = np.outer(residual, u) - np.outer(moved + by_residual, c)
        return {"mixture": pb.asarray(moved + by_residual), "pure": pb.asarray(by_S)}

    return unmix


@BOOK.right(
    lambda rng: (
        (
            t(np.array([21000.0, 9000, 480, 30500, 700, 150]) * rng.uniform(0.9, 1.0, 6)),
            t(np.array([32000.0, 31000, 30000, 29500, 310, 30000]) * rng.uniform(0.99, 1.0, 6)),
            t(np.array(320.0)),
        ),
        {"most": 2.0},
    )
)
def absorbances():
    @pb.autograd_function
    def absorbances(ctx, sample, reference, dark, most=3.0):
        """Absorbances from counts, at most `most`; 0 where a pixel sees no light at all."""
        above, light = sample.numpy() - dark.item(), reference.numpy() - dark.item()
        alive = light > 0
        part = above / np.where(alive, light, 1.0)
        seen = alive & (part > 10.0**-most)
        out = np.where(seen, -np.log10(np.where(seen, part, 1.0)), alive * most)
        ctx.save_for_backward(np.where(seen, above, 1.0), np.where(seen, light, 1.0), seen)
        return pb.asarray(out)

    @absorbances.backward
    @pb.once_differentiable
    def _(ctx, g):
        above, light, seen = ctx.saved_variables
        flow = np.where(seen, g.numpy() / np.log(10), 0.0)
        by_sample, by_reference = -flow / above, flow / light
        by_dark = -(by_sample + by_reference).sum()
        return pb.asarray(by_sample), pb.asarray(by_reference), by_dark, None

    return absorbances


@BOOK.right(lambda rng: ((t(spectra(rng, 6, 9)), t(rng.uniform(20, 45, 6))), {}))
def first_latent_variable():
    def forward(ctx, X, y):
        Xc, yc = X.numpy() - X.numpy().mean(axis=0), y.numpy() - y.numpy().mean()
        along = Xc.T @ yc
        size = np.linalg.norm(along)
        w = along / size
        scores = Xc @ w
        q = (yc @ scores) / (scores @ scores)
        ctx.save_for_backward(Xc=Xc, yc=yc, size=size, w=w, scores=scores, q=q)
        return pb.asarray(q * w), pb.asarray(scores.copy())

    @pb.once_differentiable
    def backward(ctx, g_beta, g_scores):
        Xc, yc, size, w, scores, q = ctx.saved_variables
        gb, square = g_beta.numpy(), scores @ scores
        by_q = gb @ w
        by_scores = g_scores.numpy() + by_q * (yc - 2 * q * scores) / square
        by_w = q * gb + Xc.T @ by_scores
        by_along = (by_w - w * (w @ by_w)) / size
        by_X = np.outer(by_scores, w) + np.outer(yc, by_along)
        by_y = by_q * scores / square + Xc @ by_along
        return pb.asarray(by_X - by_X.mean(axis=0)), pb.asarray(by_y - by_y.mean())

    return pb.autograd_function(forward, backward, name="first_latent_variable")


@BOOK.right(
    lambda rng: (
        (t(0.8), t(np.array([0.8 + 1e-9, 0.803, 0.05, 6.0])), t(np.array(2.4))),
        {"times": np.array([0.0, 0.5, 1.0, 2.5, 7.0])},
    )
)
def consecutive_reactions():
    def mean_decay(z):
        """(1 - exp(-z)) / z and its derivative, also where z is small or 0."""
        small = np.abs(z) < 1e-2
        safe = np.where(small, 1.0, z)
        value = np.where(
            small, 1 - z / 2 + z**2 / 6 - z**3 / 24 + z**4 / 120, -np.expm1(-safe) / safe
        )
        series = -1 / 2 + z / 3 - z**2 / 8 + z**3 / 30 - z**4 / 144
        return value, np.where(small, series, (np.exp(-safe) - value) / safe)

    @pb.autograd_function
    def consecutive_reactions(ctx, first, second, start, times):
        """Intermediate of A -> B -> C by time; first: rate, second: (m,) rates; returns (n, m)."""
        k1, k2, time = first.item(), second.numpy(), times[:, None]
        decay = np.exp(-k1 * time)
        mean, slope = mean_decay((k2 - k1) * time)
        ctx.save_for_backward(k1=k1, decay=decay, mean=mean, slope=slope, time=time)
        ctx.start = start.item()
        return pb.asarray(start.item() * k1 * time * decay * mean)

    @consecutive_reactions.backward
    @pb.once_differentiable
    def _(ctx, g):
        k1, decay, mean, slope, time = ctx.saved_variables
        flow = g.numpy() * time * decay
        by_k1 = (flow * ((1 - k1 * time) * mean - k1 * time * slope)).sum()
        return {
            "first": ctx.start * by_k1,
            "second": pb.asarray(ctx.start * k1 * (flow * time * slope).sum(axis=0)),
            "start": k1 * (flow * mean).sum(),
        }

    return consecutive_reactions


LADDER = np.array([4.1, 6.0, 8.7, 12.9, 19.3])


@BOOK.right(
    lambda rng: (
        (
            t(np.array([3.5, 5.2, 9.9, 12.1, 21.0]) + 0.3 * rng.random(5)),
            t(LADDER + 0.05 * rng.normal(size=5)),
            t(np.array(1.4)),
        ),
        {"carbons": [7, 8, 9, 10, 12]},
    )
)
def retention_indices():
    @pb.autograd_function
    def retention_indices(ctx, times, ladder, dead, carbons, mode="isothermal"):
        """Kovats' indices; carbons: of the alkanes in the ladder; minutes.

        mode: "isothermal", by logarithms of the times after the dead time, or "ramp", linear.
        """
        if mode not in ("isothermal", "ramp"):
            raise ValueError(f"unknown mode {mode!r}")
        n, logs = np.array(carbons, float), mode == "isothermal"
        tx, tl = times.numpy() - dead.item(), ladder.numpy() - dead.item()
        k = np.clip(np.searchsorted(tl, tx, side="right") - 1, 0, len(tl) - 2)
        x, low, high = (np.log(v) if logs else v for v in (tx, tl[k], tl[k + 1]))
        part = (x - low) / (high - low)
        slopes = (1 / tx, 1 / tl) if logs else (np.ones_like(tx), np.ones_like(tl))
        ctx.k, ctx.part, ctx.slopes = k, part, slopes
        ctx.rise = 100 * (n[k + 1] - n[k]) / (high - low)
        return pb.asarray(100 * (n[k] + part * (n[k + 1] - n[k])))

    @retention_indices.backward
    @pb.once_differentiable
    def _(ctx, g):
        k, (by_time, by_alkane) = ctx.k, ctx.slopes
        flow = g.numpy() * ctx.rise
        grad = np.zeros_like(by_alkane)
        np.add.at(grad, k, -flow * (1 - ctx.part) * by_alkane[k])
        np.add.at(grad, k + 1, -flow * ctx.part * by_alkane[k + 1])
        own = flow * by_time
        return {
            "times": pb.asarray(own),
            "ladder": pb.asarray(grad),
            "dead": -(own.sum() + grad.sum()),
        }

    return retention_indices


@BOOK.right(
    lambda rng: (
        (t(900 * spectra(rng, 1, 20)[0]), [(3, 11), (9, 17), (0, 4)]),
        {"spacing": 0.25, "baseline": True},
    )
)
def window_areas():
    @pb.autograd_function
    def window_areas(ctx, signal, windows, spacing=1.0, baseline=False):
        y, rows = signal.numpy(), []
        for first, last in windows:
            row = np.zeros(len(y))
            row[first : last + 1] = spacing
            row[[first, last]] -= spacing / 2
            if baseline:
                row[[first, last]] -= spacing * (last - first) / 2
            rows.append(row)
        ctx.matrix = np.array(rows)
        return pb.asarray(ctx.matrix @ y)

    @window_areas.backward
    @pb.once_differentiable
    def _(ctx, g):
        return pb.asarray(g.numpy() @ ctx.matrix), None, None, None

    return window_areas


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.031, 0.21, 0.55, 0.9]) + 0.01 * rng.random(4)),
            t(np.array([0.05, 0.23, -0.008]) + 1e-3 * rng.random(3)),
        ),
        {},
    )
)
def inverse_calibration():
    class InverseCalibration(pb.Function):
        @staticmethod
        def forward(ctx, signal, curve):
            y, (b0, b1, b2) = signal.numpy(), curve.numpy()
            above = np.maximum(y - b0, 0.0)
            square = b1**2 + 4 * b2 * above
            if b1 <= 0 or (square <= 0).any():
                raise ValueError("the signal is not on the rising part of the curve")
            root = np.sqrt(square)
            x = 2 * above / (b1 + root)
            ctx.x, ctx.per = x, np.where(y > b0, 1 / root, 0.0)
            return pb.asarray(x.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            flow = g.numpy() * ctx.per
            by_curve = -np.array([flow.sum(), flow @ ctx.x, flow @ ctx.x**2])
            return {"signal": pb.asarray(flow), "curve": pb.asarray(by_curve)}

    return InverseCalibration.apply
