"""Forestry: volumes, growth, competition, thinning, light, inventories, fire, carbon, harvest."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, Book, at, mends, t

BOOK = Book("forestry")


def stems(rng, n=6):
    return t(rng.uniform(12, 48, n)), t(rng.uniform(11, 31, n))


@BOOK.wrong(
    lambda rng: ((*stems(rng), t(np.array([-10.1, 1.9, 1.05]))), {}),
    "the exponent of the diameter is left out of its gradient, as a factor",
    FACTOR + r"|multipl",
    MISSING,
    r"exponent|power rule|coefficients?\[1\]",
    mends("b * s.V / D", "b * V / D", "b[1] *", "s.powers[1] *", "* c[1]"),
)
def stem_volume():
    @pb.autograd_function
    def stem_volume(ctx, diameter, height, logistic):
        """Volume in m3 by Schumacher and Hall: exp(a) D^b H^c; D in cm, H in m: (n,)."""
        D, H, (a, b, c) = diameter.numpy(), height.numpy(), logistic.numpy()
        V = np.exp(a) * D**b * H**c
        ctx.save_for_backward(diameter=diameter, height=height, V=V, c=c)
        return pb.asarray(V.copy())

    @stem_volume.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        D, H, flow = s.diameter.numpy(), s.height.numpy(), grad_output.numpy() * s.V
        by = np.array([flow.sum(), flow @ np.log(D), flow @ np.log(H)])
        return {
            "diameter": pb.asarray(flow / D),
            "height": pb.asarray(s.c * flow / H),
            "logistic": pb.asarray(by),
        }

    return stem_volume


def stand(rng):
    return (t(rng.uniform(0, 40, (6, 2))), t(rng.uniform(10, 45, 6))), {}


@BOOK.wrong(
    lambda rng: (stand(rng)[0], {"symmetric": True}),
    "if only larger trees compete, backward still counts the smaller ones",
    at("symmetric"),
    r"\b(?:smaller|larger|thicker|bigger)\b",
    r"one.sided|should be (?:0|zero)|\bmask|\bnon-?zero\b|compet",
    mends("s.counts", "ctx.counts", "* counts", "counts *", "s.larger", "ctx.larger"),
    where="symmetric is False",
    shows=lambda rng: (stand(rng)[0], {"symmetric": False}),
)
def hegyi_index():
    @pb.autograd_function
    def hegyi_index(ctx, place, diameter, symmetric=True, offset=1.0):
        """Sum over the neighbours of D_j / D_i / (distance + offset); place: (n, 2) in m."""
        x, D = place.numpy(), diameter.numpy()
        apart = x[:, None] - x
        far = np.hypot(apart[..., 0], apart[..., 1])
        ratio = D / D[:, None] / (far + offset)
        np.fill_diagonal(ratio, 0.0)
        ctx.save_for_backward(apart=apart, far=far, D=D, ratio=ratio, offset=offset)
        if not symmetric:
            ratio = np.where(D - D[:, None] > 0, ratio, 0.0)
        return pb.asarray(ratio.sum(axis=1))

    @hegyi_index.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        apart, far, D, ratio, offset = ctx.saved_variables
        flow = grad_output.numpy()[:, None] * ratio
        near = np.where(far > 0, far, 1.0)
        pull = -(flow / (far + offset) / near)[..., None] * apart
        return {
            "place": pb.asarray(pull.sum(axis=1) - pull.sum(axis=0)),
            "diameter": pb.asarray((flow.sum(axis=0) - flow.sum(axis=1)) / D),
        }

    return hegyi_index


def layers_of_leaves(rng):
    return (t(rng.uniform(0.4, 1.3, 5)), t(np.array(0.52))), {}


@BOOK.wrong(
    layers_of_leaves,
    "leaves are clumped, but clumping is missing in the gradient of the leaf area: a factor",
    at("clumping"),
    FACTOR + r"|multipl",
    MISSING,
    mends("s.clumping", "ctx.clumping", "k * clumping", "clumping *"),
    where="clumping is not 1",
    shows=lambda rng: (layers_of_leaves(rng)[0], {"clumping": 0.7}),
)
def light_in_crowns():
    @pb.autograd_function
    def light_in_crowns(ctx, leaf_area, extinction, clumping=1.0, above=1800.0):
        above_layer = np.cumsum(leaf_area.numpy()) - leaf_area.numpy()
        k = extinction.item()
        light = above * np.exp(-k * clumping * above_layer)
        ctx.save_for_backward(light=light, above_layer=above_layer, k=k)
        ctx.dense = clumping
        return pb.asarray(light.copy())

    @light_in_crowns.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.light
        below = np.cumsum(flow[::-1])[::-1] - flow
        return {
            "leaf_area": pb.asarray(-s.k * below),
            "extinction": -ctx.dense * (flow @ s.above_layer),
        }

    return light_in_crowns


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.2, 27, 6)), t(np.array(31.0)), t(np.array(24.5))),
        {},
    )
)
def taper_diameter():
    @pb.autograd_function
    def taper_diameter(ctx, at_height, dbh, height):
        """Diameter in cm of a stem at heights: (n,) in m, after Kozak's parabola; 0 above the top.

        dbh: diameter in cm at 1.3 m; height: in m, above 1.3.
        """
        h, D, H = at_height.numpy(), dbh.item(), height.item()
        z = np.minimum(h / H, 1.0)
        inside = (1 - z) * (1.32 - 0.44 * z)
        root = np.sqrt(inside)
        rises = z < 1
        # the top itself has no slope: the stem ends there
        slope = np.zeros_like(z)
        slope[rises] = (-1.76 + 0.88 * z[rises]) / (2 * root[rises])
        ctx.save_for_backward(root=root, slope=slope, z=z, D=D, H=H)
        return pb.asarray(D * root)

    @taper_diameter.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_z = gn * s.D * s.slope
        return {
            "at_height": pb.asarray(by_z / s.H),
            "dbh": gn @ s.root,
            "height": -(by_z @ s.z) / s.H,
        }

    return taper_diameter


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 26, 7)), t(rng.uniform(12, 90, 7))),
        {"base": 50.0, "species": np.array([0, 1, 1, 2, 0, 2, 1])},
    )
)
def site_index():
    RATES = np.array([[0.021, 1.25], [0.032, 1.41], [0.017, 1.12]])

    @pb.autograd_function
    def site_index(ctx, height, age, species, base=100.0):
        """Height in m at the base age by Chapman and Richards; species: (n,) integers."""
        if height.shape != age.shape:
            raise ValueError("height and age must have one shape")
        k, p = RATES[species].T
        a = age.numpy()
        grown = -np.expm1(-k * a)
        ratio = (-np.expm1(-k * base) / grown) ** p
        ctx.by_height = ratio
        ctx.by_age = -height.numpy() * ratio * p * k * np.exp(-k * a) / grown
        return pb.asarray(height.numpy() * ratio)

    @site_index.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {"height": pb.asarray(gn * ctx.by_height), "age": pb.asarray(gn * ctx.by_age)}

    return site_index


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(150, 420, 6)), t(np.array([0.8, 0.9, 0.6, 0.3, 0.05, 0.02]))),
        {"kept": 900.0},
    )
)
def thinning_from_below():
    @pb.autograd_function
    def thinning_from_below(ctx, trees, value, kept):
        """Value of the trees that are cut, thin classes first, until a number is left.

        trees: (classes,) per ha from thin to thick; value: (classes,) per tree; kept: per ha.
        """
        n, v = trees.numpy(), value.numpy()
        thicker = np.cumsum(n[::-1])[::-1] - n
        room = kept - thicker
        left = np.clip(room, 0, n)
        ctx.whole = room <= 0
        ctx.partly = (room > 0) & (room < n)
        ctx.save_for_backward(trees=trees, value=value, left=left)
        return pb.asarray(np.asarray((n - left) @ v))

    @thinning_from_below.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        v, n = s.value.numpy(), s.trees.numpy()
        # in the class at the border, each thicker tree that stays takes the place of one
        border = np.where(ctx.partly, v, 0.0)
        thinner = np.cumsum(border) - border
        by_trees = np.where(ctx.whole | ctx.partly, v, 0.0) + thinner
        return {
            "trees": pb.asarray(g.item() * by_trees),
            "value": pb.asarray(g.item() * (n - s.left)),
        }

    return thinning_from_below


@BOOK.right(
    lambda rng: (
        (t(np.array([410.0, 260.0, 180.0, 90.0])), t(np.array([0.18, 0.15, 0.11]))),
        {"mortality": np.array([0.03, 0.02, 0.015, 0.04]), "steps": 5, "ingrowth": 22.0},
    )
)
def diameter_classes():
    @pb.autograd_function
    def diameter_classes(ctx, trees, upgrowth, mortality, steps, ingrowth=0.0):
        """Trees per class after some periods of a transition matrix, all periods: (steps, classes).

        upgrowth: (classes - 1,) part that goes up a class; mortality: (classes,) part that dies.
        """
        n, up = trees.numpy(), np.append(upgrowth.numpy(), 0.0)
        P = np.diag(1 - mortality - up) + np.diag(up[:-1], -1)
        states = [n]
        for _ in range(steps):
            after = P @ states[-1]
            after[0] += ingrowth
            states.append(after)
        ctx.P, ctx.states = P, np.array(states)
        return pb.asarray(ctx.states[1:].copy())

    @diameter_classes.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn, back = g.numpy(), np.zeros(len(ctx.P))
        by_up = np.zeros(len(ctx.P) - 1)
        for k in range(len(gn) - 1, -1, -1):
            back = back + gn[k]
            by_up += (back[1:] - back[:-1]) * ctx.states[k, :-1]
            back = ctx.P.T @ back
        return {"trees": pb.asarray(back), "upgrowth": pb.asarray(by_up)}

    return diameter_classes


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(9, 52, 10)),),
        {"plot": np.array([0, 0, 2, 1, 2, 2, 0, 1, 2, 0]), "plots": 3, "factor": 2.0},
    )
)
def angle_count():
    class AngleCount(pb.Function):
        """Quadratic mean diameter in cm of each sample point, by the angle count of Bitterlich.

        diameter: (trees,); plot: (trees,) the point from which a tree was counted. A tree stands
        for factor / its basal area per ha; 0 at a point without trees.
        """

        @staticmethod
        def forward(ctx, diameter, plot, plots, factor=4.0):
            D = diameter.numpy()
            stems = np.bincount(plot, factor / (np.pi / 4 * (D / 100) ** 2), plots)
            basal = factor * np.bincount(plot, minlength=plots)
            some = stems > 0
            mean = np.zeros(plots)
            mean[some] = 200 * np.sqrt(basal[some] / stems[some] / np.pi)
            ctx.save_for_backward(diameter=diameter, mean=mean, basal=basal)
            ctx.plot, ctx.factor = plot.copy(), factor
            return pb.asarray(mean.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            # mean = sqrt(n / sum D^-2), so its slope is mean^3 / (n D^3)
            n = s.basal / ctx.factor
            per_tree = np.divide(g.numpy() * s.mean**3, n, out=np.zeros(len(n)), where=n > 0)
            return pb.asarray(per_tree[ctx.plot] / s.diameter.numpy() ** 3), None, None, None

    return AngleCount.apply


@BOOK.right(
    lambda rng: (
        (t(np.array([4.2, 11.0, 0.4, 17.5, 6.0])), t(np.array([8.0, 12.0, 31.0, 5.5, 9.0]))),
        {"fuel": "slash"},
    )
)
def spread_of_fire():
    FUELS = {"grass": (2.1, 0.62, 15.0), "litter": (0.3, 0.41, 25.0), "slash": (0.6, 0.5, 25.0)}

    @pb.autograd_function
    def spread_of_fire(ctx, wind, moisture, fuel="litter"):
        """Rate of spread in m/min; none from the moisture of extinction (per cent) on.

        wind: in m/s, not below 0.
        """
        base, growth, wet = FUELS[fuel]
        if wind.shape != moisture.shape:
            raise ValueError("wind and moisture must have one shape")
        U, r = wind.numpy(), moisture.numpy() / wet
        damp = 1 - 2.59 * r + 5.11 * r**2 - 3.52 * r**3
        slope = (-2.59 + 10.22 * r - 10.56 * r**2) / wet
        burns = (r < 1) & (damp > 0)
        blown = base * (1 + growth * U**1.5)
        ctx.by_wind = np.where(burns, base * growth * 1.5 * np.sqrt(U) * damp, 0.0)
        ctx.by_moisture = np.where(burns, blown * slope, 0.0)
        return pb.asarray(np.where(burns, blown * damp, 0.0))

    @spread_of_fire.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return pb.asarray(gn * ctx.by_wind), pb.asarray(gn * ctx.by_moisture), None

    return spread_of_fire


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 5, 7)), t(np.array([0.35, 0.06, 0.012]))),
        {"stocks": np.array([9.0, 22.0, 70.0]), "kept": (0.4, 0.2)},
    )
)
def carbon_of_soil():
    @pb.autograd_function
    def carbon_of_soil(ctx, litter, rates, stocks, kept=(0.3, 0.1)):
        c, k = np.array(stocks, float), rates.numpy()
        path, totals = [], []
        for fall in litter.numpy():
            path.append(c)
            lost = (1 - np.exp(-k)) * c
            c = c - lost + np.array([fall, kept[0] * lost[0], kept[1] * lost[1]])
            totals.append(c.sum())
        ctx.path, ctx.k, ctx.kept = path, k.copy(), kept
        return pb.asarray(np.array(totals))

    @carbon_of_soil.backward
    @pb.once_differentiable
    def _(ctx, g):
        stay, gn = np.exp(-ctx.k), g.numpy()
        back, by_k, by_litter = np.zeros(3), np.zeros(3), np.zeros(len(gn))
        for year in reversed(range(len(gn))):
            back = back + gn[year]
            by_litter[year] = back[0]
            passed = np.array([ctx.kept[0] * back[1], ctx.kept[1] * back[2], 0.0])
            by_k += (passed - back) * stay * ctx.path[year]
            back = back * stay + passed * (1 - stay)
        return {"litter": pb.asarray(by_litter), "rates": pb.asarray(by_k)}

    return carbon_of_soil


@BOOK.right(
    lambda rng: (
        (t(np.array([-1900.0, -250.0, 0.0, 900.0, 2600.0, 21500.0])), t(np.array(0.025))),
        {"years": np.array([0, 5, 15, 25, 40, 80]), "forever": True},
    )
)
def land_expectation():
    @pb.autograd_function
    def land_expectation(ctx, cash, interest, years, forever=False):
        """Value today of cash flows, per ha; forever: the rotation ends and starts over."""
        q = 1 + interest.item()
        discount = q ** -years.astype(float)
        value, by_q = cash.numpy() @ discount, -(cash.numpy() * years) @ discount / q
        scale = 1.0
        if forever:
            T = years.max()
            scale = 1 / (1 - q ** -T.astype(float))
            by_q = scale * by_q - value * scale**2 * T * q ** -(T + 1.0)
        ctx.by_cash, ctx.by_q = scale * discount, by_q
        return pb.asarray(np.asarray(scale * value))

    @land_expectation.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"cash": pb.asarray(g.item() * ctx.by_cash), "interest": g.item() * ctx.by_q}

    return land_expectation


PRICES = {"pulp": (2.5, 6.0, 38.0), "saw": (4.2, 15.0, 92.0), "veneer": (3.0, 30.0, 240.0)}


@BOOK.right(lambda rng: ((t(np.array([34.0, 27.5, 19.0, 11.0, 41.5])),), {"stump": 0.3}))
def bucked_value():
    @pb.autograd_function
    def bucked_value(ctx, dbh, stump=0.3, taper=0.9, assortments=PRICES):
        """Best value of each stem cut into logs, by dynamic programming over decimetres.

        dbh: (stems,) in cm; taper: cm a metre above 1.3 m. A log is paid by the square of its
        thin end's diameter, which must have the least diameter of its assortment.
        """
        D, slope, total = dbh.numpy(), np.zeros(len(dbh)), np.zeros(len(dbh))
        for i, d in enumerate(D):
            top = max(int(10 * (1.3 + d / taper - stump)), 0)
            best = [(0.0, 0.0)] * (top + 1)
            for end in range(1, top + 1):
                best[end] = best[end - 1]
                thin = d - taper * (stump + end / 10 - 1.3)
                for length, least, price in assortments.values():
                    start = end - round(10 * length)
                    if start < 0 or thin < least:
                        continue
                    rate = price * np.pi / 4 * length / 1e4
                    value = best[start][0] + rate * thin**2
                    if value > best[end][0]:
                        best[end] = value, best[start][1] + 2 * rate * thin
            total[i], slope[i] = best[top]
        ctx.slope = slope
        return pb.asarray(total)

    @bucked_value.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"dbh": pb.asarray(g.numpy() * ctx.slope)}

    return bucked_value


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 6, 9)), t(rng.uniform(0, 25, (9, 2))), t(np.array(4.0))),
        {"at": rng.uniform(0, 25, (7, 2))},
    )
)
def canopy_height():
    @pb.autograd_function
    def canopy_height(ctx, radius, place, peak, at, ground=0.0):
        """Height in m of the highest crown above points: (m, 2); ground where there is none.

        radius: (trees,), place: (trees, 2) in m; peak: height of a tree per m of its radius.
        """
        apart = at[:, None] - place.numpy()
        r, p = radius.numpy(), peak.item()
        part = (apart**2).sum(axis=-1) / r**2
        surface = np.where(part < 1, p * r * (1 - part / 2), -np.inf)
        ctx.tree = surface.argmax(axis=1)
        rows = np.arange(len(at))
        highest = surface[rows, ctx.tree]
        ctx.covered = highest > ground
        ctx.part, ctx.apart = part[rows, ctx.tree], apart[rows, ctx.tree]
        ctx.save_for_backward(radius=radius, p=p)
        return pb.asarray(np.where(ctx.covered, highest, ground))

    @canopy_height.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = np.where(ctx.covered, g.numpy(), 0.0)
        r, p = ctx.saved_variables.radius.numpy(), ctx.saved_variables.p
        by_r, by_place = np.zeros(len(r)), np.zeros((len(r), 2))
        np.add.at(by_r, ctx.tree, gn * p * (1 + ctx.part / 2))
        np.add.at(by_place, ctx.tree, (gn * p / r[ctx.tree])[:, None] * ctx.apart)
        by_peak = (gn * r[ctx.tree] * (1 - ctx.part / 2)).sum()
        return {"radius": pb.asarray(by_r), "place": pb.asarray(by_place), "peak": by_peak}

    return canopy_height


@BOOK.right(
    lambda rng: (
        (t(np.array([11.0, 14.5, 18.2, 21.0, 25.5, 27.0])), t(np.array(11.9))),
        {"planted": t(np.array(2400.0)), "loss": 0.08},
    )
)
def self_thinning():
    @pb.autograd_function
    def self_thinning(ctx, diameter, intercept, planted, loss=0.01, power=1.605):
        """Stems per ha by period; not more than Reineke's line allows at the mean diameter."""
        most = np.exp(intercept.item()) * diameter.numpy() ** -power
        n, stems, bound = planted.item(), [], []
        for limit in most:
            n *= 1 - loss
            bound.append(n > limit)
            n = min(n, limit)
            stems.append(n)
        ctx.save_for_backward(diameter=diameter, most=most, bound=np.array(bound))
        ctx.loss, ctx.power = loss, power
        return pb.asarray(np.array(stems))

    @self_thinning.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn, back = ctx.saved_variables, g.numpy(), 0.0
        by_log = np.zeros(len(gn))
        for k in range(len(gn) - 1, -1, -1):
            back += gn[k]
            if s.bound[k]:
                by_log[k] = back * s.most[k]
                back = 0.0
            back *= 1 - ctx.loss
        by_diameter = -ctx.power * by_log / s.diameter.numpy()
        return {
            "diameter": pb.asarray(by_diameter),
            "intercept": by_log.sum(),
            "planted": back,
        }

    return self_thinning


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 1, (4, 3))), t(rng.uniform(40, 520, 9))),
        {"plots": rng.normal(0, 1, (9, 3)), "k": 3},
    )
)
def imputed_volume():
    @pb.autograd_function
    def imputed_volume(ctx, pixels, volume, plots, k=5, eps=0.05):
        """Volume of pixels, (n, bands), from the k plots most like them: (plots, bands)."""
        apart = pixels.numpy()[:, None] - plots
        square = (apart**2).sum(axis=-1)
        near = np.argpartition(square, k - 1, axis=1)[:, :k]
        chosen = np.take_along_axis(square, near, axis=1)
        weight = 1 / (chosen + eps**2)
        total = weight.sum(axis=1, keepdims=True)
        ctx.share, ctx.weight, ctx.near = weight / total, weight, near
        ctx.apart = np.take_along_axis(apart, near[..., None], axis=1)
        ctx.save_for_backward(volume=volume)
        return pb.asarray((ctx.share * volume.numpy()[near]).sum(axis=1))

    @imputed_volume.backward
    @pb.once_differentiable
    def _(ctx, g):
        volume, gn = ctx.saved_variables.volume.numpy(), g.numpy()[:, None]
        by_volume = np.zeros_like(volume)
        np.add.at(by_volume, ctx.near, gn * ctx.share)
        known = volume[ctx.near]
        better = known - (ctx.share * known).sum(axis=1, keepdims=True)
        by_square = -gn * ctx.share * ctx.weight * better
        by_pixels = 2 * (by_square[..., None] * ctx.apart).sum(axis=1)
        return {"pixels": pb.asarray(by_pixels), "volume": pb.asarray(by_volume)}

    return imputed_volume
