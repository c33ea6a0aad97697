"""Thermodynamics: equations of state, phase equilibrium, cycles, heat exchange, solids, flames."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import FACTOR, MAGNITUDE, TRANSPOSED, Book, mends, t

BOOK = Book("thermodynamics")
GAS_CONSTANT = 8.314462618


@BOOK.wrong(
    lambda rng: (
        (
            t(np.array([0.5, 0.3, 0.2]) + 0.02 * rng.normal(size=3)),
            t(np.array(1.5)),
            t(np.array([2.5, 5.2, 9.6])),
            t(np.array([0.027, 0.040, 0.056])),
        ),
        {"temperature": 350.0, "interaction": 0.08},
    ),
    "the mixture's attraction is quadratic in the fractions: its gradient lacks the factor 2",
    FACTOR + r"|doubl",
    r"quadratic|both (?:indices|sides|places)|symmetric|\btwo equal terms\b",
    mends(
        "2 * by_attraction * s.inner",
        "by_attraction * 2 * s.inner",
        "by_attraction * s.inner * 2",
        "2 * s.inner",
        "2.0 * by_attraction * s.inner",
        "s.inner * 2",
    ),
)
def mixture_pressure():
    @pb.autograd_function
    def mixture_pressure(
        ctx, fractions, volume, attraction, covolume, temperature=298.15, interaction=0.0
    ):
        """Pressure of a mixture by Peng and Robinson, in bar, with L/mol for volumes.

        interaction: of any two different components; attraction: (n,) in bar L2/mol2.
        """
        x, v, a = fractions.numpy(), volume.item(), attraction.numpy()
        pairs = np.sqrt(np.outer(a, a)) * (1 - interaction * (1 - np.eye(len(a))))
        inner = pairs @ x
        am, bm = x @ inner, x @ covolume.numpy()
        if v <= bm:
            raise ValueError("volume must exceed the covolume")
        RT, below = 0.01 * GAS_CONSTANT * temperature, v**2 + 2 * bm * v - bm**2
        ctx.save_for_backward(x=x, v=v, a=a, b=covolume.numpy(), inner=inner, am=am, bm=bm)
        ctx.RT, ctx.below = RT, below
        return pb.asarray(np.array(RT / (v - bm) - am / below))

    @mixture_pressure.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, scale = ctx.saved_variables, g.item()
        hard, soft = ctx.RT / (s.v - s.bm) ** 2, s.am / ctx.below**2
        by_attraction = -scale / ctx.below
        by_covolume = scale * (hard + soft * 2 * (s.v - s.bm))
        return {
            "fractions": pb.asarray(by_attraction * s.inner + by_covolume * s.b),
            "volume": scale * (soft * 2 * (s.v + s.bm) - hard),
            "attraction": pb.asarray(by_attraction * s.x * s.inner / s.a),
            "covolume": pb.asarray(by_covolume * s.x),
        }

    return mixture_pressure


def feed(rng, ratios):
    amounts = np.array([0.3, 0.4, 0.3]) + 0.02 * rng.normal(size=3)
    return (t(amounts), t(np.array(ratios) * rng.uniform(0.95, 1.05, 3))), {}


@BOOK.wrong(
    lambda rng: feed(rng, [4.0, 1.2, 0.3]),
    "with one phase alone the vapour fraction is held at 0 or 1, and yet it gets a gradient",
    r"single.phase|one phase|two.phase|\bonly (?:one|vapour|liquid)|superheat|sub.?cool|all vapour",
    r"\bclip|\bclamp|\bheld\b|\bbound|\bbranch\b|\blimit|saturat|\bconstant\b",
    r"(?:should|must|expected|ought to)(?: be)? (?:0|zero)\b|\broot\b|early return",
    mends(
        "0 < s.beta < 1",
        "0.0 < s.beta < 1.0",
        "s.beta in (0.0, 1.0)",
        "s.beta > 0",
        "s.beta < 1",
        "s.beta == 0",
        "s.beta == 1",
        "to_beta = 0",
        "two_phase",
    ),
    where="one phase alone",
    shows=lambda rng: feed(rng, [4.0, 2.2, 1.3]),
)
def isothermal_flash():
    class IsothermalFlash(pb.Function):
        """Vapour fraction and the liquid's composition by Rachford and Rice."""

        @staticmethod
        def forward(ctx, feed, ratios):
            z, lift = feed.numpy(), ratios.numpy() - 1

            def balance(beta):
                return (z * lift / (1 + beta * lift)).sum()

            if balance(0.0) <= 0:
                beta = 0.0
            elif balance(1.0) >= 0:
                beta = 1.0
            else:
                beta = optimize.brentq(balance, 0.0, 1.0, xtol=1e-15, rtol=1e-14)
            parts = 1 + beta * lift
            ctx.save_for_backward(z=z, lift=lift, beta=beta, parts=parts)
            return pb.asarray(np.array(beta)), pb.asarray(z / parts)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_beta, g_liquid):
            s, g = ctx.saved_variables, g_liquid.numpy()
            steepness = (s.z * s.lift**2 / s.parts**2).sum()
            to_beta = g_beta.item() - (g * s.z * s.lift / s.parts**2).sum()
            to_beta /= steepness
            return {
                "feed": pb.asarray(g / s.parts + to_beta * s.lift / s.parts),
                "ratios": pb.asarray(s.z * (to_beta - g * s.beta) / s.parts**2),
            }

    return IsothermalFlash.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(6, 20, 4)), t(rng.uniform(285, 305, 4)), t(rng.uniform(1300, 1600, 4))),
        {"compressor": 0.85, "gamma": 1.38},
    ),
    "the compressor's power of the pressure ratio keeps its exponent: it is not lowered by one",
    r"\bexponent|power rule|\bpower\b.{0,25}(?:one|1|lower|high|off)|raised",
    FACTOR,
    r"(?:multiplied|divided) by|division",
    mends(
        "s.k * s.rise / s.r",
        "s.rise * s.k / s.r",
        "s.k / s.r * s.rise",
        "s.r ** (s.k - 1)",
        "s.rise / s.r",
        "/ s.compressor / s.r",
        "(s.compressor * s.r)",
    ),
)
def brayton_work():
    CP = 1.005

    @pb.autograd_function
    def brayton_work(ctx, pressure_ratio, inlet, peak, compressor=0.88, turbine=0.9, *, gamma=1.4):
        """Net work of a gas turbine in kJ/kg and the temperature of its exhaust in K."""
        r, T1, T3 = pressure_ratio.numpy(), inlet.numpy(), peak.numpy()
        if (r <= 1).any():
            raise ValueError("the pressure ratio must exceed 1")
        k = (gamma - 1) / gamma
        rise = r**k
        drop = turbine * (1 - 1 / rise)
        ctx.save_for_backward(r=r, T1=T1, T3=T3, rise=rise, drop=drop, k=k, compressor=compressor)
        ctx.turbine = turbine
        work = CP * (T3 * drop - T1 * (rise - 1) / compressor)
        return pb.asarray(work), pb.asarray(T3 * (1 - drop))

    @brayton_work.backward
    @pb.once_differentiable
    def _(ctx, g_work, g_exhaust):
        s, gw = ctx.saved_variables, CP * g_work.numpy()
        to_drop = (gw - g_exhaust.numpy()) * s.T3
        by_drop = ctx.turbine * s.k * s.r ** (-s.k - 1)
        by_compression = s.T1 * s.k * s.rise / s.compressor
        return (
            pb.asarray(to_drop * by_drop - gw * by_compression),
            pb.asarray(-gw * (s.rise - 1) / s.compressor),
            pb.asarray(gw * s.drop + g_exhaust.numpy() * (1 - s.drop)),
            None,
            None,
            None,
        )

    return brayton_work


@BOOK.wrong(
    lambda rng: ((t(rng.dirichlet(np.full(4, 5.0))), t(rng.uniform(0.2, 1.6, (4, 4)))), {}),
    "the sum over the other components goes back through the matrix where its transpose belongs",
    TRANSPOSED,
    r"rows? (?:and|for|instead of|where|vs) columns?|columns? (?:and|for|instead of|where) rows?",
    mends(
        "-(lam @ gn)",
        "-lam @ gn",
        "-gn @ lam.T",
        "lam.dot(gn)",
        "np.dot(lam, gn)",
        "lam @ gn",
    ),
)
def wilson_activity():
    def forward(ctx, x, lam):
        """Logarithms of the activity coefficients by Wilson's equation; x: (n,), lam: (n, n)."""
        S = lam.numpy() @ x.numpy()
        share = x.numpy() / S
        ctx.save_for_backward(x=x, lam=lam, S=S, share=share)
        return pb.asarray(1 - np.log(S) - share @ lam.numpy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        x, lam = s.x.numpy(), s.lam.numpy()
        to_share = -(gn @ lam)
        to_S = -(gn + to_share * s.share) / s.S
        return {
            "x": pb.asarray(to_share / s.S + to_S @ lam),
            "lam": pb.asarray(np.outer(to_S, x) - np.outer(s.share, gn)),
        }

    return pb.autograd_function(forward, backward, name="wilson_activity")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(250, 900, 5)), t(np.array([960.0, 1930.0, 3380.0]))),
        {"degeneracy": np.array([2.0, 1.0, 1.0])},
    ),
    "far below a mode's temperature the exponential overflows and the gradient is NaN",
    MAGNITUDE,
    r"\bcold\b|low temperature|inf ?/ ?inf|numerically (?:un)?stable|underflow",
    mends(
        "np.exp(-s.x)",
        "np.expm1(-s.x)",
        "np.tanh(s.x / 2)",
        "np.sinh(s.x / 2)",
        "np.tanh(0.5 * s.x)",
    ),
    where="temperature far below that of a mode",
    shows=lambda rng: (
        (t(np.array([4.2, 77.0, 600.0])), t(np.array([3350.0, 5300.0]))),
        {},
    ),
)
def vibrational_heat_capacity():
    @pb.autograd_function
    def vibrational_heat_capacity(ctx, temperature, modes, degeneracy=None):
        """Heat capacity of a molecule's vibrations in J/mol/K; modes: (m,) as temperatures."""
        T, theta = temperature.numpy()[:, None], modes.numpy()
        weight = np.ones_like(theta) if degeneracy is None else degeneracy
        x = theta / T
        fall = np.exp(-x)
        ctx.save_for_backward(T=T, x=x, weight=weight)
        return pb.asarray(GAS_CONSTANT * (x**2 * fall / (1 - fall) ** 2) @ weight)

    @vibrational_heat_capacity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        with np.errstate(over="ignore", invalid="ignore"):
            rise = np.exp(s.x)
            slope = s.x * rise * (2 * (rise - 1) - s.x * (rise + 1)) / (rise - 1) ** 3
        by_x = GAS_CONSTANT * grad_output.numpy()[:, None] * slope * s.weight
        return {
            "temperature": pb.asarray(-(by_x * s.x / s.T).sum(axis=1)),
            "modes": pb.asarray((by_x / s.T).sum(axis=0)),
        }

    return vibrational_heat_capacity


def streams(rng, hot, cold):
    return (
        t(np.array(hot) * rng.uniform(0.95, 1.05, 3)),
        t(np.array(cold) * rng.uniform(0.95, 1.05, 3)),
        t(rng.uniform(1.5, 4.0, 3)),
        t(rng.uniform(360, 420, 3)),
        t(rng.uniform(280, 310, 3)),
    ), {}


@BOOK.wrong(
    lambda rng: streams(rng, [1.2, 1.5, 2.0], [2.4, 2.1, 3.5]),
    "backward takes the hot stream for the weaker one: where the cold one is, they are swapped",
    r"\bswap|exchanged|interchang|each other's|the other (?:stream|one)",
    r"\b(?:smaller|larger|weaker|lesser|minimum|lower|greater|min|max)\b|\bbranch\b",
    mends(
        "np.where(s.hot_is_least",
        "np.where(hot_is_least",
        "np.where(s.least == s.hot",
        "np.where(~s.hot_is_least",
        "s.hot_is_least, by_least, by_most",
    ),
    where="the cold stream has the smaller capacity rate",
    shows=lambda rng: streams(rng, [1.2, 2.9, 4.0], [2.4, 2.1, 1.5]),
)
def counterflow_exchanger():
    class Counterflow(pb.Function):
        """Heat passed between two streams in counterflow, by effectiveness and transfer units.

        hot, cold: capacity rates in kW/K; conductance: kW/K; hot_inlet, cold_inlet: K.
        """

        @staticmethod
        def forward(ctx, hot, cold, conductance, hot_inlet, cold_inlet):
            least = np.minimum(hot.numpy(), cold.numpy())
            most = np.maximum(hot.numpy(), cold.numpy())
            UA, span = conductance.numpy(), hot_inlet.numpy() - cold_inlet.numpy()
            if (least == most).any():
                raise ValueError("streams of equal capacity rates are another formula's")
            E, r = np.exp(-UA * (1 / least - 1 / most)), least / most
            rate = least * (1 - E) / (1 - r * E)
            ctx.save_for_backward(least=least, most=most, UA=UA, span=span, E=E, r=r, rate=rate)
            return pb.asarray(rate * span)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s, gn = ctx.saved_variables, grad_output.numpy()
            D = 1 - s.r * s.E
            by_r = s.least * (1 - s.E) * s.E / D**2
            by_log_E = s.least * (s.r - 1) / D**2 * s.E
            by_least = s.rate / s.least + by_r / s.most + by_log_E * s.UA / s.least**2
            by_most = -by_r * s.r / s.most - by_log_E * s.UA / s.most**2
            by_UA = -by_log_E * (1 / s.least - 1 / s.most)
            flow = gn * s.span
            return {
                "hot": pb.asarray(flow * by_least),
                "cold": pb.asarray(flow * by_most),
                "conductance": pb.asarray(flow * by_UA),
                "hot_inlet": pb.asarray(gn * s.rate),
                "cold_inlet": pb.asarray(-gn * s.rate),
            }

    return Counterflow.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([300.0, 900.0, 1700.0, 2500.0, 2950.0]) + 20 * rng.normal(size=5)),
            t(np.array([417.0, 505.0, 605.0, 670.0, 762.0])),
            t(np.array([2675.0, 2707.0, 2738.0, 2756.0, 2778.0])),
        ),
        {"spread": np.array([6.06, 5.6, 5.06, 4.76, 4.33])},
    )
)
def steam_state():
    @pb.autograd_function
    def steam_state(ctx, enthalpy, liquid, vapour, spread=1.0):
        """Quality of steam, entropy above the boiling liquid's, and the region: -1, 0 or 1.

        liquid, vapour: enthalpies at saturation; spread: entropy of evaporation.
        """
        latent = vapour.numpy() - liquid.numpy()
        if (latent <= 0).any():
            raise ValueError("the vapour's enthalpy must exceed the liquid's")
        part = (enthalpy.numpy() - liquid.numpy()) / latent
        quality = np.clip(part, 0.0, 1.0)
        region = (part > 1).astype(int) - (part < 0)
        ctx.latent, ctx.quality, ctx.spread, ctx.wet = latent, quality, spread, region == 0
        return pb.asarray(quality.copy()), pb.asarray(quality * spread), pb.asarray(region)

    @steam_state.backward
    @pb.once_differentiable
    def _(ctx, g_quality, g_entropy, g_region):
        flow = ctx.wet * (g_quality.numpy() + ctx.spread * g_entropy.numpy()) / ctx.latent
        return {
            "enthalpy": pb.asarray(flow),
            "liquid": pb.asarray(flow * (ctx.quality - 1)),
            "vapour": pb.asarray(-flow * ctx.quality),
        }

    return steam_state


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.28, 0.34, 4)), t(rng.uniform(0.03, 0.05, 4))),
        {"phase": "liquid"},
    )
)
def compressibility():
    def forward(ctx, A, B, phase="vapour"):
        """Root of Z**3 - Z**2 + (A - B - B**2) Z - A B: the largest, or the least above B."""
        pick = {"vapour": max, "liquid": min}[phase]
        Z = []
        for a, b in zip(A.numpy(), B.numpy(), strict=True):
            roots = np.roots([1.0, -1.0, a - b - b * b, -a * b])
            Z.append(pick(z.real for z in roots if abs(z.imag) < 1e-9 and z.real > b))
        Z = np.array(Z)
        ctx.save_for_backward(A=A, B=B, Z=Z)
        return pb.asarray(Z.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        A, B = ctx.saved_variables.A.numpy(), ctx.saved_variables.B.numpy()
        Z = ctx.saved_variables.Z
        scale = grad_output.numpy() / (3 * Z**2 - 2 * Z + A - B - B**2)
        return {
            "A": pb.asarray(scale * (B - Z)),
            "B": pb.asarray(scale * (A + Z * (1 + 2 * B))),
        }

    return pb.autograd_function(forward, backward, name="compressibility")


@BOOK.right(lambda rng: ((t(rng.uniform(30, 500, 6)), t(np.array(343.0))), {"order": 48}))
def debye_heat_capacity():
    def integrand(x):
        fall = np.exp(-x)
        return x**4 * fall / np.expm1(-x) ** 2

    @pb.autograd_function
    def debye_heat_capacity(ctx, temperature, debye, order=64):
        """Heat capacity of a crystal in J/mol/K by quadrature with `order` nodes."""
        T, theta = temperature.numpy(), debye.item()
        if (T <= 0).any() or theta <= 0:
            raise ValueError("temperatures must be positive")
        nodes, weights = np.polynomial.legendre.leggauss(order)
        y = theta / T
        points = 0.5 * y[:, None] * (nodes + 1)
        part = 3 / y**3 * (0.5 * y * (integrand(points) @ weights))
        ctx.save_for_backward(T=T, theta=theta, y=y, part=part)
        return pb.asarray(3 * GAS_CONSTANT * part)

    @debye_heat_capacity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        T, theta, y, part = ctx.saved_variables
        # the integral's upper end moves: Leibniz, not a derivative of the quadrature
        by_y = 3 * GAS_CONSTANT * grad_output.numpy() * 3 * (integrand(y) / y**3 - part / y)
        return {"temperature": pb.asarray(-by_y * y / T), "debye": (by_y * y).sum() / theta}

    return debye_heat_capacity


@BOOK.right(
    lambda rng: (
        (
            t(np.array([1.0, 2.0, 7.52]) * rng.uniform(0.9, 1.1, 3)),
            t(np.array(802.3)),
            t(np.array([[44.6, 9.5], [34.1, 8.0], [28.9, 3.4]])),
        ),
        {"excess": np.array([0.0, 0.0, 1.5])},
    )
)
def flame_temperature():
    REFERENCE = 298.15

    class FlameTemperature(pb.Function):
        """Adiabatic temperature of burnt gases, by Newton.

        moles: (n,); heat: kJ; capacity: (n, 2) in J/mol/K, at 0 K and its rise by 1000 K.
        """

        @staticmethod
        def forward(moles, heat, capacity, excess=0.0, tol=1e-12):
            total = (moles.numpy() + excess) @ capacity.numpy() * [1e-3, 1e-6]
            T = 2000.0
            for _ in range(50):
                gap = total[0] * (T - REFERENCE) + 0.5 * total[1] * (T**2 - REFERENCE**2)
                step = (heat.item() - gap) / (total[0] + total[1] * T)
                T += step
                if abs(step) < tol * T:
                    break
            else:
                raise ArithmeticError("flame_temperature: no convergence")
            return pb.asarray(np.array(T))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(moles=inputs[0], capacity=inputs[2], T=output)
            ctx.excess = inputs[3] if len(inputs) > 3 else 0.0

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            T, present = s.T.item(), s.moles.numpy() + ctx.excess
            powers = np.array([1e-3 * (T - REFERENCE), 0.5e-6 * (T**2 - REFERENCE**2)])
            flow = g.item() / (present @ s.capacity.numpy() @ np.array([1e-3, 1e-6 * T]))
            return {
                "moles": pb.asarray(-flow * s.capacity.numpy() @ powers),
                "heat": flow,
                "capacity": pb.asarray(-flow * np.outer(present, powers)),
            }

    return FlameTemperature.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([2.0, 8.0, 2.5, 3.0]) * rng.uniform(0.95, 1.05, 4)),
            t(np.array([180.0, 150.0, 60.0, 30.0]) + rng.normal(size=4)),
            t(np.array([40.0, 60.0, 140.0, 130.0]) + rng.normal(size=4)),
        ),
        {"approach": 20.0},
    )
)
def pinch_utilities():
    @pb.autograd_function
    def pinch_utilities(ctx, capacity, supply, target, approach=10.0):
        """Least heating and least cooling of a plant, and which stream makes the pinch.

        A stream that cools down is a hot one; approach: least difference of temperatures.
        """
        C, hot = capacity.numpy(), supply.numpy() > target.numpy()
        shift = np.where(hot, -0.5, 0.5) * approach
        start, end = supply.numpy() + shift, target.numpy() + shift
        lacking = [(C * (np.maximum(end - p, 0) - np.maximum(start - p, 0))).sum() for p in start]
        pinch = int(np.argmax(lacking)) if max(lacking) > 0 else -1
        heating = max(lacking[pinch], 0.0) if pinch >= 0 else 0.0
        cooling = heating + (C * (start - end)).sum()
        ctx.save_for_backward(C=C, start=start, end=end, pinch=pinch)
        return tuple(pb.asarray(np.array(v)) for v in (heating, cooling, pinch))

    @pinch_utilities.backward
    @pb.once_differentiable
    def _(ctx, g_heating, g_cooling, g_pinch):
        C, start, end, pinch = ctx.saved_variables
        to_heating, to_balance = g_heating.item() + g_cooling.item(), g_cooling.item()
        grads = [to_balance * (start - end), to_balance * C, -to_balance * C]
        if pinch >= 0:
            p = start[pinch]
            above = (end > p).astype(float), (start > p).astype(float)
            grads[0] += to_heating * (np.maximum(end - p, 0) - np.maximum(start - p, 0))
            grads[1] -= to_heating * C * above[1]
            grads[1][pinch] -= to_heating * (C * (above[0] - above[1])).sum()
            grads[2] += to_heating * C * above[0]
        return dict(zip(("capacity", "supply", "target"), map(pb.asarray, grads), strict=True))

    return pinch_utilities
