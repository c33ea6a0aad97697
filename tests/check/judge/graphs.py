"""Graphs: messages, attention over edges, pooling, walks, soft distances, spectra of Laplacians."""

from __future__ import annotations

import numpy as np

import pullback as pb

from .entries import (
    FACTOR,
    MASK,
    MISSING,
    SWAPPED,
    Book,
    at,
    t,
)

BOOK = Book("graphs")

SOURCE = np.array([0, 0, 1, 2, 3, 3, 4, 1])
TARGET = np.array([1, 2, 3, 3, 4, 0, 2, 4])


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(5, 3))), t(rng.normal(size=5)), t(rng.normal(size=5)), SOURCE, TARGET),
        {},
    ),
    "the mean in the softmax's gradient runs over all edges and not over those of one target",
    r"\b(per|each|one|same|own) (target|node|group|segment)|\bsegment|\bgroups?\b",
    r"\ball (the )?edges",
    r"softmax|normalis",
)
def edge_attention():
    def attend(logits, target, n):
        top = np.full(n, -np.inf)
        np.maximum.at(top, target, logits)
        e = np.exp(logits - top[target])
        return e / np.bincount(target, weights=e, minlength=n)[target]

    @pb.autograd_function
    def edge_attention(ctx, nodes, by_source, by_target, source, target):
        """Graph attention, one head: logits are leaky_relu(by_source + by_target)."""
        raw = by_source.numpy()[source] + by_target.numpy()[target]
        slope = np.where(raw > 0, 1.0, 0.2)
        a = attend(raw * slope, target, nodes.shape[0])
        out = np.zeros(nodes.shape)
        np.add.at(out, target, a[:, None] * nodes.numpy()[source])
        ctx.save_for_backward(nodes=nodes, a=a, slope=slope, source=source, target=target)
        return pb.asarray(out)

    @edge_attention.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        n, gn = s.nodes.shape[0], g.numpy()[s.target]
        by_nodes = np.zeros(s.nodes.shape)
        np.add.at(by_nodes, s.source, s.a[:, None] * gn)
        by_a = (gn * s.nodes.numpy()[s.source]).sum(axis=1)
        by_raw = s.slope * s.a * (by_a - (s.a * by_a).sum())
        return {
            "nodes": pb.asarray(by_nodes),
            "by_source": pb.asarray(np.bincount(s.source, weights=by_raw, minlength=n)),
            "by_target": pb.asarray(np.bincount(s.target, weights=by_raw, minlength=n)),
        }

    return edge_attention


def adjacency(rng, n=5):
    A = np.triu(rng.random((n, n)) < 0.6, 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] = 1
    return A + A.T


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=(5, 4))), t(rng.normal(size=(4, 3))), t(rng.normal(size=3))),
        {"adjacency": adjacency(rng)},
    ),
    "the propagation is left out of the weight's gradient: it uses the features as they came",
    r"propagat|neighbour|normalised adjacency|\baggregat",
    MISSING,
    r"(raw|original|unpropagated|plain) (features|input|x\b)",
)
def graph_convolution():
    @pb.autograd_function
    def graph_convolution(ctx, x, weight, bias, *, adjacency):
        """relu(S x weight + bias), S = D^-1/2 (A + I) D^-1/2."""
        A = adjacency + np.eye(len(adjacency))
        root = np.sqrt(A.sum(axis=1))
        S = A / root[:, None] / root
        z = S @ x.numpy() @ weight.numpy() + bias.numpy()
        ctx.save_for_backward(x=x, weight=weight, S=S, active=z > 0)
        return pb.asarray(np.maximum(z, 0))

    @graph_convolution.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        gz = g.numpy() * s.active
        return {
            "x": pb.asarray(s.S @ gz @ s.weight.numpy().T),
            "weight": pb.asarray(s.x.numpy().T @ gz),
            "bias": pb.asarray(gz.sum(axis=0)),
        }

    return graph_convolution


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(5, 3))), t(0.2 + rng.random(8)), SOURCE, TARGET), {}),
    "the gradients of the two results are exchanged",
    SWAPPED,
    r"(wrong|other) (output|result)|order of (the )?(outputs|results)",
)
def two_way_messages():
    def collect(values, at, n):
        out = np.zeros((n, values.shape[1]))
        np.add.at(out, at, values)
        return out

    @pb.autograd_function
    def two_way_messages(ctx, nodes, weights, source, target):
        """Weighted sums over incoming edges and over outgoing edges, each (n, d)."""
        x, w = nodes.numpy(), weights.numpy()[:, None]
        ctx.save_for_backward(nodes=nodes, weights=weights)
        ctx.ends = source, target
        incoming = collect(w * x[source], target, len(x))
        outgoing = collect(w * x[target], source, len(x))
        return pb.asarray(incoming), pb.asarray(outgoing)

    @two_way_messages.backward
    @pb.once_differentiable
    def _(ctx, g_outgoing, g_incoming):
        x, w = (v.numpy() for v in ctx.saved_tensors)
        source, target = ctx.ends
        at_target, at_source = g_incoming.numpy()[target], g_outgoing.numpy()[source]
        by_nodes = collect(w[:, None] * at_target, source, len(x))
        by_nodes += collect(w[:, None] * at_source, target, len(x))
        by_weights = (at_target * x[source] + at_source * x[target]).sum(axis=1)
        return {"nodes": pb.asarray(by_nodes), "weights": pb.asarray(by_weights)}

    return two_way_messages


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4, 2))), np.array([4, 4, 4])), {}),
    "the padding of the smaller graphs gets a gradient: the mask is forgotten",
    MASK,
    r"\bpadd|\bpadding|\b(smaller|shorter) (graph|sample|row)|beyond (the )?(size|end|number)",
    at("sizes"),
    where="graphs of unequal size",
    shows=lambda rng: ((t(rng.normal(size=(3, 4, 2))), np.array([4, 2, 3])), {}),
)
def mean_readout():
    @pb.autograd_function
    def mean_readout(ctx, nodes, sizes):
        """Mean of the first sizes[i] nodes of graph i; nodes: (graphs, most nodes, d)."""
        present = np.arange(nodes.shape[1]) < sizes[:, None]
        total = (nodes.numpy() * present[:, :, None]).sum(axis=1)
        ctx.sizes, ctx.shape = sizes, nodes.shape
        return pb.asarray(total / sizes[:, None])

    @mean_readout.backward
    @pb.once_differentiable
    def _(ctx, g):
        share = g.numpy() / ctx.sizes[:, None]
        return {"nodes": pb.asarray(np.broadcast_to(share[:, None], ctx.shape).copy())}

    return mean_readout


DAG = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4]])


def path_costs(**settings):
    return lambda rng: ((t(0.3 + rng.random(7)), DAG), settings)


@BOOK.wrong(
    path_costs(),
    "the gradient has a factor 1 / temperature that cancels",
    FACTOR,
    at("temperature"),
    where="temperature other than 1",
    shows=path_costs(temperature=0.4),
)
def soft_path_cost():
    @pb.autograd_function
    def soft_path_cost(ctx, costs: pb.Tensor, edges, temperature: float = 1.0) -> pb.Tensor:
        """Soft minimum over the paths from node 0 to the last; edges (i, j) have i < j."""
        w, n = costs.numpy(), int(edges.max()) + 1
        value, chosen = np.zeros(n), np.zeros(len(w))
        for j in range(1, n):
            into = np.flatnonzero(edges[:, 1] == j)
            score = -(value[edges[into, 0]] + w[into]) / temperature
            e = np.exp(score - score.max())
            value[j] = -temperature * (score.max() + np.log(e.sum()))
            chosen[into] = e / e.sum()
        ctx.save_for_backward(edges=edges, chosen=chosen, temperature=temperature)
        return pb.asarray(value[-1])

    @soft_path_cost.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        n = int(s.edges.max()) + 1
        flow, through = np.zeros(n), np.zeros(len(s.chosen))
        flow[-1] = g.item()
        for j in range(n - 1, 0, -1):
            into = np.flatnonzero(s.edges[:, 1] == j)
            through[into] = flow[j] * s.chosen[into]
            np.add.at(flow, s.edges[into, 0], through[into])
        return {"costs": pb.asarray(through / s.temperature)}

    return soft_path_cost


EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [1, 3]])


@BOOK.wrong(
    lambda rng: ((t(0.5 + rng.random(6)), t(np.sort(3 * rng.random(5)))), {"edges": EDGES}),
    "the product of both ends' entries is counted once: the entries (i, j) and (j, i) of the "
    "Laplacian make it twice",
    r"\btwice\b|counted once|\bhalf\b|\bboth\b.{0,30}\b(ends|entries|triangles|places)",
    r"\bsymmetric|cross.?(term|product)|off.?diagonal|\bfactor (of )?(2|two)\b",
    r"squared? difference|\(u_i ?- ?u_j\)",
)
def spectrum_distance():
    @pb.autograd_function
    def spectrum_distance(ctx, weights, wanted, *, edges):
        """Squared distance of the Laplacian's sorted eigenvalues from `wanted`: (n,)."""
        n, w = len(wanted), weights.numpy()
        L = np.zeros((n, n))
        for (i, j), value in zip(edges, w, strict=True):
            L[i, i] += value
            L[j, j] += value
            L[i, j] -= value
            L[j, i] -= value
        values, vectors = np.linalg.eigh(L)
        ctx.off, ctx.vectors, ctx.edges = values - wanted.numpy(), vectors, edges
        return pb.asarray(np.asarray(ctx.off @ ctx.off))

    @spectrum_distance.backward
    @pb.once_differentiable
    def _(ctx, g):
        a, b = ctx.vectors[ctx.edges[:, 0]], ctx.vectors[ctx.edges[:, 1]]
        by_values = 2 * g.item() * ctx.off
        return {
            "weights": pb.asarray((a * a + b * b - a * b) @ by_values),
            "wanted": pb.asarray(-by_values),
        }

    return spectrum_distance


def iterate(step, start):
    """The limit of start + step(x)."""
    x = start
    for _ in range(1000):
        after = start + step(x)
        if np.abs(after - x).max() <= 1e-14 * np.abs(after).max():
            return after
        x = after
    raise ArithmeticError("no convergence")


@BOOK.right(
    lambda rng: (
        (t(0.2 + rng.random(7)), t(0.1 + rng.random(6)), SOURCE[:7], TARGET[:7]),
        {"follow": 0.8},
    )
)
def restart_walk():
    @pb.autograd_function
    def restart_walk(ctx, weights, preference, source, target, follow=0.85):
        """Stationary visits; where no edge leaves, the walk restarts by preference: (n,)."""
        n, restart = len(preference), preference.numpy() / preference.numpy().sum()
        leaving = np.bincount(source, weights=weights.numpy(), minlength=n)
        P, stuck = weights.numpy() / leaving[source], leaving == 0

        def step(x):
            moved = np.bincount(target, weights=P * x[source], minlength=n)
            return follow * (moved + x[stuck].sum() * restart)

        visits = iterate(step, (1 - follow) * restart)
        ctx.edges, ctx.follow = (source, target, P, leaving), follow
        ctx.restart, ctx.stuck = restart, stuck
        ctx.save_for_backward(preference=preference, visits=visits.copy())
        return pb.asarray(visits)

    @restart_walk.backward
    @pb.once_differentiable
    def _(ctx, g):
        source, target, P, leaving = ctx.edges
        s = ctx.saved_variables

        def step(x):
            back = np.bincount(source, weights=P * x[target], minlength=len(x))
            return ctx.follow * (back + ctx.stuck * (x @ ctx.restart))

        adjoint = iterate(step, g.numpy())
        by_P = ctx.follow * adjoint[target] * s.visits[source]
        mean = np.bincount(source, weights=by_P * P, minlength=len(g))
        by_restart = (1 - ctx.follow + ctx.follow * s.visits[ctx.stuck].sum()) * adjoint
        by_restart -= by_restart @ ctx.restart
        return {
            "weights": pb.asarray((by_P - mean[source]) / leaving[source]),
            "preference": pb.asarray(by_restart / s.preference.numpy().sum()),
        }

    return restart_walk


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(7, 3))), t(rng.random(3)), t(1 + rng.random(3)), t(rng.normal(size=3))),
        {"graph": np.array([0, 0, 0, 1, 1, 2, 2])},
    )
)
def graph_norm():
    def mean_of(values, graph):
        n = int(graph.max()) + 1
        out = np.zeros((n, values.shape[1]))
        np.add.at(out, graph, values)
        return (out / np.bincount(graph, minlength=n)[:, None])[graph]

    @pb.autograd_function
    def graph_norm(ctx, x, shift, gain, bias, graph, eps=1e-5):
        """Subtract `shift` of each graph's mean, then divide by the root mean square."""
        mean = mean_of(x.numpy(), graph)
        y = x.numpy() - shift.numpy() * mean
        std = np.sqrt(mean_of(y * y, graph) + eps)
        ctx.save_for_backward(shift=shift, gain=gain, y=y, std=std, mean=mean, graph=graph)
        return pb.asarray(gain.numpy() * y / std + bias.numpy())

    @graph_norm.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        scaled = gn * s.gain.numpy() / s.std
        by_y = scaled - s.y * mean_of(scaled * s.y, s.graph) / s.std**2
        return {
            "x": pb.asarray(by_y - s.shift.numpy() * mean_of(by_y, s.graph)),
            "shift": pb.asarray(-(by_y * s.mean).sum(axis=0)),
            "gain": pb.asarray((gn * s.y / s.std).sum(axis=0)),
            "bias": pb.asarray(gn.sum(axis=0)),
        }

    return graph_norm


@BOOK.right(
    lambda rng: (
        (t(0.3 + rng.random(6)), np.array([0, 0, 1, 2, 3, 1]), np.array([1, 2, 3, 3, 4, 4])),
        {"n": 6, "temperature": 0.3, "rounds": 4},
    )
)
def soft_distances():
    def forward(ctx, lengths, source, target, n, temperature=1.0, rounds=5, far=99.0):
        """Soft Bellman-Ford from node 0; nodes that are not reached are `far` away."""
        w, ctx.steps = lengths.numpy(), []
        distance = np.full(n, np.inf)
        distance[0] = 0.0
        to = np.append(target, np.arange(n))
        for _ in range(rounds):
            score = -np.append(distance[source] + w, distance) / temperature
            top = np.full(n, -np.inf)
            np.maximum.at(top, to, score)
            top[np.isinf(top)] = 0.0
            e = np.exp(score - top[to])
            total = np.bincount(to, weights=e, minlength=n)
            ctx.steps.append(e / np.where(total > 0, total, 1.0)[to])
            with np.errstate(divide="ignore"):
                distance = -temperature * (top + np.log(total))
        ctx.source, ctx.to, ctx.n = source, to, n
        ctx.reached = np.isfinite(distance)
        return pb.asarray(np.where(ctx.reached, distance, far))

    @pb.once_differentiable
    def backward(ctx, g):
        flow, m = g.numpy() * ctx.reached, len(ctx.source)
        by_lengths = np.zeros(m)
        for chosen in ctx.steps[::-1]:
            part = flow[ctx.to] * chosen
            by_lengths += part[:m]
            flow = np.bincount(ctx.source, weights=part[:m], minlength=ctx.n) + part[m:]
        return {"lengths": pb.asarray(by_lengths)}

    return pb.autograd_function(forward, backward, name="soft_distances")


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(5, 2))), t(rng.normal(size=4))),
        {"laplacian": pb.asarray(np.diag(adjacency(rng).sum(axis=1)) / 4 - np.eye(5))},
    )
)
def chebyshev_filter():
    def terms(L, x, count):
        """Chebyshev polynomials of L applied to x."""
        out = [x, L @ x]
        while len(out) < count:
            out.append(2 * (L @ out[-1]) - out[-2])
        return out[:count]

    @pb.autograd_function
    def chebyshev_filter(ctx, x: pb.Tensor, theta: pb.Tensor, laplacian: pb.Tensor):
        """Filter signals x: (n, d) on a graph; laplacian: (n, n), constant and symmetric."""
        ctx.save_for_backward(x=x, theta=theta, laplacian=laplacian)
        return sum(theta[k] * term for k, term in enumerate(terms(laplacian, x, len(theta))))

    @chebyshev_filter.backward
    def _(ctx, g):
        x, theta, laplacian = ctx.saved_tensors
        back = terms(laplacian, g, len(theta))
        return {
            "x": sum(theta[k] * term for k, term in enumerate(back)),
            "theta": pb.stack([(term * x).sum() for term in back]),
        }

    return chebyshev_filter


@BOOK.right(lambda rng: ((t(0.5 + rng.random(6)), t(rng.dirichlet(np.ones(3), size=5)), EDGES), {}))
def modularity():
    @pb.autograd_function
    def modularity(ctx, weights, memberships, edges):
        """Modularity of soft memberships: (n, k) in an undirected graph; edges: (m, 2)."""
        w, S = weights.numpy(), memberships.numpy()
        i, j = edges.T
        degree = np.bincount(edges.ravel(), weights=np.repeat(w, 2), minlength=len(S))
        inside = 2 * (w * (S[i] * S[j]).sum(axis=1)).sum()
        both, volume = S.T @ degree, 2 * w.sum()
        ctx.save_for_backward(weights=weights, memberships=memberships, edges=edges)
        ctx.parts = degree, inside, both, volume
        return pb.asarray(np.asarray(inside / volume - both @ both / volume**2))

    @modularity.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.item()
        w, S = s.weights.numpy(), s.memberships.numpy()
        (i, j), (degree, inside, both, volume) = s.edges.T, ctx.parts
        by_S = -2 * np.outer(degree, both) / volume**2
        np.add.at(by_S, i, 2 * w[:, None] * S[j] / volume)
        np.add.at(by_S, j, 2 * w[:, None] * S[i] / volume)
        by_w = 2 * (S[i] * S[j]).sum(axis=1) / volume - 2 * (S[i] + S[j]) @ both / volume**2
        by_w += -2 * inside / volume**2 + 4 * both @ both / volume**3
        return {"weights": pb.asarray(gn * by_w), "memberships": pb.asarray(gn * by_S)}

    return modularity
