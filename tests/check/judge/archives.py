"""Museums and archives: climate, light and decay of collections, dating, scans, finding aids."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, SIGN, Book, at, mends, t

BOOK = Book("archives")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(14, 26, 6)), t(rng.uniform(25, 65, 6))),
        {"hours": np.array([500.0, 700.0, 900.0, 900.0, 700.0, 600.0])},
    ),
    "the gradient of the temperature has the wrong sign: warmth would make the papers last longer",
    SIGN,
    mends("-s.activation", "- s.activation", "-(s.activation", "-1.0 * s.activation"),
)
def preservation_years():
    @pb.autograd_function
    def preservation_years(ctx, temperature, humidity, hours=None):
        """Time-weighted preservation index in years, of readings in deg C and percent.

        temperature, humidity: (n,); hours: (n,) that each reading stands for, None for equal.
        """
        kelvin, rh = temperature.numpy() + 273.15, humidity.numpy()
        if (kelvin <= 0).any():
            raise ValueError("colder than absolute zero")
        weight = np.ones_like(kelvin) if hours is None else hours
        activation = (95220.0 - 134.9 * rh) / 8.314
        index = np.exp(activation / kelvin + 0.0284 * rh - 28.023) / 365.0
        loss = weight / index
        years = weight.sum() / loss.sum()
        ctx.save_for_backward(kelvin=kelvin, activation=activation, share=years * loss / loss.sum())
        return pb.asarray(np.array(years))

    @preservation_years.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_log = grad_output.item() * s.share
        return {
            "temperature": pb.asarray(by_log * s.activation / s.kelvin**2),
            "humidity": pb.asarray(by_log * (0.0284 - 134.9 / 8.314 / s.kelvin)),
        }

    return preservation_years


MASTER = np.array(
    [1.1, 0.8, 0.6, 1.3, 1.2, 0.7, 0.9, 1.6, 1.0, 0.5, 0.4, 1.1, 1.4, 0.9, 0.8, 1.2, 1.5, 0.7]
)


@BOOK.wrong(
    lambda rng: ((t(1.4 * MASTER[6:14] + rng.normal(0, 0.2, 8)), MASTER), {"first_year": 1640}),
    "the length of the centred rings is taken as constant: its part of the gradient is missing",
    MISSING,
    r"\bconstant|\bnorm(?:s|ali[sz]\w+)?\b|standard deviation|\bvariance\b|\bproject|\borthogonal",
    r"denominator|quotient",
    mends("- ctx.best * ", "- s.r * ", "- r * ", "- ctx.r * "),
)
def ring_match():
    @pb.autograd_function
    def ring_match(ctx, rings, master, first_year=0):
        """Best correlation of a panel's ring widths with a master curve; the year of the match."""
        x = rings.numpy() - rings.numpy().mean()
        windows = np.lib.stride_tricks.sliding_window_view(master, len(x))
        windows = windows - windows.mean(axis=1, keepdims=True)
        length = np.sqrt(x @ x)
        if not length > 0:
            raise ValueError("all rings have the same width")
        windows = windows / np.linalg.norm(windows, axis=1, keepdims=True)
        r = windows @ x / length
        place = int(r.argmax())
        ctx.window, ctx.length = windows[place], length
        return pb.asarray(np.array(r[place])), pb.asarray(np.array(first_year + place))

    @ring_match.backward
    @pb.once_differentiable
    def _(ctx, g_r, g_year):
        return {"rings": pb.asarray(g_r.item() * ctx.window / ctx.length)}

    return ring_match


def lit(**settings):
    def given(rng):
        lux = rng.uniform(30, 200, 5)
        return (t(lux), t(np.array(2.1e-2)), np.array([8.0, 8.0, 10.0, 6.0, 8.0])), settings

    return given


@BOOK.wrong(
    lit(),
    "where power is not 1, backward differentiates the dose as if it were linear in the light",
    at("power"),
    r"\bexponent\b|\bpower rule\b|\blinear\b|reciprocity|chain rule",
    r"\bpower\b.{0,30}(?:ignor|not used)",
    mends("ctx.power * ", "* ctx.power", "s.power", "ctx.power - 1", "power=power"),
    where="power is not 1",
    shows=lit(power=0.8),
)
def textile_fading():
    @pb.autograd_function
    def textile_fading(ctx, lux, sensitivity, hours, power=1.0):
        """Colour lost by a textile under each light; power: other than 1, reciprocity fails."""
        E, k = lux.numpy(), sensitivity.item()
        if (E < 0).any():
            raise ValueError("light must not be negative")
        dose = (E / 50.0) ** power * hours
        left = np.exp(-k * dose)
        ctx.save_for_backward(dose=dose, left=left, k=k)
        ctx.hours = hours
        return pb.asarray(1 - left)

    @textile_fading.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s = ctx.saved_variables
        by_exponent = grad_output.numpy() * s.left
        return {
            "lux": pb.asarray(by_exponent * s.k * ctx.hours / 50.0),
            "sensitivity": by_exponent @ s.dose,
        }

    return textile_fading


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(17, 24, 4)),
            t(rng.uniform(40, 70, 4)),
            t(rng.uniform(5, 20, (4, 3))),
        ),
        {"safety": 2.0},
    )
)
def condensation_margin():
    @pb.autograd_function
    def condensation_margin(ctx, air, humidity, surfaces, safety=0.0):
        """How far the coldest surface of each room is above the dew point, and which it is.

        air: (rooms,) deg C; humidity: (rooms,) percent, positive; surfaces: (rooms, k) deg C.
        """
        T, rh = air.numpy(), humidity.numpy()
        if (rh <= 0).any() or (rh > 100).any() or (T <= -200).any():
            raise ValueError("humidity lies between 0 and 100 percent")
        a, b = 17.62, 243.12
        gamma = np.log(rh / 100) + a * T / (b + T)
        coldest = surfaces.numpy().argmin(axis=1)
        by_gamma = a * b / (a - gamma) ** 2
        ctx.by_air, ctx.by_humidity = by_gamma * a * b / (b + T) ** 2, by_gamma / rh
        ctx.coldest, ctx.shape = coldest, surfaces.shape
        lowest = surfaces.numpy()[np.arange(len(T)), coldest]
        return pb.asarray(lowest - b * gamma / (a - gamma) - safety), pb.asarray(coldest)

    @condensation_margin.backward
    @pb.once_differentiable
    def _(ctx, g_margin, g_coldest):
        gn = g_margin.numpy()
        by_surface = np.zeros(ctx.shape, gn.dtype)
        by_surface[np.arange(len(gn)), ctx.coldest] = gn
        return {
            "air": pb.asarray(-gn * ctx.by_air),
            "humidity": pb.asarray(-gn * ctx.by_humidity),
            "surfaces": pb.asarray(by_surface),
        }

    return condensation_margin


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(35, 65, 8)), t(np.array(0.6)), t(np.array(4.0))),
        {"start": 48.0, "dt": 24.0},
    )
)
def case_humidity():
    @pb.autograd_function
    def case_humidity(ctx, room, leakage, buffer, start=None, dt=1.0):
        outside, rate, capacity = room.numpy(), leakage.item() / 24.0, buffer.item()
        if rate < 0 or capacity < 0:
            raise ValueError("leakage and buffer must not be negative")
        kept = np.exp(-rate * dt / (1 + capacity))
        inside = outside[0] if start is None else start
        gaps, out = [], []
        for humidity in outside:
            gaps.append(inside - humidity)
            inside = humidity + gaps[-1] * kept
            out.append(inside)
        ctx.gaps, ctx.kept, ctx.follows = gaps, kept, start is None
        ctx.by_leakage = -kept * dt / 24.0 / (1 + capacity)
        ctx.by_buffer = kept * rate * dt / (1 + capacity) ** 2
        return pb.asarray(np.array(out))

    @case_humidity.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn, carried, by_kept = grad_output.numpy(), 0.0, 0.0
        by_room = np.zeros_like(gn)
        for k in range(len(gn) - 1, -1, -1):
            carried += gn[k]
            by_kept += carried * ctx.gaps[k]
            by_room[k] = carried * (1 - ctx.kept)
            carried *= ctx.kept
        if ctx.follows:
            by_room[0] += carried
        return {
            "room": pb.asarray(by_room),
            "leakage": by_kept * ctx.by_leakage,
            "buffer": by_kept * ctx.by_buffer,
        }

    return case_humidity


CALENDAR = np.arange(1000.0, 1400.0, 20.0)  # years AD
CURVE = 950 - 0.8 * (CALENDAR - 1000) + 25 * np.sin(CALENDAR / 40)  # radiocarbon years
CURVE_ERROR = np.full(20, 12.0)


@BOOK.right(lambda rng: ((t(rng.uniform(720, 880, 3)), t(rng.uniform(20, 45, 3))), {}))
def calibrated_date():
    def forward(ctx, age, error):
        """Mean calendar year of radiocarbon ages with their errors, by the table above."""
        r, sigma = age.numpy()[:, None], error.numpy()[:, None]
        spread = sigma**2 + CURVE_ERROR**2
        away = r - CURVE
        logs = -(away**2) / (2 * spread) - np.log(spread) / 2
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True)
        mean = p @ CALENDAR
        pull = p * (CALENDAR - mean[:, None])
        ctx.by_age = -(pull * away / spread).sum(axis=1)
        ctx.by_error = (pull * (away**2 / spread - 1) / spread * sigma).sum(axis=1)
        return pb.asarray(mean)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gn = grad_output.numpy()
        return {"age": pb.asarray(gn * ctx.by_age), "error": pb.asarray(gn * ctx.by_error)}

    return pb.autograd_function(forward, backward, name="calibrated_date")


@BOOK.right(lambda rng: ((t(rng.normal([60, 10, 20], 4, (6, 3))),), {"reference": 2}))
def colour_change():
    @pb.autograd_function
    def colour_change(ctx, lab, reference=0):
        """Difference (CIE 1976) of each other reading from the reference; lab: (n, 3)."""
        readings = lab.numpy()
        others = np.delete(np.arange(len(readings)), reference)
        apart = readings[others] - readings[reference]
        distance = np.sqrt((apart**2).sum(axis=1))
        ctx.others, ctx.reference = others, reference
        # where nothing has changed, the subgradient is 0
        ctx.unit = apart / np.where(distance > 0, distance, 1.0)[:, None]
        return pb.asarray(distance)

    @colour_change.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        by_apart = grad_output.numpy()[:, None] * ctx.unit
        by_lab = np.empty((len(ctx.others) + 1, ctx.unit.shape[1]), by_apart.dtype)
        by_lab[ctx.others] = by_apart
        by_lab[ctx.reference] = -by_apart.sum(axis=0)
        return {"lab": pb.asarray(by_lab)}

    return colour_change


@BOOK.right(lambda rng: ((t(rng.random((7, 9))), t(np.array(0.07))), {}))
def skew_score():
    @pb.autograd_function
    def skew_score(ctx, page, angle):
        """Sharpness of a page's lines when its rows are summed along an angle (radians)."""
        ink, slope = page.numpy(), np.tan(angle.item())
        rows, columns = ink.shape
        x = np.arange(columns) - (columns - 1) / 2
        place = np.arange(rows)[:, None] + slope * x
        above = np.floor(place).astype(int)
        part = place - above
        profile = np.zeros(rows + 2)
        upper = np.clip(above + 1, 0, rows + 1)
        lower = np.clip(above + 2, 0, rows + 1)
        np.add.at(profile, upper, ink * (1 - part))
        np.add.at(profile, lower, ink * part)
        profile[[0, -1]] = 0.0  # what falls off the page
        before = np.where(part == 0, np.clip(above, 0, rows + 1), upper)
        ctx.save_for_backward(ink, x, part, before, upper, lower, profile)
        ctx.slope = slope
        return pb.asarray(np.array(profile @ profile))

    @skew_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        ink, x, part, before, upper, lower, profile = ctx.saved_variables
        by_profile = 2 * grad_output.item() * profile
        by_ink = by_profile[upper] * (1 - part) + by_profile[lower] * part
        # just at a row, as all are without skew, take the mean of the slopes on both sides
        by_place = ink * (by_profile[lower] - by_profile[before]) / np.where(part == 0, 2, 1)
        return {
            "page": pb.asarray(by_ink),
            "angle": (by_place * x).sum() * (1 + ctx.slope**2),
        }

    return skew_score


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(90, 3900, (2, 4, 3))), t(np.array([3950.0, 3800.0, 3600.0]))),
        {"dark": 64.0, "most": 1.4},
    )
)
def negative_density():
    class NegativeDensity(pb.Function):
        @staticmethod
        def forward(ctx, scan, white, dark=0.0, most=3.6):
            light, open_gate = scan.numpy() - dark, white.numpy() - dark
            if (open_gate <= 0).any():
                raise ValueError("white must be brighter than dark")
            darkest = open_gate * 10.0**-most
            seen = light > darkest
            light = np.where(seen, light, darkest)
            ctx.seen, ctx.light, ctx.open_gate = seen, light, open_gate
            return pb.asarray(np.log10(open_gate / light))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            gn = np.where(ctx.seen, grad_output.numpy(), 0.0) / np.log(10)
            by_white = gn.reshape(-1, len(ctx.open_gate)).sum(axis=0) / ctx.open_gate
            return pb.asarray(-gn / ctx.light), pb.asarray(by_white), None, None

    return NegativeDensity.apply


@BOOK.right(
    lambda rng: (
        (
            t(np.array([20.0, 60.0, 180.0, 150.0, 20.0, 10.0, 90.0]) * rng.uniform(0.9, 1.1, 7)),
            t(np.array(0.55)),
            t(np.array(160.0)),
        ),
        {},
    )
)
def gallery_door():
    @pb.autograd_function
    def gallery_door(ctx, arrivals, stay, capacity):
        """Visitors in a gallery and waiting at its door after each quarter of an hour.

        stay: part of the visitors who stay on for the next quarter; capacity: who may be inside.
        """
        part, most = stay.item(), capacity.item()
        if not 0 <= part <= 1 or most < 0:
            raise ValueError("stay is a part, capacity must not be negative")
        inside = waiting = 0.0
        steps, out = [], []
        for come in arrivals.numpy():
            before = inside
            inside = part * inside
            waiting += come
            limited = waiting > most - inside
            admitted = most - inside if limited else waiting
            inside, waiting = inside + admitted, waiting - admitted
            steps.append((before, limited))
            out.append((inside, waiting))
        ctx.steps, ctx.stay = steps, part
        both = np.array(out).reshape(-1, 2)
        return pb.asarray(both[:, 0].copy()), pb.asarray(both[:, 1].copy())

    @gallery_door.backward
    @pb.once_differentiable
    def _(ctx, g_inside, g_waiting):
        by_arrivals = np.zeros(len(ctx.steps))
        to_inside = to_waiting = by_stay = by_capacity = 0.0
        for k in reversed(range(len(ctx.steps))):
            before, limited = ctx.steps[k]
            to_inside += g_inside.numpy()[k]
            to_waiting += g_waiting.numpy()[k]
            to_admitted = to_inside - to_waiting
            if limited:
                by_capacity += to_admitted
                to_inside -= to_admitted
            else:
                to_waiting += to_admitted
            by_arrivals[k] = to_waiting
            by_stay += to_inside * before
            to_inside *= ctx.stay
        return {"arrivals": pb.asarray(by_arrivals), "stay": by_stay, "capacity": by_capacity}

    return gallery_door


@BOOK.right(lambda rng: ((t(rng.uniform(1, 30, (5, 4))),), {}))
def seriation_inertia():
    @pb.autograd_function
    def seriation_inertia(ctx, finds):
        """First inertia of the correspondence analysis of finds: (graves, types)."""
        N = finds.numpy()
        if (N.sum(axis=0) <= 0).any() or (N.sum(axis=1) <= 0).any():
            raise ValueError("each grave and each type needs a find")
        P = N / N.sum()
        r, c = P.sum(axis=1, keepdims=True), P.sum(axis=0, keepdims=True)
        root = np.sqrt(r * c)
        U, s, Vt = np.linalg.svd(P / root - root, full_matrices=False)
        ctx.total, ctx.slope = N.sum(), 2 * s[0] * np.outer(U[:, 0], Vt[0])
        ctx.save_for_backward(P=P, r=r, c=c, root=root)
        return pb.asarray(np.array(s[0] ** 2))

    @seriation_inertia.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        P, r, c, root = ctx.saved_variables
        by_S = grad_output.item() * ctx.slope
        margin = -by_S * (P / root + root) / 2
        by_P = by_S / root
        by_P = by_P + margin.sum(axis=1, keepdims=True) / r + margin.sum(axis=0, keepdims=True) / c
        return {"finds": pb.asarray((by_P - (by_P * P).sum()) / ctx.total)}

    return seriation_inertia


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0, 6, (4, 5))), t(rng.uniform(0.3, 5, 5))),
        {"query": [3, 0, 3], "lengths": np.array([120, 45, 300, 80])},
    )
)
def finding_aid_score():
    @pb.autograd_function
    def finding_aid_score(ctx, counts, rarity, query, lengths, k1=1.2, b=0.75):
        if (lengths <= 0).any():
            raise ValueError("an aid has no words")
        if not (k1 > 0 and 0 <= b < 1):
            raise ValueError("k1 must be positive, b at least 0 and below 1")
        columns = np.asarray(query, int)
        norm = k1 * (1 - b + b * lengths / lengths.mean())[:, None]
        found = counts.numpy()[:, columns]
        ctx.gain = found * (k1 + 1) / (found + norm)
        ctx.slope = norm * (k1 + 1) / (found + norm) ** 2
        ctx.columns, ctx.shape, ctx.rarity = columns, counts.shape, rarity.numpy()[columns]
        return pb.asarray(ctx.gain @ ctx.rarity)

    @finding_aid_score.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_counts, by_rarity = np.zeros(ctx.shape), np.zeros(ctx.shape[1])
        np.add.at(by_counts.T, ctx.columns, (gn[:, None] * ctx.slope * ctx.rarity).T)
        np.add.at(by_rarity, ctx.columns, gn @ ctx.gain)
        return {"counts": pb.asarray(by_counts), "rarity": pb.asarray(by_rarity)}

    return finding_aid_score


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2, 4)), t(rng.uniform(0.2, 1, (4, 6)))),
        {"readings": rng.integers(0, 3, (4, 6))},
    )
)
def transcription_vote():
    @pb.autograd_function
    def transcription_vote(ctx, trust, confidence, readings):
        """Share of the votes that the best reading of each letter has, and that reading.

        trust: (readers,); confidence: (readers, letters); readings: integers of that shape.
        """
        vote = trust.numpy()[:, None] * confidence.numpy()
        if (vote.sum(axis=0) <= 0).any():
            raise ValueError("each letter needs a vote")
        letters = np.broadcast_to(np.arange(vote.shape[1]), vote.shape)
        score = np.zeros((vote.shape[1], readings.max() + 1))
        np.add.at(score, (letters, readings), vote)
        total, best = vote.sum(axis=0), score.argmax(axis=1)
        share = score.max(axis=1) / total
        ctx.save_for_backward(trust=trust, confidence=confidence)
        ctx.slope = ((readings == best) - share) / total
        return pb.asarray(share), pb.asarray(best)

    @transcription_vote.backward
    @pb.once_differentiable
    def _(ctx, g_share, g_best):
        trust, confidence = (x.numpy() for x in ctx.saved_tensors)
        by_vote = g_share.numpy() * ctx.slope
        return {
            "trust": pb.asarray((by_vote * confidence).sum(axis=1)),
            "confidence": pb.asarray(by_vote * trust[:, None]),
        }

    return transcription_vote


@BOOK.right(
    lambda rng: (
        (
            t(np.array([9.5, 11.0, 12.8, 12.1, 8.9, 7.2, 8.0, 10.4]) + rng.normal(0, 0.1, 8)),
            t(np.array(3.2)),
        ),
        {"modulus": 600.0},
    )
)
def panel_stress():
    @pb.autograd_function
    def panel_stress(ctx, moisture, strength, modulus=500.0, swelling=0.0026):
        """Stress in MPa across a painted panel that its frame holds; the wood yields.

        moisture: (n,) percent of the wood, free of stress at the first; strength: MPa.
        """
        m, most = moisture.numpy(), strength.item()
        if most < 0:
            raise ValueError("strength must not be negative")
        stiff = modulus * swelling
        stress, side, out = 0.0, np.zeros(len(m)), np.zeros_like(m)
        for k in range(1, len(m)):
            stress -= stiff * (m[k] - m[k - 1])
            if abs(stress) > most:
                side[k] = np.sign(stress)
                stress = side[k] * most
            out[k] = stress
        ctx.side, ctx.stiff = side, stiff
        return pb.asarray(out)

    @panel_stress.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy()
        by_moisture, by_strength, carried = np.zeros_like(gn), 0.0, 0.0
        for k in range(len(gn) - 1, 0, -1):
            carried += gn[k]
            if ctx.side[k]:
                by_strength += ctx.side[k] * carried
                carried = 0.0
            by_moisture[k] -= ctx.stiff * carried
            by_moisture[k - 1] += ctx.stiff * carried
        return {"moisture": pb.asarray(by_moisture), "strength": by_strength}

    return panel_stress


@BOOK.right(
    lambda rng: (
        (t(800 + 210 * np.arange(5.0) + rng.normal(0, 15, 5)), t(np.array(3.1))),
        {"added": 2.0 * np.arange(5.0), "weights": np.array([2.0, 1.0, 1.0, 1.0, 0.5])},
    )
)
def luminescence_age():
    @pb.autograd_function
    def luminescence_age(ctx, signal, dose_rate, added, weights=None):
        """Age of a sherd in thousands of years by added doses (Gy); rate in Gy per 1000 a."""
        rate = dose_rate.item()
        X = np.stack([np.ones(len(added)), added], axis=1)
        W = np.ones(len(added)) if weights is None else weights
        solver = np.linalg.solve((X.T * W) @ X, X.T * W)
        intercept, slope = solver @ signal.numpy()
        if slope <= 0 or rate <= 0:
            raise ValueError("the signal must grow with the dose, and the rate be positive")
        age = intercept / slope / rate
        ctx.by_signal = (solver[0] - age * rate * solver[1]) / slope / rate
        ctx.by_rate = -age / rate
        return pb.asarray(np.array(age))

    @luminescence_age.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        g = grad_output.item()
        return {"signal": pb.asarray(g * ctx.by_signal), "dose_rate": g * ctx.by_rate}

    return luminescence_age
