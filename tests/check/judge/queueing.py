"""Queueing: Erlang's formulas, waits one by one, priorities, networks, losses, inventories."""

from __future__ import annotations

import heapq

import numpy as np

import pullback as pb

from .entries import MISSING, SHIFT, TRANSPOSED, ZERO, Book, at, mends, t

BOOK = Book("queueing")


@BOOK.wrong(
    lambda rng: ((t(np.array(5.2)), t(np.array(1.6))), {"servers": 4}),
    "the service rate also sets the offered load: the term of its gradient through that is missing",
    MISSING,
    r"offered|\bload\b|\bthrough (?:a|the load|by_load|lam)\b|quotient rule",
    r"probability (?:of waiting|to wait).{0,40}(?:depend|chang|constant|fixed)",
    r"only the (?:explicit|direct)|\bquotient\b",
    r"right only (?:if|where|when) .{0,20}(?:by_load|probab)",
    mends("by_load * lam / mu**2", "lam * by_load / mu**2", "by_load * a / mu", "a * by_load / mu"),
    mends("- by_load *", "-by_load *", "by_load / mu *", "by_load * -lam"),
)
def erlang_c_wait():
    @pb.autograd_function
    def erlang_c_wait(ctx, arrivals, service, servers=1):
        """Mean wait in an M/M/s queue; arrivals, service: rates, the latter that of one server."""
        lam, mu = arrivals.item(), service.item()
        a = lam / mu
        if not 0 < a < servers:
            raise ValueError("erlang_c_wait: the load must be less than the servers")
        blocked, slope = 1.0, 0.0
        for k in range(1, servers + 1):
            top, by_a = a * blocked, blocked + a * slope
            blocked, slope = top / (k + top), k * by_a / (k + top) ** 2
        rest = servers - a * (1 - blocked)
        waits = servers * blocked / rest
        ctx.by_load = (servers * slope + waits * (1 - blocked - a * slope)) / rest
        ctx.waits, ctx.spare, ctx.servers = waits, servers * mu - lam, servers
        ctx.save_for_backward(arrivals=arrivals, service=service)
        return pb.asarray(np.array(waits / ctx.spare))

    @erlang_c_wait.backward
    @pb.once_differentiable
    def _(ctx, g):
        mu = ctx.saved_variables.service.item()
        by_load, by_spare = g.item() / ctx.spare * ctx.by_load, -g.item() * ctx.waits / ctx.spare**2
        return {
            "arrivals": pb.asarray(np.array(by_load / mu - by_spare)),
            "service": pb.asarray(np.array(by_spare * ctx.servers)),
        }

    return erlang_c_wait


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2.0, 3.0, 7)), t(rng.uniform(1.0, 1.9, 7))), {}),
    "who finds the server idle waits for nobody, but gradients pass on to those before",
    r"\bidle\b|\bempty\b|\bempties\b|\breset|\bmax\(0|the maximum\b|\bclamp|\bclip|busy period",
    r"\bwaits?\b.{0,30}(?:is|are|=+|of|>) ?(?:0|zero)|(?:0|zero) waits?",
    r"(?:does|do|need|did) not wait|no wait|without (?:a )?wait|\bno queue\b",
    r"(?:must|should|expected) (?:to )?(?:be )?(?:zero|0)\b",
    mends(
        "waits[k] > 0",
        "waits[k] == 0",
        "waits[k] <= 0",
        "waits > 0",
        "waits == 0",
        "wait > 0",
        "wait == 0",
        "(wait > 0)",
        "waits[k + 1] > 0",
    ),
    where="a customer who finds the server idle",
    shows=lambda rng: (
        (t(np.array([1.0, 2.0, 0.5, 1.0, 2.5])), t(np.array([1.5, 3.5, 0.4, 2.5, 1.0]))),
        {},
    ),
)
def lindley_waits():
    class LindleyWaits(pb.Function):
        """Waits of the customers after the first, one server; (n,) service and gaps of arrivals."""

        @staticmethod
        def forward(ctx, service, gaps):
            if len(service) != len(gaps):
                raise ValueError("there is a gap after each service")
            waits, wait = [], 0.0
            for busy, gap in zip(service.numpy(), gaps.numpy(), strict=True):
                wait = max(0.0, wait + busy - gap)
                waits.append(wait)
            ctx.waits = np.array(waits)
            return pb.asarray(ctx.waits.copy())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            grad = np.cumsum(grad_output.numpy()[::-1])[::-1].copy()
            return {"service": pb.asarray(grad), "gaps": pb.asarray(-grad)}

    return LindleyWaits.apply


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0.1, 0.2, 4)), t(rng.uniform(0.8, 1.4, 4))), {}),
    "the classes above p alone make the second divisor: the gradient counts p itself among them, "
    "an index shifted by one",
    SHIFT,
    r"\bown (?:class|load|index|entry)|(?:\bitself\b|diagonal|strict(?:ly)?|inclusive|exclusive)",
    r"\bclass(?:es)? (?:above|before|below|with higher)",
    r"\b(?:higher|lower|previous|next) (?:class|prior)",
    r"(?:first|last) (?:class|element|entry)",
    mends(
        "grad_load[:-1] += ",
        "suffix(by_above) - by_above",
        "suffix(by_above[1:])",
        "suffix(by_own) + suffix(by_above) - by_above",
        "np.append(suffix(by_above)[1:], 0",
        "np.append(by_above[1:], 0",
        "- by_above",
        "by_above[1:]",
        "np.roll(",
    ),
)
def priority_waits():
    def suffix(x):
        return np.cumsum(x[::-1])[::-1]

    @pb.autograd_function
    def priority_waits(ctx, arrivals, service, variation=1.0):
        """Mean waits by class, the first served first, none interrupted (Cobham).

        arrivals: (n,) rates, service: (n,) mean times; variation: their squared variation.
        """
        lam, x = arrivals.numpy(), service.numpy()
        load = np.cumsum(lam * x)
        if load[-1] >= 1:
            raise ValueError(f"priority_waits: the load is {load[-1]:.3g}, it must be below 1")
        own, above = 1 - load, 1 - np.append(0.0, load[:-1])
        residual = (lam * x**2).sum() * (1 + variation) / 2
        ctx.save_for_backward(arrivals=arrivals, service=service, own=own, above=above)
        ctx.waits, ctx.variation = residual / (own * above), variation
        return pb.asarray(ctx.waits.copy())

    @priority_waits.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, flow = ctx.saved_variables, g.numpy() * ctx.waits
        lam, x = s.arrivals.numpy(), s.service.numpy()
        by_residual = (g.numpy() / (s.own * s.above)).sum() * (1 + ctx.variation) / 2
        by_own, by_above = flow / s.own, flow / s.above
        by_load = suffix(by_own) + suffix(by_above)
        return {
            "arrivals": pb.asarray(by_load * x + by_residual * x**2),
            "service": pb.asarray(by_load * lam + by_residual * 2 * lam * x),
        }

    return priority_waits


def store(rng, **settings):
    return (t(rng.uniform(2, 8, 8)), t(rng.uniform(2, 8, 8)), t(np.array(4.0))), settings


@BOOK.wrong(
    store,
    "an order counts only when it arrives, but the gradient has it in stock without the lead time",
    at("lead"),
    SHIFT,
    r"\blead.?times?\b|\barriv|\bdelay|\blater\b|\bearlier\b|\btoo (?:soon|early)\b",
    r"last (?:orders?|elements?|entries|rows?)|never arrive",
    mends(
        "by_stock[ctx.lead :]",
        "by_stock[ctx.lead:]",
        "by_arrival[ctx.lead :]",
        "by_stock[k + ctx.lead]",
        "[ctx.lead :]",
        "np.roll(by_stock, -ctx.lead",
        "by_stock[lead :]",
        "by_stock[lead:]",
    ),
    where="lead is not 0",
    shows=lambda rng: store(rng, lead=2),
)
def stock_cost():
    def forward(ctx, orders, demand, start, lead=0, holding=1.0, shortage=4.0):
        """Cost of stock held and demand owed in n periods.

        orders, demand: (n,); an order is in stock `lead` periods after it was placed.
        """
        n = len(demand)
        if not 0 <= lead < n:
            raise ValueError(f"stock_cost: lead must lie in 0 to {n - 1}")
        arrived = np.concatenate([np.zeros(lead), orders.numpy()[: n - lead]])
        stock = start.item() + np.cumsum(arrived - demand.numpy())
        ctx.slope = np.where(stock > 0, holding, -shortage)
        ctx.lead = lead
        return pb.asarray(np.array(ctx.slope @ stock))

    @pb.once_differentiable
    def backward(ctx, g):
        by_stock = g.item() * np.cumsum(ctx.slope[::-1])[::-1]
        return {
            "orders": pb.asarray(by_stock.copy()),
            "demand": pb.asarray(-by_stock),
            "start": pb.asarray(np.array(by_stock[0])),
        }

    return pb.autograd_function(forward, backward, name="stock_cost")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(0.5, 1, 3)), t(rng.uniform(0.05, 0.3, (3, 3))), t(rng.uniform(4, 6, 3))),
        {},
    ),
    "the routing's gradient is transposed: it stands at [to, from] instead of [from, to]",
    TRANSPOSED,
    r"(?:rows?|columns?) .{0,20}(?:swap|exchang|interchang|columns|rows)|\[to, from\]",
    r"\bswap\w* .{0,20}(?:ind|arg|outer)|(?:ind|arg)\w+ .{0,20}swap",
    r"order of .{0,20}(?:outer|indices)",
    mends("np.outer(s.flow, adjoint)", "np.outer(adjoint, s.flow).T", "s.flow[:, None] * adjoint"),
    mends("adjoint * s.flow[:, None]", "adjoint[None, :] * s.flow[:, None]", '"i,j->ij", s.flow'),
)
def jackson_network():
    @pb.autograd_function
    def jackson_network(ctx, outside, routing, service):
        """Mean number of customers in an open network of n single servers.

        outside: (n,) arrivals from outside, routing: (n, n) probabilities to go on from i to j,
        service: (n,) rates.
        """
        P, mu = routing.numpy(), service.numpy()
        if (P < 0).any() or (P.sum(axis=1) >= 1).any():
            raise ValueError("jackson_network: from each server some customers must leave")
        flow = np.linalg.solve(np.eye(len(mu)) - P.T, outside.numpy())
        if (flow >= mu).any():
            raise ValueError("jackson_network: a server is overloaded")
        ctx.save_for_backward(routing=routing, flow=flow, mu=mu)
        return pb.asarray(np.array((flow / (mu - flow)).sum()))

    @jackson_network.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_flow = g.item() * s.mu / (s.mu - s.flow) ** 2
        adjoint = np.linalg.solve(np.eye(len(s.mu)) - s.routing.numpy(), by_flow)
        return (
            pb.asarray(adjoint),
            pb.asarray(np.outer(adjoint, s.flow)),
            pb.asarray(-g.item() * s.flow / (s.mu - s.flow) ** 2),
        )

    return jackson_network


@BOOK.wrong(
    lambda rng: ((t(np.array([0.4, 0.8, 1.3, 2.0])),), {"places": 4}),
    "where the load is 1 the loss has a value of its own, and there the gradient is set to zero",
    ZERO,
    r"(?:load|\bx\b|element|where).{0,25}(?:=|\bis|\bequals?|\bexactly|\bat|\bof) ?1(?![\d.])",
    r"(?:load|\bx\b|element|where).{0,25}(?:=|\bis|\bequals?|\bexactly|\bat|\bof) ?1\.0*(?!\d)",
    r"special case|\bunit load\b|\bequal to (?:one|1)\b|critical|\blimit\b|\bbalanced\b|singular",
    r"places / (?:2|\(2)|\bn / (?:2|\(2)",
    mends(
        "np.where(s.even, n / ",
        "np.where(even, n / ",
        "n / (2 * (n + 1))",
        "n / 2 / (n + 1)",
        "0.5 * n / (n + 1)",
        "n / (2 * n + 2)",
    ),
    where="a load of 1",
    shows=lambda rng: ((t(np.array([0.4, 1.0, 1.3, 1.0])),), {"places": 4}),
)
def loss_probability():
    @pb.autograd_function
    def loss_probability(ctx, load, places=5):
        """Share of customers lost by an M/M/1 queue that holds no more than `places`."""
        x, n = load.numpy(), places
        if (x <= 0).any() or n < 1:
            raise ValueError("loss_probability: load and places must be positive")
        even = np.abs(x - 1) < 1e-9
        safe = np.where(even, 0.5, x)
        lost = np.where(even, 1 / (n + 1), (1 - safe) * safe**n / (1 - safe ** (n + 1)))
        ctx.save_for_backward(safe=safe, even=even, lost=lost)
        ctx.places = n
        return pb.asarray(lost.copy())

    @loss_probability.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, n = ctx.saved_variables, ctx.places
        x = s.safe
        relative = n / x - 1 / (1 - x) + (n + 1) * x**n / (1 - x ** (n + 1))
        slope = np.where(s.even, 0.0, s.lost * relative)
        return {"load": pb.asarray(g.numpy() * slope)}

    return loss_probability


@BOOK.right(lambda rng: ((t(rng.uniform(0.3, 1.6, (2, 9))), t(rng.uniform(0.4, 0.6, 2))), {}))
def mean_wait():
    @pb.autograd_function
    def mean_wait(ctx, service, arrivals):
        """Pollaczek and Khinchine's mean wait; service: (queues, samples), arrivals: (queues,)."""
        if (arrivals * service.mean(1) >= 1).any():
            raise ValueError("mean_wait: a queue grows without limit")
        ctx.save_for_backward(service=service, arrivals=arrivals)
        return arrivals * (service**2).mean(1) / (2 * (1 - arrivals * service.mean(1)))

    @mean_wait.backward
    def _(ctx, g):
        x, lam = ctx.saved_tensors
        square, spare = (x**2).mean(1), 1 - lam * x.mean(1)
        by_square, by_mean = g * lam / (2 * spare), g * lam**2 * square / (2 * spare**2)
        return {
            "service": (2 * by_square[:, None] * x + by_mean[:, None]) / x.shape[1],
            "arrivals": g * square / (2 * spare**2),
        }

    return mean_wait


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.5, 2, 5)), t(rng.uniform(0.8, 2, 5))),
        {"cost": np.arange(6) ** 2},
    )
)
def birth_death_cost():
    @pb.autograd_function
    def birth_death_cost(ctx, births, deaths, cost=None):
        """Mean cost in equilibrium of a chain on 0 to n; births, deaths: (n,), cost: (n + 1,)."""
        up, down = births.numpy(), deaths.numpy()
        if (up <= 0).any() or (down <= 0).any():
            raise ValueError("birth_death_cost: rates must be positive")
        height = np.append(0.0, np.cumsum(np.log(up) - np.log(down)))
        share = np.exp(height - height.max())
        ctx.share = share / share.sum()
        ctx.cost = np.arange(len(share)) if cost is None else np.asarray(cost)
        ctx.save_for_backward(births=births, deaths=deaths)
        return pb.asarray(np.array(ctx.share @ ctx.cost))

    @birth_death_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        up, down = (x.numpy() for x in ctx.saved_tensors)
        by_height = g.item() * ctx.share * (ctx.cost - ctx.share @ ctx.cost)
        by_step = np.cumsum(by_height[::-1])[::-1][1:]
        return pb.asarray(by_step / up), pb.asarray(-by_step / down), None

    return birth_death_cost


@BOOK.right(
    lambda rng: (
        (t(np.array([0.5, 1.1, 1.6, 4.0, 4.4, 5.1, 9.0])), t(rng.uniform(1, 3.5, 7))),
        {"servers": 2},
    )
)
def departure_times():
    @pb.autograd_function
    def departure_times(ctx, arrivals, service, servers=1):
        """Times at which customers leave, served in the order of arrival by equal servers."""
        come, need = arrivals.numpy(), service.numpy()
        if (np.diff(come) < 0).any():
            raise ValueError("departure_times: arrivals must be in order")
        free, leave, ctx.after = [(-np.inf, -1)] * servers, np.empty(len(come)), []
        for k, (a, x) in enumerate(zip(come, need, strict=True)):
            ready, before = heapq.heappop(free)
            ctx.after.append(before if ready > a else -1)
            leave[k] = max(ready, a) + x
            heapq.heappush(free, (leave[k], k))
        return pb.asarray(leave)

    @departure_times.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        to_leave = grad_output.numpy().copy()
        to_come = np.zeros_like(to_leave)
        for k in reversed(range(len(to_leave))):
            if ctx.after[k] < 0:
                to_come[k] = to_leave[k]
            else:
                to_leave[ctx.after[k]] += to_leave[k]
        return {"arrivals": pb.asarray(to_come), "service": pb.asarray(to_leave)}

    return departure_times


@BOOK.right(
    lambda rng: (
        (t(np.array(52.3)), t(np.array([31.0, 66, 48, 90, 55, 40, 61])), t(np.array(9.0))),
        {"salvage": 1.5},
    )
)
def newsvendor_profit():
    class NewsvendorProfit(pb.Function):
        """Mean profit of an order, over demands; what is left over is sold for its salvage."""

        @staticmethod
        def forward(ctx, order, demand, price, cost=4.0, salvage=0.0):
            if not salvage <= cost:
                raise ValueError("newsvendor_profit: salvage above cost, one would order no end")
            q, d = order.item(), demand.numpy()
            ctx.sold, ctx.scarce = np.minimum(q, d), d > q
            ctx.cost, ctx.salvage = cost, salvage
            ctx.save_for_backward(price=price)
            left = (q - ctx.sold).mean()
            return pb.asarray(np.array(price.item() * ctx.sold.mean() - cost * q + salvage * left))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            by_sold = ctx.saved_variables.price.item() - ctx.salvage
            by_order = by_sold * ctx.scarce.mean() - ctx.cost + ctx.salvage
            by_demand = by_sold * ~ctx.scarce / len(ctx.scarce)
            return {
                "order": pb.asarray(np.array(g.item() * by_order)),
                "demand": pb.asarray(g.item() * by_demand),
                "price": pb.asarray(np.array(g.item() * ctx.sold.mean())),
            }

    return NewsvendorProfit.apply


@BOOK.right(lambda rng: ((t(rng.uniform(0.1, 0.9, 3)), t(np.array(2.0))), {"customers": 6}))
def closed_network():
    def forward(ctx, demands, think, customers=1):
        """Throughput and queues of a closed network, by exact mean value analysis.

        demands: (stations,) work that a customer brings to each, think: time spent outside.
        """
        D, Z, queue = demands.numpy(), think.item(), np.zeros(len(demands))
        if customers < 1 or (D <= 0).any() or Z < 0:
            raise ValueError("closed_network: there is nothing to do")
        ctx.path = []
        for n in range(1, customers + 1):
            stay = D * (1 + queue)
            rate = n / (Z + stay.sum())
            ctx.path.append((n, queue, stay, rate))
            queue = rate * stay
        ctx.save_for_backward(demands=demands, think=think)
        return {"throughput": pb.asarray(np.array(rate)), "queues": pb.asarray(queue)}

    @pb.once_differentiable
    def backward(ctx, g_throughput, g_queues):
        D = ctx.saved_variables.demands.numpy()
        grad_D, grad_Z, by_rate, by_queue = (
            np.zeros_like(D),
            0.0,
            g_throughput.item(),
            g_queues.numpy(),
        )
        for n, queue, stay, rate in reversed(ctx.path):
            by_total = -(by_rate + by_queue @ stay) * rate**2 / n
            by_stay = by_queue * rate + by_total
            grad_Z += by_total
            grad_D += by_stay * (1 + queue)
            by_rate, by_queue = 0.0, by_stay * D
        return {"demands": pb.asarray(grad_D), "think": pb.asarray(np.array(grad_Z))}

    return pb.autograd_function(forward, backward, name="closed_network")
