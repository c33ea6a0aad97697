"""Ecology: diversity of species, dispersal, functional responses, growth, spread."""

from __future__ import annotations

import math

import numpy as np

import pullback as pb

from .entries import AXIS, BATCH, FACTOR, MAGNITUDE, MISSING, REPEATED, Book, at, t

BOOK = Book("ecology")


@BOOK.wrong(
    lambda rng: ((t(1 + 10 * rng.random((3, 5))), t(rng.random(3))), {}),
    "a site's total is taken for a constant: the term through the proportions' norm is missing",
    MISSING,
    r"\bconstant\b|\bnormali[sz]|\bonly part\b|\btotal\b|\boffset\b",
    r"\bterm\b.{0,40}\b(every|all|each|same|other)\b|same (amount|number|error|difference)",
)
def site_diversity():
    @pb.autograd_function
    def site_diversity(ctx, abundance, weight):
        """Weighted Shannon entropies of sites; abundance: (sites, species), weight: (sites,)."""
        n = abundance.numpy()
        total = n.sum(axis=1, keepdims=True)
        logs = np.log(n / total)
        entropy = -(n / total * logs).sum(axis=1)
        ctx.save_for_backward(weight=weight, total=total, logs=logs, entropy=entropy)
        return pb.asarray(entropy * weight.numpy())

    @site_diversity.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_entropy = (g.numpy() * s.weight.numpy())[:, None]
        return {
            "abundance": pb.asarray(-by_entropy * (s.logs + 1) / s.total),
            "weight": pb.asarray(g.numpy() * s.entropy),
        }

    return site_diversity


def assay(lowest):
    def given(rng):
        doses = np.concatenate([[lowest], np.geomspace(0.3, 30, 5)])
        params = (t(0.1), t(1 + rng.random()), t(2 + rng.random()), t(1.4))
        return params, {"doses": doses}

    return given


@BOOK.wrong(
    assay(0.1),
    "a control of dose 0 makes the gradient nan: its logarithm is not guarded",
    MAGNITUDE,
    r"\bdoses?`? ?(of|is|=+|at|being|contains?) ?(a |0|zero)|not finite|non-?finite",
    where="a dose of 0",
    shows=assay(0.0),
)
def dose_response():
    @pb.autograd_function
    def dose_response(ctx, low, high, half, slope, doses):
        """Hill curve of four parameters at doses: (n,)."""
        with np.errstate(divide="ignore"):
            inverse = (half.item() / doses) ** slope.item()
        share = 1 / (1 + inverse)
        ctx.params = low.item(), high.item(), half.item(), slope.item()
        ctx.doses, ctx.share = doses, share
        return pb.asarray(low.item() + (high.item() - low.item()) * share)

    @dose_response.backward
    @pb.once_differentiable
    def _(ctx, g):
        low, high, half, slope = ctx.params
        gn, share = g.numpy(), ctx.share
        with np.errstate(divide="ignore", invalid="ignore"):
            by_log = gn * (high - low) * share * (1 - share)
            ratio = np.log(ctx.doses / half)
            by_slope = (by_log * ratio).sum()
        return {
            "low": (gn * (1 - share)).sum(),
            "high": (gn * share).sum(),
            "half": -(by_log * slope / half).sum(),
            "slope": by_slope,
        }

    return dose_response


def patches(rng):
    where = rng.random((5, 2))
    apart = np.sqrt(((where[:, None] - where) ** 2).sum(axis=-1))
    return (t(1 + rng.random(5)), t(apart + 0.1 * rng.random((5, 5)))), {"reach": 0.4}


@BOOK.wrong(
    patches,
    "the kernel is normalised over axis 0, but its gradient subtracts the mean along axis 1",
    AXIS,
    r"\brows?\b|\bcolumns?\b|\bnormali[sz]",
)
def disperse():
    @pb.autograd_function
    def disperse(ctx, density, distance, reach=1.0):
        """Density: (n,) after dispersal; distance: (n, n) to [i] from [j]; nobody is lost."""
        raw = np.exp(-distance.numpy() / reach)
        kernel = raw / raw.sum(axis=0, keepdims=True)
        ctx.save_for_backward(density=density, kernel=kernel, reach=reach)
        return pb.asarray(kernel @ density.numpy())

    @disperse.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output.numpy()
        by_kernel = np.outer(g, s.density.numpy())
        mean = (by_kernel * s.kernel).sum(axis=1, keepdims=True)
        by_distance = -s.kernel * (by_kernel - mean) / s.reach
        return {"density": pb.asarray(s.kernel.T @ g), "distance": pb.asarray(by_distance)}

    return disperse


@BOOK.wrong(
    lambda rng: (
        (
            t(1 + rng.random((4, 3))),
            t(0.5 + rng.random(4)),
            t(0.2 + rng.random(3)),
            t(0.1 + 0.3 * rng.random(3)),
        ),
        {},
    ),
    "the handling times' gradient is the mean over the batch of patches instead of the sum",
    BATCH,
    FACTOR,
    r"\bmean\b|\baverage|\bdivided by\b|\b(0\.25|4) ?(times|x)|\b1/4\b",
)
def intake():
    class Intake(pb.Function):
        """Eaten prey: (patches, species), where predators share their time (Holling's disc)."""

        @staticmethod
        def forward(ctx, prey, predators, attack, handling):
            n, p = prey.numpy(), predators.numpy()[:, None]
            a, h = attack.numpy(), handling.numpy()
            busy = 1 + (n * a * h).sum(axis=1, keepdims=True)
            ctx.save_for_backward(n, p, a, h, busy)
            return pb.asarray(p * a * n / busy)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            n, p, a, h, busy = ctx.saved_variables
            eaten = a * n / busy
            by_busy = -(g.numpy() * p * eaten).sum(axis=1, keepdims=True) / busy
            by_encounter = g.numpy() * p / busy + by_busy * h
            return {
                "prey": pb.asarray(by_encounter * a),
                "predators": pb.asarray((g.numpy() * eaten).sum(axis=1)),
                "attack": pb.asarray((by_encounter * n).sum(axis=0)),
                "handling": pb.asarray((by_busy * a * n).mean(axis=0)),
            }

    return Intake.apply


def tagged(rng):
    age = np.array([1.0, 2.0, 3.5, 0.8, 4.0, 2.2, 5.0])
    fish = np.array([0, 0, 1, 2, 1, 0, 2])
    return (t(30 + 5 * rng.random(3)), t(0.3 + 0.1 * rng.random(3)), t(-0.4)), {
        "age": age,
        "fish": fish,
    }


@BOOK.wrong(
    tagged,
    "of a fish measured more than once only the last length counts: += on a repeated index",
    REPEATED,
    r"\baccumulat|\bonly the last\b|np\.add\.at|\bsame (fish|individual|row|entry|position)\b",
    r"\bone of\b.{0,30}\b(contribut|term|occurr|place)|add(ed|s)? up|overwr",
)
def length_at_age():
    @pb.autograd_function
    def length_at_age(ctx, limit, rate, born, age, fish):
        """Von Bertalanffy's length of each measured fish; limit, rate: (fish,), born: ()."""
        k, since = rate.numpy()[fish], age - born.item()
        left = np.exp(-k * since)
        ctx.save_for_backward(limit=limit, rate=rate, since=since, left=left, fish=fish)
        return pb.asarray(limit.numpy()[fish] * (1 - left))

    @length_at_age.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        fading = gn * s.limit.numpy()[s.fish] * s.left
        by_limit, by_rate = np.zeros(len(s.limit)), np.zeros(len(s.rate))
        by_limit[s.fish] += gn * (1 - s.left)
        by_rate[s.fish] += fading * s.since
        return {
            "limit": pb.asarray(by_limit),
            "rate": pb.asarray(by_rate),
            "born": -(fading * s.rate.numpy()[s.fish]).sum(),
        }

    return length_at_age


def valley(**settings):
    return lambda rng: ((t(rng.random(8)), t(0.1 + 0.1 * rng.random(8)), t(0.3)), settings)


@BOOK.wrong(
    valley(),
    "the adjoint of diffusion is periodic whatever the boundary",
    at("boundary"),
    r"\bperiodic\b(?!')|\bwrap|\bboundar(y|ies)\b.{0,30}(ignor|not used)|\bedges?\b|\bends\b",
    r"\bfirst and (the )?last\b|\bborder",
    where="boundary='reflect'",
    shows=valley(boundary="reflect"),
)
def spread():
    def bend(u, boundary):
        if boundary == "periodic":
            return np.roll(u, 1) + np.roll(u, -1) - 2 * u
        padded = np.pad(u, 1, mode="edge")
        return padded[2:] + padded[:-2] - 2 * u

    @pb.autograd_function
    def spread(ctx, density, mobility, growth, boundary="periodic", dt=0.5):
        """One step of growth and diffusion along a line of cells; density, mobility: (n,)."""
        u = density.numpy()
        flux = mobility.numpy() * u
        ctx.save_for_backward(u, mobility.numpy().copy(), growth.item(), dt)
        out = u + dt * (bend(flux, boundary) + growth.item() * u * (1 - u))
        return pb.asarray(out)

    @spread.backward
    @pb.once_differentiable
    def _(ctx, g):
        u, mobility, growth, dt = ctx.saved_variables
        gn = g.numpy()
        by_flux = dt * (np.roll(gn, 1) + np.roll(gn, -1) - 2 * gn)
        by_u = gn * (1 + dt * growth * (1 - 2 * u)) + by_flux * mobility
        return {
            "density": pb.asarray(by_u),
            "mobility": pb.asarray(by_flux * u),
            "growth": dt * (gn * u * (1 - u)).sum(),
        }

    return spread


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=7)), t(rng.normal(size=7))),
        {"counts": np.array([0, 3, 0, 1, 12, 0, 2])},
    )
)
def zero_inflated_nll():
    @pb.autograd_function
    def zero_inflated_nll(ctx, logit, log_mean, counts):
        """Zero-inflated Poisson; logit: of a structural zero, log_mean: of the others, (n,)."""
        z, eta = logit.numpy(), log_mean.numpy()
        mean, zero = np.exp(eta), counts == 0
        softplus = np.logaddexp(0, z)
        factorials = np.array([math.lgamma(k + 1) for k in counts])
        seen = counts * eta - mean - factorials
        loglik = np.where(zero, np.logaddexp(z, -mean), seen) - softplus
        ctx.share = np.exp(-np.logaddexp(0, -mean - z))
        ctx.odds = np.exp(-np.logaddexp(0, -z))
        ctx.mean, ctx.zero, ctx.counts = mean, zero, counts
        return pb.asarray(-loglik)

    @zero_inflated_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        structural = np.where(ctx.zero, ctx.share, 0.0)
        sampled = np.where(ctx.zero, -(1 - ctx.share) * ctx.mean, ctx.counts - ctx.mean)
        return {
            "logit": pb.asarray(g.numpy() * (ctx.odds - structural)),
            "log_mean": pb.asarray(-g.numpy() * sampled),
        }

    return zero_inflated_nll


@BOOK.right(lambda rng: ((t(0.5 + 5 * rng.random((2, 6))),), {"order": 1}))
def hill_number():
    @pb.autograd_function
    def hill_number(ctx, abundance, order=2.0):
        """Effective number of species of each site; order 1 is the limit, exp of the entropy."""
        n = abundance.numpy()
        total = n.sum(axis=1, keepdims=True)
        p = n / total
        if order == 1:
            slope = -(np.log(p) + 1)
            diversity = np.exp(-(p * np.log(p)).sum(axis=1))
        else:
            power = (p**order).sum(axis=1, keepdims=True)
            slope = order / (1 - order) * p ** (order - 1) / power
            diversity = power[:, 0] ** (1 / (1 - order))
        ctx.p, ctx.total, ctx.slope, ctx.diversity = p, total, slope, diversity
        return pb.asarray(diversity)

    @hill_number.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_p = (g.numpy() * ctx.diversity)[:, None] * ctx.slope
        centred = by_p - (by_p * ctx.p).sum(axis=1, keepdims=True)
        return {"abundance": pb.asarray(centred / ctx.total)}

    return hill_number


@BOOK.right(
    lambda rng: (
        (t(0.02 + 0.2 * rng.random(6)),),
        {"effort": np.array([1, 2, 5, 10, 40])},
    )
)
def accumulation_curve():
    @pb.autograd_function
    def accumulation_curve(ctx, rate, effort):
        """Expected species after each effort: (m,); rate: (n,). Twice differentiable."""
        ctx.save_for_backward(rate=rate, effort=effort)
        return -pb.expm1(-rate * pb.asarray(effort[:, None] * 1.0)).sum(axis=1)

    @accumulation_curve.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        effort = pb.asarray(s.effort[:, None] * 1.0)
        unseen = pb.exp(-s.rate * effort)
        return {"rate": (grad_output.unsqueeze(1) * effort * unseen).sum(axis=0)}

    return accumulation_curve


@BOOK.right(
    lambda rng: (
        (t(20 + 10 * rng.random()), t(np.array([2.5, 1.8])), t(0.03)),
        {"years": 5, "sigma": 0.2, "seed": 11},
    )
)
def recruitment():
    @pb.autograd_function
    def recruitment(ctx, stock, fecundity, crowding, *, years=3, sigma=0.0, seed=None):
        """Stocks and recruits of a Beverton-Holt stock in random years; fecundity alternates."""
        luck = np.exp(sigma * np.random.default_rng(seed).normal(size=years))
        f, b, now = fecundity.numpy(), crowding.item(), stock.item()
        stocks, recruits = [now], []
        for year in range(years):
            recruits.append(luck[year] * f[year % len(f)] * now / (1 + b * now))
            now = 0.6 * now + recruits[-1]
            stocks.append(now)
        ctx.luck, ctx.f, ctx.b, ctx.stocks = luck, f.copy(), b, stocks
        return {
            "stocks": pb.asarray(np.array(stocks[1:])),
            "recruits": pb.asarray(np.array(recruits)),
        }

    @recruitment.backward
    @pb.once_differentiable
    def _(ctx, g_stocks, g_recruits):
        by_f, by_b, carry = np.zeros_like(ctx.f), 0.0, 0.0
        for year in range(len(ctx.luck) - 1, -1, -1):
            now, which = ctx.stocks[year], year % len(ctx.f)
            carry += g_stocks.numpy()[year]
            by_recruits = carry + g_recruits.numpy()[year]
            born = ctx.luck[year] * now / (1 + ctx.b * now)
            by_f[which] += by_recruits * born
            by_b -= by_recruits * ctx.f[which] * born * now / (1 + ctx.b * now)
            per_head = ctx.luck[year] * ctx.f[which] / (1 + ctx.b * now) ** 2
            carry = 0.6 * carry + by_recruits * per_head
        return {"stock": carry, "fecundity": pb.asarray(by_f), "crowding": by_b}

    return recruitment


@BOOK.right(
    lambda rng: ((t(rng.random((4, 5))), t(0.4), t(0.8)), {"steps": 4, "land": rng.random((4, 5))})
)
def invasion_front():
    def laplacian(n):
        L = -2 * np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1)
        L[0, 0] = L[-1, -1] = -1
        return L

    @pb.autograd_function
    def invasion_front(ctx, start, mobility, growth, land, steps=3, dt=0.25):
        """Fisher's equation on a grid, implicit in the diffusion along each of the axes."""
        u, d, r = start.numpy(), mobility.item(), growth.item()
        solve = [np.linalg.inv(np.eye(n) - dt * d * laplacian(n)) for n in u.shape]
        ctx.kept, ctx.solve, ctx.r, ctx.dt, ctx.land = [], solve, r, dt, land
        for _ in range(steps):
            grown = u + dt * r * land * u * (1 - u)
            middle = solve[0] @ grown
            after = middle @ solve[1]
            ctx.kept.append((u, middle, after))
            u = after
        return pb.asarray(u)

    @invasion_front.backward
    @pb.once_differentiable
    def _(ctx, g):
        (S0, S1), dt = ctx.solve, ctx.dt
        back, by_d, by_r = g.numpy(), 0.0, 0.0
        for u, middle, after in reversed(ctx.kept):
            back = back @ S1
            by_d += dt * (back * (after @ laplacian(len(S1)))).sum()
            back = S0 @ back
            by_d += dt * (back * (laplacian(len(S0)) @ middle)).sum()
            by_r += dt * (back * ctx.land * u * (1 - u)).sum()
            back = back * (1 + dt * ctx.r * ctx.land * (1 - 2 * u))
        return {"start": pb.asarray(back), "mobility": by_d, "growth": by_r}

    return invasion_front
