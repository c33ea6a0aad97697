"""Veterinary medicine: doses and levels, fluids, herds, lactation, growth, lameness, breeding."""

from __future__ import annotations

import numpy as np
from scipy import linalg

import pullback as pb

from .entries import FACTOR, SIGN, Book, mends, t

BOOK = Book("veterinary")


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.uniform(14, 19, 3)),
            t(rng.uniform(0.15, 0.25, 3)),
            t(rng.uniform(2e-3, 5e-3, 3)),
        ),
        {"days": np.array([5.0, 30.0, 60.0, 150.0, 290.0])},
    ),
    "the gradient of the decay has the opposite sign",
    SIGN,
    mends("-milk * days", "-days * milk", "-(gn * milk", "-(gn * ctx.milk", "-ctx.milk"),
)
def lactation_curve():
    @pb.autograd_function
    def lactation_curve(ctx, level, rise, decay, days):
        """Milk of cows in kg a day (Wood's curve); level, rise, decay: (cows,), days: (n,)."""
        a, b, c = (each.numpy()[:, None] for each in (level, rise, decay))
        shape = days**b * np.exp(-c * days)
        ctx.shape, ctx.milk, ctx.days = shape, a * shape, days
        return pb.asarray(a * shape)

    @lactation_curve.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        flow = gn * ctx.milk
        return {
            "level": pb.asarray((gn * ctx.shape).sum(axis=1)),
            "rise": pb.asarray(flow @ np.log(ctx.days)),
            "decay": pb.asarray(flow @ ctx.days),
        }

    return lactation_curve


def tablet(ka, ke):
    return lambda rng: (
        (t(np.array(220.0)), t(np.array(ka)), t(np.array(ke)), t(np.array(14.0))),
        {"hours": np.array([0.5, 1.0, 2.0, 4.0, 8.0])},
    )


@BOOK.wrong(
    tablet(1.4, 0.22),
    "where the two rates are equal, the whole derivative of the limit goes to ka and none to ke",
    r"\bequals?\b|\blimit\b|coincid|special case|degenerate|\bthe same\b|\bidentical\b|flip.?flop",
    r"\bbranch\b|each get|shared between|\bhalf\b|\bsplit\b",
    mends("hours**2 / 2", "0.5 * k * hours**2", "k * hours / 2", "0.5 * k * hours"),
    where="absorption is as fast as elimination",
    shows=tablet(0.6, 0.6),
)
def oral_level():
    @pb.autograd_function
    def oral_level(ctx, dose, ka, ke, volume, hours):
        D, a, e, V = dose.item(), ka.item(), ke.item(), volume.item()
        ctx.equal = abs(a - e) < 1e-7 * max(a, e)
        if ctx.equal:
            level = a * hours * np.exp(-a * hours)
        else:
            level = a / (a - e) * (np.exp(-e * hours) - np.exp(-a * hours))
        ctx.D, ctx.a, ctx.e, ctx.V = D, a, e, V
        ctx.hours, ctx.level = hours, level
        return pb.asarray(D / V * level)

    @oral_level.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, hours, a, e = grad_output.numpy(), ctx.hours, ctx.a, ctx.e
        if ctx.equal:
            by_ka = hours * (1 - a * hours) * np.exp(-a * hours)
            by_ke = np.zeros_like(hours)
        else:
            outer = a / (a - e)
            by_ka = -e * ctx.level / (a * (a - e)) + outer * hours * np.exp(-a * hours)
            by_ke = ctx.level / (a - e) - outer * hours * np.exp(-e * hours)
        each = ctx.D / ctx.V
        return {
            "dose": gn @ ctx.level / ctx.V,
            "ka": each * gn @ by_ka,
            "ke": each * gn @ by_ke,
            "volume": -each * gn @ ctx.level / ctx.V,
        }

    return oral_level


def piglets(litter):
    return lambda rng: ((t(rng.uniform(0.9, 1.9, 6)),), {"litter": np.array(litter)})


@BOOK.wrong(
    piglets([0, 0, 1, 1, 2, 2]),
    "the mean's part is divided by the average number in a litter, not by that of its own litter",
    FACTOR + r"|divided by",
    r"\bcounts?\b|(?:group|class|cluster|litter) sizes?|own (?:size|number)|unequal|average number",
    r"\bnumber (?:of (?:members|piglets)|in (?:each|its|the|a))\b|\bbalanced\b",
    mends("/ ctx.count)", "/ ctx.count[", "mean = total / ctx.count", "s.count"),
    where="litters of different sizes",
    shows=piglets([0, 1, 1, 1, 2, 2]),
)
def within_litter():
    @pb.autograd_function
    def within_litter(ctx, weight, litter):
        """Birth weights less the mean of the litter; litter: whole numbers from 0."""
        ctx.litter, ctx.count = litter, np.bincount(litter)
        mean = np.bincount(litter, weight.numpy()) / np.maximum(ctx.count, 1)
        return pb.asarray(weight.numpy() - mean[litter])

    @within_litter.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        total = np.bincount(ctx.litter, gn)
        mean = total / (len(gn) / np.count_nonzero(ctx.count))
        return {"weight": pb.asarray(gn - mean[ctx.litter])}

    return within_litter


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4.2, 18.0, 33.0, 0.9]) * rng.uniform(0.9, 1.1, 4)),
            t(np.array([7.0, 9.0, 5.5, 14.0]) * rng.uniform(0.95, 1.05, 4)),
            t(np.array([3.0, 20.0, 0.0, 12.0])),
        ),
        {"hours": 12.0, "rule": "linear", "most": 12.0},
    )
)
def fluid_rate():
    @pb.autograd_function
    def fluid_rate(ctx, weight, dehydration, losses, hours=24.0, rule="allometric", most=None):
        """Rate of an infusion in ml/h.

        weight: (n,) in kg, positive; dehydration: (n,) in percent of weight, made good in
        `hours`; losses: (n,) in ml/h; rule: how maintenance is reckoned, "allometric" (80 ml
        per kg^0.75 and day) or "linear" (30 ml per kg and 70 ml a day); most: limit in ml/kg/h.
        """
        W, d, loss = weight.numpy(), dehydration.numpy(), losses.numpy()
        if not W.shape == d.shape == loss.shape or (W <= 0).any():
            raise ValueError("a positive weight, dehydration and losses for each patient")
        if rule == "linear":
            maintenance, slope = (30 * W + 70) / 24, np.full_like(W, 30 / 24)
        elif rule == "allometric":
            maintenance, slope = 80 * W**0.75 / 24, 60 * W**-0.25 / 24
        else:
            raise ValueError(f"unknown rule {rule!r}")
        rate = maintenance + 10 * d * W / hours + loss
        limit = np.full_like(W, np.inf) if most is None else most * W
        ctx.free = rate <= limit
        ctx.by_weight = np.where(ctx.free, slope + 10 * d / hours, most or 0.0)
        ctx.by_deficit = 10 * W / hours
        return pb.asarray(np.minimum(rate, limit))

    @fluid_rate.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        free = np.where(ctx.free, gn, 0.0)
        return {
            "weight": pb.asarray(gn * ctx.by_weight),
            "dehydration": pb.asarray(free * ctx.by_deficit),
            "losses": pb.asarray(free),
        }

    return fluid_rate


@BOOK.right(
    lambda rng: (
        (
            t(np.array([4.9, 9.8, 14.5, 11.2, 7.1, 8.3, 5.2]) + rng.uniform(-0.3, 0.3, 7)),
            t(np.array(7.7)),
        ),
        {"minutes": np.array([0.0, 15.0, 30.0, 60.0, 120.0, 150.0, 240.0])},
    )
)
def glucose_above():
    @pb.autograd_function
    def glucose_above(ctx, glucose, threshold, minutes):
        """Area of a glucose curve above a threshold; straight lines between the samples."""
        over, h = glucose.numpy() - threshold.item(), np.diff(minutes)
        a, b = over[:-1], over[1:]
        high, low = np.maximum(a, b), np.minimum(a, b)
        whole, cut = low >= 0, (low < 0) & (high > 0)
        span = np.where(cut, high - low, 1.0)
        part = np.where(cut, high / span, 0.0)
        area = h * np.where(whole, (a + b) / 2, part * high / 2)
        by_high = h * np.where(whole, 0.5, part - part**2 / 2)
        by_low = h * np.where(whole, 0.5, part**2 / 2)
        ctx.by_left = np.where(a >= b, by_high, by_low)
        ctx.by_right = np.where(a >= b, by_low, by_high)
        return pb.asarray(np.asarray(area.sum()))

    @glucose_above.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = grad_output.item() * (np.append(ctx.by_left, 0.0) + np.append(0.0, ctx.by_right))
        return {"glucose": pb.asarray(grad), "threshold": -grad.sum()}

    return glucose_above


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.0, 0.0, 1.0])),
            t(np.array([[1.0, 0.2, 0.0], [0.2, 1.0, 0.3], [0.0, 0.3, 1.0]]) + 0.05),
            t(np.array(0.35)),
            t(np.array(0.14)),
        ),
        {"animals": np.array([40.0, 55.0, 32.0]), "days": 9},
    )
)
def outbreak_in_pens():
    def forward(ctx, infected, contact, beta, gamma, animals, days=20):
        """New cases by day and pen: (days, pens).

        infected: (pens,) at the start, contact: (pens, pens), row: who catches it; animals:
        (pens,); beta, gamma: rates of infection and recovery per day.
        """
        C, b, y, ill = contact.numpy(), beta.item(), gamma.item(), infected.numpy()
        S, path, cases = animals - ill, [], np.empty((days, len(ill)))
        for k in range(days):
            escaped = np.exp(-b * (C @ (ill / animals)))
            path.append((S, ill, escaped))
            cases[k] = S * (1 - escaped)
            S, ill = S - cases[k], (1 - y) * ill + cases[k]
        ctx.C, ctx.b, ctx.y, ctx.animals, ctx.path = C, b, y, animals, path
        return pb.asarray(cases)

    @pb.once_differentiable
    def backward(ctx, g):
        C, b, gn = ctx.C, ctx.b, g.numpy()
        to_S, to_I = np.zeros(len(C)), np.zeros(len(C))
        grad_C, grad_b, grad_y = np.zeros_like(C), 0.0, 0.0
        for k in reversed(range(len(ctx.path))):
            S, ill, escaped = ctx.path[k]
            to_case = gn[k] - to_S + to_I
            to_force = to_case * S * escaped
            grad_b += to_force @ C @ (ill / ctx.animals)
            grad_C += b * np.outer(to_force, ill / ctx.animals)
            grad_y -= to_I @ ill
            to_S = to_S + to_case * (1 - escaped)
            to_I = (1 - ctx.y) * to_I + b * (to_force @ C) / ctx.animals
        return {
            "infected": pb.asarray(to_I - to_S),
            "contact": pb.asarray(grad_C),
            "beta": grad_b,
            "gamma": grad_y,
        }

    return pb.autograd_function(forward, backward, name="outbreak_in_pens")


@BOOK.right(
    lambda rng: (
        (
            t(np.array([32.0, 27.5, 61.0])),
            t(np.array([3.1, 2.9, 3.6])),
            t(np.array([0.021, 0.024, 0.014])),
        ),
        {
            "age": rng.uniform(30, 400, 7),
            "breed": np.array([0, 2, 1, 0, 0, 2, 1]),
        },
    )
)
def growth_by_breed():
    @pb.autograd_function
    def growth_by_breed(ctx, mature, start, rate, age, breed):
        A, b, k = mature.numpy()[breed], start.numpy()[breed], rate.numpy()[breed]
        fading = np.exp(-k * age)
        share = np.exp(-b * fading)
        ctx.partial = (share, -A * share * fading, A * share * b * fading * age)
        ctx.breed, ctx.shapes = breed, (mature.shape, start.shape, rate.shape)
        return pb.asarray(A * share)

    @growth_by_breed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grads = [np.zeros(shape) for shape in ctx.shapes]
        for grad, partial in zip(grads, ctx.partial, strict=True):
            np.add.at(grad, ctx.breed, grad_output.numpy() * partial)
        return (*map(pb.asarray, grads), None, None)

    return growth_by_breed


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2.5, 38, 4)),),
        {"stages": ["puppy", "neutered", "lactating", "obese"]},
    )
)
def daily_energy():
    FACTORS = {"puppy": 3.0, "intact": 1.8, "neutered": 1.6, "obese": 1.0}

    @pb.autograd_function
    def daily_energy(ctx, weight, stages, young=4):
        """Energy a dog needs in kcal a day; stages: a name for each; young: pups that suck."""
        W = weight.numpy()
        if (W <= 0).any():
            raise ValueError("weights are positive")
        factor = np.array(
            [1.9 + 0.25 * young if s == "lactating" else FACTORS[s] for s in stages]
        ).reshape(W.shape)
        ctx.slope = 70 * 0.75 * factor * W**-0.25
        return pb.asarray(70 * factor * W**0.75)

    @daily_energy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"weight": grad_output * pb.asarray(ctx.slope)}

    return daily_energy


@BOOK.right(
    lambda rng: (
        (t(rng.normal(640, 45, 12)),),
        {"normal": np.array([1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1], bool)},
    )
)
def beat_variability():
    @pb.autograd_function
    def beat_variability(ctx, intervals, normal=None):
        """RMSSD in ms of the intervals between beats; those not normal are left out."""
        rr = intervals.numpy()
        used = np.ones(len(rr), bool) if normal is None else normal
        pairs = used[1:] & used[:-1]
        if not pairs.any():
            raise ValueError("no two normal intervals in a row")
        change = np.where(pairs, np.diff(rr), 0.0)
        out = np.sqrt((change**2).sum() / pairs.sum())
        ctx.by_change = change / pairs.sum() / out if out > 0 else change
        return pb.asarray(np.asarray(out))

    @beat_variability.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        padded = np.concatenate([[0.0], ctx.by_change, [0.0]])
        return {"intervals": pb.asarray(-grad_output.item() * np.diff(padded))}

    return beat_variability


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(138, 152, 4)), t(rng.uniform(98, 115, 4)), t(rng.uniform(12, 24, 4))),
        {"albumin": t(rng.uniform(1.8, 3.6, 4))},
    )
)
def anion_gap():
    @pb.autograd_function
    def anion_gap(ctx, sodium, chloride, bicarbonate, potassium=None, albumin=None, usual=3.1):
        """Anion gap in mmol/l; with albumin (g/dl) it is corrected by 4.2 for each g/dl."""
        gap = sodium.numpy() - chloride.numpy() - bicarbonate.numpy()
        ctx.signs = {"sodium": 1.0, "chloride": -1.0, "bicarbonate": -1.0}
        if potassium is not None:
            gap = gap + potassium.numpy()
            ctx.signs["potassium"] = 1.0
        if albumin is not None:
            gap = gap + 4.2 * (usual - albumin.numpy())
            ctx.signs["albumin"] = -4.2
        given = (sodium, chloride, bicarbonate, potassium, albumin)
        if any(each is not None and each.shape != gap.shape for each in given):
            raise ValueError("one value of each for each sample")
        return pb.asarray(gap)

    @anion_gap.backward
    def _(ctx, grad_output):
        return {name: factor * grad_output for name, factor in ctx.signs.items()}

    return anion_gap


@BOOK.right(
    lambda rng: (
        (
            t(rng.lognormal(5.0, 1.1, (2, 5))),
            t(np.where(rng.random((2, 5)) < 0.2, 0.0, rng.uniform(15, 45, (2, 5)))),
        ),
        {},
    )
)
def bulk_cell_score():
    @pb.autograd_function
    def bulk_cell_score(ctx, cells, milk):
        """Somatic cell score of the bulk milk of herds.

        cells: (..., cows) in thousands per ml, positive; milk: (..., cows) in kg, 0 for the dry.
        """
        c, m = cells.numpy(), milk.numpy()
        if c.shape != m.shape or (c <= 0).any() or (m.sum(axis=-1) <= 0).any():
            raise ValueError("cell counts are positive, and some cow of each herd gives milk")
        total = (c * m).sum(axis=-1, keepdims=True)
        if (total <= 0).any():
            raise ValueError("milk is not negative")
        ctx.save_for_backward(c=c, m=m, total=total)
        score = np.log2(total / m.sum(axis=-1, keepdims=True) / 100) + 3
        return pb.asarray(np.asarray(score[..., 0]))

    @bulk_cell_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, flow = ctx.saved_variables, grad_output.numpy()[..., None] / np.log(2)
        by_milk = s.c / s.total - 1 / s.m.sum(axis=-1, keepdims=True)
        return {
            "cells": pb.asarray(flow * s.m / s.total),
            "milk": pb.asarray(flow * by_milk),
        }

    return bulk_cell_score


PEDIGREE = np.array([[-1, -1], [-1, -1], [0, 1], [0, -1], [2, 1], [2, 3], [-1, 4]])


@BOOK.right(
    lambda rng: (
        (t(rng.normal(7200, 600, 7)), t(np.array(0.32))),
        {"parents": PEDIGREE, "recorded": np.array([0, 1, 1, 1, 1, 0, 1], bool)},
    )
)
def animal_model_values():
    def relations(parents):
        inverse = np.zeros((len(parents), len(parents)))
        for i, pair in enumerate(parents):
            row, known = np.zeros(len(parents)), [p for p in pair if p >= 0]
            row[i] = 1.0
            for p in known:
                row[p] -= 0.5
            inverse += 4 / (4 - len(known)) * np.outer(row, row)
        return inverse

    @pb.autograd_function
    def animal_model_values(ctx, records, heritability, parents, recorded=None):
        """Breeding values by an animal model with one mean.

        records: (n,); parents: (n, 2), sire and dam of each, -1 if unknown; recorded: (n,), False
        for animals without a record of their own.
        """
        y, h2, n = records.numpy(), heritability.item(), len(records)
        if not 0 < h2 < 1:
            raise ValueError("the heritability lies between 0 and 1")
        own = np.ones(n) if recorded is None else recorded.astype(float)
        inverse = relations(parents)
        left = np.zeros((n + 1, n + 1))
        left[0, 0], left[0, 1:], left[1:, 0] = own.sum(), own, own
        left[1:, 1:] = np.diag(own) + (1 / h2 - 1) * inverse
        factor = linalg.lu_factor(left)
        u = linalg.lu_solve(factor, np.append((own * y).sum(), own * y))[1:]
        ctx.own, ctx.h2, ctx.factor, ctx.along = own, h2, factor, inverse @ u
        return pb.asarray(u)

    @animal_model_values.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        z = linalg.lu_solve(ctx.factor, np.append(0.0, grad_output.numpy()))
        return {
            "records": pb.asarray(ctx.own * (z[0] + z[1:])),
            "heritability": z[1:] @ ctx.along / ctx.h2**2,
        }

    return animal_model_values


@BOOK.right(
    lambda rng: (
        (
            t(np.array([10.0, 0.0, 5.0, 5.0, 0.0, 5.0])),
            t(np.array([0.35, 0.6, 0.25]) * rng.uniform(0.8, 1.2, 3)),
            t(np.array(0.45)),
        ),
        {"dt": 4.0},
    )
)
def trough_levels():
    @pb.autograd_function
    def trough_levels(ctx, doses, rates, volume, dt=8.0):
        """Levels before the next dose, two compartments; rates: out, to and from the tissue."""
        out, to, back = rates.numpy()
        K = dt * np.array([[-out - to, back], [to, -back]])
        step, state, before = linalg.expm(K), np.zeros(2), []
        levels = np.empty(len(doses))
        for k, dose in enumerate(doses.numpy()):
            before.append(state + np.array([dose, 0.0]))
            state = step @ before[-1]
            levels[k] = state[0] / volume.item()
        ctx.save_for_backward(K=K, step=step, before=before, levels=levels)
        ctx.volume, ctx.dt = volume.item(), dt
        return pb.asarray(levels.copy())

    @trough_levels.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        to_state, by_step, by_dose = np.zeros(2), np.zeros((2, 2)), np.zeros(len(gn))
        for k in reversed(range(len(gn))):
            to_state = to_state + np.array([gn[k] / ctx.volume, 0.0])
            by_step += np.outer(to_state, s.before[k])
            to_state = s.step.T @ to_state
            by_dose[k] = to_state[0]
        by_K = ctx.dt * linalg.expm_frechet(s.K.T, by_step, compute_expm=False)
        by_rates = [-by_K[0, 0], by_K[1, 0] - by_K[0, 0], by_K[0, 1] - by_K[1, 1]]
        return {
            "doses": pb.asarray(by_dose),
            "rates": pb.asarray(np.array(by_rates)),
            "volume": -(gn @ s.levels) / ctx.volume,
        }

    return trough_levels


def head_trace(rng):
    phase = np.arange(31) * 2 * np.pi / 14
    trace = 30 * np.cos(2 * phase) + 9 * np.cos(phase) + rng.normal(0, 1.5, 31)
    return (t(trace),), {"stride": 14}


@BOOK.right(head_trace)
def head_bob():
    @pb.autograd_function
    def head_bob(ctx, trace, stride):
        x = trace.numpy()
        count, half = len(x) // stride, stride // 2
        if half < 1 or count < 1:
            raise ValueError("a whole stride, of two samples or more, is needed")
        starts = np.arange(count) * stride
        strides = x[: count * stride].reshape(count, stride)
        left = starts + strides[:, :half].argmin(axis=1)
        right = starts + half + strides[:, half:].argmin(axis=1)
        ctx.n, ctx.left, ctx.right = len(x), left, right
        return pb.asarray(x[left] - x[right])

    @head_bob.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad = np.zeros(ctx.n)
        grad[ctx.left] = grad_output.numpy()
        grad[ctx.right] = -grad_output.numpy()
        return {"trace": pb.asarray(grad)}

    return head_bob


@BOOK.right(
    lambda rng: (
        (t(np.array([850.0, 120.0, 41.0, 2300.0]) * rng.uniform(0.9, 1.1, 4)), t(np.array(1.9))),
        {"limit": 50.0, "safety": 1.2},
    )
)
def withdrawal_days():
    class WithdrawalDays(pb.Function):
        @staticmethod
        def forward(ctx, residue, half_life, limit=100.0, safety=1.0):
            c = residue.numpy()
            if (c <= 0).any() or half_life.item() <= 0:
                raise ValueError("residues and the half-life must be positive")
            halvings = np.maximum(np.log2(c / limit), 0.0)
            ctx.save_for_backward(residue=residue, halvings=halvings)
            ctx.scale, ctx.safety = safety * half_life.item(), safety
            return pb.asarray(ctx.scale * halvings)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            slope = np.where(s.halvings > 0, ctx.scale / np.log(2), 0.0)
            by_life = ctx.safety * (gn * s.halvings).sum()
            return pb.asarray(gn * slope / s.residue.numpy()), by_life, None, None

    return WithdrawalDays.apply
