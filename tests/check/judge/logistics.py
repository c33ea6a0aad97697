"""Logistics: order costs, tours, jobs, stocks, loads, tariffs, lots, windows, pairs."""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

import pullback as pb

from .entries import MISSING, REPEATED, SHIFT, Book, at, mends, t

BOOK = Book("logistics")

BREAKS = np.array([0.0, 500.0, 1500.0])


def orders(low, high):
    return lambda rng: (
        (t(rng.uniform(low, high, 4)), t(np.array([5.0, 4.8, 4.5]) * rng.uniform(0.99, 1.01, 3))),
        {"breaks": BREAKS, "demand": np.array([4000.0, 9000, 2500, 7000])},
    )


@BOOK.wrong(
    orders(100, 400),
    "the stock is valued at the price of the smallest orders, whatever the discount",
    r"\bdiscount|\bprice breaks?\b|\btiers?\b|price (?:list|level|class)|first price|prices?\[0\]",
    r"(?:quantity|where|elements?)\b.{0,30}(?:>=?|above|beyond|over|larger than) ?\d",
    r"(?:first|smallest|wrong|same|other|own) (?:price|element of .?price)",
    r"\b500\b|price\[(?:1|2)\]",
    mends(
        "p[tier]", "prices[tier]", "p[ctx.tier]", "np.take(p", "paid / 2 -", "ctx.paid", "s.paid"
    ),
    where="an order that gets a discount",
    shows=orders(600, 2500),
)
def ordering_cost():
    @pb.autograd_function
    def ordering_cost(ctx, quantity, price, breaks, demand, setup=60.0, rate=0.2):
        """Yearly cost of an article: orders, stock (half an order on average) and purchases.

        quantity: (n,) size of an order, demand: (n,) in a year, rate: cost of capital,
        price: (k,) for orders from breaks (k,) on; each holds for the whole of the order.
        """
        Q, tier = quantity.numpy(), np.searchsorted(breaks, quantity.numpy(), side="right") - 1
        if (tier < 0).any():
            raise ValueError("an order below the smallest")
        paid = price.numpy()[tier]
        ctx.save_for_backward(quantity=quantity, price=price, tier=tier)
        ctx.demand, ctx.setup, ctx.rate = demand, setup, rate
        return pb.asarray(setup * demand / Q + rate * paid * Q / 2 + paid * demand)

    @ordering_cost.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        Q, p, tier = ctx.saved_variables
        Q, p, gn = Q.numpy(), p.numpy(), grad_output.numpy()
        grad_price = np.zeros_like(p)
        np.add.at(grad_price, tier, gn * (ctx.rate * Q / 2 + ctx.demand))
        return {
            "quantity": pb.asarray(gn * (ctx.rate * p[0] / 2 - ctx.setup * ctx.demand / Q**2)),
            "price": pb.asarray(grad_price),
        }

    return ordering_cost


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(0, 10, (6, 2))), np.array([0, 3, 1, 5, 2])), {}),
    "what comes back to a place that the tour visits twice is written over, not added",
    REPEATED,
    r"\b(?:unique|distinct)\b",
    r"\btwice\b|add\.at|bincount|\bunbuffered|\boverwr|accumulat|\brevisit",
    r"several (?:times|visits)",
    r"visit(?:s|ed)? (?:again|more|two)|(?:only|keeps?) (?:one|the last) (?:visit|contribution)",
    mends("np.add.at(", "np.subtract.at(", "np.bincount(", ".index_add", "for i, j in", "one_hot"),
    where="a place visited twice",
    shows=lambda rng: ((t(rng.uniform(0, 10, (6, 2))), np.array([0, 3, 1, 0, 5, 2, 4])), {}),
)
def round_trip():
    class RoundTrip(pb.Function):
        """Length of a closed tour.

        places: (n, 2), order: numbers of the places in the order of the visits, a depot may
        stand in it more than once.
        """

        @staticmethod
        def forward(ctx, places, order):
            legs = places.numpy()[np.roll(order, -1)] - places.numpy()[order]
            lengths = np.hypot(*legs.T)
            if (lengths == 0).any():
                raise ValueError("a place is next to itself")
            ctx.save_for_backward(places=places, order=order, headings=legs / lengths[:, None])
            return pb.asarray(np.array(lengths.sum()))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            s = ctx.saved_variables
            grad = np.zeros(s.places.shape)
            grad[s.order] += np.roll(s.headings, 1, axis=0) - s.headings
            return grad_output * pb.asarray(grad)

    return RoundTrip.apply


def jobs(order):
    return lambda rng: (
        (t(rng.uniform(1, 4, 5)), t(rng.uniform(1, 9, 5)), t(rng.uniform(0.5, 2, 5))),
        {"order": order},
    )


@BOOK.wrong(
    jobs((1, 0, 2, 4, 3)),
    "the gradient is put into the order of the machine once more, where it should be taken out of "
    "it: permuted by the order, not by its inverse",
    at("order"),
    r"\bpermut|\binverse\b.{0,30}(?:order|index)|argsort|\binvolution|un-?sort",
    r"wrong (?:order|jobs?)\b|(?:order|sequence) of the (?:machine|jobs|elements)",
    r"order(?:ed)? (?:is )?(?:other|not its own inverse|applied twice)",
    r"\brearrang|\bshuffl|wrong (?:place|position)",
    mends("[ctx.order] = ", "np.argsort(", "[inverse]", "np.put("),
    where="an order that is not its own inverse",
    shows=jobs((2, 0, 3, 4, 1)),
)
def tardy_jobs_cost():
    @pb.autograd_function
    def tardy_jobs_cost(ctx, time, due, weight, order=None):
        """Weighted sum of the delays of jobs that one machine does one after the other."""
        order = np.arange(len(time)) if order is None else np.array(order)
        if not np.array_equal(np.sort(order), np.arange(len(time))):
            raise ValueError("order must name each job once")
        done = np.empty(len(order))
        done[order] = time.numpy()[order].cumsum()
        ctx.order, ctx.delay = order, np.maximum(done - due.numpy(), 0)
        ctx.weight = weight.numpy()
        return pb.asarray(np.array(ctx.weight @ ctx.delay))

    @tardy_jobs_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        late = g.item() * ctx.weight * (ctx.delay > 0)
        behind = late[ctx.order][::-1].cumsum()[::-1]
        return {
            "time": pb.asarray(behind[ctx.order]),
            "due": pb.asarray(-late),
            "weight": g * pb.asarray(ctx.delay),
        }

    return tardy_jobs_cost


@BOOK.wrong(
    lambda rng: ((t(rng.uniform(2, 9, 12)), t(np.array(22.0))), {"lead": 2, "review": 3}),
    "an order is taken to arrive one period later than it does",
    SHIFT,
    r"\barriv\w*.{0,40}(?:later|earlier|late|early|period|wrong)",
    r"\blead\b.{0,10}(?:\+|-) ?1",
    r"(?:one|a|1) (?:period|day|step|time step) (?:too )?(?:later?|early|earlier|off)",
    r"\bindex\b.{0,20}wrong",
    mends("k + ctx.lead]", "value[k + lead]", "[ctx.lead + k]"),
)
def stock_on_hand():
    @pb.autograd_function
    def stock_on_hand(ctx, demand, target, lead=1, review=1):
        """Stock at the end of each period, negative where customers wait.

        Every `review` periods one orders up to the target; what is ordered comes `lead` periods
        later, before the customers.
        """
        n = len(demand)
        coming, stock = np.zeros(n + lead + 1), np.empty(n)
        on_hand = position = 0.0
        for k, wanted in enumerate(demand.tolist()):
            if k % review == 0:
                coming[k + lead] = target.item() - position
                position = target.item()
            on_hand += coming[k] - wanted
            position -= wanted
            stock[k] = on_hand
        ctx.lead, ctx.review, ctx.n = lead, review, n
        return pb.asarray(stock)

    @stock_on_hand.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        # what is worth a unit more on hand from period k on
        value = np.zeros(ctx.n + ctx.lead + 2)
        value[: ctx.n] = grad_output.numpy()[::-1].cumsum()[::-1]
        grad, by_target, g_position = np.zeros(ctx.n), 0.0, 0.0
        for k in reversed(range(ctx.n)):
            grad[k] = -value[k] - g_position
            if k % ctx.review == 0:
                worth = value[k + ctx.lead + 1]
                by_target += g_position + worth
                g_position = -worth
        return {"demand": pb.asarray(grad), "target": pb.asarray(np.array(by_target))}

    return stock_on_hand


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(5, 40, 5)), t(rng.uniform(1, 3, 5))),
        {"empty": 0.2, "loaded": 0.01},
    ),
    "the load on a leg is that of the stops after it, without the stop to which it leads",
    SHIFT,
    r"\bexclusive|\binclu|\bdiagonal\b|own (?:leg|stop|drop|demand|load|element)|itself\b",
    r"(?:leg|stop)s?`? (?:to|that|which|itself|before|at which)|first (?:leg|element)",
    MISSING,
    mends("+ drop", "drop[::-1]", "drop.cumsum() - drop", "ctx.load", "s.load"),
)
def delivery_fuel():
    def forward(ctx, drop, legs, empty=0.25, loaded=0.02):
        """Litres of a delivery round, each stop at the end of its leg; the way back is not counted.

        drop: (n,) tons unloaded at the stops, legs: (n,) in units of 100 km.
        """
        ctx.save_for_backward(drop=drop, legs=legs)
        ctx.rates = empty, loaded
        load = drop.numpy()[::-1].cumsum()[::-1]
        return pb.asarray(np.array(legs.numpy() @ (empty + loaded * load)))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        drop, legs = (x.numpy() for x in ctx.saved_tensors)
        empty, loaded = ctx.rates
        carried = legs.cumsum()
        aboard = drop.sum() - drop.cumsum()
        return {
            "drop": grad_output * pb.asarray(loaded * carried),
            "legs": grad_output * pb.asarray(empty + loaded * aboard),
        }

    return pb.autograd_function(forward, backward, name="delivery_fuel")


@BOOK.wrong(
    lambda rng: (
        (t(rng.uniform(70, 130, 4)), t(rng.uniform(90, 110, 4)), t(rng.uniform(8, 25, 4))),
        {"shortage": 7.0},
    ),
    "the number of deviations between stock and mean also shrinks as the deviation grows: only the "
    "explicit factor was derived, and the term through z is missing",
    MISSING,
    r"\bz\b.{0,50}(?:depend|constant|through|fixed|missing|function)",
    r"(?:through|dependence of|via) z\b",
    r"chain rule|product rule|\bstandardi[sz]ed|z ?\* ?\(?(?:Phi|cdf|1 - )|\bcdf\b|\bsf\b",
    r"(?:right|correct) (?:only )?(?:if|when|where|for|at) .{0,25}(?:mean|z)\b",
    mends("z * by_stock", "both * stats.norm.pdf(z)", "both * density", "both * z *", "- z * ("),
)
def newsvendor_cost():
    @pb.autograd_function
    def newsvendor_cost(ctx, stock, mean, deviation, holding=1.0, shortage=4.0):
        """Expected cost of a stock if the demand is normal."""
        z = (stock.numpy() - mean.numpy()) / deviation.numpy()
        if (deviation.numpy() <= 0).any():
            raise ValueError("deviations must be positive")
        loss = stats.norm.pdf(z) - z * stats.norm.sf(z)
        ctx.save_for_backward(z=z, loss=loss)
        ctx.h, ctx.b = holding, shortage
        return pb.asarray(deviation.numpy() * (holding * z + (holding + shortage) * loss))

    @newsvendor_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        z, loss = ctx.saved_variables
        gn, both = g.numpy(), ctx.h + ctx.b
        by_stock = ctx.h - both * stats.norm.sf(z)
        return {
            "stock": pb.asarray(gn * by_stock),
            "mean": pb.asarray(-gn * by_stock),
            "deviation": pb.asarray(gn * (ctx.h * z + both * loss)),
        }

    return newsvendor_cost


@BOOK.right(
    lambda rng: (
        (t(np.array([30.0, 60, 20, 5, 80, 35, 10]) * rng.uniform(0.98, 1.02, 7)), t(90.0), t(0.8)),
        {},
    )
)
def lot_sizing():
    @pb.autograd_function
    def lot_sizing(ctx, demand, setup, holding):
        """Least cost of setups and stocks that meets all demand (Wagner and Whitin)."""
        d, K, h = demand.numpy(), setup.item(), holding.item()
        n = len(d)
        best, last = np.zeros(n + 1), np.zeros(n + 1, dtype=int)
        for end in range(1, n + 1):
            costs = [
                best[start] + K + h * (d[start:end] @ np.arange(end - start))
                for start in range(end)
            ]
            last[end] = np.argmin(costs)
            best[end] = costs[last[end]]
        waits, end, lots = np.zeros(n), n, 0
        while end > 0:
            start = last[end]
            waits[start:end] = np.arange(end - start)
            end, lots = start, lots + 1
        ctx.waits, ctx.lots, ctx.h, ctx.d = waits, lots, h, d
        return pb.asarray(np.array(best[n]))

    @lot_sizing.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {
            "demand": g * pb.asarray(ctx.h * ctx.waits),
            "setup": g * float(ctx.lots),
            "holding": g * float(ctx.d @ ctx.waits),
        }

    return lot_sizing


@BOOK.right(lambda rng: ((t(rng.uniform(1, 9, (5, 3))),), {"sequence": [2, 0, 4, 1, 3]}))
def flow_shop():
    def table(times):
        done = np.zeros((times.shape[0] + 1, times.shape[1] + 1))
        for i, row in enumerate(times, start=1):
            for j, time in enumerate(row, start=1):
                done[i, j] = max(done[i - 1, j], done[i, j - 1]) + time
        return done

    @pb.autograd_function
    def flow_shop(ctx, times, sequence):
        """Time at which the last job leaves a flow shop; times: (jobs, machines)."""
        sequence = np.asarray(sequence)
        done = table(times.numpy()[sequence])
        ctx.done, ctx.sequence, ctx.shape = done, sequence, times.shape
        return pb.asarray(np.array(done[-1, -1]))

    @flow_shop.backward
    @pb.once_differentiable
    def _(ctx, g):
        critical = np.zeros(ctx.shape)
        i, j = len(ctx.sequence), ctx.shape[1]
        while i and j:
            critical[ctx.sequence[i - 1], j - 1] += 1
            if ctx.done[i - 1, j] > ctx.done[i, j - 1]:
                i -= 1
            else:
                j -= 1
        return g * pb.asarray(critical)

    return flow_shop


@BOOK.right(
    lambda rng: (
        (
            t(rng.uniform(0.5, 1, 5)),
            t(np.array([0.6, 1.0, 4.1, 3.5, 4.0]) + rng.uniform(0, 0.1, 5)),
            t(np.array([2.0, 1.4, 5.0, 4.6, 9.0]) + rng.uniform(0, 0.1, 5)),
        ),
        {"service": 0.25},
    )
)
def window_penalty():
    class WindowPenalty(pb.Function):
        """Hours of waiting and of lateness on a round with time windows, both in all."""

        @staticmethod
        def forward(ctx, travel, opens, closes, service=0.0, start=0.0):
            a, b = opens.numpy(), closes.numpy()
            if not a.shape == b.shape == travel.shape:
                raise ValueError("a leg and a window for each stop are needed")
            if (a > b).any():
                raise ValueError("a window closes before it opens")
            now, begins, waits = start, np.empty(len(a)), np.empty(len(a), dtype=bool)
            waited = 0.0
            for k, leg in enumerate(travel.tolist()):
                arrival = now + leg
                waits[k] = arrival < a[k]
                waited += max(a[k] - arrival, 0.0)
                begins[k] = max(arrival, a[k])
                now = begins[k] + service
            ctx.waits, ctx.late = waits, begins > b
            return pb.tensor(np.array(waited)), pb.tensor(np.maximum(begins - b, 0).sum())

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g_waited, g_late):
            n = len(ctx.waits)
            g_travel, g_opens = np.zeros(n), np.zeros(n)
            later = 0.0
            for k in range(n - 1, -1, -1):
                later += g_late.item() * ctx.late[k]
                if ctx.waits[k]:
                    g_opens[k] = later + g_waited.item()
                    later = -g_waited.item()
                g_travel[k] = later
            g_closes = -g_late.item() * ctx.late
            return pb.asarray(g_travel), pb.asarray(g_opens), pb.asarray(g_closes), None, None

    return WindowPenalty.apply


@BOOK.right(
    lambda rng: (
        (t(rng.uniform(0.2, 0.9, (6, 3))), t(rng.uniform(2, 70, 6)), t(np.array([3.0, 2.5, 2.1]))),
        {"limits": (0.0, 20.0, 50.0)},
    )
)
def parcel_tariff():
    @pb.autograd_function
    def parcel_tariff(ctx, sides, weight, rate, *, limits, density=250.0):
        """Charge for parcels by graduated rates: each rate holds for the kilograms above its limit.

        sides: (n, 3) in metres, weight: (n,); bulky parcels count with `density` kg to the m3.
        """
        if sides.shape != (len(weight), 3):
            raise ValueError("sides must be (n, 3) for n parcels")
        volume = sides.prod(dim=1)
        bulky = (density * volume).numpy() > weight.numpy()
        billed = np.where(bulky, density * volume.numpy(), weight.numpy())
        ends = np.append(limits[1:], np.inf)
        parts = np.clip(billed[:, None], limits, ends) - np.array(limits)
        tier = np.searchsorted(limits, billed, side="right") - 1
        if (tier < 0).any():
            raise ValueError("a parcel below the first limit")
        ctx.save_for_backward(sides, weight, rate)
        ctx.bulky, ctx.parts, ctx.tier, ctx.density = bulky, parts, tier, density
        return pb.asarray(parts @ rate.numpy())

    @parcel_tariff.backward
    @pb.once_differentiable
    def _(ctx, g):
        sides, _, rate = (x.numpy() for x in ctx.saved_tensors)
        gn = g.numpy()
        g_billed = gn * rate[ctx.tier]
        others = np.stack([np.delete(sides, i, axis=1).prod(axis=1) for i in range(3)], axis=1)
        return {
            "sides": pb.asarray((g_billed * ctx.bulky * ctx.density)[:, None] * others),
            "weight": pb.asarray(g_billed * ~ctx.bulky),
            "rate": pb.asarray(gn @ ctx.parts),
        }

    return parcel_tariff


@BOOK.right(lambda rng: ((t(rng.uniform(0, 9, (4, 2))), t(rng.uniform(0, 9, (6, 2)))), {}))
def dispatch_distance():
    def forward(ctx, vehicles, customers):
        """Least total way of vehicles to customers, one each; some customers may be left."""
        if len(vehicles) > len(customers):
            raise ValueError("more vehicles than customers")
        gaps = customers.numpy() - vehicles.numpy()[:, None]
        ways = np.linalg.norm(gaps, axis=-1)
        pairs = optimize.linear_sum_assignment(ways)
        if (ways[pairs] == 0).any():
            raise ValueError("a vehicle stands at its customer")
        ctx.pairs, ctx.shape = pairs, customers.shape
        ctx.heading = gaps[pairs] / ways[pairs][:, None]
        return pb.asarray(np.array(ways[pairs].sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        rows, columns = ctx.pairs
        to_customers = np.zeros(ctx.shape)
        to_customers[columns] = ctx.heading
        to_vehicles = np.empty_like(ctx.heading)
        to_vehicles[rows] = -ctx.heading
        return g * pb.asarray(to_vehicles), g * pb.asarray(to_customers)

    return pb.autograd_function(forward, backward, name="dispatch_distance")
