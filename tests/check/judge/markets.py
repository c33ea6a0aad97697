"""Markets: order books, drawdowns, growth, clearing, volatility, execution, auctions, risk."""

from __future__ import annotations

import numpy as np
from scipy import optimize

import pullback as pb

from .entries import MISSING, SECOND, Book, mends, t

BOOK = Book("markets")


def asks(quantity):
    return lambda rng: (
        (t(quantity), t(100 + np.cumsum(rng.uniform(0.1, 0.5, 5))), t(rng.uniform(20, 40, 5))),
        {},
    )


@BOOK.wrong(
    asks(14.0),
    "a larger size at a level that is used up also saves as much at the last level; that price is "
    "not subtracted",
    MISSING,
    r"\bmarginal|last (?:price|level|fill|one)|\bworst (?:price|level)",
    r"\bdeepest|next level|price of the last",
    r"(?:not |should be |have to be |must be )?subtract\w*|difference of (?:the )?(?:two )?prices",
    r"(?:used.?up|consumed|exhausted|full|filled|swept|several|more than one|second) .{0,20}level",
    r"quantity`? .{0,40}(?:>|above|beyond|larger|exceeds|more than)",
    mends("- marginal", "- p[", "p - last", "- ctx.last", "- prices[", "- price[", "p - "),
    where="an order that uses up a level",
    shows=asks(75.0),
)
def market_order_cost():
    @pb.autograd_function
    def market_order_cost(ctx, quantity, price, size):
        """What a market order pays that walks up the book; price, size: (levels,), best first."""
        Q, p, v = quantity.item(), price.numpy(), size.numpy()
        if not 0 < Q <= v.sum():
            raise ValueError("the order must be positive, and no larger than the book")
        if (np.diff(p) < 0).any() or (v <= 0).any():
            raise ValueError("the best price comes first, sizes are positive")
        ahead = v.cumsum() - v
        fill = np.clip(Q - ahead, 0, v)
        ctx.fill, ctx.p = fill, p
        ctx.level = int(np.flatnonzero(fill)[-1])
        return pb.asarray(np.array(fill @ p))

    @market_order_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        used_up = np.arange(len(ctx.p)) < ctx.level
        return {
            "quantity": g * ctx.p[ctx.level],
            "price": g * pb.asarray(ctx.fill),
            "size": g * pb.asarray(np.where(used_up, ctx.p, 0.0)),
        }

    return market_order_cost


def prices(*path):
    return lambda rng: ((t(np.array(path) * rng.uniform(0.99, 1.01, len(path))),), {})


@BOOK.wrong(
    prices(50, 55, 64, 58, 49, 45, 52, 57),
    "the peak is looked for in the whole path, not only up to the trough",
    r"(?:up to|until|before|prior to|preceding|ahead of|after|behind|later than) (?:the )?"
    r"(?:trough|low|bottom|minimum|drawdown)",
    r"\bpeak\b.{0,60}(?:after|later|whole|global|wrong|another|before|overall)",
    r"\bwhole (?:path|series)",
    r"(?:new|later|higher|global|overall|absolute|wrong|all.time) (?:peak|high|maximum)",
    r"prefix|running max",
    r"recover\w* (?:above|beyond|to a)|maximum .{0,20}(?:after|later|end\b|last)",
    mends("[: ctx.trough", "[: s.trough", "ctx.peak", "[: trough", "s.peak"),
    where="a new high after the drawdown",
    shows=prices(50, 55, 64, 58, 49, 45, 59, 71),
)
def max_drawdown():
    class MaxDrawdown(pb.Function):
        """Largest fall from a peak, as a share of it, and when it ends."""

        @staticmethod
        def forward(ctx, wealth):
            x = wealth.numpy()
            if (x <= 0).any():
                raise ValueError("wealth must be positive")
            falls = 1 - x / np.maximum.accumulate(x)
            ctx.trough = int(falls.argmax())
            ctx.save_for_backward(wealth)
            return pb.asarray(np.array(falls[ctx.trough])), ctx.trough

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g, _):
            x = ctx.saved_tensors[0].numpy()
            peak, grad = int(x.argmax()), np.zeros_like(x)
            grad[ctx.trough] -= 1 / x[peak]
            grad[peak] += x[ctx.trough] / x[peak] ** 2
            return g * pb.asarray(grad)

    return MaxDrawdown.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.4, 3)), t(rng.normal(0.02, 0.1, (8, 3)))), {}),
    "the wealth is detached, so that a second derivative takes it for a constant",
    SECOND,
    r"detach|(?:higher|second) .{0,15}(?:derivative|order)|graph .{0,20}(?:lost|cut|broken)",
    where="second derivative",
)
def kelly_growth():
    def forward(ctx, stakes, returns):
        """Mean logarithmic growth; returns: (periods, assets) over that of cash."""
        wealth = 1 + returns @ stakes
        if (wealth.numpy() <= 0).any():
            raise ValueError("ruin")
        ctx.save_for_backward(stakes=stakes, returns=returns)
        return wealth.log().mean()

    def backward(ctx, g):
        s = ctx.saved_variables
        # detached: keep the graph small
        wealth = (1 + s.returns @ s.stakes).detach()
        pull = g / (len(wealth) * wealth)
        return {
            "stakes": (pull[:, None] * s.returns).sum(dim=0),
            "returns": pull[:, None] * s.stakes,
        }

    return pb.autograd_function(forward, backward, name="kelly_growth")


def traders(rng):
    return (
        t(rng.uniform(20, 60, 4)),
        t(rng.uniform(0.5, 1.5, 4)),
        t(rng.uniform(3, 9, 3)),
        t(rng.uniform(0.3, 0.9, 3)),
    ), {}


@BOOK.wrong(
    traders,
    "supply rises with the price as demand falls, but only the slope of demand is in the "
    "denominator",
    MISSING,
    r"\bfactor\b|\bscaled?\b|\bratio\b|\bmultiple of\b|\bproportional",
    r"\bsupply\b.{0,60}(?:slope|derivative|missing|left out|denominator|rises|ignored)",
    r"(?:slope|derivative|elasticity|side|response) of (?:the )?(?:supply|sellers?)|denominator",
    mends(
        "offered @ b", "b @ offered", "offered * b", "+ offered", "(b * offered)", "b * ctx.offered"
    ),
)
def uniform_price():
    @pb.autograd_function
    def uniform_price(ctx, budget, e, capacity, b):
        """Price at which buyers, budget * p**-e each, and sellers, capacity * p**b, trade alike."""
        B, down, C, up = (x.numpy() for x in (budget, e, capacity, b))
        if min(B.min(), C.min(), down.min(), up.min()) <= 0:
            raise ValueError("all parameters must be positive")

        def excess(log_price):
            return B @ np.exp(-down * log_price) - C @ np.exp(up * log_price)

        log_price = optimize.brentq(excess, -50, 50, xtol=1e-14, rtol=1e-14)
        ctx.log_price, ctx.all = log_price, (B, down, C, up)
        return pb.asarray(np.array(np.exp(log_price)))

    @uniform_price.backward
    @pb.once_differentiable
    def _(ctx, g):
        (B, e, C, b), y = ctx.all, ctx.log_price
        wanted, offered = B * np.exp(-e * y), C * np.exp(b * y)
        flow = g.item() * np.exp(y) / (wanted @ e)
        return {
            "budget": pb.asarray(flow * wanted / B),
            "e": pb.asarray(-flow * y * wanted),
            "capacity": pb.asarray(-flow * offered / C),
            "b": pb.asarray(-flow * y * offered),
        }

    return uniform_price


@BOOK.wrong(
    lambda rng: ((t(rng.normal(0, 0.1, 9)), t(0.9)), {"start": 0.02}),
    "decay acts in each variance on all later ones too, but only its direct part is counted: the "
    "gradient of one day is not carried back",
    MISSING,
    r"\brecur|carried|\baccumulat|through time|\bpropagat",
    r"(?:earlier|later|previous|past|all) (?:days|variances?|steps|periods)",
    r"\bdirect\b|adjoint|truncat|indirect",
    r"right (?:only )?(?:if|for|when) .{0,20}(?:two|2) (?:days|elements|returns)",
    mends("* back", "back *", "back @", "carried *", "* carried", "by_decay += back", "adjoint"),
)
def ewma_volatility():
    @pb.autograd_function
    def ewma_volatility(ctx, returns, decay, start=1e-4):
        """Volatility before each day, by exponential weights (RiskMetrics)."""
        r, lam = returns.tolist(), decay.item()
        if not 0 < lam < 1:
            raise ValueError("decay must be between 0 and 1")
        variance = [start]
        for x in r[:-1]:
            variance.append(lam * variance[-1] + (1 - lam) * x * x)
        ctx.save_for_backward(returns=returns, decay=decay, variance=np.array(variance))
        return pb.asarray(np.sqrt(variance))

    @ewma_volatility.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        r, lam, v = (np.asarray(x) for x in ctx.saved_variables)
        direct = grad_output.numpy() / (2 * np.sqrt(v))
        grad, total = np.zeros_like(r), 0.0
        for k in range(len(r) - 1, 0, -1):
            total = direct[k] + lam * total
            grad[k - 1] = 2 * (1 - lam) * r[k - 1] * total
        by_decay = direct[1:] @ (v[:-1] - r[:-1] ** 2)
        return {"returns": pb.asarray(grad), "decay": pb.asarray(np.array(by_decay))}

    return ewma_volatility


@BOOK.wrong(
    lambda rng: ((t(np.array([80.0, 55, 35, 10]) + rng.uniform(-3, 3, 4)), t(100.0)), {}),
    "the last sale, of all that is left, is forgotten in the gradient of the last holding",
    r"\blast (?:sale|trade|holding|order|element|entry|one|position)|\bfinal\b|liquidat",
    r"\b(?:holdings?)?\[(?:-1|3|n ?- ?1)\]|\bend of the (?:plan|day|schedule)|all that is left",
    MISSING,
    mends("[*x, 0", "np.append(x, 0", "grad[-1]", "append=0", "x[-1]", "sold[-1]", "np.append("),
)
def execution_cost():
    def forward(ctx, holdings, start, impact=0.02, risk=0.001, *, fee=0.01):
        """Cost of selling out along planned holdings; the rest goes in one last order.

        Quadratic in what is sold at once, in what is still held, and a fee for each share.
        """
        path = np.concatenate([[start.item()], holdings.numpy(), [0.0]])
        sold = -np.diff(path)
        ctx.save_for_backward(holdings=holdings, start=start)
        ctx.settings = impact, risk, fee
        cost = impact * sold @ sold + risk * path[1:] @ path[1:] + fee * np.abs(sold).sum()
        return pb.asarray(np.array(cost))

    @pb.once_differentiable
    def backward(ctx, g):
        impact, risk, fee = ctx.settings
        x = ctx.saved_variables.holdings.numpy()
        before = np.concatenate([[ctx.saved_variables.start.item()], x[:-1]])
        sold = before - x
        to_sold = 2 * impact * sold + fee * np.sign(sold)
        grad = 2 * risk * x - to_sold
        grad[:-1] += to_sold[1:]
        return {"holdings": g * pb.asarray(grad), "start": g * to_sold[0]}

    return pb.autograd_function(forward, backward, name="execution_cost")


@BOOK.right(lambda rng: ((t(rng.uniform(1, 20, (5, 4))), t(rng.uniform(8, 12, 5))), {}))
def second_price_revenue():
    @pb.autograd_function
    def second_price_revenue(ctx, bids: pb.Tensor, reserve: pb.Tensor):
        """Revenue of second price auctions, and the winners; bids: (auctions, bidders).

        The winner pays the second bid or the reserve, if that is more; -1: nobody bid enough.
        """
        b, floor = bids.numpy(), reserve.numpy()
        if b.shape[1] < 2 or floor.shape != b.shape[:1]:
            raise ValueError("two bidders and a reserve for each auction are needed")
        order = b.argsort(axis=1)
        rows = np.arange(len(b))
        winner, second = order[:, -1], order[:, -2]
        sold = b[rows, winner] >= floor
        ctx.by_bid, ctx.second = sold & (b[rows, second] > floor), second
        ctx.by_reserve, ctx.shape = sold & ~ctx.by_bid, b.shape
        paid = np.where(sold, np.maximum(b[rows, second], floor), 0.0)
        return pb.asarray(paid), pb.asarray(np.where(sold, winner, -1))

    @second_price_revenue.backward
    @pb.once_differentiable
    def _(ctx, g_paid, g_winner):
        gn, grad = g_paid.numpy(), np.zeros(ctx.shape)
        grad[np.arange(len(grad)), ctx.second] = gn * ctx.by_bid
        return {"bids": pb.asarray(grad), "reserve": pb.asarray(gn * ctx.by_reserve)}

    return second_price_revenue


@BOOK.right(
    lambda rng: (
        (),
        {"weights": t(rng.dirichlet(np.ones(3))), "returns": t(rng.normal(0, 0.1, (15, 3)))},
    )
)
def tail_loss():
    @pb.autograd_function
    def tail_loss(ctx, *, weights, returns, level=0.9):
        """Mean loss of a portfolio in the worst cases, a part of one counting in part.

        returns: (cases, assets), level: share of the cases that do not count.
        """
        loss = -returns.numpy() @ weights.numpy()
        tail = (1 - level) * len(loss)
        if tail <= 0:
            raise ValueError("no case is bad enough")
        rank = (-loss).argsort(kind="stable").argsort(kind="stable")
        ctx.share = np.clip(tail - rank, 0, 1) / tail
        ctx.save_for_backward(weights=weights, returns=returns)
        return pb.asarray(np.array(ctx.share @ loss))

    @tail_loss.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        return {
            "returns": g * pb.asarray(-np.outer(ctx.share, s.weights.numpy())),
            "weights": g * pb.asarray(-ctx.share @ s.returns.numpy()),
        }

    return tail_loss


def covariance(rng):
    root = rng.normal(size=(4, 4))
    return (t(root @ root.T + 4 * np.eye(4)), t(rng.uniform(0.5, 1.5, 4))), {}


@BOOK.right(covariance)
def risk_parity():
    class RiskParity(pb.Function):
        """Weights with which assets have given shares of the risk.

        covariance: (n, n), budget: (n,), relative; n positive weights of sum 1 are returned.
        """

        @staticmethod
        def forward(ctx, covariance, budget):
            S, b = covariance.numpy(), budget.numpy()
            if not np.allclose(S, S.T, rtol=1e-12, atol=1e-12) or (b <= 0).any():
                raise ValueError("covariance must be symmetric, budgets positive")
            if len(b) != len(S) or np.linalg.eigvalsh(S)[0] <= 0:
                raise ValueError("covariance must be positive definite")
            y = np.sqrt(b / np.diag(S))
            for _ in range(500):
                for i in range(len(b)):
                    rest = S[i] @ y - S[i, i] * y[i]
                    y[i] = (np.sqrt(rest**2 + 4 * S[i, i] * b[i]) - rest) / (2 * S[i, i])
            ctx.S, ctx.b, ctx.y = S, b, y
            return pb.asarray(y / y.sum())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            g, y = grad_output.numpy(), ctx.y
            g_y = (g - g @ y / y.sum()) / y.sum()
            # S y = b / y
            adjoint = np.linalg.solve(ctx.S + np.diag(ctx.b / y**2), g_y)
            outer = np.outer(adjoint, y)
            return pb.asarray(-(outer + outer.T) / 2), pb.asarray(adjoint / y)

    return RiskParity.apply


@BOOK.right(lambda rng: ((t(rng.uniform(10, 60, 4)),), {"alpha": 0.08}))
def market_maker_cost():
    def liquidity(q, alpha):
        """Return the logarithms of the prices and what scales them."""
        b = alpha * q.sum()
        z = (q - q.max()) / b
        return z - z.exp().sum().log(), b

    @pb.autograd_function
    def market_maker_cost(ctx, q, alpha=0.05):
        """Cost function of a market maker whose liquidity grows with the shares sold, q (n,)."""
        if q.sum().item() <= 0:
            raise ValueError("no shares are sold")
        ctx.save_for_backward(q=q)
        ctx.alpha = alpha
        logs, b = liquidity(q, alpha)
        return q[0] - b * logs[0]

    @market_maker_cost.backward
    def _(ctx, g):
        q = ctx.saved_variables.q
        logs, _ = liquidity(q, ctx.alpha)
        p = logs.exp()
        return g * (p - ctx.alpha * (p * logs).sum())

    return market_maker_cost


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(1, 4)), t(rng.uniform(50, 90, 3)), t(rng.uniform(50, 90, 3))),
        {"fee": [0.003, 0.003, 0.01]},
    )
)
def swap_route():
    @pb.autograd_function
    def swap_route(ctx, amount, pools_in, pools_out, fee=0.003):
        """What comes out of a chain of constant product pools, each fed by the one before.

        pools_in, pools_out: (n,) reserves of the tokens that go in and come out.
        """
        kept = 1 - np.broadcast_to(fee, pools_in.shape)
        X, Y, flow = pools_in.numpy(), pools_out.numpy(), [amount.item()]
        if flow[0] < 0 or (X <= 0).any():
            raise ValueError("reserves must be positive and the amount not negative")
        for x, y, k in zip(X, Y, kept, strict=True):
            flow.append(y * k * flow[-1] / (x + k * flow[-1]))
        ctx.X, ctx.Y, ctx.kept, ctx.flow = X, Y, kept, flow
        return pb.asarray(np.array(flow[-1]))

    @swap_route.backward
    @pb.once_differentiable
    def _(ctx, g):
        bar, n = g.item(), len(ctx.X)
        by_in, by_out = np.empty(n), np.empty(n)
        for i in reversed(range(n)):
            fed = ctx.kept[i] * ctx.flow[i]
            depth = ctx.X[i] + fed
            by_out[i] = bar * fed / depth
            by_in[i] = -bar * ctx.Y[i] * fed / depth**2
            bar *= ctx.Y[i] * ctx.kept[i] * ctx.X[i] / depth**2
        return {
            "amount": pb.asarray(np.array(bar)),
            "pools_in": pb.asarray(by_in),
            "pools_out": pb.asarray(by_out),
        }

    return swap_route
