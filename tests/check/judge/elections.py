"""Elections: polls, swings, vote transfers, seats, indices of proportionality, forecasts."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import FACTOR, REPEATED, STATE, TRANSPOSED, Book, mends, t

BOOK = Book("elections")


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(5e3, 4e4, 5)),), {"seats": np.array([12, 9, 5, 3, 1])}),
    "the half under the root of the least squares index is missing from its gradient",
    FACTOR + r"|multipl|divided by|0\.5 times|\b(?:by|of) 0\.5\b|under the root",
    mends(
        "0.5 * ctx.points",
        "ctx.points * 0.5",
        "0.5 * s.gap",
        "s.gap * 0.5",
        "s.gap / 2",
        "/ (2 * s.root)",
        "ctx.points / 2",
        "0.5 * g.item()",
        "g.item() / 2",
    ),
)
def gallagher_index():
    @pb.autograd_function
    def gallagher_index(ctx, votes, seats, points=100.0):
        """Least squares index of disproportionality between votes and seats by party."""
        v = votes.numpy()
        shares = v / v.sum()
        gap = shares - seats / seats.sum()
        root = np.sqrt(0.5 * (gap**2).sum())
        ctx.save_for_backward(shares=shares, gap=gap, root=root, total=v.sum())
        ctx.points = points
        return pb.asarray(np.asarray(points * root))

    @gallagher_index.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_share = g.item() * ctx.points * s.gap / s.root
        return {"votes": pb.asarray((by_share - by_share @ s.shares) / s.total)}

    return gallagher_index


def last_time(swing):
    def given(rng):
        shares = rng.dirichlet([8.0, 7.0, 6.0, 5.0], 5) * 0.8 + 0.05
        return (t(shares), t(swing + 0.005 * rng.normal(size=4))), {}

    return given


@BOOK.wrong(
    last_time(np.array([0.03, -0.02, 0.01, -0.02])),
    "a share that is cut off at zero has a gradient all the same",
    r"\bclip|\bclamp|\bcut.off|truncat|\boutside\b|\bbound|saturat|\blimit",
    r"\bzeros?\b|should (?:be|get|have) (?:0|none|no)|\bmask|\bnegative\b",
    mends(
        "s.moved > 0",
        "s.moved < 0",
        "s.moved >= 0",
        "s.moved <= 0",
        "0 < s.moved",
        "0 <= s.moved",
        "s.cut > 0",
        "s.cut == 0",
        "s.cut == s.moved",
        "np.where(",
    ),
    where="a party loses more than it had",
    shows=last_time(np.array([0.1, 0.1, 0.05, -0.3])),
)
def uniform_swing():
    @pb.autograd_function
    def uniform_swing(ctx, previous, swing):
        """Projected shares by constituency: (c, p), from the last shares and a national swing."""
        moved = previous.numpy() + swing.numpy()
        cut = np.clip(moved, 0.0, 1.0)
        total = cut.sum(axis=1, keepdims=True)
        ctx.save_for_backward(moved=moved, cut=cut, total=total)
        return pb.asarray(cut / total)

    @uniform_swing.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        mean = (gn * s.cut / s.total).sum(axis=1, keepdims=True)
        by_moved = (gn - mean) / s.total
        return {"previous": pb.asarray(by_moved), "swing": pb.asarray(by_moved.sum(axis=0))}

    return uniform_swing


def polls(pollster):
    def given(rng):
        n = len(pollster)
        args = (t(rng.uniform(0.4, 0.5, n)), t(rng.normal(0, 0.02, 5)), t(np.array(14.0)))
        return args, {
            "pollster": np.array(pollster),
            "age": rng.integers(0, 40, n),
            "size": rng.integers(500, 2500, n),
        }

    return given


@BOOK.wrong(
    polls([3, 0, 4, 1]),
    "of a pollster with repeated polls only the last one counts in its house effect's gradient",
    REPEATED,
    r"accumul|scatter|overwr|only (?:the )?(?:last|one)|several polls|\bassign",
    r"np\.add\.at|bincount",
    mends("np.add.at(", "np.subtract.at(", "np.bincount(", "for i, p in"),
    where="a pollster has several polls",
    shows=polls([3, 0, 3, 1, 0, 3]),
)
def poll_average():
    @pb.autograd_function
    def poll_average(ctx, shares, house, halflife, pollster, age, size):
        """Average of polls less their house effects, weighted by size and age in days.

        shares: (polls,); house: (pollsters,), of which pollster: (polls,) tells the one.
        """
        clean = shares.numpy() - house.numpy()[pollster]
        weights = np.sqrt(size) * 0.5 ** (age / halflife.item())
        weights = weights / weights.sum()
        average = weights @ clean
        ctx.save_for_backward(clean=clean, weights=weights, average=average)
        ctx.pollster, ctx.age = pollster, age
        ctx.halflife, ctx.houses = halflife.item(), len(house)
        return pb.asarray(np.asarray(average))

    @poll_average.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_share = g.item() * s.weights
        by_house = np.zeros(ctx.houses)
        by_house[ctx.pollster] -= by_share
        decay = np.log(2) * ctx.age / ctx.halflife**2
        return {
            "shares": pb.asarray(by_share),
            "house": pb.asarray(by_house),
            "halflife": by_share @ (decay * (s.clean - s.average)),
        }

    return poll_average


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(100, 900, (5, 3)) / 1e3), t(rng.normal(size=(3, 3)))), {}),
    "the gradient of the earlier votes takes the transfer matrix where it needs its transpose",
    TRANSPOSED,
    r"rows? (?:and|for) columns?|\badjoint\b",
    mends("s.transfer.T", "s.transfer.swapaxes", "np.transpose(s.transfer", "s.transfer @ gn.T"),
)
def vote_transfer():
    def forward(ctx, earlier, logits):
        """Votes by precinct: (n, k) after each party's voters move: row i of logits: (k, k)."""
        transfer = special.softmax(logits.numpy(), axis=1)
        ctx.save_for_backward(earlier=earlier.numpy(), transfer=transfer)
        return pb.asarray(earlier.numpy() @ transfer)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        s, gn = ctx.saved_variables, grad_output.numpy()
        by_transfer = s.earlier.T @ gn
        spread = s.transfer * by_transfer
        by_logits = spread - s.transfer * spread.sum(axis=1, keepdims=True)
        return pb.asarray(gn @ s.transfer), pb.asarray(by_logits)

    return pb.autograd_function(forward, backward, name="vote_transfer")


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(0, 0.06, 6)), t(np.array(0.03)), t(rng.uniform(0.02, 0.05, 6))),
        {},
    ),
    "the gradients of the errors divide by the variance, which should be to the power 3/2",
    r"\bpower|\bcube|\bcubed\b|\*\* ?3|3 ?/ ?2|\b1\.5\b|\bexponent\b|square root|\bsquared\b",
    FACTOR + r"|divided by|multipl|once more",
    mends(
        "s.total**3",
        "s.total**2 / s.total",
        "/ s.total / s.total**2",
        "s.total * s.total**2",
        "z / s.total**2",
    ),
)
def state_win_probability():
    class StateWinProbability(pb.Function):
        """Chance to win each state, of its margin, a national error and the state's own."""

        @staticmethod
        def forward(ctx, margin, national, local):
            m = margin.numpy()
            total = np.sqrt(national.item() ** 2 + local.numpy() ** 2)
            ctx.save_for_backward(m=m, nation=national.item(), local=local.numpy(), total=total)
            return pb.asarray(special.ndtr(m / total))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            density = np.exp(-0.5 * (s.m / s.total) ** 2) / np.sqrt(2 * np.pi)
            flow = grad_output.numpy() * density
            by_error = -flow * s.m / s.total**2
            return (
                pb.asarray(flow / s.total),
                (by_error * s.nation).sum(),
                pb.asarray(by_error * s.local),
            )

    return StateWinProbability.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.9, 6)),), {}),
    "the table of the recursion is shared by all calls: backward finds that of the last call",
    STATE,
    r"\bshared\b|\b(?:last|latest|later|another|other|second|next) (?:call|use|forward)\b",
    r"outside (?:the )?(?:ctx|context)|\bclosure\b|\bglobal\b|\bnonlocal\b|overwr",
    mends("ctx.tables", "ctx.save_for_backward(tables", "ctx.table", "s.tables"),
    where="second use before the first one's backward",
)
def majority_chance():
    work = {}

    @pb.autograd_function
    def majority_chance(ctx, chances, needed=None):
        """Chance of a majority of the seats, from the chances to win each: (n,)."""
        p = chances.numpy()
        table = np.zeros((len(p) + 1, len(p) + 1))
        table[0, 0] = 1.0
        for i, each in enumerate(p):
            table[i + 1] = (1 - each) * table[i]
            table[i + 1, 1:] += each * table[i, :-1]
        work["table"] = table
        ctx.save_for_backward(chances=chances)
        ctx.needed = len(p) // 2 + 1 if needed is None else needed
        return pb.asarray(np.asarray(table[-1, ctx.needed :].sum()))

    @majority_chance.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        p = ctx.saved_variables.chances.numpy()
        flow, grad = np.zeros(len(p) + 1), np.zeros_like(p)
        flow[ctx.needed :] = grad_output.item()
        for i in reversed(range(len(p))):
            before = work["table"][i]
            grad[i] = flow[1:] @ before[:-1] - flow @ before
            back = (1 - p[i]) * flow
            back[:-1] += p[i] * flow[1:]
            flow = back
        return {"chances": pb.asarray(grad)}

    return majority_chance


@BOOK.right(
    lambda rng: (
        (t(rng.normal(45, 3, 9)), t(np.array(44.0)), t(np.array(2.0))),
        {
            "polled": np.array([1, 0, 1, 1, 0, 0, 1, 0, 1], bool),
            "size": np.array([900, 0, 1200, 600, 0, 0, 1500, 0, 1000]),
        },
    )
)
def poll_tracker():
    @pb.autograd_function
    def poll_tracker(ctx, polls, start, drift, polled, size, doubt=10.0):
        """Support by day in per cent, a random walk filtered from the polls of some days.

        drift: variance added by day; doubt: variance of the start.
        """
        y, mean, variance = polls.numpy(), start.item(), doubt
        steps, track = [], np.empty(len(y))
        for k in range(len(y)):
            variance += drift.item()
            noise = 2500.0 / size[k] if polled[k] else np.inf
            gain = variance / (variance + noise)
            miss = y[k] - mean if polled[k] else 0.0
            steps.append((gain, miss, variance, noise))
            mean += gain * miss
            variance *= 1 - gain
            track[k] = mean
        ctx.steps = steps
        return pb.asarray(track)

    @poll_tracker.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        grad_polls = np.zeros(len(ctx.steps))
        to_mean = to_variance = by_drift = 0.0
        for k in reversed(range(len(ctx.steps))):
            gain, miss, variance, noise = ctx.steps[k]
            to_mean += grad_output.numpy()[k]
            grad_polls[k] = gain * to_mean
            if gain > 0:
                to_gain = to_mean * miss - to_variance * variance
                to_variance = (1 - gain) * to_variance + to_gain * noise * (gain / variance) ** 2
            to_mean *= 1 - gain
            by_drift += to_variance
        return {"polls": pb.asarray(grad_polls), "start": to_mean, "drift": by_drift}

    return poll_tracker


@BOOK.right(
    lambda rng: (
        (t(np.array([41.0, 33.0, 14.0, 9.0, 2.0]) + rng.uniform(-1, 1, 5)),),
        {"seats": 11, "first": 1.4, "step": 2},
    )
)
def highest_averages():
    def forward(ctx, votes, seats, first=1.0, step=1):
        """Give out seats one by one to the highest average.

        Returns the price in votes of the last seat, what each party lacks for one seat more at
        that price, and the seats. Divisors: 1, 1 + step, ...; `first` replaces the first.
        """

        def divisor(won):
            return np.where(won == 0, first, 1.0 + step * won)

        if seats < 1:
            raise ValueError("there must be a seat to give out")
        v = votes.numpy()
        won = np.zeros(len(v), int)
        for _ in range(seats):
            averages = v / divisor(won)
            winner = int(averages.argmax())
            price = averages[winner]
            ctx.by_winner = 1 / divisor(won)[winner]
            won[winner] += 1
        ctx.winner, ctx.wanted = winner, divisor(won)
        return pb.asarray(np.asarray(price)), pb.asarray(price * ctx.wanted - v), pb.asarray(won)

    @pb.once_differentiable
    def backward(ctx, g_price, g_lack, g_seats):
        grad = -g_lack.numpy()
        grad[ctx.winner] += (g_price.item() + g_lack.numpy() @ ctx.wanted) * ctx.by_winner
        return {"votes": pb.asarray(grad)}

    return pb.autograd_function(forward, backward, name="highest_averages")


@BOOK.right(
    lambda rng: (
        (t(np.array([[40, 31, 17, 3.5, 1.5], [25, 4, 33, 30, 2.0]]) * rng.uniform(90, 110)),),
        {"threshold": 0.05},
    )
)
def effective_parties():
    @pb.autograd_function
    def effective_parties(ctx, votes, threshold=0.0):
        """Effective number of parties by district, of votes: (n, k); those below count not."""
        v = votes.numpy()
        if (v < 0).any() or threshold >= 1 / v.shape[1]:
            raise ValueError("votes are not negative, and a party must pass the threshold")
        enough = v >= threshold * v.sum(axis=1, keepdims=True)
        kept = np.where(enough, v, 0.0)
        total, squares = kept.sum(axis=1), (kept**2).sum(axis=1)
        ctx.save_for_backward(kept=kept, enough=enough, total=total, squares=squares)
        return pb.asarray(total**2 / squares)

    @effective_parties.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        ratio = (s.total / s.squares)[:, None]
        by_votes = 2 * ratio - 2 * ratio**2 * s.kept
        return {"votes": pb.asarray(g.numpy()[:, None] * by_votes * s.enough)}

    return effective_parties


@BOOK.right(lambda rng: ((t(rng.normal(0, 2, 7)), t(rng.uniform(0.5, 2.0, 7))), {}))
def median_voter():
    @pb.autograd_function
    def median_voter(ctx, positions, weights):
        """Position of the median voter, interpolated between groups of given weights."""
        if len(positions) < 2 or (weights.numpy() <= 0).any():
            raise ValueError("two groups or more of positive weights are needed")
        order = np.argsort(positions.numpy(), kind="stable")
        p, w = positions.numpy()[order], weights.numpy()[order]
        middle = np.cumsum(w) - w / 2
        j = int(np.searchsorted(middle, w.sum() / 2)) - 1
        between = middle[j + 1] - middle[j]
        share = (w.sum() / 2 - middle[j]) / between
        ctx.order, ctx.j, ctx.share = order, j, share
        ctx.slope = (p[j + 1] - p[j]) / between
        return pb.asarray(np.asarray(p[j] + share * (p[j + 1] - p[j])))

    @median_voter.backward
    @pb.once_differentiable
    def _(ctx, g):
        order, j, share, n = ctx.order, ctx.j, ctx.share, len(ctx.order)
        by_p, by_w = np.zeros(n), np.zeros(n)
        by_p[order[j]], by_p[order[j + 1]] = 1 - share, share

        def counted(i):
            return np.where(np.arange(n) < i, 1.0, 0.5 * (np.arange(n) == i))

        by_w[order] = ctx.slope * (0.5 - (1 - share) * counted(j) - share * counted(j + 1))
        return {"positions": pb.asarray(g.item() * by_p), "weights": pb.asarray(g.item() * by_w)}

    return median_voter


@BOOK.right(lambda rng: ((t(rng.uniform(5, 40, (4, 4))), t(rng.uniform(0, 0.5, (4, 4)))), {}))
def runoff_margin():
    class RunoffMargin(pb.Function):
        """Margin of the second round between the first two of each district.

        votes: (n, k) in the first round; loyalty: (k, k), the part of a beaten candidate's
        voters (row) who come over to another (column). Returns margins and the finalists.
        """

        @staticmethod
        def forward(ctx, votes, loyalty):
            v, moved = votes.numpy(), loyalty.numpy()
            finalists = np.argsort(-v, axis=1)[:, :2]
            margins = np.empty(len(v))
            for i, (a, b) in enumerate(finalists):
                beaten = np.delete(np.arange(v.shape[1]), [a, b])
                gained = v[i, beaten] @ (moved[beaten, a] - moved[beaten, b])
                margins[i] = v[i, a] - v[i, b] + gained
            ctx.save_for_backward(v, moved, finalists)
            return pb.asarray(margins), pb.asarray(finalists)

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_margin, g_finalists):
            v, moved, finalists = ctx.saved_variables
            by_votes, by_loyalty = np.zeros_like(v), np.zeros_like(moved)
            for i, ((a, b), g) in enumerate(zip(finalists, g_margin.numpy(), strict=True)):
                beaten = np.delete(np.arange(v.shape[1]), [a, b])
                by_votes[i, a], by_votes[i, b] = g, -g
                by_votes[i, beaten] = g * (moved[beaten, a] - moved[beaten, b])
                by_loyalty[beaten, a] += g * v[i, beaten]
                by_loyalty[beaten, b] -= g * v[i, beaten]
            return pb.asarray(by_votes), pb.asarray(by_loyalty)

    return RunoffMargin.apply
