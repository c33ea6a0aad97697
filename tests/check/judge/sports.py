"""Sports: ratings after games, finishing orders, tracking data, training load, laps, points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph

import pullback as pb

from .entries import CHANGED, Book, at, mends, t

BOOK = Book("sports")

HOME, AWAY = np.array([0, 2, 1, 3, 0, 1]), np.array([1, 0, 3, 2, 3, 2])


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(1500, 120, 4)), t(np.array(24.0)), t(np.array(60.0))),
        {"home": HOME, "away": AWAY, "score": np.array([1, 0.5, 0, 1, 1, 0.5])},
    ),
    "the gradient of the advantage is that of one game, not the sum over the games",
    r"accumulat|overwr|sum(?:med)? (?:over|of) (?:the |all )?(?:games|matches|steps|rounds)",
    r"(?:first|last|one|single|final|only|every|all|each|other) (?:the )?(?:games?|match|steps?)",
    r"\ball (?:the )?games|(?:games|matches|iterations).{0,30}(?:missing|left out|ignored|forgot)",
    mends("by_advantage += ", "by_advantage = by_advantage +", "sum(by_adv", "advantages.append"),
)
def elo_after_season():
    @pb.autograd_function
    def elo_after_season(ctx, ratings, k, advantage, home, away, score):
        """Elo ratings after the games in order; score: 1, 0.5 or 0 for the home side."""
        r, missed = ratings.numpy().copy(), []
        for h, a, s in zip(home, away, score, strict=True):
            expected = 1 / (1 + 10 ** ((r[a] - r[h] - advantage.item()) / 400))
            r[h] += k.item() * (s - expected)
            r[a] -= k.item() * (s - expected)
            missed.append((h, a, s, expected))
        ctx.save_for_backward(k=k, games=missed)
        return pb.asarray(r)

    @elo_after_season.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        k, adjoint = ctx.saved_variables.k.item(), grad_output.numpy().copy()
        by_k = by_advantage = 0.0
        for h, a, s, expected in reversed(ctx.saved_variables.games):
            flow = adjoint[h] - adjoint[a]
            by_k += flow * (s - expected)
            slope = -flow * k * expected * (1 - expected) * np.log(10) / 400
            by_advantage = slope
            adjoint[h] += slope
            adjoint[a] -= slope
        return {
            "ratings": pb.asarray(adjoint),
            "k": pb.asarray(np.array(by_k)),
            "advantage": pb.asarray(np.array(by_advantage)),
        }

    return elo_after_season


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=4)), t(np.array(0.7)), np.stack([HOME, AWAY], 1)),
        {"outcome": np.array([1, -1, 1, 1, -1, 1])},
    ),
    "what a draw adds to the two strengths, half each, is forgotten",
    r"\bdraws?\b|\bdrawn\b|\bties?\b|\btied\b",
    r"outcome`?.{0,30}(?:\bis\b|==?|of|\bwas\b) ?(?:0|zero)\b|\bzero outcome",
    at("outcome"),
    mends("0.5 * drawn", "drawn / 2", "0.5 * (outcome == 0)", "(outcome == 0) / 2", "drawn * 0.5"),
    where="a draw",
    shows=lambda rng: (
        (t(rng.normal(size=4)), t(np.array(0.7)), np.stack([HOME, AWAY], 1)),
        {"outcome": np.array([1, 0, -1, 0, 0, 1])},
    ),
)
def davidson_nll():
    class Davidson(pb.Function):
        """Paired comparisons with draws (Davidson 1970), as a mean negative log likelihood.

        strength: (teams,) logarithms. pairs: (games, 2). outcome: 1 if the first team won, -1 if
        the second did, 0 for a draw.
        """

        @staticmethod
        def forward(ctx, strength, nu, pairs, outcome):
            first, second = strength.numpy()[pairs].T
            middle = (first + second) / 2
            total = np.exp(first) + np.exp(second) + nu.item() * np.exp(middle)
            won = np.where(outcome > 0, first, second)
            logp = np.where(outcome == 0, np.log(nu.item()) + middle, won) - np.log(total)
            ctx.shares = np.exp(np.stack([first, second, middle])) / total
            ctx.n, ctx.nu, ctx.pairs, ctx.outcome = len(strength), nu.item(), pairs, outcome
            return pb.asarray(np.array(-logp.mean()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            outcome, scale = ctx.outcome, -g.item() / len(ctx.outcome)
            p_first, p_second, middle = ctx.shares
            drawn = outcome == 0
            to_first = (outcome > 0) - p_first - ctx.nu * middle / 2
            to_second = (outcome < 0) - p_second - ctx.nu * middle / 2
            grad = np.bincount(ctx.pairs[:, 0], to_first, ctx.n)
            grad += np.bincount(ctx.pairs[:, 1], to_second, ctx.n)
            by_nu = (drawn / ctx.nu - middle).sum()
            return {
                "strength": pb.asarray(scale * grad),
                "nu": pb.asarray(np.array(scale * by_nu)),
            }

    return Davidson.apply


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(600, 800, 5)), t(rng.uniform(600, 800, 5))),
        {"games": 162, "exponent": 1.83},
    ),
    "the exponent follows from the runs where none is given, but the gradient has it constant",
    at("exponent"),
    r"exponent.{0,90}(?:constant|depend|fixed|gradient|missing|ignored|through|deriv)",
    r"0?\.287|log\(\w+ ?/ ?\w+\)|through the (?:exponent|power)|pythagenpat",
    mends(
        "0.287 * slope",
        "slope * 0.287",
        "0.287 / (",
        "0.287 * (scored",
        "(scored / allowed).log()",
        "by_exponent",
    ),
    where="exponent is None",
    shows=lambda rng: ((t(rng.uniform(500, 900, 5)), t(rng.uniform(500, 900, 5))), {}),
)
def expected_wins():
    @pb.autograd_function
    def expected_wins(ctx, scored, allowed, games=162, exponent=None):
        """Share of games won, from runs; without an exponent that of runs a game to 0.287."""
        ctx.exponent = exponent
        if exponent is None:
            ctx.exponent = ((scored + allowed) / games) ** 0.287
        ctx.save_for_backward(scored, allowed)
        return 1 / (1 + (allowed / scored) ** ctx.exponent)

    @expected_wins.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        scored, allowed = ctx.saved_tensors
        share = 1 / (1 + (allowed / scored) ** ctx.exponent)
        slope = grad_output * share * (1 - share) * ctx.exponent
        return {"scored": slope / scored, "allowed": -slope / allowed}

    return expected_wins


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(6, 2)).cumsum(0)),), {"rate": 25.0}),
    "the first and the last frame, with differences of two frames, are divided as the others are",
    r"\b(?:first|last|end|edge|outer|boundary) ?(?:frames?|rows?|elements?|points?|differences?)",
    r"\b(?:ends?|edges?|bound\w+|borders?|one.sided)\b",
    r"(?:rows?|index|indices|elements?|positions?|frames?|axis 0) .{0,15}(?:\b0\b|-1)",
    mends("gv[0] *= 2", "gv[[0, -1]] *= 2", "2 * gv[0]", "gv[0] * 2", "gv[0] * ctx.rate"),
)
def player_speed():
    @pb.autograd_function
    def player_speed(ctx, track, rate=10.0):
        """Speed in m/s in each frame of a track (frames, 2) in m; rate: frames a second."""
        xy = track.numpy()
        velocity = np.empty_like(xy)
        velocity[1:-1] = (xy[2:] - xy[:-2]) * (rate / 2)
        velocity[0] = (xy[1] - xy[0]) * rate
        velocity[-1] = (xy[-1] - xy[-2]) * rate
        speed = np.hypot(*velocity.T)
        ctx.velocity, ctx.speed, ctx.rate = velocity, speed, rate
        return pb.asarray(speed.copy())

    @player_speed.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        standing = ctx.speed == 0
        unit = ctx.velocity / np.where(standing, 1.0, ctx.speed)[:, None]
        gv = grad_output.numpy()[:, None] * unit * ctx.rate / 2
        grad = np.zeros_like(gv)
        grad[2:] += gv[1:-1]
        grad[:-2] -= gv[1:-1]
        grad[:2] += gv[0] * np.array([[-1.0], [1.0]])
        grad[-2:] += gv[-1] * np.array([[-1.0], [1.0]])
        return pb.asarray(grad)

    return player_speed


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), np.array([4, 0, 5, 2, 1, 3])), {}),
    "the sum over the stages runs backwards: from the last runner on, not from the winner on",
    r"\brevers|\bmirror|\bflipped|flip\w* (?:too|once|twice)|\bbackwards?\b (?:order|sum|cum)",
    r"from the (?:end|last|start|first|winner|top|front)|(?:without|no) (?:the )?flip",
    r"cumulative|\brunning sum|\bdirection\b|\btriang|cumsum.{0,30}\b(?:wrong|other|from)\b",
    r"(?:earlier|later|before|after|all) (?:the )?(?:places?|runners?|finish\w*|stages?)",
    mends("pb.cumsum(1 / left", "(1 / left).cumsum(0)", "left.reciprocal().cumsum(0)"),
)
def finishing_order_nll():
    def forward(ctx, ability, order):
        """Plackett-Luce: order[0] is the index of the winner; ability: (runners,)."""
        index = pb.asarray(np.asarray(order))
        worth = ability[index].exp()
        left = worth.flip(0).cumsum(0).flip(0)
        ctx.save_for_backward(ability=ability, index=index)
        return (left.log() - ability[index]).sum()

    def backward(ctx, grad_output):
        ability, index = ctx.saved_variables
        worth = ability[index].exp()
        left = worth.flip(0).cumsum(0).flip(0)
        stages = (1 / left).flip(0).cumsum(0).flip(0)
        placed = grad_output * (worth * stages - 1)
        return placed[index.argsort(0)], None

    return pb.autograd_function(forward, backward, name="finishing_order_nll")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(90, 180, 8)), t(np.array(52.0)), t(np.array(191.0))), {}),
    "forward subtracts the rest from the caller's own array: the heart rates are changed",
    CHANGED,
    r"caller|\bcopy\b|\bown array|\balias|shares? (?:its )?memory|(?:input|argument).{0,20}altered",
    mends("(heart_rate.numpy() - rest.item())", "heart_rate.numpy().copy()", "np.array(heart_rate"),
    where="input changed by forward",
)
def training_impulse():
    @pb.autograd_function
    def training_impulse(ctx, heart_rate, rest, peak, minutes=1.0, a=0.64, b=1.92):
        """Banister's TRIMP of a session; heart_rate: (n,), a value for each span of minutes."""
        span = peak.item() - rest.item()
        reserve = heart_rate.numpy()
        reserve -= rest.item()
        reserve = reserve / span
        ctx.reserve, ctx.span = reserve, span
        ctx.minutes, ctx.a, ctx.b = minutes, a, b
        return pb.asarray(np.array(minutes * (reserve * a * np.exp(b * reserve)).sum()))

    @training_impulse.backward
    @pb.once_differentiable
    def _(ctx, g):
        x = ctx.reserve
        slope = g.item() * ctx.minutes * ctx.a * np.exp(ctx.b * x) * (1 + ctx.b * x) / ctx.span
        return {
            "heart_rate": pb.asarray(slope),
            "rest": pb.asarray(np.array(slope @ (x - 1))),
            "peak": pb.asarray(np.array(-slope @ x)),
        }

    return training_impulse


class Rated(NamedTuple):
    rating: Any
    deviation: Any


@BOOK.right(
    lambda rng: (
        (t(1500.0), t(200.0), t(rng.normal(1550, 90, 3)), t(rng.uniform(30, 300, 3))),
        {"score": np.array([1, 0, 0.5])},
    )
)
def glicko_period():
    Q = np.log(10) / 400

    @pb.autograd_function
    def glicko_period(ctx, rating, deviation, opponents, deviations, score):
        """Rating and deviation after a rating period (Glickman 1999)."""
        r, rd, rj, rdj = (x.numpy() for x in (rating, deviation, opponents, deviations))
        if r.ndim or rd.ndim or not rj.shape == rdj.shape == np.shape(score):
            raise ValueError("one player, and a rating, deviation and score for each opponent")
        if rd <= 0:
            raise ValueError("deviation must be positive")
        weight = 1 / np.sqrt(1 + 3 * (Q * rdj / np.pi) ** 2)
        expected = 1 / (1 + np.exp(-Q * weight * (r - rj)))
        spread = expected * (1 - expected)
        surprise = (weight * (score - expected)).sum()
        inverse = 1 / rd**2 + Q**2 * (weight**2 * spread).sum()
        ctx.save_for_backward(rating, deviation, opponents, deviations)
        ctx.parts = weight, expected, surprise, inverse, score
        return Rated(
            pb.asarray(np.array(r + Q * surprise / inverse)),
            pb.asarray(np.array(1 / np.sqrt(inverse))),
        )

    @glicko_period.backward
    @pb.once_differentiable
    def _(ctx, g_rating, g_deviation):
        r, rd, rj, rdj = (x.numpy() for x in ctx.saved_tensors)
        w, e, surprise, inverse, score = ctx.parts
        gr, gd = g_rating.numpy(), g_deviation.numpy()
        to_surprise = gr * Q / inverse
        to_inverse = -gr * Q * surprise / inverse**2 - gd / (2 * inverse**1.5)
        to_logit = e * (1 - e) * (to_inverse * Q**2 * w**2 * (1 - 2 * e) - to_surprise * w)
        to_w = to_surprise * (score - e) + 2 * to_inverse * Q**2 * w * e * (1 - e)
        to_w = to_w + to_logit * Q * (r - rj)
        return {
            "rating": pb.asarray(np.array(gr + Q * (to_logit * w).sum())),
            "deviation": pb.asarray(np.array(-2 * to_inverse / rd**3)),
            "opponents": pb.asarray(-Q * to_logit * w),
            "deviations": pb.asarray(-to_w * w**3 * 3 * (Q / np.pi) ** 2 * rdj),
        }

    return glicko_period


@BOOK.right(
    lambda rng: ((t(rng.normal(0, 9, 6)), t(rng.uniform(0.5, 2, 6)), HOME, AWAY), {"teams": 4})
)
def massey_ratings():
    class MasseyRatings(pb.Function):
        """Ratings of sum 0 whose differences fit the margins in weighted least squares."""

        @staticmethod
        def forward(margin, weight, home, away, teams):
            w = weight.numpy()
            if not margin.shape == w.shape == (len(home),):
                raise ValueError("a margin and a weight for each game")
            if (w <= 0).any():
                raise ValueError("weights must be positive")
            met = coo_array((np.ones(len(w)), (home, away)), shape=(teams, teams))
            if csgraph.connected_components(met, directed=False)[0] != 1:
                raise ValueError("the games must connect all teams")
            side = MasseyRatings.sides(home, away, teams)
            normal = side.T @ (w[:, None] * side) + 1 / teams
            return pb.asarray(np.linalg.solve(normal, side.T @ (w * margin.numpy())))

        @staticmethod
        def sides(home, away, teams):
            games = np.arange(len(home))
            side = np.zeros((len(games), teams))
            side[games, home] += 1
            side[games, away] -= 1
            return side

        @staticmethod
        def setup_context(ctx, inputs, output):
            margin, weight, *ctx.where = inputs
            ctx.save_for_backward(margin=margin, weight=weight, rating=output)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            margin, w, rating = (x.numpy() for x in ctx.saved_tensors)
            side = MasseyRatings.sides(*ctx.where)
            normal = side.T @ (w[:, None] * side) + 1 / len(rating)
            along = side @ np.linalg.solve(normal, grad_output.numpy())
            return {
                "margin": pb.asarray(w * along),
                "weight": pb.asarray(along * (margin - side @ rating)),
            }

    return MasseyRatings.apply


@BOOK.right(
    lambda rng: (
        (t(rng.normal(0, 0.2, 4)), t(rng.normal(0, 0.2, 4)), t(np.array([0.3, -0.1]))),
        {
            "home": HOME,
            "away": AWAY,
            "goals": np.array([[0, 0], [2, 1], [1, 0], [0, 1], [1, 1], [3, 0]]),
        },
    )
)
def dixon_coles_nll():
    def corrections(goals, lam, mu, rho):
        """tau, and its slopes in lam, mu and rho"""
        tau, by = np.ones(len(goals)), np.zeros((3, len(goals)))
        for k, (x, y) in enumerate(goals):
            if x == y == 0:
                tau[k], by[:, k] = 1 - lam[k] * mu[k] * rho, (-mu[k] * rho, -lam[k] * rho, 0)
                by[2, k] = -lam[k] * mu[k]
            elif (x, y) == (0, 1):
                tau[k], by[:, k] = 1 + lam[k] * rho, (rho, 0, lam[k])
            elif (x, y) == (1, 0):
                tau[k], by[:, k] = 1 + mu[k] * rho, (0, rho, mu[k])
            elif x == y == 1:
                tau[k], by[2, k] = 1 - rho, -1
        return tau, by

    @pb.autograd_function
    def dixon_coles_nll(ctx, attack, defence, params, home, away, goals):
        """Poisson goals with Dixon and Coles' correction; params: home advantage and rho."""
        att, dfc = attack.numpy(), defence.numpy()
        gamma, rho = params.numpy()
        lam, mu = np.exp(att[home] - dfc[away] + gamma), np.exp(att[away] - dfc[home])
        tau, by = corrections(goals, lam, mu, rho)
        if (tau <= 0).any():
            raise ValueError("rho is out of bounds for these strengths")
        x, y = goals.T
        ctx.to_log = lam * by[0] / tau + x - lam, mu * by[1] / tau + y - mu
        ctx.to_rho, ctx.sides, ctx.teams = (by[2] / tau).sum(), (home, away), (len(att), len(dfc))
        logp = np.log(tau) + x * np.log(lam) - lam + y * np.log(mu) - mu
        return pb.asarray(np.array(-logp.sum()))

    @dixon_coles_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        to_lam, to_mu = (-g.item() * x for x in ctx.to_log)
        home, away = ctx.sides
        attack, defence = map(np.zeros, ctx.teams)
        np.add.at(attack, home, to_lam)
        np.add.at(attack, away, to_mu)
        np.subtract.at(defence, away, to_lam)
        np.subtract.at(defence, home, to_mu)
        params = np.array([to_lam.sum(), -g.item() * ctx.to_rho])
        return tuple(map(pb.asarray, (attack, defence, params))) + (None,) * 3

    return dixon_coles_nll


@BOOK.right(
    lambda rng: (
        (
            t(np.array([20, 60, 60, 22, 25, 60, 60, 31.0]) + rng.uniform(-1, 1, 8)),
            t(np.array(8.0)),
            t(np.array(14.0)),
        ),
        {"step": 40.0},
    )
)
def lap_time():
    @pb.autograd_function
    def lap_time(ctx, limit, drive, brake, step=10.0):
        """Time along a track, as fast as the speed limits of its points and both engines allow."""
        a, b = drive.item(), brake.item()
        if drive.ndim or brake.ndim or limit.ndim != 1 or len(limit) < 2:
            raise ValueError("two or more limits, one drive and one brake")
        if min(a, b, step) <= 0 or limit.min().item() <= 0:
            raise ValueError("limits, accelerations and step must be positive")
        square = limit.numpy() ** 2
        held = []
        for i in range(len(square) - 1):
            held.append((i, i + 1, square[i] + 2 * a * step < square[i + 1]))
            square[i + 1] = min(square[i + 1], square[i] + 2 * a * step)
        for i in reversed(range(len(square) - 1)):
            held.append((i + 1, i, square[i + 1] + 2 * b * step < square[i]))
            square[i] = min(square[i], square[i + 1] + 2 * b * step)
        speed = np.sqrt(square)
        ctx.save_for_backward(limit=limit, drive=drive, brake=brake, speed=speed, held=held)
        ctx.step = step
        return pb.asarray(np.array((2 * step / (speed[1:] + speed[:-1])).sum()))

    @lap_time.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        to_pair = -2 * ctx.step * g.item() / (s.speed[1:] + s.speed[:-1]) ** 2
        to_speed = np.zeros_like(s.speed)
        to_speed[1:] += to_pair
        to_speed[:-1] += to_pair
        to_square = to_speed / (2 * s.speed)
        engines = {True: 0.0, False: 0.0}
        for source, target, slower in reversed(s.held):
            if slower:
                to_square[source] += to_square[target]
                engines[source < target] += 2 * ctx.step * to_square[target]
                to_square[target] = 0.0
        return {
            "limit": pb.asarray(to_square * 2 * s.limit.numpy()),
            "drive": pb.asarray(np.array(engines[True])),
            "brake": pb.asarray(np.array(engines[False])),
        }

    return lap_time


@BOOK.right(
    lambda rng: (
        (t(np.array([[11.2, 7.1, 13.5, 49.8], [12.0, 6.4, 0.9, 55.0]]) + rng.uniform(0, 0.2)),),
        {
            "factor": np.array([25.4347, 90.5674, 51.39, 1.53775]),
            "base": np.array([18.0, 2.2, 1.5, 82.0]),
            "power": np.array([1.81, 1.4, 1.05, 1.81]),
            "track": np.array([True, False, False, True]),
        },
    )
)
def decathlon_points():
    @pb.autograd_function
    def decathlon_points(ctx, mark, *, factor, base, power, track):
        """Points of each athlete; mark: (athletes, events) in s, or m. No result is below 0."""
        sense = np.where(track, -1.0, 1.0)
        if np.min(power) <= 1:
            raise ValueError("powers must be above 1")
        if np.broadcast(mark.numpy(), factor, base, power, sense).shape != mark.shape:
            raise ValueError("the tables must have an entry for each event")
        ahead = pb.asarray(sense) * (mark - pb.asarray(base))
        points = pb.asarray(factor) * ahead.clamp(min=0.0) ** pb.asarray(power)
        ctx.save_for_backward(mark=mark)
        ctx.table = factor, base, power, track
        return points.sum(dim=-1)

    @decathlon_points.backward
    def _(ctx, g):
        *table, track = ctx.table
        factor, base, power, sense = map(pb.asarray, (*table, np.where(track, -1.0, 1.0)))
        ahead = sense * (ctx.saved_variables.mark - base)
        scores = ahead > 0
        slope = factor * power * sense * pb.where(scores, ahead, 1.0) ** (power - 1)
        return {"mark": g.unsqueeze(-1) * pb.where(scores, slope, 0.0)}

    return decathlon_points
