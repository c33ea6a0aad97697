"""Batteries: equivalent circuits, charge, kinetics, diffusion, ageing, packs, heat."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import FACTOR, MISSING, TRANSPOSED, Book, at, mends, t

BOOK = Book("batteries")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(-2, 4, 6)), *map(t, np.array([0.03, 0.02, 6.0, 0.05]))),
        {"ocv": 3.65},
    ),
    "the gradient of u0 lacks the decay of the first step: it is one step too early",
    FACTOR + r"|multipl|divided by",
    r"(?:missing|lacks?|without|left out|forgot\w*|times|multipl\w+ by).{0,30}(?:decay|exp\()",
    r"\b(?:one|first|last|final) (?:more )?(?:time )?step\b|off.by.one|\bpower of\b",
    r"(?:after|before) the first (?:step|sample|update)",
    mends('"u0": pb.asarray(lam * decay', "decay * lam)", "lam * decay)", "lam *= decay"),
)
def thevenin_voltage():
    @pb.autograd_function
    def thevenin_voltage(ctx, current, r0, r1, tau, u0, ocv=3.7, dt=1.0):
        """Terminal voltage of a cell with one RC pair; discharge is positive.

        current: (n,) in A, r0 and r1 in ohm, tau = R1 C1 in s, u0: voltage of the pair before.
        """
        amps, decay = current.numpy(), np.exp(-dt / tau.item())
        pair = np.empty(len(amps) + 1)
        pair[0] = u0.item()
        for k, load in enumerate(amps):
            pair[k + 1] = decay * pair[k] + r1.item() * (1 - decay) * load
        ctx.save_for_backward(amps=amps, r0=r0, r1=r1, tau=tau, pair=pair)
        ctx.dt = dt
        return pb.asarray(ocv - r0.item() * amps - pair[1:])

    @thevenin_voltage.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        r0, r1, tau = s.r0.item(), s.r1.item(), s.tau.item()
        decay = np.exp(-ctx.dt / tau)
        lam = by_r1 = by_decay = 0.0
        grad_amps = -gn * r0
        for k in range(len(gn) - 1, -1, -1):
            lam = -gn[k] + decay * lam
            grad_amps[k] += lam * r1 * (1 - decay)
            by_r1 += lam * (1 - decay) * s.amps[k]
            by_decay += lam * (s.pair[k] - r1 * s.amps[k])
        return {
            "current": pb.asarray(grad_amps),
            "r0": pb.asarray(np.array(-gn @ s.amps)),
            "r1": pb.asarray(np.array(by_r1)),
            "tau": pb.asarray(np.array(by_decay * decay * ctx.dt / tau**2)),
            "u0": pb.asarray(np.array(lam)),
        }

    return thevenin_voltage


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.5, 3, 7)), *map(t, np.array([2.5, 0.9, 0.97]))), {}),
    "a charging current gets its gradient without the efficiency",
    r"\bcharging\b|\bnegative (?:current|value|element|input|entr)|(?:current|x|I)`? ?<=? ?0",
    r"(?:where|when|below|under|if|for).{0,25}current.{0,30}(?:\bnegative\b|< ?0|below (?:0|zero))",
    FACTOR + r"|multipl|divided by",
    r"efficiency.{0,30}(?:missing|left out|ignored|forgot)|(?:without|lacks?|missing).{0,20}effic",
    mends(
        "s.efficiency, pb.ones_like",
        "s.efficiency, 1",
        "per_amp * pb.where(s.charging, s.efficiency",
    ),
    where="a charging current",
    shows=lambda rng: (
        (t(np.array([1.0, -2.0, 0.7, -0.4, 1.9])), *map(t, np.array([2.5, 0.6, 0.8]))),
        {},
    ),
)
def state_of_charge():
    def forward(ctx, current, capacity, start, efficiency, dt=60.0):
        """Coulomb counting. What is charged (negative current, A) counts by the efficiency."""
        charging = current < 0
        ctx.save_for_backward(
            current=current, capacity=capacity, efficiency=efficiency, charging=charging
        )
        ctx.dt = dt
        counted = pb.where(charging, efficiency * current, current)
        return start - counted.cumsum(0) * (dt / 3600) / capacity

    def backward(ctx, g):
        s = ctx.saved_variables
        later = g.sum() - g.cumsum(0) + g
        per_amp = -later * (ctx.dt / 3600) / s.capacity
        zero = pb.zeros_like(s.current)
        counted = pb.where(s.charging, s.efficiency * s.current, s.current)
        return {
            "start": g.sum(),
            "current": per_amp,
            "efficiency": (per_amp * pb.where(s.charging, s.current, zero)).sum(),
            "capacity": -(per_amp * counted).sum() / s.capacity,
        }

    return pb.autograd_function(forward, backward, name="state_of_charge")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(15, 45, 5)), t(rng.uniform(0.2, 0.9, 5)), t(np.array([5.1, 2.4]))),
        {"days": 365},
    ),
    "the slope in the temperature divides by the square of degrees Celsius, not of kelvin",
    r"kelvin|\bcelsius\b|(?:missing|add|plus|lacks?|without|left out).{0,15}273|T ?\+ ?273",
    r"\babsolute temp|\boffset\b|\bunits?\b",
    FACTOR,
    mends("(T + 273.15) ** 2", "kelvin(T) ** 2", "(273.15 + T) ** 2", "K**2", "T_abs**2"),
)
def calendar_fade():
    GAS, REFERENCE = 8.314462618e-3, 298.15

    class CalendarFade(pb.Function):
        """Capacity lost in storage, in percent, after Arrhenius and the root of time.

        temperature: (n,) in Celsius, soc: (n,), params: (2,) prefactor in percent and slope in soc
        """

        @staticmethod
        def forward(ctx, temperature, soc, params, days, activation=24.5):
            T, q = temperature.numpy(), soc.numpy()
            a, b = params.numpy()
            arrhenius = np.exp(-activation / GAS * (1 / (T + 273.15) - 1 / REFERENCE))
            lost = a * np.exp(b * (q - 0.5)) * arrhenius * np.sqrt(days / 365)
            ctx.save_for_backward(temperature, soc, params)
            ctx.lost, ctx.activation = lost, activation
            return pb.asarray(lost.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            T, q, (a, b) = (x.numpy() for x in ctx.saved_tensors)
            flow = grad_output.numpy() * ctx.lost
            by_T = flow * ctx.activation / (GAS * T**2)
            by_params = np.array([flow.sum() / a, flow @ (q - 0.5)])
            return {
                "temperature": pb.asarray(by_T),
                "soc": pb.asarray(flow * b),
                "params": pb.asarray(by_params),
            }

    return CalendarFade.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(2, 6, 5)), t(np.array(1.5)), t(np.array(0.4)), t(np.array(18.0))),
        {},
    ),
    "the adjoint is solved with the matrix itself, not with its transpose",
    TRANSPOSED,
    r"symmetric|\badjoint|upstream|downstream",
    at("flow"),
    mends("solve(A.T, gn)", "solve(ctx.A.T,", "solve(s.A.T,", "gn @ np.linalg.inv"),
    where="flow is not 0",
    shows=lambda rng: (
        (t(rng.uniform(2, 6, 5)), t(np.array(1.5)), t(np.array(0.4)), t(np.array(18.0))),
        {"flow": 0.8},
    ),
)
def module_temperatures():
    def network(n, link, film, flow):
        A = np.zeros((n, n))
        for i in range(n):
            A[i, i] += film + flow
            if i:
                A[i, i] += link
                A[i, i - 1] -= link + flow
                A[i - 1, i - 1] += link
                A[i - 1, i] -= link
        return A

    @pb.autograd_function
    def module_temperatures(ctx, heat, link, film, ambient, flow=0.0):
        """Steady temperatures of cells in a row, with heat in W and conductances in W/K.

        film: from each cell to the air. Coolant with a capacity rate `flow` passes the cells in
        order, and enters at the temperature of the air.
        """
        n = len(heat)
        A = network(n, link.item(), film.item(), flow)
        inlet = flow * (np.arange(n) == 0)
        T = np.linalg.solve(A, heat.numpy() + (film.item() + inlet) * ambient.item())
        ctx.save_for_backward(A=A, T=T, film=film, ambient=ambient, inlet=inlet)
        return pb.asarray(T.copy())

    @module_temperatures.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        lam = np.linalg.solve(s.A, gn)
        return {
            "heat": pb.asarray(lam),
            "link": pb.asarray(np.array(-np.diff(lam) @ np.diff(s.T))),
            "film": pb.asarray(np.array(lam @ (s.ambient.item() - s.T))),
            "ambient": pb.asarray(np.array(lam @ (s.film.item() + s.inlet))),
        }

    return module_temperatures


@BOOK.wrong(
    lambda rng: (
        (t(np.array([0.52, 0.5, 0.55, 0.49])), t(np.array([5.0, 3.8, 5.1, 4.9]))),
        {},
    ),
    "the cell that is empty first is taken for the one that is full first too",
    r"\bfull\b|\bcharging\b|headroom",
    r"(?:argmin|\bcell\b|\bindex\b|\belement\b|\bposition\b).{0,60}"
    r"\b(?:wrong|other|another|same|one|different)\b",
    r"(?:wrong|another|other|same|different) (?:cell|index|element|position)",
    r"(?:right|correct) only (?:if|when|where).{0,60}\bsame\b",
    mends(
        "np.argmin(Q * (1 - soc))",
        "np.argmin((1 - soc) * Q)",
        "room.argmin()",
        "np.argmin(room.numpy())",
        "room.numpy().argmin()",
        "np.argmin(room)",
        "grad_soc[full",
    ),
    where="one cell is empty first and another is full first",
    shows=lambda rng: (
        (t(np.array([0.35, 0.5, 0.8, 0.6])), t(np.array([5.0, 4.8, 5.1, 4.9]))),
        {},
    ),
)
def string_limits():
    @pb.autograd_function
    def string_limits(ctx, soc, capacity):
        """Charge (Ah) that a series string can give, and take, until one cell is at its limit."""
        left, room = soc * capacity, (1 - soc) * capacity
        ctx.save_for_backward(soc=soc, capacity=capacity)
        ctx.weakest = int(np.argmin(left.numpy()))
        return {"discharge": left.min(), "charge": room.min()}

    @string_limits.backward
    def _(ctx, g_discharge, g_charge):
        soc, capacity = ctx.saved_tensors
        i = ctx.weakest
        grad_soc, grad_capacity = pb.zeros_like(soc), pb.zeros_like(capacity)
        grad_soc[i] = (g_discharge - g_charge) * capacity[i]
        grad_capacity[i] = g_discharge * soc[i] + g_charge * (1 - soc[i])
        return {"soc": grad_soc, "capacity": grad_capacity}

    return string_limits


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.normal(0, 8, (2, 4))),
            t(rng.uniform(0.2, 0.8, (2, 4))),
            t(rng.uniform(0.8, 1.2, (2, 4))),
        ),
        {"rate": 3.0},
    ),
    "the vacancies (1 - filling) in the exchange current are left out of the slope in the filling",
    MISSING,
    r"1 ?- ?(?:2 ?\*? ?)?(?:filling|x|theta)\b|vacan|\bboth (?:factors|terms)|\bproduct rule",
    r"(?:right|correct|good) (?:only )?(?:if|when|where|for|at).{0,20}filling.{0,20}\b(?:small|0)",
    r"exchange current.{0,60}(?:filling|\bpart\b)|\bterm\b.{0,30}(?:missing|forgot|left out)",
    mends("1 / x - 1 / (1 - x)", "(1 - 2 * x)", "(1 - 2 * filling)", "- 1 / (1 - filling)"),
)
def overpotential():
    FARADAY, GAS = 96485.33212, 8.314462618

    def forward(ctx, current, filling, electrolyte, rate=1.0, temperature=298.15):
        """Butler-Volmer with equal transfer coefficients, solved for the overpotential in V."""
        x = filling.numpy()
        if (x <= 0).any() or (x >= 1).any():
            raise ValueError("filling must lie between 0 and 1")
        exchange = rate * np.sqrt(electrolyte.numpy() * x * (1 - x))
        ctx.save_for_backward(current=current, filling=filling, electrolyte=electrolyte)
        ctx.exchange, ctx.thermal = exchange, 2 * GAS * temperature / FARADAY
        return pb.asarray(ctx.thermal * np.arcsinh(current.numpy() / (2 * exchange)))

    @pb.once_differentiable
    def backward(ctx, g):
        i, x, ce = (v.numpy() for v in ctx.saved_tensors)
        steep = g.numpy() * ctx.thermal / np.hypot(i, 2 * ctx.exchange)
        by_exchange = -steep * i / ctx.exchange
        half = by_exchange * ctx.exchange / 2
        return {
            "current": pb.asarray(steep),
            "filling": pb.asarray(half / x),
            "electrolyte": pb.asarray(half / ce),
        }

    return pb.autograd_function(forward, backward, name="overpotential")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3.2, 4.1, 5)), t(rng.uniform(0.01, 0.05, 5)), t(rng.normal(0, 20, 5))),
        {},
    )
)
def constant_power_current():
    @pb.autograd_function
    def constant_power_current(ctx, ocv, resistance, power):
        """Current that gives `power` at the terminals (negative: charging), the smaller one."""
        U, R, P = ocv.numpy(), resistance.numpy(), power.numpy()
        if not U.shape == R.shape == P.shape:
            raise ValueError("one voltage, resistance and power for each cell")
        inside = U**2 - 4 * R * P
        if (U <= 0).any() or (inside <= 0).any():
            raise ValueError("the cell cannot give that power")
        root = np.sqrt(inside)
        current = 2 * P / (U + root)
        ctx.current, ctx.root = current, root
        return pb.asarray(current.copy())

    @constant_power_current.backward
    @pb.once_differentiable
    def _(ctx, g):
        by_power = g.numpy() / ctx.root
        return (
            pb.asarray(-ctx.current * by_power),
            pb.asarray(ctx.current**2 * by_power),
            pb.asarray(by_power),
        )

    return constant_power_current


@BOOK.right(
    lambda rng: ((t(np.array(0.8)), t(rng.uniform(0.5, 2))), {"time": np.linspace(0, 9, 5)})
)
def sei_thickness():
    def forward(ctx, reaction, diffusion, time):
        """Thickness L of the film that grows with dL/dt = 1 / (1 / reaction + L / diffusion)."""
        k, D = reaction.item(), diffusion.item()
        if reaction.ndim or diffusion.ndim:
            raise ValueError("one reaction and one diffusion constant")
        if k <= 0 or D <= 0 or np.min(time) < 0:
            raise ValueError("constants must be positive, and times not negative")
        film = 2 * k * time / (1 + np.sqrt(1 + 2 * k**2 * time / D))
        ctx.save_for_backward(reaction=reaction, diffusion=diffusion, film=film, time=time)
        return pb.asarray(film.copy())

    @pb.once_differentiable
    def backward(ctx, g):
        # k L^2 / (2 D) + L = k t
        s = ctx.saved_variables
        k, D, L = s.reaction.item(), s.diffusion.item(), s.film
        lam = g.numpy() / (1 + k * L / D)
        return {
            "reaction": pb.asarray(np.array((lam * (s.time - L**2 / (2 * D))).sum())),
            "diffusion": pb.asarray(np.array((lam * k * L**2 / (2 * D**2)).sum())),
        }

    return pb.autograd_function(forward, backward, name="sei_thickness")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.4, 0.6, 5)), t(np.array(0.02)), t(rng.normal(0, 0.1, 4))),
        {"dt": 0.7},
    )
)
def particle_surface():
    class Particle:
        """Spherical shells of equal thickness, unit radius, implicit steps in time."""

        def __init__(self, n):
            edges = np.linspace(0, 1, n + 1)
            self.volume = np.diff(edges**3) / 3
            link = edges[1:-1] ** 2 * n
            self.stiffness = np.zeros((n, n))
            inner = np.arange(n - 1)
            for a, b in ((inner, inner + 1), (inner + 1, inner)):
                self.stiffness[a, a] += link
                self.stiffness[a, b] -= link

        def matrix(self, step):
            return np.diag(self.volume) + step * self.stiffness

    @pb.autograd_function
    def particle_surface(ctx, concentration, diffusivity, flux, dt=1.0):
        """Concentration of the outer shell after each step; flux: into the particle, a step."""
        if diffusivity.item() <= 0:
            raise ValueError("diffusivity must be positive")
        ctx.grid = Particle(len(concentration))
        A = ctx.grid.matrix(diffusivity.item() * dt)
        path = [concentration.numpy()]
        for inflow in flux.numpy():
            rhs = ctx.grid.volume * path[-1]
            rhs[-1] += dt * inflow
            path.append(np.linalg.solve(A, rhs))
        ctx.A, ctx.path, ctx.dt, ctx.shape = A, path, dt, diffusivity.shape
        return pb.asarray(np.array([c[-1] for c in path[1:]]))

    @particle_surface.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        adjoint, by_step = np.zeros_like(ctx.path[0]), 0.0
        by_flux = np.zeros(len(ctx.path) - 1)
        for k in reversed(range(len(by_flux))):
            adjoint[-1] += grad_output.numpy()[k]
            lam = np.linalg.solve(ctx.A, adjoint)
            by_flux[k] = ctx.dt * lam[-1]
            by_step -= lam @ ctx.grid.stiffness @ ctx.path[k + 1]
            adjoint = ctx.grid.volume * lam
        return {
            "concentration": pb.asarray(adjoint),
            "diffusivity": pb.asarray(np.full(ctx.shape, ctx.dt * by_step)),
            "flux": pb.asarray(by_flux),
        }

    return particle_surface


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(3.5, 3.9, 4)), t(rng.uniform(0.01, 0.04, 4)), t(rng.uniform(5, 30))),
        {},
    )
)
def parallel_cells():
    @pb.autograd_function
    def parallel_cells(ctx, ocv, resistance, load):
        """Voltage of cells in parallel under a load in A, and the current of each."""
        if ocv.shape != resistance.shape or load.ndim:
            raise ValueError("one voltage and resistance for each cell, and one load")
        if bool((resistance <= 0).any()):
            raise ValueError("resistances must be positive")
        conductance = 1 / resistance
        voltage = ((ocv * conductance).sum() - load) / conductance.sum()
        current = (ocv - voltage) * conductance
        ctx.save_for_backward(conductance=conductance, current=current)
        return voltage, current

    @parallel_cells.backward
    @pb.once_differentiable
    def _(ctx, g_voltage, g_current):
        G, amps = ctx.saved_variables.conductance, ctx.saved_variables.current
        # what a rise of the common voltage does, less that of the cell's own
        to_voltage = (g_voltage - (g_current * G).sum()) / G.sum()
        drop = to_voltage + g_current
        return {"ocv": drop * G, "resistance": -drop * amps * G, "load": -to_voltage}

    return parallel_cells


@BOOK.right(
    lambda rng: (
        (t(np.array([0.6, 2.0, -0.5, -3.1, -1.0, 0.7])), t(np.array(0.45)), t(np.array(2.0))),
        {"dt": 0.5},
    )
)
def limited_charge():
    @pb.autograd_function
    def limited_charge(ctx, current, start, capacity, *, dt=1.0):
        """State of charge, kept between 0 and 1 by the switch of the cell; dt in hours."""
        if current.ndim != 1 or start.ndim or capacity.ndim:
            raise ValueError("one cell at a time")
        if not 0 <= start.item() <= 1:
            raise ValueError("start must lie between 0 and 1")
        if capacity.item() <= 0:
            raise ValueError("capacity must be positive")
        state, path, free = start, [], []
        for amps in current:
            counted = state - amps * dt / capacity
            state = counted.clamp(0.0, 1.0)
            free.append(bool(counted == state))
            path.append(state)
        ctx.save_for_backward(current=current, capacity=capacity)
        ctx.free, ctx.dt = free, dt
        return pb.stack(path)

    @limited_charge.backward
    def _(ctx, g):
        current, capacity = ctx.saved_tensors
        flow, flows = g[0] * 0, []
        for k in reversed(range(len(ctx.free))):
            flow = (flow + g[k]) * float(ctx.free[k])
            flows.insert(0, flow)
        per_amp = -pb.stack(flows) * (ctx.dt / capacity)
        return {
            "current": per_amp,
            "start": flow,
            "capacity": -(per_amp * current).sum() / capacity,
        }

    return limited_charge
