"""Breweries: mash, hops, colour, fermentation, yeast, carbonation, water, kegs, recipes."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

import pullback as pb

from .entries import BATCH, FACTOR, SECOND, SIGN, Book, mends, t

BOOK = Book("breweries")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(10, 40, 3)), t(rng.uniform(0.04, 0.14, 3)), t(np.array(1.05))),
        {"minutes": np.array([60.0, 15.0, 5.0]), "volume": 20.0},
    ),
    "the derivative of the power by the gravity lacks the factor log(0.000125)",
    FACTOR + r"|multipl|divided by",
    r"\blog(?:arithm)?\b|np\.log|exponential|power rule|chain rule|base of the power",
    mends("np.log(0.000125)", "np.log(1.25e-4)", "np.log(BASE)"),
)
def tinseth_bitterness():
    @pb.autograd_function
    def tinseth_bitterness(ctx, grams, alpha, gravity, minutes, volume=20.0):
        """Bitterness in IBU of hops that are boiled for some minutes each, by Tinseth."""
        w, a, G = grams.numpy(), alpha.numpy(), gravity.item()
        bigness = 1.65 * 0.000125 ** (G - 1)
        boiled = (1 - np.exp(-0.04 * minutes)) / 4.15
        ctx.save_for_backward(w=w, a=a, boiled=boiled, bigness=bigness)
        ctx.volume = volume
        return pb.asarray(np.asarray(bigness * (boiled * a * w).sum() * 1000 / volume))

    @tinseth_bitterness.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        used = grad_output.item() * s.bigness * s.boiled * 1000 / ctx.volume
        return {
            "grams": pb.asarray(used * s.a),
            "alpha": pb.asarray(used * s.w),
            "gravity": (used * s.a * s.w).sum(),
        }

    return tinseth_bitterness


def tank(rng, yeast):
    return (t(np.array(12.0)), t(np.array(yeast)), t(rng.uniform(0.1, 0.2, 9))), {"dt": 0.5}


@BOOK.wrong(
    lambda rng: tank(rng, 0.4),
    "when the sugar runs out all of it is eaten, but its gradient is that of the yeast's appetite",
    r"runs? out|no sugar|(?:all|rest) of (?:the|it)|limited|depleted|exhausted|used up|\bempty\b",
    r"\bminimum\b|\bnp\.minimum\b|\bbranch|\beaten\b|(?:is|was) left\b|appetite|\bclamp",
    mends("s.starved", "ctx.starved", "if starved", "s.limited", "ctx.limited", "if limited"),
    where="the sugar runs out",
    shows=lambda rng: tank(rng, 8.0),
)
def fermentation_path():
    class FermentationPath(pb.Function):
        """Sugar left at each step, as yeast eats and grows; vigour: (steps,) by temperature."""

        @staticmethod
        def forward(ctx, sugar, yeast, vigour, dt=1.0, gain=0.08):
            S, Y, mu = sugar.item(), yeast.item(), vigour.numpy()
            left, cells = [], []
            for k in range(len(mu)):
                cells.append(Y)
                eaten = min(dt * 5 * mu[k] * Y, S)
                S -= eaten
                Y += gain * eaten
                left.append(S)
            ctx.save_for_backward(mu=mu, cells=cells)
            ctx.dt, ctx.gain = dt, gain
            return pb.asarray(np.array(left))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            mu, cells = ctx.saved_variables
            gn, by_mu = grad_output.numpy(), np.zeros_like(mu)
            to_S = to_Y = 0.0
            for k in reversed(range(len(mu))):
                to_S += gn[k]
                to_eaten = ctx.gain * to_Y - to_S
                by_mu[k] = to_eaten * ctx.dt * 5 * cells[k]
                to_Y += to_eaten * ctx.dt * 5 * mu[k]
            return to_S, to_Y, pb.asarray(by_mu), None, None

    return FermentationPath.apply


def kettles(rng, beers):
    return t(rng.uniform(0.5, 5, (beers, 3))), t(np.array([3.5, 60.0, 350.0])), t(np.array(22.0))


@BOOK.wrong(
    lambda rng: (kettles(rng, 1), {}),
    "for a batch of several beers the volume's gradient is the mean over them and not the sum",
    BATCH,
    r"\bmean\b|\baverage|\bsum(?:med)? over|several (?:beers|rows)|more than one (?:beer|row)",
    r"number of (?:beers|rows)|divided by",
    mends("-(flow * colour / V).sum()", "flow.sum()", "per_litre.sum()", ".sum() / s.V"),
    where="there is more than one beer",
    shows=lambda rng: (kettles(rng, 4), {}),
)
def morey_colour():
    def forward(ctx, kilos, malt_colour, volume):
        """Colours (SRM) of beers by Morey; kilos: (beers, malts), malt_colour: (malts,)."""
        w, c, V = kilos.numpy(), malt_colour.numpy(), volume.item()
        mcu = 8.345 * (w @ c) / V
        ctx.save_for_backward(w=w, c=c, V=V, mcu=mcu)
        return pb.asarray(1.4922 * mcu**0.6859)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        w, c, V, mcu = ctx.saved_variables
        flow = grad_output.numpy() * 1.4922 * 0.6859 * mcu ** (0.6859 - 1)
        per_litre = 8.345 / V * flow
        return {
            "kilos": pb.asarray(np.outer(per_litre, c)),
            "malt_colour": pb.asarray(per_litre @ w),
            "volume": -(flow * mcu).mean() / V,
        }

    return pb.autograd_function(forward, backward, name="morey_colour")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.8, 2.5, 5)), t(rng.uniform(1, 15, 5))), {}),
    "backward leaves the graph with plain arrays, so the second derivative loses a part",
    SECOND,
    r"detach|leaves? the graph",
    where="second derivative",
)
def dissolved_gas():
    @pb.autograd_function
    def dissolved_gas(ctx, pressure, temperature):
        """Volumes of CO2 in beer at a pressure in bar and a temperature in degrees."""
        ctx.save_for_backward(pressure=pressure, temperature=temperature)
        solubility = (2617.25 / (temperature + 273.15) - 10.73797).exp()
        return (pressure + 1.013) * solubility * 0.9 + 0.01 * pressure**2

    @dissolved_gas.backward
    def _(ctx, grad_output):
        s = ctx.saved_variables
        kelvin = s.temperature + 273.15
        solubility = pb.asarray(np.exp(2617.25 / kelvin.detach().numpy() - 10.73797))
        by_temperature = -(s.pressure + 1.013) * 0.9 * solubility * 2617.25 / kelvin**2
        return {
            "pressure": grad_output * (0.9 * solubility + 0.02 * s.pressure),
            "temperature": grad_output * by_temperature,
        }

    return dissolved_gas


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.05, 0.14, 4)), t(rng.uniform(-5, 20, 4)), t(np.array(0.25))),
        {"days": np.array([30.0, 90.0, 180.0, 365.0])},
    ),
    "hops lose more when it is warmer: the gradient of the temperature has the wrong sign",
    SIGN,
    mends("-flow * lost", "-(flow", "-flow *", "-np.log(2)", "-doubled"),
)
def stored_hops():
    @pb.autograd_function
    def stored_hops(ctx, alpha, temperature, loss, days, wrapping=0.75):
        """Alpha acids left in hops; loss: part that is lost in six months at 20 degrees."""
        k = -np.log1p(-loss.item()) / 182.5
        faster = 2.0 ** ((temperature.numpy() - 20) / 15)
        exposure = faster * wrapping * days
        left = np.exp(-k * exposure)
        ctx.save_for_backward(a=alpha.numpy(), k=k, exposure=exposure, left=left)
        ctx.kept = 1 - loss.item()
        return pb.asarray(alpha.numpy() * left)

    @stored_hops.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        gn = grad_output.numpy() * s.left
        flow = gn * s.a * s.exposure
        return {
            "alpha": pb.asarray(gn),
            "temperature": pb.asarray(flow * s.k * np.log(2) / 15),
            "loss": -flow.sum() / (182.5 * ctx.kept),
        }

    return stored_hops


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(10, 18, 4)), t(rng.uniform(4, 8, 4))), {}),
    "the quadratic and cubic terms are differentiated without their exponents 2 and 3 in front",
    FACTOR + r"|multipl|divided by",
    r"power rule|exponents?\b|polynomial|polyder|polyval|quadratic|cubic",
    mends(
        "2 * C[3]",
        "3 * C[5]",
        "2 * C[4]",
        "3 * C[6]",
        "np.polyder",
        "polyder(",
        "C[3] * 2",
        "C[5] * 3",
    ),
)
def refractometer_gravity():
    C = (1.0, -0.0044993, 0.0117741, 0.000275806, -0.00127169, -7.27999e-6, 6.32929e-5)

    @pb.autograd_function
    def refractometer_gravity(ctx, first, last, correction=1.04):
        """Points of final gravity (times 1000) from refractometer readings in Brix."""
        i, f = first.numpy() / correction, last.numpy() / correction
        ctx.save_for_backward(i=i, f=f)
        ctx.correction = correction
        gravity = C[0] + C[1] * i + C[2] * f + C[3] * i**2 + C[4] * f**2 + C[5] * i**3 + C[6] * f**3
        return pb.asarray(1000 * (gravity - 1))

    @refractometer_gravity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        i, f = ctx.saved_variables
        flow = 1000 * grad_output.numpy() / ctx.correction
        by_first = C[1] + C[3] * i + C[5] * i**2
        by_last = C[2] + C[4] * f + C[6] * f**2
        return pb.asarray(flow * by_first), pb.asarray(flow * by_last), None

    return refractometer_gravity


SALTS = np.array([[0.2328, 0.0, 0.5579], [0.0, 0.0986, 0.3897], [0.2726, 0.0, 0.0]])


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 4, 3)), t(np.array([60.0, 10.0, 30.0])), t(np.array(140.0))),
        {"litres": 25.0},
    )
)
def residual_alkalinity():
    @pb.autograd_function
    def residual_alkalinity(ctx, grams, source, bicarbonate, litres=20.0):
        """Ions (Ca, Mg, SO4) in mg/l after salts are added, and the residual alkalinity."""
        ctx.per_gram = SALTS * 1000 / litres
        ions = source + grams @ pb.asarray(ctx.per_gram)
        return ions, bicarbonate * 0.8202 - ions[0] / 1.4 - ions[1] / 1.7

    @residual_alkalinity.backward
    def _(ctx, g_ions, g_alkalinity):
        by_ions = g_ions - g_alkalinity * pb.asarray(np.array([1 / 1.4, 1 / 1.7, 0.0]))
        return {
            "grams": pb.asarray(ctx.per_gram) @ by_ions,
            "source": by_ions,
            "bicarbonate": 0.8202 * g_alkalinity,
        }

    return residual_alkalinity


@BOOK.right(
    lambda rng: ((t(rng.uniform(2, 6, 3)), t(rng.uniform(-4, 2, 4)), t(rng.uniform(1, 4, 2))), {})
)
def mash_ph():
    MALTS = np.array([5.75, 5.4, 4.7])
    BUFFER = np.array([38.0, 52.0, 70.0])

    @pb.autograd_function
    def mash_ph(ctx, kilos, alkalinity, acid, strength=11.8):
        """pH of mashes: (waters, acids), where malts, water and lactic acid balance."""
        w = kilos.numpy()

        def charge(pH, water, ml):
            return w @ (BUFFER * (pH - MALTS)) - water + strength * ml / (1 + 10 ** (3.86 - pH))

        pH = np.empty((len(alkalinity), len(acid)))
        for i, j in np.ndindex(*pH.shape):
            given = (alkalinity.numpy()[i] * 10, acid.numpy()[j])
            pH[i, j] = optimize.brentq(charge, 1.0, 9.0, args=given, xtol=1e-13, rtol=1e-14)
        part = 1 / (1 + 10 ** (3.86 - pH))
        ctx.save_for_backward(w=w, pH=pH, part=part, ml=acid.numpy())
        ctx.strength = strength
        return pb.asarray(pH.copy())

    @mash_ph.backward
    @pb.once_differentiable
    def _(ctx, g):
        w, pH, part, ml = ctx.saved_variables
        slope = w @ BUFFER + ctx.strength * ml * np.log(10) * part * (1 - part)
        flow = -g.numpy() / slope
        by_kilos = [b * (flow * (pH - m)).sum() for b, m in zip(BUFFER, MALTS, strict=True)]
        return {
            "kilos": pb.asarray(np.array(by_kilos)),
            "alkalinity": pb.asarray(-10 * flow.sum(axis=1)),
            "acid": pb.asarray(ctx.strength * (flow * part).sum(axis=0)),
        }

    return mash_ph


@BOOK.right(
    lambda rng: (
        (t(np.array([62.0, 66.0, 72.0]) + rng.random(3)), t(np.array(180.0)), t(np.array(0.04))),
        {"minutes": [30, 20, 15]},
    )
)
def mash_conversion():
    class MashConversion(pb.Function):
        """Starch that is left after rests, and the enzyme, which heat destroys meanwhile."""

        @staticmethod
        def forward(ctx, rests, starch, enzyme, minutes, scale=0.9):
            T, S, E = rests.numpy(), starch.item(), enzyme.item()
            ctx.steps = []
            for k in np.repeat(np.arange(len(T)), minutes):
                rate = scale * np.exp((T[k] - 65) / 12)
                death = 0.01 * np.exp((T[k] - 65) / 4)
                ctx.steps.append((k, S, E, rate, death))
                S, E = S / (1 + rate * E), E / (1 + death)
            ctx.rests = len(T)
            return pb.asarray(np.asarray(S)), pb.asarray(np.asarray(E))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_starch, g_enzyme):
            to_S, to_E, by_T = g_starch.item(), g_enzyme.item(), np.zeros(ctx.rests)
            for k, S, E, rate, death in reversed(ctx.steps):
                slowed, lost = 1 + rate * E, 1 + death
                by_rate = -to_S * S * E / slowed**2
                by_T[k] += by_rate * rate / 12 - to_E * E / lost**2 * death / 4
                to_E = to_E / lost - to_S * S * rate / slowed**2
                to_S /= slowed
            return pb.asarray(by_T), to_S, to_E, None, None

    return MashConversion.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 60, 4)), t(rng.uniform(20, 60, 4))),
        {"minutes": np.array([60, 20, 0, 0]), "dry": np.array([0, 0, 0, 1], bool)},
    )
)
def hop_aroma():
    @pb.autograd_function
    def hop_aroma(ctx, grams, oil, minutes, dry=None, half_life=9):
        """Oil in beer by addition, saturating; dry hops are not boiled and all goes in."""
        cold = np.zeros(len(minutes), bool) if dry is None else dry
        kept = np.where(cold, 1.0, 0.6 * 0.5 ** (minutes / half_life))
        extracted = kept * grams.numpy() * oil.numpy() / 1000
        total = extracted.sum()
        ctx.save_for_backward(grams=grams.numpy(), oil=oil.numpy(), kept=kept, x=extracted)
        ctx.below = 1 + total
        return pb.asarray(extracted / ctx.below)

    @hop_aroma.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy() / ctx.below
        by_x = (gn - gn @ s.x / ctx.below) * s.kept / 1000
        return {"grams": pb.asarray(by_x * s.oil), "oil": pb.asarray(by_x * s.grams)}

    return hop_aroma


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 6, 3)), t(np.array([70.0, 12.0, 110.0]))),
        {"basis": np.array([[0.8, 0.1, 0.3], [0.1, 0.9, 0.2], [0.2, 0.1, 0.9], [0.5, 0.2, 0.1]])},
    )
)
def blended_recipe():
    def forward(ctx, weights, target, basis):
        """Non-negative amounts of four beers that come nearest a profile of three flavours."""
        root = np.sqrt(weights.numpy())
        amounts, _ = optimize.nnls(basis.T * root[:, None], target.numpy() * root)
        used = amounts > 0
        B, W = basis.T[:, used], weights.numpy()
        ctx.save_for_backward(B=B, W=W, used=used, amounts=amounts, target=target.numpy())
        return pb.asarray(amounts.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        B, W, used, amounts, target = ctx.saved_variables
        normal = B.T @ (B * W[:, None])
        back = B @ np.linalg.solve(normal, g.numpy()[used])
        residual = target - B @ amounts[used]
        return {"weights": pb.asarray(back * residual), "target": pb.asarray(back * W)}

    return pb.autograd_function(forward, backward, name="blended_recipe")


@BOOK.right(
    lambda rng: ((t(rng.uniform(1, 3, 4)), t(rng.uniform(0.5, 3, 4)), t(np.array(0.006))), {})
)
def pouring_time():
    @pb.autograd_function
    def pouring_time(ctx, pressure, length, radius, rise=0.5, glass=0.4):
        """Seconds to pour a glass through a line, laminar; no flow gives a limit of 120 s."""
        net = np.maximum(pressure.numpy() - 0.1 * rise, 0.0)
        r, L = radius.item(), length.numpy()
        flow = 5e10 * net * r**4 / (8 * 1.8 * L) + glass / 120
        ctx.save_for_backward(net=net, L=L, r=r, seconds=glass / flow)
        ctx.bare = 5e10 * r**4 / (8 * 1.8 * L)
        ctx.glass = glass
        return pb.asarray(glass / flow)

    @pouring_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        net, L, r, seconds = ctx.saved_variables
        by_flow = -g.numpy() * seconds**2 / ctx.glass
        moved = by_flow * net * ctx.bare
        return {
            "pressure": pb.asarray(by_flow * ctx.bare * (net > 0)),
            "length": pb.asarray(-moved / L),
            "radius": 4 * moved.sum() / r,
        }

    return pouring_time


@BOOK.right(
    lambda rng: ((t(np.array(20.0)), t(np.array(2.4)), t(np.array(18.5))), {"sugar": "dextrose"})
)
def priming_sugar():
    @pb.autograd_function
    def priming_sugar(ctx, litres, volumes, temperature, sugar="sucrose"):
        """Grams of a sugar with which bottled beer gets its volumes of CO2."""
        grams = {"sucrose": 3.82, "dextrose": 4.20, "dry malt": 5.62}
        if sugar not in grams:
            raise ValueError(f"no such sugar: {sugar!r}")
        ctx.save_for_backward(litres, volumes, temperature)
        ctx.per_volume = grams[sugar]
        residual = 1.57 * pb.exp(-0.0283 * temperature)
        return ctx.per_volume * litres * (volumes - residual)

    @priming_sugar.backward
    def _(ctx, g):
        litres, volumes, temperature = ctx.saved_variables
        residual = 1.57 * pb.exp(-0.0283 * temperature)
        flow = g * ctx.per_volume
        return flow * (volumes - residual), flow * litres, 0.0283 * flow * litres * residual, None

    return priming_sugar


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(5, 40, 5)), t(np.array(7.0)), t(np.array(0.5))),
        {"counts": np.array([0, 4, 9, 3, 12]), "squares": np.array([5, 5, 25, 5, 25])},
    )
)
def viability_nll():
    @pb.autograd_function
    def viability_nll(ctx, age, half, steepness, counts, squares, cells=3):
        """Negative log likelihood of counts of live yeast cells in squares of a chamber."""
        x = steepness.item() * (np.log(age.numpy()) - np.log(half.item()))
        alive, trials = special.expit(-x), squares * cells
        ctx.save_for_backward(age=age.numpy(), half=half.item(), s=steepness.item(), x=x)
        ctx.residual = counts - trials * alive
        dead = trials - counts
        return pb.asarray(
            np.asarray((counts * np.logaddexp(0, x)).sum() + dead @ np.logaddexp(0, -x))
        )

    @viability_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        age, half, s, x = ctx.saved_variables
        by_x = g.item() * ctx.residual
        return {
            "age": pb.asarray(by_x * s / age),
            "half": -by_x.sum() * s / half,
            "steepness": by_x @ x / s,
        }

    return viability_nll
