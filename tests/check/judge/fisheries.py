"""Fisheries: growth, recruitment, mortality, catches, selectivity, surveys, ageing, harvest."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("fisheries")


def spread(grad, like):
    """Sum a gradient down to the shape of an argument that was broadcast."""
    grad = np.asarray(grad).sum(axis=tuple(range(np.ndim(grad) - like.ndim)))
    stretched = tuple(i for i, n in enumerate(like.shape) if n == 1 and grad.shape[i] != 1)
    return pb.asarray(grad.sum(axis=stretched, keepdims=True))


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2e5, 9e5, 6)), t(rng.uniform(0.1, 0.9, 6)), t(np.array(0.2))), {}),
    "natural mortality counts in the survival only: the term of the share F / Z is missing",
    MISSING,
    r"share|\bF ?/ ?Z\b|quotient|denominator|total mortality",
    mends("- s.dead / s.Z", "- s.share", "(1 - s.dead) - ", "s.Z ** 2", "s.dead / s.Z"),
)
def catch_equation():
    @pb.autograd_function
    def catch_equation(ctx, abundance, fishing, natural):
        """Baranov's catch in numbers; abundance, fishing: (ages,), natural: one rate a year."""
        N, F = abundance.numpy(), fishing.numpy()
        Z = F + natural.item()
        dead = 1 - np.exp(-Z)
        ctx.save_for_backward(N=N, F=F, Z=Z, dead=dead)
        return pb.asarray(N * F / Z * dead)

    @catch_equation.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_natural = s.N * s.F / s.Z * (1 - s.dead)
        by_fishing = s.N * s.dead / s.Z + by_natural - s.N * s.F * s.dead / s.Z**2
        return {
            "abundance": pb.asarray(gn * s.F / s.Z * s.dead),
            "fishing": pb.asarray(gn * by_fishing),
            "natural": (gn * by_natural).sum(),
        }

    return catch_equation


def cohort(rng):
    return (t(rng.uniform(3e3, 2e4, 5)), t(rng.uniform(0.25, 0.9, 5))), {}


@BOOK.wrong(
    cohort,
    "the plus group keeps its own survivors, whose part of the gradient is left out",
    MISSING,
    at("plus"),
    r"\blast (?:age|element|group|entry|class|column)|survivors|geometric|accumulat",
    mends("1 - s.survival[-1]", "1 - survival[-1]", "1.0 - s.survival[-1]", "/ (1 - S[-1])"),
    where="plus is True",
    shows=lambda rng: (cohort(rng)[0], {"plus": True}),
)
def equilibrium_ages():
    def forward(ctx, recruits, survival, plus=False):
        """Numbers at age per cohort of recruits: (cohorts,); survival: (ages,) from each age.

        plus: whether the last age holds all older fish as well.
        """
        S = survival.numpy()
        reached = np.cumprod(np.append(1.0, S[:-1]))
        if plus:
            reached[-1] /= 1 - S[-1]
        ctx.save_for_backward(recruits=recruits, survival=S, reached=reached)
        return pb.asarray(recruits.numpy()[:, None] * reached)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        weight = (s.recruits.numpy() @ gn) * s.reached
        later = np.cumsum(weight[::-1])[::-1]
        by_survival = np.zeros_like(s.survival)
        by_survival[:-1] = later[1:] / s.survival[:-1]
        return {"recruits": pb.asarray(gn @ s.reached), "survival": pb.asarray(by_survival)}

    return pb.autograd_function(forward, backward, name="equilibrium_ages")


def selected(rng):
    return t(np.linspace(14.0, 68.0, 8)), t(np.array(31.0)), t(np.array(6.5))


@BOOK.wrong(
    lambda rng: (selected(rng), {}),
    "the falling limb right of the peak has the slope of the rising limb: width, not right_width",
    r"(?:with|when|where|if|unless) .{0,25}\bright_width\b",
    r"\b(?:right|left) (?:limb|side|of)|asymmetr|\bbranch\b|\bpeak\b.{0,30}\b(?:right|above)\b",
    FACTOR,
    mends("s.spread", "ctx.spread", "np.where(s.above", "ctx.right", "s.right"),
    where="right_width is given",
    shows=lambda rng: (selected(rng), {"right_width": 17.0}),
)
def dome_selectivity():
    @pb.autograd_function
    def dome_selectivity(ctx, length, peak, width, right_width=None):
        L, top, left = length.numpy(), peak.item(), width.item()
        right = left if right_width is None else right_width
        spread = np.where(L - top > 0, right, left)
        chosen = np.exp(-0.5 * ((L - top) / spread) ** 2)
        ctx.own = np.ones_like(L) if right_width is None else (L - top <= 0) * 1.0
        ctx.save_for_backward(apart=L - top, left=left, chosen=chosen)
        return pb.asarray(chosen.copy())

    @dome_selectivity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        falling = grad_output.numpy() * s.chosen * s.apart / s.left**2
        return {
            "length": pb.asarray(-falling),
            "peak": falling.sum(),
            "width": (falling * ctx.own * s.apart).sum() / s.left,
        }

    return dome_selectivity


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.3, 11, (2, 5))), t(np.array([[88.0], [71.0]])), t(np.array(0.17))),
        {"start": -0.4},
    )
)
def growth_curve():
    @pb.autograd_function
    def growth_curve(ctx, age, asymptote, rate, start=0.0):
        """Length in cm at an age in years after von Bertalanffy; the arguments broadcast.

        A fish younger than start has no length yet: 0.
        """
        a, k = age.numpy() - start, rate.numpy()
        grown = np.maximum(-np.expm1(-k * a), 0.0)
        ctx.save_for_backward(age=age, asymptote=asymptote, rate=rate, grown=grown)
        ctx.start = start
        return pb.asarray(asymptote.numpy() * grown)

    @growth_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        left = gn * s.asymptote.numpy() * np.where(s.grown > 0, 1 - s.grown, 0.0)
        return {
            "age": spread(left * s.rate.numpy(), s.age),
            "asymptote": spread(gn * s.grown, s.asymptote),
            "rate": spread(left * (s.age.numpy() - ctx.start), s.rate),
        }

    return growth_curve


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(500, 9000, 7)), t(np.array(0.72)), t(np.array(3.1))),
        {"virgin": 8200.0, "kind": "beverton-holt"},
    )
)
def stock_recruitment():
    @pb.autograd_function
    def stock_recruitment(ctx, spawners, steepness, log_recruits, virgin, kind="beverton-holt"):
        """Recruits in thousands of a spawning stock in t.

        spawners: (years,); steepness: recruits at a fifth of the virgin stock, as a part of those
        at the virgin stock, 0.2 to 1 (for "ricker" any above 0.2); log_recruits: ln of the latter.
        """
        B, h, top = spawners.numpy() / virgin, steepness.item(), np.exp(log_recruits.item())
        if kind == "beverton-holt":
            below = 1 - h + (5 * h - 1) * B
            R = top * 4 * h * B / below
            by_B = top * 4 * h * (1 - h) / below**2
            by_h = R / h - R * (5 * B - 1) / below
        elif kind == "ricker":
            bend = 1.25 * np.log(5 * h)
            R = top * B * np.exp(bend * (1 - B))
            by_B = top * np.exp(bend * (1 - B)) * (1 - bend * B)
            by_h = R * (1 - B) * 1.25 / h
        elif kind == "hockey-stick":
            # from the origin to the top at the break, which is where the line of slope 5 h ends
            low = 5 * h * B < 1
            R = top * np.where(low, 5 * h * B, 1.0)
            by_B = top * np.where(low, 5 * h, 0.0)
            by_h = top * np.where(low, 5 * B, 0.0)
        else:
            raise ValueError(f"no kind {kind!r}")
        ctx.save_for_backward(R=R, by_B=by_B / virgin, by_h=by_h)
        return pb.asarray(R.copy())

    @stock_recruitment.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {
            "spawners": pb.asarray(gn * s.by_B),
            "steepness": gn @ s.by_h,
            "log_recruits": gn @ s.R,
        }

    return stock_recruitment


@BOOK.right(
    lambda rng: (
        (t(np.array([310.0, 420, 365, 290, 510, 40])), t(np.array(0.31)), t(np.array(2600.0))),
        {"depletion": 0.8},
    )
)
def surplus_production():
    @pb.autograd_function
    def surplus_production(ctx, catch, growth, capacity, depletion=1.0, floor=0.01):
        """Biomass in t before each year's catch after Schaefer, held above a part of capacity."""
        r, K = growth.item(), capacity.item()
        biomass, held = [depletion * K], []
        for taken in catch.tolist():
            b = biomass[-1]
            after = b + r * b * (1 - b / K) - taken
            held.append(after < floor * K)
            biomass.append(max(after, floor * K))
        ctx.save_for_backward(b=np.array(biomass), r=r, K=K)
        ctx.held, ctx.depletion, ctx.floor = held, depletion, floor
        return pb.asarray(np.array(biomass))

    @surplus_production.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        b, r, K = ctx.saved_variables
        gn = grad_output.numpy()
        by_catch, by_r, by_K = np.zeros(len(b) - 1), 0.0, 0.0
        back = gn[-1]
        for year in range(len(b) - 2, -1, -1):
            if ctx.held[year]:
                by_K += back * ctx.floor
                back = gn[year]
                continue
            by_catch[year] = -back
            by_r += back * b[year] * (1 - b[year] / K)
            by_K += back * r * (b[year] / K) ** 2
            back = gn[year] + back * (1 + r * (1 - 2 * b[year] / K))
        return {
            "catch": pb.asarray(by_catch),
            "growth": by_r,
            "capacity": by_K + back * ctx.depletion,
        }

    return surplus_production


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(50, 4000, 6)), t(rng.uniform(0.1, 0.6, 6))),
        {"natural": 0.2, "terminal": t(np.array(0.45))},
    )
)
def cohort_analysis():
    def forward(ctx, catch, share, terminal, natural=0.2):
        C, F = catch.numpy(), terminal.item()
        half, whole = np.exp(natural / 2), np.exp(natural)
        Z = F + natural
        last = Z / (F * (1 - np.exp(-Z)))
        N = np.empty_like(C)
        N[-1] = C[-1] * last
        for age in range(len(C) - 2, -1, -1):
            N[age] = N[age + 1] * whole + C[age] * half
        by_F = C[-1] * last * (1 / Z - 1 / F - np.exp(-Z) / (1 - np.exp(-Z)))
        ctx.save_for_backward(share=share, N=N)
        ctx.known = half, whole, last, by_F
        return pb.asarray(N * share.numpy())

    @pb.once_differentiable
    def backward(ctx, g):
        share, N = ctx.saved_variables
        half, whole, last, by_F = ctx.known
        gn = g.numpy()
        by_C, back = np.empty_like(N), 0.0
        for age in range(len(N)):
            back = back * whole + gn[age] * share.numpy()[age]
            by_C[age] = back * half
        by_C[-1] = back * last
        return {"catch": pb.asarray(by_C), "share": pb.asarray(gn * N), "terminal": back * by_F}

    return pb.autograd_function(forward, backward, name="cohort_analysis")


AGEING = np.array(
    [
        [0.92, 0.08, 0.00, 0.00, 0.00],
        [0.06, 0.86, 0.08, 0.00, 0.00],
        [0.00, 0.11, 0.77, 0.12, 0.00],
        [0.00, 0.01, 0.16, 0.68, 0.15],
        [0.00, 0.00, 0.04, 0.21, 0.75],
    ]
)


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(10, 400, (3, 5))),),
        {"samples": np.array([120, 0, 85]), "seen": rng.dirichlet(np.ones(5), 3)},
    )
)
def age_composition():
    @pb.autograd_function
    def age_composition(ctx, numbers, seen, samples, misread=AGEING, tiny=1e-5):
        """Multinomial misfit of the ages read from otoliths, with errors of reading.

        numbers: (years, ages) in the model; seen: (years, ages) shares read; samples: (years,)
        fish read in a year, 0 where there was no survey.
        """
        N = numbers.numpy()
        total = N.sum(axis=1, keepdims=True)
        expected = N @ misread / total + tiny
        ctx.save_for_backward(numbers=numbers, weight=samples[:, None] * seen / expected)
        ctx.misread, ctx.total = misread, total
        return pb.asarray(np.asarray(-(samples[:, None] * seen * np.log(expected)).sum()))

    @age_composition.backward
    @pb.once_differentiable
    def _(ctx, g):
        numbers, weight = ctx.saved_variables
        by_share = -g.item() * weight @ ctx.misread.T
        mean = (by_share * numbers.numpy()).sum(axis=1, keepdims=True) / ctx.total
        return {"numbers": pb.asarray((by_share - mean) / ctx.total)}

    return age_composition


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(200, 9000, 9)), t(rng.lognormal(0.2, 0.4, 9))),
        {"vessel": np.array([0, 2, 1, 1, 0, 2, 2, 0, 1]), "vessels": 4, "offset": 1.0},
    )
)
def fleet_rates():
    @pb.autograd_function
    def fleet_rates(ctx, catch, effort, vessel, vessels, offset=0.0):
        """Catch per unit of effort by vessel; 0 for a vessel that did not fish."""
        landed = np.bincount(vessel, catch.numpy(), vessels) + offset
        spent = np.bincount(vessel, effort.numpy(), vessels)
        away = spent == 0
        rate = np.divide(landed, spent, out=np.zeros(vessels), where=~away)
        ctx.vessel, ctx.rate = vessel.copy(), rate
        ctx.per_effort = np.where(away, 0.0, 1 / np.where(away, 1.0, spent))
        return pb.asarray(rate.copy())

    @fleet_rates.backward
    @pb.once_differentiable
    def _(ctx, g):
        one = g.numpy() * ctx.per_effort
        by_catch, by_effort = one[ctx.vessel], -(one * ctx.rate)[ctx.vessel]
        return {"catch": pb.asarray(by_catch), "effort": pb.asarray(by_effort)}

    return fleet_rates


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(200, 16000, 8)),),
        {"limit": 3000.0, "trigger": 8000.0, "most": 0.24},
    )
)
def harvest_rule():
    class HarvestRule(pb.Function):
        """Advised catch: nothing below the limit, the full rate from the trigger on."""

        @staticmethod
        def forward(ctx, biomass, limit, trigger, most=0.2, stable=None):
            if not limit < trigger:
                raise ValueError("limit must be below trigger")
            B = biomass.numpy()
            rate = most * np.clip((B - limit) / (trigger - limit), 0, 1)
            between = (limit < B) & (trigger > B)
            slope = rate + np.where(between, most * B / (trigger - limit), 0)
            advice = rate * B
            if stable is not None:
                # not more than a part above or below the catch before
                before, part = stable
                low, high = before * (1 - part), before * (1 + part)
                slope = np.where((advice > low) & (advice < high), slope, 0.0)
                advice = np.clip(advice, low, high)
            ctx.slope = slope
            return pb.asarray(advice)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            return pb.asarray(g.numpy() * ctx.slope), None, None, None, None

    return HarvestRule.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(100, 900, 4)), t(rng.uniform(28, 45, 4)), t(rng.uniform(3, 6, 4))),
        {"edges": np.arange(20.0, 61, 5)},
    )
)
def length_composition():
    @pb.autograd_function
    def length_composition(ctx, numbers, mean, spread, edges):
        """Numbers by length class, of ages with normally distributed lengths.

        numbers, mean (cm), spread (cm): (ages,); edges: (classes + 1,) in cm; the first and the
        last class are open.
        """
        z = (edges[1:-1] - mean.numpy()[:, None]) / spread.numpy()[:, None]
        below = np.pad(special.ndtr(z), ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))
        share = np.diff(below, axis=1)
        ctx.save_for_backward(numbers=numbers, spread=spread, z=z, share=share)
        return pb.asarray(numbers.numpy() @ share)

    @length_composition.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        density = np.exp(-0.5 * s.z**2) / np.sqrt(2 * np.pi)
        by_z = (gn[:-1] - gn[1:]) * density * (s.numbers.numpy() / s.spread.numpy())[:, None]
        return {
            "numbers": pb.asarray(s.share @ gn),
            "mean": pb.asarray(-by_z.sum(axis=1)),
            "spread": pb.asarray(-(by_z * s.z).sum(axis=1)),
        }

    return length_composition


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 60, (5, 2))), t(rng.uniform(0.5, 3, 5)), t(np.array(-1.1))),
        {"pairs": np.array([[0, 1], [1, 2], [3, 1], [4, 4], [2, 0]])},
    )
)
def drift_of_larvae():
    @pb.autograd_function
    def drift_of_larvae(ctx, place, eggs, log_loss, pairs):
        """Larvae that arrive at each ground; pairs: (m, 2) from and to; loss a km, exponential."""
        x, n, loss = place.numpy(), eggs.numpy(), np.exp(log_loss.item()) / 10
        apart = x[pairs[:, 0]] - x[pairs[:, 1]]
        far = np.hypot(*apart.T)
        alive = n[pairs[:, 0]] * np.exp(-loss * far)
        arrived = np.zeros_like(n)
        np.add.at(arrived, pairs[:, 1], alive)
        ctx.save_for_backward(apart=apart, far=far, alive=alive, eggs=eggs)
        ctx.pairs, ctx.loss = pairs.copy(), loss
        return pb.asarray(arrived)

    @drift_of_larvae.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, (here, there) = ctx.saved_variables, ctx.pairs.T
        at_pair = g.numpy()[there]
        by_eggs = np.zeros(len(g))
        np.add.at(by_eggs, here, at_pair * np.exp(-ctx.loss * s.far))
        # a ground's own larvae stay, wherever it lies
        unit = s.apart / np.where(s.far > 0, s.far, 1.0)[:, None]
        pull = -ctx.loss * (at_pair * s.alive)[:, None] * unit
        by_place = np.zeros((len(g), 2))
        np.add.at(by_place, here, pull)
        np.subtract.at(by_place, there, pull)
        by_log = -ctx.loss * (at_pair * s.alive * s.far).sum()
        return {"place": pb.asarray(by_place), "eggs": pb.asarray(by_eggs), "log_loss": by_log}

    return drift_of_larvae


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 420, 9)), t(np.array(250.0))),
        {},
    )
)
def gear_saturation():
    @pb.autograd_function
    def gear_saturation(ctx, density, hooks):
        """Fish on a longline with a number of hooks, which fill up."""
        most = hooks.item()
        free = np.exp(-density.numpy() / most)
        ctx.save_for_backward(density=density, hooks=hooks, free=free)
        return pb.asarray(most * (1 - free))

    @gear_saturation.backward
    @pb.once_differentiable
    def _(ctx, g):
        density, hooks, free = ctx.saved_variables
        gn = g.numpy()
        by_hooks = 1 - free * (1 + density.numpy() / hooks.item())
        return {"density": pb.asarray(gn * free), "hooks": (gn * by_hooks).sum()}

    return gear_saturation


@BOOK.right(lambda rng: ((t(rng.uniform(20, 70, 8)),), {"stage": rng.integers(0, 6, 8)}))
def mature_weight():
    A, B = 0.0068, 3.101
    SHARE = np.array([0.0, 0.0, 0.35, 0.8, 1.0, 1.0])

    @pb.autograd_function
    def mature_weight(ctx, length, stage, condition=None):
        L = length.numpy()
        share = SHARE[stage] if condition is None else SHARE[stage] * condition
        ctx.slope = A * B * L ** (B - 1) * share / 1000
        return pb.asarray(A * L**B * share / 1000)

    @mature_weight.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"length": pb.asarray(g.numpy() * ctx.slope)}

    return mature_weight


@BOOK.right(
    lambda rng: (
        (t(np.array(0.38)), t(np.cumsum(rng.uniform(0.1, 0.5, 8)))),
        {"natural": 0.22, "entry": 3, "discards": {2: 0.3}},
    )
)
def yield_per_recruit():
    @pb.autograd_function
    def yield_per_recruit(ctx, fishing, weight, natural=0.2, entry=2, discards=None):
        """Yield in kg of a recruit over its life.

        fishing: rate a year from the age of entry on; weight: (ages,) in kg; discards: the part
        of the full rate at which younger ages are caught, by age. These are thrown back dead.
        """
        w, F = weight.numpy(), fishing.item()
        ages = np.arange(len(w))
        part = np.where(ages >= entry, 1.0, 0.0)
        for age, share in (discards or {}).items():
            part[age] = share
        Z = part * F + natural
        before = np.append(0.0, np.cumsum(Z)[:-1])
        alive, dead = np.exp(-before), -np.expm1(-Z)
        caught = alive * part * F / Z * dead * (ages >= entry)
        kept = alive * part * (ages >= entry)
        by_F = kept * (dead / Z + F * part * ((1 - dead) / Z - dead / Z**2))
        by_F -= caught * np.append(0.0, np.cumsum(part)[:-1])
        ctx.save_for_backward(weight=weight, caught=caught, by_F=by_F)
        return pb.asarray(np.asarray(caught @ w))

    @yield_per_recruit.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_fishing = g.item() * (s.by_F @ s.weight.numpy())
        return {"fishing": by_fishing, "weight": pb.asarray(g.item() * s.caught)}

    return yield_per_recruit
