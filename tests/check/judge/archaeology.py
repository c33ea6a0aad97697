"""Archaeology: dating, seriation, stratigraphy, vessels, bones, graves, rings, prospection."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MASK, MISSING, SHIFT, Book, at, mends, t

BOOK = Book("archaeology")

PROFILE = np.array([4.2, 7.9, 10.4, 11.3, 9.6, 6.1, 6.8])


@BOOK.wrong(
    lambda rng: ((t(PROFILE * rng.uniform(0.95, 1.05, 7)), t(rng.uniform(1.5, 3, 6))), {}),
    "a ring bounds the frustum under it as well: that part of its gradient is missing",
    MISSING,
    SHIFT,
    r"\b(?:both|two|adjacent|under|below|above|last|next|previous)\b|top of",
    mends("grad_r[1:] +=", "lower[1:]", "2 * r[1:]", "r[1:] * 2"),
)
def vessel_capacity():
    @pb.autograd_function
    def vessel_capacity(ctx, radii, heights):
        """Capacity in ml of a pot drawn as stacked frusta.

        radii: (n,) inner radii in cm from the base upwards; heights: (n - 1,) between them in cm.
        """
        r, h = radii.numpy(), heights.numpy()
        each = r[:-1] ** 2 + r[:-1] * r[1:] + r[1:] ** 2
        ctx.save_for_backward(r=r, h=h, each=each)
        return pb.asarray(np.asarray(np.pi / 3 * (h @ each)))

    @vessel_capacity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r, h, each = ctx.saved_variables
        scale = np.pi / 3 * grad_output.item()
        grad_r = np.zeros_like(r)
        grad_r[:-1] = scale * h * (2 * r[:-1] + r[1:])
        return {"radii": pb.asarray(grad_r), "heights": pb.asarray(scale * each)}

    return vessel_capacity


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(1.5, 5.0, 5)), t(rng.uniform(9, 22, 5))), {}),
    "with a swing the effective temperature follows the mean less than one to one; taken for 1",
    at("swing"),
    r"effective|one to one|chain rule|3\.8e-0?5|\b(?:annual|yearly|seasonal)\b",
    mends("* ctx.by_mean", "ctx.by_mean *", "(1 - 3.8e-5", "ctx.follows"),
    where="swing is not 0",
    shows=lambda rng: (
        (t(rng.uniform(1.5, 5.0, 5)), t(rng.uniform(9, 22, 5))),
        {"swing": 24.0},
    ),
)
def hydration_age():
    ENERGY, GAS = 83_700.0, 8.314

    def forward(ctx, rim, temperature, rate_at_20=6.5, swing=0.0):
        """Years since the flaking of obsidian.

        rim: hydration in micrometres; temperature: yearly mean in degrees Celsius;
        rate_at_20: square micrometres per 1000 years; swing: yearly range of temperature.
        """
        x, mean = rim.numpy(), temperature.numpy()
        y = swing**2
        effective = mean * (1 - 3.8e-5 * y) + 0.0096 * y**0.95 + 273.15
        rate = rate_at_20 * np.exp(ENERGY / GAS * (1 / 293.15 - 1 / effective))
        age = 1000 * x**2 / rate
        ctx.save_for_backward(x=x, age=age, effective=effective)
        return pb.asarray(age.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        return {
            "rim": pb.asarray(gn * 2 * s.age / s.x),
            "temperature": pb.asarray(-gn * s.age * ENERGY / GAS / s.effective**2),
        }

    return pb.autograd_function(forward, backward, name="hydration_age")


SHERDS = np.array([12.0, 48.0, 90.0, 31.0, 7.0])


def sherds(**settings):
    def given(rng):
        dates = np.array([1690.0, 1725.0, 1760.0, 1795.0, 1830.0])
        return (t(SHERDS * rng.uniform(0.9, 1.1, 5)), t(dates + rng.normal(0, 3, 5))), settings

    return given


@BOOK.wrong(
    sherds(),
    "a count above the cap does not matter any more, yet it gets a gradient",
    at("cap"),
    r"\bcap(?:ped)?\b.{0,40}(?:ignor|not used|zero|above|exceed|over)|above the cap|\bclip|saturat",
    MASK,
    mends("(s.counts < s.cap)", "(s.counts <= s.cap)", "s.free *", "* s.free", "< ctx.cap"),
    where="a count exceeds the cap",
    shows=sherds(cap=40.0),
)
def mean_ceramic_date():
    class MeanCeramicDate(pb.Function):
        @staticmethod
        def forward(ctx, counts, midpoints, cap=None):
            """South's mean date of an assemblage."""
            c, m = counts.numpy(), midpoints.numpy()
            if cap is not None:
                c = np.minimum(c, cap)
            total = c.sum()
            date = (c @ m) / total
            ctx.save_for_backward(share=c / total, apart=(m - date) / total)
            return pb.asarray(np.asarray(date))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            share, apart = ctx.saved_variables
            return pb.asarray(g.item() * apart), pb.asarray(g.item() * share), None

    return MeanCeramicDate.apply


# Calendar age, radiocarbon age and its error, all in years before 1950.
CURVE = np.array(
    [
        [2900, 2800, 14],
        [3000, 2880, 15],
        [3100, 2935, 13],
        [3200, 3010, 16],
        [3300, 2995, 17],
        [3400, 3170, 15],
        [3500, 3270, 14],
    ],
    dtype=np.float32,
)


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2950, 3450, 6)), t(np.array(35.0)), rng.uniform(2850, 3200, 6)),
        {"error": rng.uniform(20, 45, 6)},
    )
)
def calibrated_likelihood():
    AGE, RADIOCARBON, SIGMA = CURVE.astype(float).T

    @pb.autograd_function
    def calibrated_likelihood(ctx, calendar, reservoir, measured, error):
        """Log likelihood of calendar ages: (n,) for radiocarbon ages measured: (n,).

        reservoir: scalar, added to the curve; the ages must lie within the curve.
        """
        age = calendar.numpy()
        if (age < AGE[0]).any() or (age > AGE[-1]).any():
            raise ValueError("a calendar age lies outside the calibration curve")
        k = np.clip(np.searchsorted(AGE, age, side="right") - 1, 0, len(AGE) - 2)
        step = AGE[k + 1] - AGE[k]
        slope = (RADIOCARBON[k + 1] - RADIOCARBON[k]) / step
        widening = (SIGMA[k + 1] - SIGMA[k]) / step
        sigma = SIGMA[k] + widening * (age - AGE[k])
        variance = np.asarray(error) ** 2 + sigma**2
        z = measured - RADIOCARBON[k] - slope * (age - AGE[k]) - reservoir.item()
        ctx.save_for_backward(z / variance, slope, sigma * widening / variance, z**2 / variance)
        return pb.asarray(np.asarray(-0.5 * (z**2 / variance + np.log(variance)).sum()))

    @calibrated_likelihood.backward
    @pb.once_differentiable
    def _(ctx, g):
        pull, slope, spread, squared = ctx.saved_variables
        by_age = pull * slope + spread * (squared - 1)
        return {"calendar": pb.asarray(g.item() * by_age), "reservoir": g.item() * pull.sum()}

    return calibrated_likelihood


@BOOK.right(lambda rng: ((t(rng.uniform(2, 60, (4, 5))),), {}))
def brainerd_robinson():
    @pb.autograd_function
    def brainerd_robinson(ctx, counts):
        """Similarity (0 to 200) of every two assemblages; counts: (assemblages, types)."""
        c = counts.numpy()
        total = c.sum(axis=1, keepdims=True)
        if (total <= 0).any():
            raise ValueError("an assemblage is empty")
        part = c / total
        apart = part[:, None] - part[None]
        ctx.save_for_backward(total=total, part=part, sign=np.sign(apart))
        return pb.asarray(200 - 100 * np.abs(apart).sum(axis=-1))

    @brainerd_robinson.backward
    @pb.once_differentiable
    def _(ctx, g):
        total, part, sign = ctx.saved_variables
        both = g.numpy() + g.numpy().T
        by_part = -100 * np.einsum("ij,ijk->ik", both, sign)
        by_part -= (by_part * part).sum(axis=1, keepdims=True)
        return {"counts": pb.asarray(by_part / total)}

    return brainerd_robinson


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(20, 90, 4)),
            t(rng.uniform(0.2, 1.8, (4, 3))),
            t(rng.uniform(0.05, 0.3, 4)),
        ),
        {"cosmic": np.array([0.15, 0.21, 0.18, 0.2])},
    )
)
def sediment_age_by_dose():
    WET = np.array([1.49, 1.25, 1.14])  # alpha, beta, gamma

    def forward(ctx, dose, rates, water, cosmic=0.2):
        D, dry, w = dose.numpy(), rates.numpy(), water.numpy()
        wet = 1 + WET * w[:, None]
        total = (dry / wet).sum(axis=1) + cosmic
        ctx.save_for_backward(dry=dry, wet=wet, total=total, age=D / total)
        return pb.asarray(D / total)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        by_dose = g.numpy() / s.total
        by_total = (-by_dose * s.age)[:, None]
        return (
            pb.asarray(by_dose),
            pb.asarray(by_total / s.wet),
            pb.asarray((-by_total * s.dry * WET / s.wet**2).sum(axis=1)),
            None,
        )

    return pb.autograd_function(forward, backward, name="sediment_age_by_dose")


@BOOK.right(
    lambda rng: (
        (t(np.array([-820.0, -790.0, -805.0, -700.0, -640.0]) + rng.normal(0, 5, 5)),),
        {"older_than": [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (3, 4)], "gap": 10.0},
    )
)
def order_penalty():
    @pb.autograd_function
    def order_penalty(ctx, dates, older_than=(), gap=0.0, scale=20.0):
        """Penalty for dates that contradict the stratigraphy."""
        d = dates.numpy()
        pairs = np.asarray(older_than, dtype=int).reshape(-1, 2)
        violation = np.maximum(d[pairs[:, 0]] + gap - d[pairs[:, 1]], 0.0) / scale
        ctx.pairs, ctx.slope, ctx.n = pairs, 2 * violation / scale, d.size
        return pb.asarray(np.asarray((violation**2).sum()))

    @order_penalty.backward
    @pb.once_differentiable
    def _(ctx, g):
        grad = np.bincount(ctx.pairs[:, 0], ctx.slope, ctx.n)
        grad -= np.bincount(ctx.pairs[:, 1], ctx.slope, ctx.n)
        return {"dates": pb.asarray(g.item() * grad)}

    return order_penalty


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 60, 7)), t(np.array(-450.0))),
        {"rests_on": [[], [0], [0], [1, 2], [2], [], [3, 4, 5]]},
    )
)
def earliest_deposition():
    @pb.autograd_function
    def earliest_deposition(ctx, duration, start, rests_on):
        """Earliest year in which each layer can begin.

        duration: (n,) years in which a layer forms; rests_on: for each layer those directly
        under it, all of smaller index; a layer on natural soil begins at `start`.
        """
        length, begin = duration.numpy(), np.zeros(len(rests_on))
        if len(rests_on) != length.size:
            raise ValueError("rests_on needs one list for each layer")
        last = np.full(length.size, -1)
        for i, under in enumerate(rests_on):
            if any(not 0 <= j < i for j in under):
                raise ValueError(f"layer {i} must rest on layers before it")
            begin[i] = start.item()
            if under:
                last[i] = max(under, key=lambda j: begin[j] + length[j])
                begin[i] = begin[last[i]] + length[last[i]]
        ctx.last = last
        return pb.asarray(begin)

    @earliest_deposition.backward
    @pb.once_differentiable
    def _(ctx, g):
        flow = g.numpy().copy()
        grad_duration, grad_start = np.zeros_like(flow), 0.0
        for i in reversed(range(flow.size)):
            j = ctx.last[i]
            if j < 0:
                grad_start += flow[i]
            else:
                flow[j] += flow[i]
                grad_duration[j] += flow[i]
        return {"duration": pb.asarray(grad_duration), "start": grad_start}

    return earliest_deposition


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(38, 50, 6)), t(np.array([22.0, 35, 61, 44, 28, 70]))),
        {"female": np.array([1, 0, 0, 1, 1, 0], bool), "bone": "femur"},
    )
)
def stature():
    TABLE = {  # slope and intercept in cm for men, then for women
        "femur": ((2.38, 61.41), (2.47, 54.10)),
        "tibia": ((2.52, 78.62), (2.90, 61.53)),
        "humerus": ((3.08, 70.45), (3.36, 57.97)),
    }

    @pb.autograd_function
    def stature(ctx, length, age=None, *, female, bone="femur"):
        """Living stature in cm from a long bone (Trotter and Gleser); after 30 it declines."""
        slope, intercept = np.array(TABLE[bone])[np.asarray(female, dtype=int)].T
        height = slope * length.numpy() + intercept
        ctx.slope, ctx.ageing = slope, None
        if age is not None:
            ctx.ageing = age.numpy() > 30
            height = height - 0.06 * np.maximum(age.numpy() - 30, 0)
        return pb.asarray(height)

    @stature.backward
    @pb.once_differentiable
    def _(ctx, g):
        grads = {"length": pb.asarray(g.numpy() * ctx.slope)}
        if ctx.ageing is not None:
            grads["age"] = pb.asarray(-0.06 * g.numpy() * ctx.ageing)
        return grads

    return stature


@BOOK.right(lambda rng: ((t(rng.uniform(0.5, 9, (5, 2))), np.array([1, 2, 1, 4, 12])), {}))
def minimum_individuals():
    @pb.autograd_function
    def minimum_individuals(ctx, completeness, per_side):
        """Least number of animals that account for the bones, and the element that decides.

        completeness: (elements, 2) summed parts of left and right bones.
        """
        need = completeness.numpy() / per_side[:, None]
        where = np.unravel_index(need.argmax(), need.shape)
        ctx.where, ctx.shape, ctx.each = where, need.shape, per_side[where[0]]
        return pb.asarray(np.asarray(need[where])), pb.asarray(np.asarray(where[0]))

    @minimum_individuals.backward
    @pb.once_differentiable
    def _(ctx, g_number, g_element):
        grad = np.zeros(ctx.shape)
        grad[ctx.where] = g_number.item() / ctx.each
        return {"completeness": pb.asarray(grad)}

    return minimum_individuals


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(-60, 90, 8)), t(rng.uniform(110, 260, 8))),
        {"edges": np.array([-50.0, 0.0, 50.0, 100.0, 150.0, 300.0])},
    )
)
def aoristic_sum():
    def forward(ctx, start, end, edges):
        """Expected number of finds in each period, every find spread evenly over its span."""
        a, b = start.numpy()[:, None], end.numpy()[:, None]
        if (b <= a).any():
            raise ValueError("a find must end after it starts")
        low, high = edges[:-1], edges[1:]
        shared = np.minimum(b, high) - np.maximum(a, low)
        meets = shared > 0
        part = np.where(meets, shared, 0.0) / (b - a)
        ctx.starts, ctx.ends = meets & (a >= low), meets & (b <= high)
        ctx.part, ctx.span = part, b - a
        return pb.asarray(part.sum(axis=0))

    @pb.once_differentiable
    def backward(ctx, g):
        by_start = (ctx.part - ctx.starts) / ctx.span
        by_end = (ctx.ends - ctx.part) / ctx.span
        return {"start": pb.asarray(by_start @ g.numpy()), "end": pb.asarray(by_end @ g.numpy())}

    return pb.autograd_function(forward, backward, name="aoristic_sum")


@BOOK.right(
    lambda rng: (
        (t(np.cumsum(rng.normal(0, 25, 8)) + 340), t(rng.uniform(120, 400, 7))),
        {"off_path": np.array([0, 0, 1, 1, 1, 0, 0], bool)},
    )
)
def walking_time():
    @pb.autograd_function
    def walking_time(ctx, altitude, stretch, off_path=None, there_and_back=False):
        z, d = altitude.numpy(), stretch.numpy()
        pace = np.full(d.shape, 1 / 6000)  # hours per metre
        if off_path is not None:
            pace[off_path] /= 0.6
        hours, by_slope = np.zeros_like(d), np.zeros_like(d)
        slope = np.diff(z) / d
        for way in (1, -1) if there_and_back else (1,):
            tilt = way * slope + 0.05
            once = pace * np.exp(3.5 * np.abs(tilt))
            hours += once
            by_slope += way * 3.5 * np.sign(tilt) * once
        ctx.save_for_backward(hours=hours, by_slope=by_slope, slope=slope)
        return pb.asarray(np.asarray((hours * d).sum()))

    @walking_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        hours, by_slope, slope = ctx.saved_variables
        by_z = np.zeros(hours.size + 1)
        by_z[1:] += by_slope
        by_z[:-1] -= by_slope
        return {
            "altitude": pb.asarray(g.item() * by_z),
            "stretch": pb.asarray(g.item() * (hours - by_slope * slope)),
        }

    return walking_time


@BOOK.right(lambda rng: ((t(rng.gamma(0.8, 30, 9) + 0.5),), {"corrected": True}))
def grave_goods_gini():
    @pb.autograd_function
    def grave_goods_gini(ctx, wealth, corrected=False):
        """Gini index of the wealth of graves; corrected for small cemeteries if asked."""
        x = wealth.numpy()
        n, total = x.size, x.sum()
        scale = n - 1 if corrected else n
        order = np.argsort(x, kind="stable")
        weight = np.empty(n)
        weight[order] = (2 * np.arange(1, n + 1) - n - 1) / scale
        gini = weight @ x / total
        ctx.save_for_backward((weight - gini) / total)
        return pb.asarray(np.asarray(gini))

    @grave_goods_gini.backward
    @pb.once_differentiable
    def _(ctx, g):
        (slope,) = ctx.saved_variables
        return {"wealth": pb.asarray(g.item() * slope)}

    return grave_goods_gini


WINDOW = np.full(5, 0.2)


def ring_index(width):
    mean = np.convolve(width, WINDOW, mode="valid")
    return np.log(width[2:-2] / mean), mean


def ring_index_back(g, width, mean):
    grad = np.convolve(-g / mean, WINDOW)
    grad[2:-2] += g / width[2:-2]
    return grad


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.6, 2.4, 14)), t(rng.uniform(0.6, 2.4, 22))), {"offset": 3})
)
def cross_dating():
    @pb.autograd_function
    def cross_dating(ctx, sample, master, offset):
        """Student's t of the match of two ring series after Baillie and Pilcher.

        sample: (n,) and master: (m,), ring widths in mm; offset: ring of the master at which
        the sample begins, so that 0 <= offset <= m - n; n at least 7.
        """
        s, m = sample.numpy(), master.numpy()
        if s.size < 7 or not 0 <= offset <= m.size - s.size:
            raise ValueError("the sample is too short or does not lie within the master")
        part = m[offset : offset + s.size]
        (u, mean_u), (v, mean_v) = ring_index(s), ring_index(part)
        u, v = u - u.mean(), v - v.mean()
        ctx.lengths = nu, nv = np.linalg.norm(u), np.linalg.norm(v)
        ctx.r, ctx.freedom = u @ v / (nu * nv), u.size - 2
        ctx.u, ctx.v, ctx.offset, ctx.size = u / nu, v / nv, offset, m.size
        ctx.save_for_backward(s=s, part=part, mean_u=mean_u, mean_v=mean_v)
        return pb.asarray(np.asarray(ctx.r * np.sqrt(ctx.freedom / (1 - ctx.r**2))))

    @cross_dating.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, r = ctx.saved_variables, ctx.r
        by_r = g.item() * np.sqrt(ctx.freedom) * (1 - r**2) ** -1.5
        by_u = by_r * (ctx.v - r * ctx.u) / ctx.lengths[0]
        by_v = by_r * (ctx.u - r * ctx.v) / ctx.lengths[1]
        by_master = np.zeros(ctx.size)
        by_master[ctx.offset : ctx.offset + s.s.size] = ring_index_back(by_v, s.part, s.mean_v)
        by_sample = ring_index_back(by_u, s.s, s.mean_u)
        return {"sample": pb.asarray(by_sample), "master": pb.asarray(by_master)}

    return cross_dating


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 4, 2)), t(rng.uniform(0.4, 1.2, 2)), t(rng.uniform(0, 4, (2, 2)))),
        {"stations": rng.uniform(0, 4, (9, 2)), "separation": 1.0},
    )
)
def gradiometer_survey():
    def vertical(moment, z, square):
        """Anomaly in nT of vertical unit dipoles; what z and the squared offset change of it."""
        r2 = square + z**2
        top = 2 * z**2 - square
        field = 100 * top * r2**-2.5
        by_z = 100 * z * (4 * r2**-2.5 - 5 * top * r2**-3.5)
        by_square = 100 * (-(r2**-2.5) - 2.5 * top * r2**-3.5)
        return field, moment * by_z, moment * by_square

    @pb.autograd_function
    def gradiometer_survey(ctx, moment, depth, place, stations, height=0.3, separation=None):
        """Readings over buried dipoles; with a separation, those of a gradiometer."""
        m = moment.numpy()
        offset = stations[:, None] - place.numpy()
        square = (offset**2).sum(axis=-1)
        parts = vertical(m, depth.numpy() + height, square)
        if separation is not None:
            upper = vertical(m, depth.numpy() + height + separation, square)
            parts = [a - b for a, b in zip(parts, upper, strict=True)]
        field, by_depth, by_square = parts
        ctx.save_for_backward(field, by_depth, by_square[..., None] * -2 * offset)
        return pb.asarray(field @ m)

    @gradiometer_survey.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_moment, by_depth, by_place = ctx.saved_variables
        gn = g.numpy()
        by_place = np.tensordot(gn, by_place, 1)
        return {
            "moment": pb.asarray(gn @ by_moment),
            "depth": pb.asarray(gn @ by_depth),
            "place": pb.asarray(by_place),
        }

    return gradiometer_survey
