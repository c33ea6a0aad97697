"""Economics: production, choice, taxes, ratings, lifetimes, auctions, input-output, markets."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import MISSING, REPEATED, REVERSED, STATE, Book, at, mends, t

BOOK = Book("economics")


def inputs_of_firms(rng):
    return t(rng.uniform(1, 5, (4, 3))), t(rng.dirichlet(np.ones(3)))


@BOOK.wrong(
    lambda rng: (inputs_of_firms(rng), {"elasticity": 0.6}),
    "the power of output is that for constant returns: the setting returns is missing in it",
    at("returns"),
    r"\breturns\b.{0,40}(?:ignored|missing|forgot|left out|exponent|power)",
    r"right (?:only )?(?:if|when|where|for) .{0,12}returns`? ?(?:=|is|==) ?1",
    r"(?:exponent|power) .{0,50}(?:returns|wrong|output|rho|scale)",
    r"\brho ?/ ?(?:ctx\.)?returns\b|returns to scale|increasing|decreasing",
    mends(
        "y / total",
        "ctx.y / ctx.total",
        "y / s.total",
        "y ** (1 - rho / returns)",
        "ctx.y ** (1 - rho / ctx.returns)",
        "rho / returns",
        "rho / ctx.returns",
        "ctx.returns / rho - 1",
        "returns / rho - 1",
    ),
    where="returns is not 1",
    shows=lambda rng: (inputs_of_firms(rng), {"elasticity": 0.6, "returns": 0.7}),
)
def ces_output():
    @pb.autograd_function
    def ces_output(ctx, amounts, shares, elasticity=0.5, returns=1.0):
        """Output with constant elasticity of substitution; amounts: (firms, n), shares: (n,)."""
        if elasticity <= 0 or elasticity == 1:
            raise ValueError("elasticity must be positive and not 1")
        x, rho = amounts.numpy(), 1 - 1 / elasticity
        if (x <= 0).any():
            raise ValueError("amounts must be positive")
        ctx.save_for_backward(amounts=amounts, shares=shares)
        ctx.y = (x**rho @ shares.numpy()) ** (returns / rho)
        ctx.rho, ctx.returns = rho, returns
        return pb.asarray(ctx.y.copy())

    @ces_output.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        x, a = (saved.numpy() for saved in ctx.saved_tensors)
        rho = ctx.rho
        up = grad_output.numpy() * ctx.returns * ctx.y ** (1 - rho)
        return {
            "amounts": pb.asarray(up[:, None] * a * x ** (rho - 1)),
            "shares": pb.asarray(up @ x**rho / rho),
        }

    return ces_output


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(1, 4, (5, 3))), t(rng.normal(1, 0.5, 3)), t(rng.uniform(0.5, 1.2))),
        {},
    ),
    "the surplus is divided by alpha, and the term of that quotient is missing in alpha's gradient",
    MISSING,
    r"surplus.{0,60}(?:by alpha|quotient|divided|twice|forgot)|\bquotient|second output",
    r"\boutput ?`?1\b",
    r"(?:/|divided by) ?alpha.{0,40}(?:forgot|constant|ignored|square)|alpha ?(?:\*\*|\^) ?2",
    mends(
        "- (by_surplus * s.surplus).sum() / alpha",
        "- by_surplus @ s.surplus / alpha",
        "by_surplus @ s.surplus",
        "s.surplus @ by_surplus",
        "by_surplus * s.surplus",
        "s.surplus * by_surplus",
        "/ alpha**2",
    ),
)
def logit_demand():
    @pb.autograd_function
    def logit_demand(ctx, price, quality, alpha):
        """Market shares beside an outside good, and consumer surplus in money, by market.

        price: (markets, goods), quality: (goods,), alpha: price coefficient.
        """
        a = alpha.item()
        if a <= 0:
            raise ValueError("alpha must be positive")
        weight = np.exp(quality.numpy() - a * price.numpy())
        inclusive = 1 + weight.sum(axis=1)
        shares, surplus = weight / inclusive[:, None], np.log(inclusive) / a
        ctx.save_for_backward(price=price, alpha=alpha, shares=shares, surplus=surplus)
        return pb.asarray(shares.copy()), pb.asarray(surplus.copy())

    @logit_demand.backward
    @pb.once_differentiable
    def _(ctx, grad_shares, grad_surplus):
        s, by_surplus = ctx.saved_variables, grad_surplus.numpy()
        gn, alpha = grad_shares.numpy(), s.alpha.item()
        by_utility = s.shares * (gn - (gn * s.shares).sum(axis=1, keepdims=True))
        by_utility += by_surplus[:, None] * s.shares / alpha
        return {
            "price": pb.asarray(-alpha * by_utility),
            "quality": pb.asarray(by_utility.sum(axis=0)),
            "alpha": pb.asarray(np.array(-(by_utility * s.price.numpy()).sum())),
        }

    return logit_demand


@BOOK.wrong(
    lambda rng: (
        (
            t(rng.permutation([8.0, 15.0, 31.0, 44.0, 90.0]) + rng.uniform(-2, 2, 5)),
            t(np.array([0.1, 0.25, 0.45])),
            t(np.array([10.0, 25.0, 60.0])),
        ),
        {},
    ),
    "a threshold also ends the bracket below it: that this one grows with it is missing",
    MISSING,
    r"bracket.{0,30}(?:below|before|under)|(?:previous|lower|preceding|earlier) (?:bracket|rate)",
    r"(?:upper|top|other) (?:end|limit|edge)|differ\w+ (?:of|between) (?:the )?(?:\w+ )?rates",
    r"rates?\[(?:k|i|j)? ?- ?1\]|rates\[:-1\]|(?:step|jump|increase) (?:of|in) (?:the )?rate",
    r"right only .{0,30}(?:first|lowest|0)",
    mends(
        "np.diff(rates",
        "by_threshold[1:] +=",
        "rates[:-1]",
        "np.diff(s.rates",
        "np.diff(rate",
    ),
)
def income_tax():
    class IncomeTax(pb.Function):
        """Tax with brackets: rates[k] is due on the part of income above thresholds[k] and below
        the next threshold. income: (n,), rates, thresholds: (brackets,)."""

        @staticmethod
        def forward(ctx, income, rates, thresholds):
            low = thresholds.numpy()
            width = np.append(np.diff(low), np.inf)
            if (width <= 0).any():
                raise ValueError("thresholds must ascend")
            above = income.numpy()[:, None] - low
            ctx.parts = np.clip(above, 0, width)
            ctx.beyond, ctx.inside = above > 0, (above > 0) & (above < width)
            ctx.save_for_backward(rates=rates)
            return pb.asarray(ctx.parts @ rates.numpy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            rates, gn = ctx.saved_variables.rates.numpy(), grad_output.numpy()
            by_threshold = -rates * (gn @ ctx.beyond)
            return {
                "income": pb.asarray(gn * (ctx.inside @ rates)),
                "rates": pb.asarray(gn @ ctx.parts),
                "thresholds": pb.asarray(by_threshold),
            }

    return IncomeTax.apply


def season(rng):
    return t(rng.normal(1500, 90, 4)), t(rng.uniform(60, 90))


@BOOK.wrong(
    lambda rng: ((*season(rng), np.array([[0, 1], [3, 2]]), np.array([1.0, 0.5])), {}),
    "backward goes through the games from the first to the last, not in reversed order",
    REVERSED,
    REPEATED,
    r"(?:from|starting (?:at|with)) the (?:first|last)|last (?:to first|game first|match first)",
    r"player.{0,30}(?:twice|several|two (?:games|matches)|again)|\border of (?:the )?games",
    r"(?:several|two|later|earlier|second|consecutive) (?:games|matches|rounds|game|match)",
    mends("reversed(", "[::-1]", "-1, -1, -1)", "np.flip("),
    where="a player with several games",
    shows=lambda rng: (
        (
            *season(rng),
            np.array([[0, 1], [0, 2], [1, 2], [3, 0], [2, 3]]),
            np.array([1.0, 0.5, 0.0, 1.0, 1.0]),
        ),
        {},
    ),
)
def elo_ratings():
    def forward(ctx, ratings, k, games, results):
        """Ratings after games, in order; games: (m, 2) players, results: (m,) of the first."""
        r = ratings.numpy().copy()
        if (games[:, 0] == games[:, 1]).any():
            raise ValueError("nobody plays against himself")
        ctx.expected = []
        for (a, b), result in zip(games, results, strict=True):
            expected = 1 / (1 + 10 ** ((r[b] - r[a]) / 400))
            won = k.item() * (result - expected)
            r[a], r[b] = r[a] + won, r[b] - won
            ctx.expected.append(expected)
        ctx.save_for_backward(k=k)
        ctx.games, ctx.results = games, results
        return pb.asarray(r)

    @pb.once_differentiable
    def backward(ctx, grad_output):
        gn, k = grad_output.numpy().copy(), ctx.saved_variables.k.item()
        by_k = 0.0
        for (a, b), result, p in zip(ctx.games, ctx.results, ctx.expected, strict=True):
            flow = gn[a] - gn[b]
            by_k += flow * (result - p)
            steep = k * p * (1 - p) * np.log(10) / 400
            gn[a] -= steep * flow
            gn[b] += steep * flow
        return pb.asarray(gn), pb.asarray(np.array(by_k)), None, None

    return pb.autograd_function(forward, backward, name="elo_ratings")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.5, 3, 6)), t(rng.uniform(0.8, 0.97)), t(rng.uniform(1.5, 3))),
        {},
    ),
    "the weights of the periods are kept for the operation, not for the call: those of an earlier "
    "call are lost when it is called again",
    STATE,
    r"`recent`|(?:latest|last|another|other) call|\bshared\b|\bclosure\b|\bglobal\b",
    mends('["weights"] = ctx', "ctx.weights", "weights=weights", "saved_variables.weights"),
    where="second use before backward",
)
def lifetime_utility():
    recent: dict[str, np.ndarray] = {}

    @pb.autograd_function
    def lifetime_utility(ctx, consumption, beta, gamma):
        """Discounted utility of a path of consumption (n,); gamma: relative risk aversion."""
        c, k = consumption.numpy(), 1 - gamma.item()
        if (c <= 0).any():
            raise ValueError("consumption must be positive")
        recent["weights"] = beta.item() ** np.arange(len(c))
        ctx.save_for_backward(consumption=consumption, beta=beta, gamma=gamma)
        utility = np.expm1(k * np.log(c)) / k if k else np.log(c)
        return pb.asarray(np.array(recent["weights"] @ utility))

    @lifetime_utility.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, weights = ctx.saved_variables, recent["weights"]
        c, beta, k = s.consumption.numpy(), s.beta.item(), 1 - s.gamma.item()
        utility = np.expm1(k * np.log(c)) / k if k else np.log(c)
        by_k = (np.log(c) * c**k - utility) / k if k else np.log(c) ** 2 / 2
        by_beta = (np.arange(len(c)) * weights) @ utility / beta
        return {
            "consumption": pb.asarray(g.item() * weights * c ** (k - 1)),
            "beta": pb.asarray(np.array(g.item() * by_beta)),
            "gamma": pb.asarray(np.array(-g.item() * (weights @ by_k))),
        }

    return lifetime_utility


BIDS = np.array([[3.0, 2.5, 0.8, 0.4], [2.2, 1.2, 1.7, 1.9], [0.9, 2.8, 0.6, 3.1]])


@BOOK.wrong(
    lambda rng: (
        (t(BIDS + rng.uniform(-0.1, 0.1, BIDS.shape)), t(rng.uniform(1.3, 1.5))),
        {"units": 2},
    ),
    "a rise of the reserve counts for all units, also for those that are not sold",
    r"\b(?:un|not |number |all |units? |are )sold\b|\bsold\b.{0,20}(?:missing|instead|fewer|units)",
    r"(?:few|some|less|one|only|no).{0,15} bids?\b.{0,30}(?:reserve|above)|bids? (?:are )?below",
    r"(?:fewer|less) than .{0,20}units|too few",
    at("units"),
    mends(
        "ctx.sold * gn", "gn * ctx.sold", "ctx.sold * (", "ctx.sold @", "ctx.sold, 0", "@ ctx.sold"
    ),
    where="fewer bids above the reserve than units",
    shows=lambda rng: (
        (t(BIDS * np.array([1, 0.45, 1, 1])), t(rng.uniform(1.5, 1.6))),
        {"units": 3},
    ),
)
def auction_revenue():
    @pb.autograd_function
    def auction_revenue(ctx, bids, reserve, units=1):
        """Revenue of auctions with a uniform price: the highest bid that wins nothing, or the
        reserve if this is higher. bids: (auctions, bidders)."""
        b, floor = bids.numpy(), reserve.item()
        if not 0 < units < b.shape[1]:
            raise ValueError("there must be more bidders than units")
        ctx.loser = np.argsort(-b, axis=1)[:, units]
        ctx.rows, ctx.shape, ctx.units = np.arange(len(b)), b.shape, units
        price = np.maximum(b[ctx.rows, ctx.loser], floor)
        ctx.reserved = price == floor
        ctx.sold = np.minimum((b >= floor).sum(axis=1), units)
        return pb.asarray(price * ctx.sold)

    @auction_revenue.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        gn = grad_output.numpy() * ctx.units
        by_bids = np.zeros(ctx.shape)
        by_bids[ctx.rows, ctx.loser] = np.where(ctx.reserved, 0.0, gn)
        return {
            "bids": pb.asarray(by_bids),
            "reserve": pb.asarray(np.array(gn[ctx.reserved].sum())),
        }

    return auction_revenue


@BOOK.right(
    lambda rng: ((t(rng.uniform(0.02, 0.3, (4, 4))), t(rng.uniform(5, 20, 4))), {"imports": 0.1})
)
def leontief_output():
    @pb.autograd_function
    def leontief_output(ctx, coefficients, demand, imports=0.0):
        """Output of each sector that serves final demand; a share of inputs is imported."""
        A = (1 - imports) * coefficients.numpy()
        if (A < 0).any() or np.abs(np.linalg.eigvals(A)).max() >= 1:
            raise ValueError("the economy is not productive")
        ctx.system, ctx.home = np.eye(len(A)) - A, 1 - imports
        ctx.output = np.linalg.solve(ctx.system, demand.numpy())
        return pb.asarray(ctx.output.copy())

    @leontief_output.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        prices = np.linalg.solve(ctx.system.T, grad_output.numpy())
        return {
            "coefficients": pb.asarray(ctx.home * np.outer(prices, ctx.output)),
            "demand": pb.asarray(prices),
        }

    return leontief_output


@BOOK.right(lambda rng: ((t(rng.lognormal(3, 0.8, 9)),), {"fraction": 0.25}))
def top_share():
    class TopShare(pb.Function):
        """Share of all income that the richest fraction receives; incomes: (n,)."""

        @staticmethod
        def forward(ctx, incomes, fraction=0.1):
            y = incomes.numpy()
            if (y <= 0).any():
                raise ValueError("incomes must be positive")
            if not 0 < fraction <= 1:
                raise ValueError("fraction must lie in (0, 1]")
            members = np.clip(fraction * len(y) - np.arange(len(y)), 0, 1)
            ctx.members = np.empty_like(y)
            ctx.members[np.argsort(-y, kind="stable")] = members
            ctx.total = y.sum()
            ctx.share = ctx.members @ y / ctx.total
            return pb.asarray(np.array(ctx.share))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            return pb.asarray(g.item() * (ctx.members - ctx.share) / ctx.total)

    return TopShare.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(2, 9, 6)), t(rng.uniform(1, 6, 5)), t(rng.uniform(0.1, 0.4))),
        {},
    )
)
def clearing_price():
    @pb.autograd_function
    def clearing_price(ctx, willingness, cost, tax, halvings=100):
        """Price that sellers get where demand meets supply, and the quantity.

        Each buyer takes max(0, willingness - price - tax), each seller max(0, price - cost).
        """
        w, c, duty = willingness.numpy(), cost.numpy(), tax.item()
        low, high = c.min(), w.max() - duty
        if low >= high:
            raise ValueError("nobody trades at any price")
        for _ in range(halvings):
            p = (low + high) / 2
            short = np.maximum(w - p - duty, 0).sum() - np.maximum(p - c, 0).sum()
            low, high = (p, high) if short > 0 else (low, p)
        ctx.buys, ctx.sells = w - p - duty > 0, p - c > 0
        quantity = np.maximum(p - c, 0).sum()
        return {"price": pb.asarray(np.array(p)), "quantity": pb.asarray(np.array(quantity))}

    @clearing_price.backward
    @pb.once_differentiable
    def _(ctx, grad_price, grad_quantity):
        buyers, sellers = ctx.buys.sum(), ctx.sells.sum()
        to_price = (grad_price.item() + grad_quantity.item() * sellers) / (buyers + sellers)
        return {
            "willingness": pb.asarray(to_price * ctx.buys),
            "cost": pb.asarray((to_price - grad_quantity.item()) * ctx.sells),
            "tax": pb.asarray(np.array(-to_price * buyers)),
        }

    return clearing_price


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 4, (3, 3))), t(rng.dirichlet(np.ones(3))), t(rng.normal(0, 0.1, (3, 3)))),
        {"output": 1.5},
    )
)
def translog_cost():
    @pb.autograd_function
    def translog_cost(ctx, wages, first, second, output=1.0):
        """Translog unit cost times output, and cost shares; wages: (firms, n), second: (n, n)."""
        if (wages <= 0).any():
            raise ValueError("factor prices must be positive")
        ctx.save_for_backward(wages=wages, first=first, second=second)
        ctx.output = output
        logs = wages.log()
        curve = logs @ (second + second.transpose(0, 1)) / 2
        return output * (logs @ first + (logs * curve).sum(dim=1) / 2).exp(), first + curve

    @translog_cost.backward
    def _(ctx, grad_cost, grad_share):
        wages, first, second = ctx.saved_tensors
        logs, both = wages.log(), (second + second.transpose(0, 1)) / 2
        share = first + logs @ both
        up = grad_cost * ctx.output * (logs @ first + (logs * (logs @ both)).sum(dim=1) / 2).exp()
        up = up.unsqueeze(1)
        to_both = (up * logs / 2 + grad_share).transpose(0, 1) @ logs
        return {
            "wages": (up * share + grad_share @ both) / wages,
            "first": (up * logs + grad_share).sum(dim=0),
            "second": (to_both + to_both.transpose(0, 1)) / 2,
        }

    return translog_cost


def choices(rng):
    return rng.dirichlet(np.ones(4), (4, 3))


@BOOK.right(lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.uniform(0.8, 0.95)), choices(rng)), {}))
def dynamic_choice():
    def forward(ctx, rewards: pb.Tensor, discount: pb.Tensor, moves: np.ndarray) -> pb.Tensor:
        """Value of each state under the best policy; moves: (states, actions, states)."""
        R, beta, states = rewards.numpy(), discount.item(), np.arange(len(rewards))
        if not 0 <= beta < 1:
            raise ValueError("discount must lie in [0, 1)")
        policy = R.argmax(axis=1)
        for _ in range(1000):
            P = moves[states, policy]
            value = np.linalg.solve(np.eye(len(R)) - beta * P, R[states, policy])
            policy, before = (R + beta * moves @ value).argmax(axis=1), policy
            if (policy == before).all():
                break
        ctx.save_for_backward(policy=policy, P=P, value=value, beta=beta, shape=R.shape)
        return pb.asarray(value.copy())

    @pb.once_differentiable
    def backward(ctx, grad_output):
        policy, P, value, beta, shape = ctx.saved_variables
        visits = np.linalg.solve(np.eye(len(P)) - beta * P.T, grad_output.numpy())
        by_rewards = np.zeros(shape)
        by_rewards[np.arange(len(P)), policy] = visits
        return {
            "rewards": pb.asarray(by_rewards),
            "discount": pb.asarray(np.array(visits @ P @ value)),
        }

    return pb.autograd_function(forward, backward, name="dynamic_choice")
