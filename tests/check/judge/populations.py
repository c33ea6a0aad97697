"""Populations: steps of differential equations, epidemics, age classes, harvests."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import BATCH, FACTOR, MISSING, SHIFT, ZERO, Book, at, t

BOOK = Book("populations")


def growth(rng):
    return (t(1 + rng.random(5)), t(0.8), t(3.0)), {"h": 0.5, "steps": 3}


@BOOK.wrong(
    growth,
    "the second stage counts with the factor 1/6 instead of 1/3",
    FACTOR,
    r"\bstage",
)
def logistic_rk4():
    def rate(x, r, K):
        return r * x * (1 - x / K)

    @pb.autograd_function
    def logistic_rk4(ctx, x0, r, K, h=0.1, steps=1):
        """Logistic growth by the classical Runge-Kutta method; x0: (n,)."""
        x, rn, Kn, stages = x0.numpy().copy(), r.item(), K.item(), []
        for _ in range(steps):
            y = [x]
            for weight in (h / 2, h / 2, h):
                y.append(x + weight * rate(y[-1], rn, Kn))
            k = [rate(v, rn, Kn) for v in y]
            x = x + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
            stages.append(y)
        ctx.save_for_backward(r=r, K=K, h=h, stages=stages)
        return pb.asarray(x)

    @logistic_rk4.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        r, K, h, g = s.r.item(), s.K.item(), s.h, grad_output.numpy()
        by_r = by_K = 0.0
        for y in reversed(s.stages):
            later, total = 0.0, g
            for x, share, reach in zip(
                y[::-1], (h / 6, h / 3, h / 6, h / 6), (0, h, h / 2, h / 2), strict=True
            ):
                gk = share * g + reach * later
                later = gk * r * (1 - 2 * x / K)
                total = total + later
                by_r += (gk * x * (1 - x / K)).sum()
                by_K += (gk * r * x**2 / K**2).sum()
            g = total
        return {"x0": pb.asarray(g), "r": by_r, "K": by_K}

    return logistic_rk4


def lotka(state, p):
    x, y = state
    return np.array([p[0] * x - p[1] * x * y, p[2] * x * y - p[3] * y])


def lotka_pullback(state, p, g):
    """Gradients of g . lotka(state, p) with respect to state and p."""
    x, y = state
    by_state = [
        g[0] * (p[0] - p[1] * y) + g[1] * p[2] * y,
        -g[0] * p[1] * x + g[1] * (p[2] * x - p[3]),
    ]
    return np.array(by_state), np.array([g[0] * x, -g[0] * x * y, g[1] * x * y, -g[1] * y])


def predators(steps):
    def given(rng):
        return (t(1 + rng.random(2)), t(np.array([1.1, 0.4, 0.1, 0.4]))), {"steps": steps}

    return given


@BOOK.wrong(
    predators(1),
    "the state at the start is used for every step, so it is right for one step only",
    at("steps"),
    r"one step only|every step|trajectory|several steps",
    where="more than one step",
    shows=predators(4),
)
def predator_prey():
    @pb.autograd_function
    def predator_prey(ctx, state, rates, dt=0.1, steps=1):
        x = state.numpy()
        for _ in range(steps):
            x = x + dt * lotka(x, rates.numpy())
        ctx.save_for_backward(state=state, rates=rates, dt=dt, steps=steps)
        return pb.asarray(x)

    @predator_prey.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, flow = ctx.saved_variables, g.numpy()
        x, p, by_rates = s.state.numpy(), s.rates.numpy(), np.zeros(4)
        for _ in range(s.steps):
            by_x, by_p = lotka_pullback(x, p, s.dt * flow)
            flow, by_rates = flow + by_x, by_rates + by_p
        return {"state": pb.asarray(flow), "rates": pb.asarray(by_rates)}

    return predator_prey


@BOOK.right(
    lambda rng: ((t(1 + rng.random(2)), t(np.array([1.1, 0.4, 0.1, 0.4]))), {"h": 0.2, "steps": 4})
)
def predator_prey_path():
    class Path(pb.Function):
        """Prey and predators at every step of the midpoint rule: (steps + 1, 2)."""

        @staticmethod
        def forward(ctx, start, rates, h=0.1, steps=10):
            p, path = rates.numpy(), [start.numpy()]
            for _ in range(steps):
                middle = path[-1] + h / 2 * lotka(path[-1], p)
                path.append(path[-1] + h * lotka(middle, p))
            out = pb.asarray(np.stack(path))
            ctx.save_for_backward(path=out, rates=rates, h=h)
            return out

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            s = ctx.saved_variables
            path, p, gn = s.path.numpy(), s.rates.numpy(), g.numpy()
            flow, by_rates = gn[-1].copy(), np.zeros(4)
            for i in range(len(path) - 2, -1, -1):
                middle = path[i] + s.h / 2 * lotka(path[i], p)
                by_middle, late = lotka_pullback(middle, p, s.h * flow)
                by_start, early = lotka_pullback(path[i], p, s.h / 2 * by_middle)
                flow = flow + by_middle + by_start + gn[i]
                by_rates += late + early
            return {"start": pb.asarray(flow), "rates": pb.asarray(by_rates)}

    return Path.apply


def epidemic(**settings):
    def given(rng):
        return (t(np.array([9.0, 1.0, 0.5]) + rng.random(3)), t(0.9), t(0.3)), settings

    return given


@BOOK.wrong(
    epidemic(steps=4),
    "the vaccinated are left out of the adjoint: their flow from S to R is missing",
    MISSING,
    at("vaccination"),
    where="vaccination given",
    shows=epidemic(steps=4, vaccination=0.4),
)
def sir_epidemic():
    @pb.autograd_function
    def sir_epidemic(ctx, start, beta, gamma, dt=0.25, steps=10, vaccination=0.0):
        """Numbers (S, I, R) after some Euler steps; start: (3,)."""
        b, c, path = beta.item(), gamma.item(), [start.numpy().copy()]
        for _ in range(steps):
            S, Y, _ = path[-1]
            infected, healed = b * S * Y / path[-1].sum(), c * Y
            jab = vaccination * S
            path.append(
                path[-1] + dt * np.array([-infected - jab, infected - healed, healed + jab])
            )
        ctx.save_for_backward(beta=beta, gamma=gamma, dt=dt, path=path)
        return pb.asarray(path[-1])

    @sir_epidemic.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        b, c, dt, flow = s.beta.item(), s.gamma.item(), s.dt, g.numpy()
        by_beta = by_gamma = 0.0
        for state in reversed(s.path[:-1]):
            (S, Y, _), n = state, state.sum()
            infect, heal = dt * (flow[1] - flow[0]), dt * (flow[2] - flow[1])
            by_beta += infect * S * Y / n
            by_gamma += heal * Y
            pull = np.array([infect * b * Y / n, infect * b * S / n + heal * c, 0.0])
            flow = flow + pull - infect * b * S * Y / n**2
        return {"start": pb.asarray(flow), "beta": by_beta, "gamma": by_gamma}

    return sir_epidemic


@BOOK.right(
    lambda rng: (
        (t(np.array([0.9, 0.06, 0.04])), t(0.4 + rng.random(3)), t(0.3), t(0.2)),
        {"regime": np.array([0, 0, 0, 2, 2, 2, 0, 0])},
    )
)
def seir_incidence():
    @pb.autograd_function
    def seir_incidence(ctx, start, beta, sigma, gamma, regime):
        """New cases of each day, and those never infected; regime: (T,) picks from beta: (k,)."""
        b, sg, gm = beta.numpy()[regime], sigma.item(), gamma.item()
        days, cases = [start.numpy().copy()], np.zeros(len(regime))
        for i in range(len(regime)):
            S, E, Y = days[-1]
            new, cases[i] = b[i] * S * Y, sg * E
            days.append(np.array([S - new, E + new - cases[i], Y + cases[i] - gm * Y]))
        ctx.save_for_backward(beta=beta, sigma=sigma, gamma=gamma, regime=regime)
        ctx.days = days
        return pb.asarray(cases), pb.asarray(np.asarray(days[-1][0]))

    @seir_incidence.backward
    @pb.once_differentiable
    def _(ctx, g_cases, g_left):
        s = ctx.saved_variables
        b, sg, gm = s.beta.numpy()[s.regime], s.sigma.item(), s.gamma.item()
        lS, lE, lI = g_left.item(), 0.0, 0.0
        by_beta, by_sigma, by_gamma = np.zeros(len(s.beta)), 0.0, 0.0
        for i in range(len(b) - 1, -1, -1):
            S, E, Y = ctx.days[i]
            new, ill = lE - lS, lI - lE + g_cases.numpy()[i]
            by_beta[s.regime[i]] += new * S * Y
            by_sigma, by_gamma = by_sigma + ill * E, by_gamma - lI * Y
            lS, lE, lI = lS + new * b[i] * Y, lE + ill * sg, lI * (1 - gm) + new * b[i] * S
        return {
            "start": pb.asarray(np.array([lS, lE, lI])),
            "beta": pb.asarray(by_beta),
            "sigma": by_sigma,
            "gamma": by_gamma,
        }

    return seir_incidence


def classes(rng, k=4):
    return t(0.3 + rng.random(k)), t(0.4 + 0.5 * rng.random(k - 1))


@BOOK.wrong(
    lambda rng: ((*classes(rng), t(1 + rng.random(4))), {"years": 3}),
    "off by one: survival is multiplied by the class that it leads to, not the one before",
    SHIFT,
)
def age_projection():
    def forward(ctx, fecundity, survival, counts, years=1):
        """Numbers in each age class after some years; the last class dies."""
        f, s, path = fecundity.numpy(), survival.numpy(), [counts.numpy().copy()]
        for _ in range(years):
            n = path[-1]
            path.append(np.r_[f @ n, s * n[:-1]])
        ctx.save_for_backward(fecundity=fecundity, survival=survival, path=path)
        return pb.asarray(path[-1].copy())

    @pb.once_differentiable
    def backward(ctx, g):
        saved = ctx.saved_variables
        f, s, path = saved.fecundity.numpy(), saved.survival.numpy(), saved.path
        flow, by_f, by_s = g.numpy(), np.zeros_like(f), np.zeros_like(s)
        for n in reversed(path[:-1]):
            by_f += flow[0] * n
            by_s += flow[1:] * n[1:]
            before = f * flow[0]
            before[:-1] += s * flow[1:]
            flow = before
        return {
            "fecundity": pb.asarray(by_f),
            "survival": pb.asarray(by_s),
            "counts": pb.asarray(flow),
        }

    return pb.autograd_function(forward, backward, name="age_projection")


@BOOK.right(lambda rng: (classes(rng, 5), {}))
def growth_rate():
    def dominant(L, tol):
        x = np.ones(len(L)) / len(L)
        for count in range(1, 20001):
            y = L @ x
            rate = y.sum()
            if np.abs(y - rate * x).max() <= tol * rate:
                return rate, y / rate, count
            x = y / rate
        raise ArithmeticError("growth_rate: no convergence; may the classes be periodic?")

    @pb.autograd_function
    def growth_rate(ctx, fecundity: pb.Tensor, survival: pb.Tensor, tol: float = 1e-13):
        """Yearly growth of the stable age distribution, and the number of iterations."""
        f, s = fecundity.numpy(), survival.numpy()
        if min(f.min(), s.min()) < 0:
            raise ValueError("growth_rate: fecundity and survival must not be negative")
        L = np.diag(s, -1)
        L[0] = f
        rate, stable, count = dominant(L, tol)
        ctx.save_for_backward(L=L, stable=stable, tol=tol)
        return pb.asarray(np.asarray(rate)), pb.asarray(np.asarray(count))

    @growth_rate.backward
    @pb.once_differentiable
    def _(ctx, g_rate, g_count):
        L, w, tol = ctx.saved_variables
        _, value, _ = dominant(L.T, tol)
        value = g_rate.item() * value / (value @ w)
        return {"fecundity": pb.asarray(value[0] * w), "survival": pb.asarray(value[1:] * w[:-1])}

    return growth_rate


def stock(harvest):
    return lambda rng: ((t(1 + rng.random(3)), t(0.6), t(2.0), t(harvest)), {"years": 4})


@BOOK.wrong(
    stock(0.1),
    "an extinct population passes its gradient on: it is not set to zero where forward clips",
    ZERO,
    r"\bextinct|\bclip|dies out",
    where="population dies out",
    shows=stock(1.4),
)
def ricker_harvest():
    @pb.autograd_function
    def ricker_harvest(ctx, start, r, K, harvest, years=1):
        """Ricker map less a yearly harvest, at least 0; start: (patches,)."""
        rn, Kn, path = r.item(), K.item(), [start.numpy().copy()]
        for _ in range(years):
            n = path[-1]
            path.append(np.maximum(n * np.exp(rn * (1 - n / Kn)) - harvest.item(), 0.0))
        ctx.save_for_backward(r=r, K=K, path=path)
        return pb.asarray(path[-1].copy())

    @ricker_harvest.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        r, K, flow = s.r.item(), s.K.item(), g.numpy()
        by_r = by_K = by_harvest = 0.0
        for n in reversed(s.path[:-1]):
            grown = np.exp(r * (1 - n / K))
            by_r += (flow * n * grown * (1 - n / K)).sum()
            by_K += (flow * n * grown * r * n / K**2).sum()
            by_harvest -= flow.sum()
            flow = flow * grown * (1 - r * n / K)
        return {"start": pb.asarray(flow), "r": by_r, "K": by_K, "harvest": by_harvest}

    return ricker_harvest


def contacts(batch):
    def given(rng):
        return (t(rng.random((batch, 3))), t(rng.random((3, 3))), np.array([2.0, 3.0, 1.0])), {}

    return given


@BOOK.wrong(
    contacts(1),
    "the gradient of the contacts is the mean over the batch instead of the sum",
    BATCH,
    r"\bmean\b|\baverage",
    where="batch of more than one",
    shows=contacts(4),
)
def force_of_infection():
    @pb.autograd_function
    def force_of_infection(ctx, infected, contact, population):
        """Rate at which each group is infected; infected: (b, k), contact: (k, k)."""
        share = infected.numpy() / population
        ctx.save_for_backward(share=share, contact=contact, population=population)
        return pb.asarray(share @ contact.numpy().T)

    @force_of_infection.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        outer = gn[:, :, None] * s.share[:, None, :]
        return {
            "infected": pb.asarray(gn @ s.contact.numpy() / s.population),
            "contact": pb.asarray(outer.mean(axis=0)),
        }

    return force_of_infection


@BOOK.right(lambda rng: ((t(1.3 + 2 * rng.random(5)), t(0.95)), {}))
def final_size():
    @pb.autograd_function
    def final_size(ctx, R0, susceptible):
        """Share z infected in the end: z = 1 - susceptible exp(-R0 z), the larger root."""
        R, s0 = R0.numpy(), susceptible.item()
        if (R * s0 <= 1).any():
            raise ValueError("final_size: R0 times susceptible must exceed 1")
        z = np.ones_like(R)
        for _ in range(100):
            left = s0 * np.exp(-R * z)
            step = (z - 1 + left) / (1 - R * left)
            z = z - step
            if np.abs(step).max() < 1e-14:
                break
        else:
            raise ArithmeticError("final_size: no convergence")
        out = pb.asarray(z)
        ctx.save_for_backward(R0=R0, susceptible=susceptible, z=out)
        return out

    @final_size.backward
    def _(ctx, g):
        s = ctx.saved_variables
        escape = (-s.R0 * s.z).exp()
        weight = g * escape / (1 - s.R0 * s.susceptible * escape)
        return {"R0": weight * s.z * s.susceptible, "susceptible": -weight.sum()}

    return final_size


@BOOK.right(
    lambda rng: (
        (t(1.7 + 0.2 * rng.random()), t(0.5), t(2.0), t(0.6)),
        {"limit": 0.4, "trigger": 1.2, "years": 6},
    )
)
def ramped_catches():
    def forward(ctx, biomass, r, K, top_rate, limit=0.2, trigger=0.5, years=10):
        """Yearly catches where the rate falls from top_rate at `trigger` to 0 at `limit`."""
        B, rn, Kn, F = (v.item() for v in (biomass, r, K, top_rate))
        years_seen, catches = [], np.zeros(years)
        for i in range(years):
            ramp = np.clip((B - limit) / (trigger - limit), 0.0, 1.0)
            grown = B + rn * B * (1 - B / Kn)
            years_seen.append((B, ramp, grown))
            catches[i] = F * ramp * grown
            B = grown - catches[i]
        ctx.save_for_backward(r=rn, K=Kn, F=F, years=years_seen, width=trigger - limit)
        return pb.asarray(catches), pb.asarray(np.asarray(B))

    @pb.once_differentiable
    def backward(ctx, g_catches, g_left):
        s, flow = ctx.saved_variables, g_left.item()
        by_r = by_K = by_F = 0.0
        for gc, (B, ramp, grown) in zip(g_catches.numpy()[::-1], s.years[::-1], strict=True):
            take = gc - flow
            by_grown = flow + take * s.F * ramp
            by_r += by_grown * B * (1 - B / s.K)
            by_K += by_grown * s.r * (B / s.K) ** 2
            by_F += take * ramp * grown
            flow = by_grown * (1 + s.r - 2 * s.r * B / s.K)
            if 0 < ramp < 1:
                flow += take * grown * s.F / s.width
        return {"biomass": flow, "r": by_r, "K": by_K, "top_rate": by_F}

    return pb.autograd_function(forward, backward, name="ramped_catches")
