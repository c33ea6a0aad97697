"""Wind turbines: rotors, wakes, pitch and drive trains, loads, measured wind, yields."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import MISSING, Book, mends, t

BOOK = Book("wind_turbines")
AIR = 1.225


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(6, 11, 5)), t(rng.uniform(1.0, 1.6, 5)), t(rng.uniform(0, 6, 5))),
        {"radius": 45.0},
    ),
    "the power coefficient depends on the wind through the tip speed ratio: that term is missing",
    MISSING,
    r"tip.speed|chain rule|power coefficient|through (?:the )?(?:ratio|lam)",
    r"(?:only|just|alone).{0,40}(?:cube|cubic|direct|v ?\*\* ?[23])",
    mends("- s.by_ratio", "-s.by_ratio", "by_ratio * s.ratio", "s.ratio * s.by_ratio"),
)
def rotor_power():
    @pb.autograd_function
    def rotor_power(ctx, wind, speed, pitch, radius=40.0):
        """Power of the rotor in kW.

        wind: m/s; speed: of the rotor in rad/s; pitch: degrees from 0 on; all of shape (n,).
        """
        v, w, b = wind.numpy(), speed.numpy(), pitch.numpy()
        ratio = w * radius / v
        q = 1 / (ratio + 0.08 * b) - 0.035 / (b**3 + 1)
        decay = 0.5176 * np.exp(-21 * q)
        part = 116 * q - 0.4 * b - 5
        cp = decay * part + 0.0068 * ratio
        by_q = decay * (116 - 21 * part)
        by_ratio = 0.0068 - by_q / (ratio + 0.08 * b) ** 2
        by_pitch = by_q * (0.105 * b**2 / (b**3 + 1) ** 2 - 0.08 / (ratio + 0.08 * b) ** 2)
        flux = 0.5e-3 * AIR * np.pi * radius**2 * v**3
        ctx.save_for_backward(
            v=v, w=w, flux=flux, cp=cp, ratio=ratio, by_ratio=by_ratio, by_b=by_pitch - 0.4 * decay
        )
        return pb.asarray(flux * cp)

    @rotor_power.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        flow = grad_output.numpy() * s.flux
        return {
            "wind": pb.asarray(flow * 3 * s.cp / s.v),
            "speed": pb.asarray(flow * s.by_ratio * s.ratio / s.w),
            "pitch": pb.asarray(flow * s.by_b),
        }

    return rotor_power


def farm(x, y):
    def given(rng):
        return (
            t(np.array(9.3)),
            t(rng.uniform(0.6, 0.85, len(x))),
            np.array(x, float),
            np.array(y, float),
        ), {}

    return given


@BOOK.wrong(
    farm([0, 600, 300], [0, 10, 900]),
    "deficits add as squares, but backward takes the plain sum when several wakes overlap",
    r"\bsquares?\b|root|quadrat|plain sum|linear|superpos|norm\b",
    r"(?:several|many|more than one|two|multiple|overlapp\w+) .{0,20}(?:wakes|turbines|deficits)",
    r"divid|total",
    mends("s.loss / s.total", "s.loss * ", "/ s.total[:, None]", "s.loss / np."),
    where="several wakes overlap",
    shows=farm([0, 500, 1000, 1500], [0, 15, -20, 5]),
)
def wake_losses():
    def forward(ctx, wind, thrust, x, y, diameter=90.0, spread=0.05):
        """Wind at each turbine of a farm, from the west; top-hat wakes."""
        along, across = x[:, None] - x, np.abs(y[:, None] - y)
        width = diameter + 2 * spread * along
        inside = (along > 0) & (across < width / 2)
        share = np.where(inside, (diameter / np.where(inside, width, 1.0)) ** 2, 0.0)
        ct = thrust.numpy()
        loss = share * (1 - np.sqrt(1 - ct))
        total = np.sqrt((loss**2).sum(axis=1))
        ctx.save_for_backward(U=wind.item(), ct=ct, share=share, loss=loss, total=total)
        return pb.asarray(wind.item() * (1 - total))

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_loss = -s.U * gn[:, None] * np.ones_like(s.loss)
        return {
            "wind": gn @ (1 - s.total),
            "thrust": pb.asarray((by_loss * s.share).sum(axis=0) / (2 * np.sqrt(1 - s.ct))),
        }

    return pb.autograd_function(forward, backward, name="wake_losses")


ANGLES = np.array([-10.0, -5.0, 0.0, 4.0, 8.0, 12.0, 15.0, 20.0])
LIFTS = np.array([-0.62, -0.15, 0.42, 0.88, 1.29, 1.52, 1.38, 1.02])


def section(low, high):
    return lambda rng: ((t(rng.uniform(low, high, 6)), t(rng.uniform(30, 70, 6)), 1.4), {})


@BOOK.wrong(
    section(-9.0, 14.5),
    "outside of the table the lift is constant, but backward goes on with the slope at its end",
    r"outside|beyond|extrapol|\bends?\b|out of (?:the )?(?:table|range)|clip|clamp|constant|flat",
    mends("inside", "a < ANGLES[-1]", "a <= ANGLES[-1]", "a > ANGLES[0]", "ANGLES[0] <"),
    where="angles outside the table",
    shows=section(21.0, 30.0),
)
def section_lift():
    @pb.autograd_function
    def section_lift(ctx, angle, flow, chord):
        a, w = angle.numpy(), flow.numpy()
        cl = np.interp(a, ANGLES, LIFTS)
        ctx.save_for_backward(a=a, w=w, cl=cl, chord=chord)
        return pb.asarray(0.5 * AIR * chord * w**2 * cl)

    @section_lift.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, w, cl, chord = ctx.saved_variables
        k = np.clip(np.searchsorted(ANGLES, a) - 1, 0, len(ANGLES) - 2)
        slope = (np.diff(LIFTS) / np.diff(ANGLES))[k]
        pressure = g.numpy() * 0.5 * AIR * chord
        return pb.asarray(pressure * w**2 * slope), pb.asarray(pressure * 2 * w * cl), None

    return section_lift


@BOOK.right(
    lambda rng: (
        (t(np.array([2.1, 5.5, 8.2, 11.7, 14.0, 26.5]) + 0.2 * rng.random(6)), t(2050.0)),
        {"rated_speed": 12.5},
    )
)
def turbine_curve():
    @pb.autograd_function
    def turbine_curve(ctx, wind, rated, cut_in=3.0, rated_speed=12.0, cut_out=25.0, shape=3):
        """Power by a curve that stands still, rises with a power of the wind, and is flat."""
        if not cut_in < rated_speed < cut_out:
            raise ValueError("cut_in < rated_speed < cut_out is needed")
        v = wind.numpy()
        span = rated_speed**shape - cut_in**shape
        rising = (v >= cut_in) & (v < rated_speed)
        share = np.where(rising, (v**shape - cut_in**shape) / span, 0.0)
        share[(v >= rated_speed) & (v < cut_out)] = 1.0
        slope = np.where(rising, shape * v ** (shape - 1) / span, 0.0)
        ctx.save_for_backward(share, slope, rated.item())
        return pb.asarray(rated.item() * share)

    @turbine_curve.backward
    @pb.once_differentiable
    def _(ctx, g):
        share, slope, rated = ctx.saved_variables
        return {"wind": pb.asarray(g.numpy() * rated * slope), "rated": g.numpy() @ share}

    return turbine_curve


@BOOK.right(
    lambda rng: (
        (t(8.4 + rng.random()), t(1.9 + 0.3 * rng.random()), t(np.linspace(0, 2000, 9))),
        {"edges": np.array([3.0, 4, 5, 6, 7, 8, 9, 10, 12, 25]), "hours": 8760},
    )
)
def yearly_yield():
    def forward(ctx, scale, shape, power, edges, hours=8766.0):
        """Energy of a year in MWh, with Weibull winds.

        scale: m/s, positive; shape: positive; power: (n,) in kW, for the winds between edges.
        edges: (n + 1,), increasing, from 0 on.
        """
        A, k = scale.item(), shape.item()
        if A <= 0 or k <= 0:
            raise ValueError("scale and shape must be positive")
        z = (edges / A) ** k
        above = np.exp(-z)
        often = above[:-1] - above[1:]
        logs = np.log(edges / A, out=np.zeros(len(edges)), where=edges > 0)
        ctx.save_for_backward(A=A, k=k, often=often, power=power, slope=z * above, logs=logs)
        ctx.hours = hours / 1000
        return pb.asarray(np.array(hours / 1000 * (often @ power.numpy())))

    @pb.once_differentiable
    def backward(ctx, g):
        s, flow = ctx.saved_variables, g.item() * ctx.hours
        p = s.power.numpy()
        return {
            "scale": -flow * s.k / s.A * (p @ np.diff(s.slope)),
            "shape": flow * (p @ np.diff(s.slope * s.logs)),
            "power": pb.asarray(flow * s.often),
        }

    return pb.autograd_function(forward, backward, name="yearly_yield")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 9, 4)), t(rng.uniform(0.03, 0.4, 4))),
        {"hub": 85.0, "obukhov": -120.0},
    )
)
def hub_wind():
    def stability(z, L):
        if L is None:
            return 0.0
        if L > 0:
            return -5.0 * z / L
        x = (1 - 16 * z / L) ** 0.25
        return 2 * np.log((1 + x) / 2) + np.log((1 + x**2) / 2) - 2 * np.arctan(x) + np.pi / 2

    @pb.autograd_function
    def hub_wind(ctx, mast, roughness, hub, height=10.0, obukhov=None):
        """Wind at the hub from the wind at the mast; the air is neutral where obukhov is None."""
        z0 = roughness.numpy()
        top = np.log(hub / z0) - stability(hub, obukhov)
        low = np.log(height / z0) - stability(height, obukhov)
        ctx.save_for_backward(mast=mast, z0=z0, top=top, low=low)
        return mast * (top / low)

    @hub_wind.backward
    @pb.once_differentiable
    def _(ctx, g):
        mast, z0, top, low = ctx.saved_variables
        gn = g.numpy()
        by_z0 = (top - low) / (z0 * low**2)
        return {
            "mast": pb.asarray(gn * top / low),
            "roughness": pb.asarray(gn * mast.numpy() * by_z0),
        }

    return hub_wind


@BOOK.right(
    lambda rng: ((t(np.array([0.2, 0.5, 0.8, 0.95, 1.1, -0.1]) + 0.02 * rng.random(6)),), {})
)
def axial_induction():
    class AxialInduction(pb.Function):
        @staticmethod
        def forward(ctx, thrust, limit=1 / 3):
            top = 4 * limit * (1 - limit)
            c = thrust.numpy()
            heavy = c > top
            root = np.sqrt(1 - np.minimum(c, top))
            a = np.where(heavy, (c / 4 - limit**2) / (1 - 2 * limit), (1 - root) / 2)
            ctx.slope = np.where(heavy, 0.25 / (1 - 2 * limit), 0.25 / root)
            return pb.asarray(a)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            return pb.asarray(g.numpy() * ctx.slope), None

    return AxialInduction.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.02, 0.08, 4)), t(rng.uniform(0.03, 0.2, 4)), t(rng.uniform(2, 7, 4))),
        {"drag": 0.012},
    )
)
def inflow_angle():
    def residual(phi, twist, solidity, ratio, slope, drag):
        lift, sin, cos = slope * (phi - twist), np.sin(phi), np.cos(phi)
        normal, tangential = lift * cos + drag * sin, lift * sin - drag * cos
        loads = solidity * (normal + tangential / ratio) / 4
        return sin - cos / ratio + loads / sin

    @pb.autograd_function
    def inflow_angle(ctx, twist, solidity, ratio, slope=2 * np.pi, drag=0.0):
        """Angle of the flow at blade sections in radians, by the momentum and blade loads."""
        sets = list(zip(twist.numpy(), solidity.numpy(), ratio.numpy(), strict=True))
        phi = [
            optimize.brentq(residual, 1e-4, np.pi / 2, args=(*s, slope, drag), xtol=1e-14)
            for s in sets
        ]
        ctx.save_for_backward(twist=twist, solidity=solidity, ratio=ratio, phi=np.array(phi))
        ctx.slope, ctx.drag = slope, drag
        return pb.asarray(np.array(phi))

    @inflow_angle.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        th, sg, lam, phi = (np.asarray(v) for v in ctx.saved_variables)
        m, sin, cos = ctx.slope, np.sin(phi), np.cos(phi)
        lift = m * (phi - th)
        cn, ct = lift * cos + ctx.drag * sin, lift * sin - ctx.drag * cos
        loads = (cn + ct / lam) / 4
        by_loads = (m * cos - ct + (m * sin + cn) / lam) / 4
        by_phi = cos + sin / lam + sg * (by_loads / sin - loads * cos / sin**2)
        scale = -grad_output.numpy() / by_phi
        return {
            "twist": pb.asarray(-scale * sg * m * (cos + sin / lam) / (4 * sin)),
            "solidity": pb.asarray(scale * loads / sin),
            "ratio": pb.asarray(scale * (cos - sg * ct / (4 * sin)) / lam**2),
        }

    return inflow_angle


@BOOK.right(
    lambda rng: (
        (t(np.array([2.0, 9.0, 14.0, 13.0, 4.0, -3.0, 1.0]) + rng.random(7)), t(4.3)),
        {"start": 1.2, "dt": 0.5},
    )
)
def pitch_actuator():
    @pb.autograd_function
    def pitch_actuator(ctx, demand, rate, start=0.0, dt=0.1, stops=(0.0, 90.0)):
        """Pitch by time in degrees: follows the demand at a limited rate, between two stops."""
        now, most = start, rate.item() * dt
        angles, ctx.moves, ctx.dt = [], [], dt
        for want in demand.numpy():
            gap = want - now
            how = 0 if abs(gap) <= most else (1 if gap > 0 else -1)
            new = want if how == 0 else now + how * most
            stopped = not stops[0] < new < stops[1]
            now = min(max(new, stops[0]), stops[1])
            ctx.moves.append((how, stopped))
            angles.append(now)
        return pb.asarray(np.array(angles))

    @pitch_actuator.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        grad_demand, grad_rate, carried = np.zeros_like(gn), 0.0, 0.0
        for k in range(len(gn) - 1, -1, -1):
            how, stopped = ctx.moves[k]
            carried += gn[k]
            if stopped:
                carried = 0.0
            elif how == 0:
                grad_demand[k], carried = carried, 0.0
            else:
                grad_rate += how * ctx.dt * carried
        return {"demand": pb.asarray(grad_demand), "rate": grad_rate}

    return pitch_actuator


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(900, 1400, 12)), t(rng.uniform(900, 1300, 12)), t(8.5), t(0.4)),
        {"inertia": (4.4e3, 0.9e3), "dt": 0.05},
    )
)
def drive_train():
    def system(k, d, inertia, dt):
        Jr, Jg = inertia
        A = np.array([[0, 1, -1], [-k / Jr, -d / Jr, d / Jr], [k / Jg, d / Jg, -d / Jg]])
        return np.linalg.inv(np.eye(3) - dt * A)

    @pb.autograd_function
    def drive_train(ctx, rotor, generator, stiffness, damping, inertia, dt=0.01):
        """Twist of the shaft and both speeds, from rest, by implicit Euler steps.

        rotor, generator: torques in kNm, (n,); stiffness in MNm/rad, damping in MNms/rad, both
        scalar; inertia: of rotor and generator in t m2. Returns (n, 3).
        """
        k, d = 1e3 * stiffness.item(), 1e3 * damping.item()
        step = system(k, d, inertia, dt)
        push = np.stack([0 * rotor.numpy(), rotor.numpy(), -generator.numpy()], axis=1)
        push[:, 1:] /= inertia
        states = np.zeros((len(push) + 1, 3))
        for i, p in enumerate(push):
            states[i + 1] = step @ (states[i] + dt * p)
        ctx.step, ctx.inertia, ctx.dt = step, inertia, dt
        ctx.states = states
        return pb.asarray(states[1:].copy())

    @drive_train.backward
    @pb.once_differentiable
    def _(ctx, g):
        (Jr, Jg), states, dt = ctx.inertia, ctx.states, ctx.dt
        adjoint, grads = np.zeros(3), np.zeros((len(g), 3))
        by_k = by_d = 0.0
        for i in reversed(range(len(g))):
            adjoint = grads[i] = ctx.step.T @ (adjoint + g.numpy()[i])
            twist, w, v = states[i + 1]
            lever = dt * (adjoint[2] / Jg - adjoint[1] / Jr)
            by_k += lever * twist
            by_d += lever * (w - v)
        return {
            "rotor": pb.asarray(dt * grads[:, 1] / Jr),
            "generator": pb.asarray(-dt * grads[:, 2] / Jg),
            "stiffness": 1e3 * by_k,
            "damping": 1e3 * by_d,
        }

    return drive_train


@BOOK.right(
    lambda rng: (
        (
            t(np.array([0.0, 450.0, 1020.0, 1490.0]) + rng.normal(0, 9, 4)),
            t(rng.normal(0, 35, 4)),
            t(rng.uniform(0.6, 0.8, 4)),
        ),
        {"diameter": 110.0},
    )
)
def gaussian_wakes():
    def wakes(x, y, D, growth):
        along, across = x[:, None] - x, y[:, None] - y
        behind = along > 3 * D
        sigma = np.where(behind, growth * along + 0.25 * D, D)
        return across, behind, sigma

    @pb.autograd_function
    def gaussian_wakes(ctx, x, y, thrust, diameter=100.0, growth=0.03):
        """Relative loss of wind at turbines; wakes count from three diameters behind a rotor."""
        across, behind, sigma = wakes(x.numpy(), y.numpy(), diameter, growth)
        ct = thrust.numpy()
        inside = 1 - ct / (8 * (sigma / diameter) ** 2)
        if (inside <= 0).any():
            raise ValueError("thrust is too large for this model of a wake")
        depth = 1 - np.sqrt(inside)
        bell = np.exp(-0.5 * (across / sigma) ** 2)
        loss = np.where(behind, depth * bell, 0.0)
        ctx.save_for_backward(across, behind, sigma, ct, inside, bell, loss)
        ctx.diameter, ctx.growth = diameter, growth
        return pb.asarray(loss.sum(axis=1))

    @gaussian_wakes.backward
    @pb.once_differentiable
    def _(ctx, g):
        across, behind, sigma, ct, inside, bell, loss = ctx.saved_variables
        D, gn = ctx.diameter, g.numpy()[:, None]
        by_inside = np.where(behind, -gn * bell / (2 * np.sqrt(inside)), 0.0)
        by_ct = (-by_inside * D**2 / (8 * sigma**2)).sum(axis=0)
        by_sigma = by_inside * ct * D**2 / (4 * sigma**3) + gn * loss * across**2 / sigma**3
        by_along, by_across = ctx.growth * by_sigma, -gn * loss * across / sigma**2
        by_x, by_y = (m.sum(axis=1) - m.sum(axis=0) for m in (by_along, by_across))
        return {"x": pb.asarray(by_x), "y": pb.asarray(by_y), "thrust": pb.asarray(by_ct)}

    return gaussian_wakes


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2.5, 4.5, 6)), t(np.array(310.0)), t(np.array(9.6))),
        {"heights": np.array([5.0, 18, 33, 50, 66, 80])},
    )
)
def tower_moments():
    def forward(ctx, width, thrust, wind, heights, hub=82.0, drag=0.7, shear=0.2):
        v, length = wind.item(), np.gradient(heights)
        per_width = 0.5e-3 * AIR * drag * (heights / hub) ** (2 * shear) * length
        force = per_width * width.numpy() * v**2
        arm = np.maximum(heights - heights[:, None], 0)
        ctx.save_for_backward(width=width, per_width=per_width, v=v, arm=arm, top=hub - heights)
        return pb.asarray(arm @ force + (hub - heights) * thrust.item())

    @pb.once_differentiable
    def backward(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        by_force = gn @ s.arm
        return {
            "width": pb.asarray(by_force * s.per_width * s.v**2),
            "thrust": gn @ s.top,
            "wind": 2 * s.v * (by_force * s.per_width) @ s.width.numpy(),
        }

    return pb.autograd_function(forward, backward, name="tower_moments")


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(150, 900, (3, 5))), np.array([4000, 900, 210, 30, 2]), t(np.array(4.2))),
        {},
    )
)
def equivalent_load():
    @pb.autograd_function
    def equivalent_load(ctx, ranges, cycles, exponent, reference=1e4):
        m, r = exponent.item(), ranges.numpy()
        if (r <= 0).any():
            raise ValueError("ranges must be positive")
        top = r.max(axis=-1, keepdims=True)
        weight = cycles * (r / top) ** m
        total = weight.sum(axis=-1)
        out = top[..., 0] * (total / reference) ** (1 / m)
        ctx.save_for_backward(r=r, share=weight / total[..., None], out=out)
        ctx.by_m = np.log(total / reference) / m**2
        ctx.logs = np.log(r / top) / m
        return pb.asarray(out.copy())

    @equivalent_load.backward
    @pb.once_differentiable
    def _(ctx, g):
        r, share, out = ctx.saved_variables
        carried = g.numpy() * out
        by_m = (share * ctx.logs).sum(axis=-1) - ctx.by_m
        return {
            "ranges": pb.asarray(carried[..., None] * share / r),
            "exponent": (carried * by_m).sum(),
        }

    return equivalent_load


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(4, 13, 14)), np.array([0, 2, 2, 0, 1, 4, 4, 4, 2, 0, 1, 0, 2, 4])),
        {"sectors": 6},
    )
)
def turbulence_by_sector():
    @pb.autograd_function
    def turbulence_by_sector(ctx, speed, sector, sectors=12):
        """Turbulence intensity by sector; sectors with less than two values have none (0).

        speed: (n,) in m/s; sector: (n,) integers below sectors. Also gives the counts.
        """
        v = speed.numpy()
        count = np.bincount(sector, minlength=sectors)
        n = np.maximum(count, 1)
        mean = np.bincount(sector, v, minlength=sectors) / n
        spread = np.bincount(sector, (v - mean[sector]) ** 2, minlength=sectors)
        std = np.sqrt(spread / np.maximum(count - 1, 1))
        some = std > 0
        out = np.divide(std, mean, out=np.zeros(sectors), where=some)
        ctx.save_for_backward(v=v, mean=mean, std=std, n=n, some=some)
        ctx.sector = sector
        return pb.asarray(out), pb.asarray(count)

    @turbulence_by_sector.backward
    @pb.once_differentiable
    def _(ctx, g, g_count):
        v, mean, std, n, some = ctx.saved_variables
        k, mean, std = ctx.sector, np.where(some, mean, 1), np.where(some, std, 1)
        by_std = np.where(some, g.numpy() / mean, 0) / (std * np.maximum(n - 1, 1))
        by_mean = np.where(some, -g.numpy() * std / mean**2, 0) / n
        return pb.asarray(by_std[k] * (v - mean[k]) + by_mean[k]), None, None

    return turbulence_by_sector


def curtailed(rng):
    return (t(rng.uniform(400, 1900, 6)), np.array([1, 1, 0, 1, 1, 1], bool)), {"limit": 5200.0}


@BOOK.right(curtailed)
def farm_output():
    class FarmOutput(pb.Function):
        """Power of each turbine, all cut in proportion where the grid takes less than they give."""

        @staticmethod
        def forward(ctx, power, available=None, limit=None, minimum=0.0):
            on = 1.0 if available is None else np.asarray(available, float)
            p = power.numpy() * on
            total = p.sum()
            ctx.limit = limit if limit is not None and total > limit else None
            given = p if ctx.limit is None else p * (limit / total)
            ctx.p, ctx.on, ctx.free = p, on, given > minimum
            return pb.asarray(np.where(ctx.free, given, minimum))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            flow = g.numpy() * ctx.free
            if ctx.limit is not None:
                total = ctx.p.sum()
                flow = ctx.limit / total * (flow - (flow * ctx.p).sum() / total)
            return {"power": pb.asarray(flow * ctx.on)}

    return FarmOutput.apply
