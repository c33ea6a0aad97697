"""Probability: log densities, divergences, reparametrised draws, Gaussian processes, chains."""

from __future__ import annotations

import numpy as np
from scipy import special

import pullback as pb

from .entries import (
    AXIS,
    BATCH,
    FACTOR,
    FLOAT32,
    IGNORED,
    MAGNITUDE,
    MISSING,
    SHIFT,
    SIGN,
    SUMMED,
    SWAPPED,
    TRANSPOSED,
    Book,
    at,
    spd,
    t,
)

BOOK = Book("probability")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=6)), t(rng.normal()), t(1.5)), {}),
    "the gradient of sigma lacks the term of the normalising constant",
    MISSING,
    r"normali[sz]|\bterm\b",
)
def normal_logpdf():
    @pb.autograd_function
    def normal_logpdf(ctx, x, mu, sigma):
        ctx.save_for_backward(x=x, mu=mu, sigma=sigma)
        z = (x - mu) / sigma
        return -0.5 * (z * z).sum() - len(x) * (pb.log(sigma) + 0.5 * np.log(2 * np.pi))

    @normal_logpdf.backward
    def _(ctx, g):
        x, mu, sigma = ctx.saved_tensors
        z = (x - mu) / sigma
        return {
            "x": -g * z / sigma,
            "mu": g * (z / sigma).sum(),
            "sigma": g * (z * z / sigma).sum(),
        }

    return normal_logpdf


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=(4, 3)))), {}),
    "the gradient of the log variance lacks the factor 1/2",
    FACTOR,
)
def gaussian_kl():
    def forward(ctx, mean: pb.Tensor, logvar: pb.Tensor) -> pb.Tensor:
        """KL from N(mean, exp(logvar)) to N(0, 1); both (n, d), result (n,)."""
        ctx.save_for_backward(mean=mean, logvar=logvar)
        return 0.5 * (mean * mean + pb.exp(logvar) - 1 - logvar).sum(dim=1)

    def backward(ctx, grad_output):
        s, g = ctx.saved_variables, grad_output[:, None]
        return {"mean": g * s.mean, "logvar": g * (pb.exp(s.logvar) - 1)}

    return pb.autograd_function(forward, backward, name="gaussian_kl")


@BOOK.right(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3))), {"reduction": "mean"})
)
def kl_to_prior():
    @pb.autograd_function
    def kl_to_prior(ctx, mean, logvar, reduction: str = "sum"):
        if reduction not in ("sum", "mean"):
            raise ValueError("reduction must be sum or mean")
        ctx.save_for_backward(mean=mean, logvar=logvar)
        ctx.scale = 0.5 if reduction == "sum" else 0.5 / mean.shape[0]
        return ctx.scale * (mean * mean + pb.exp(logvar) - 1 - logvar).sum()

    @kl_to_prior.backward
    def _(ctx, g):
        s, scale = ctx.saved_variables, ctx.scale
        n = s.mean.shape[0]
        return {"mean": 2 * scale * g * s.mean, "logvar": n * scale * g * (pb.exp(s.logvar) - 1)}

    return kl_to_prior


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), t(rng.normal(size=5)), rng.normal(size=5)), {}),
    "the gradient of the log scale lacks the scale's own factor",
    FACTOR,
    r"chain",
)
def reparametrise():
    @pb.autograd_function
    def reparametrise(ctx, loc, log_scale, noise):
        ctx.noise = noise
        return loc + pb.exp(log_scale) * pb.asarray(noise)

    @reparametrise.backward
    @pb.once_differentiable
    def _(ctx, g):
        return {"loc": g, "log_scale": g * pb.asarray(ctx.noise)}

    return reparametrise


@BOOK.right(lambda rng: ((t(rng.normal(size=3)), t(np.tril(spd(rng, 3)))), {"seed": 7, "n": 4}))
def multivariate_draw():
    @pb.autograd_function
    def multivariate_draw(ctx, loc: pb.Tensor, factor: pb.Tensor, seed: int = 0, n: int = 1):
        """Draw n vectors from N(loc, L L'), L the lower triangle of factor: (d, d)."""
        z = np.random.default_rng(seed).normal(size=(n, len(loc)))
        ctx.z = z
        return pb.asarray(loc.numpy() + z @ np.tril(factor.numpy()).T)

    @multivariate_draw.backward
    @pb.once_differentiable
    def _(ctx, g):
        gn = g.numpy()
        return {"loc": pb.asarray(gn.sum(axis=0)), "factor": pb.asarray(np.tril(gn.T @ ctx.z))}

    return multivariate_draw


@BOOK.wrong(
    lambda rng: (
        (t(rng.normal(size=8)), t(rng.normal(size=3)), t(rng.normal(size=3))),
        {},
    ),
    "the responsibilities are not divided by the width a second time: a factor is missing",
    FACTOR,
    at("width"),
    where="width other than 1",
    shows=lambda rng: (
        (t(rng.normal(size=8)), t(rng.normal(size=3)), t(rng.normal(size=3))),
        {"width": 0.7},
    ),
)
def mixture_loglik():
    @pb.autograd_function
    def mixture_loglik(ctx, x, logits, means, width=1.0):
        """Log likelihood of x: (n,) under k Gaussians; logits and means: (k,)."""
        logw = logits.numpy() - special.logsumexp(logits.numpy())
        z = (x.numpy()[:, None] - means.numpy()) / width
        logp = logw - 0.5 * z**2 - np.log(width) - 0.5 * np.log(2 * np.pi)
        total = special.logsumexp(logp, axis=1)
        r = np.exp(logp - total[:, None])
        ctx.save_for_backward(r=r, z=z, w=np.exp(logw))
        return pb.asarray(total)

    @mixture_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()[:, None]
        flow = gn * s.r * s.z
        return {
            "x": pb.asarray(-flow.sum(axis=1)),
            "logits": pb.asarray((gn * (s.r - s.w)).sum(axis=0)),
            "means": pb.asarray(flow.sum(axis=0)),
        }

    return mixture_loglik


@BOOK.right(
    lambda rng: (
        (t(rng.normal(size=(6, 2))), t(rng.normal(size=(3, 2))), t(rng.normal(size=3))),
        {},
    )
)
def mixture_of_gaussians():
    def forward(ctx, data, centers, weights_logits):
        """data: (n, d), centers: (k, d), weights_logits: (k,); returns the sum over data."""
        x, m, a = data.numpy(), centers.numpy(), weights_logits.numpy()
        logw = a - special.logsumexp(a)
        diff = x[:, None] - m[None]
        logp = logw - 0.5 * (diff**2).sum(axis=-1) - 0.5 * x.shape[1] * np.log(2 * np.pi)
        total = special.logsumexp(logp, axis=1)
        ctx.save_for_backward(r=np.exp(logp - total[:, None]), diff=diff, w=np.exp(logw))
        return pb.asarray(total.sum())

    @pb.once_differentiable
    def backward(ctx, g):
        s, scale = ctx.saved_variables, g.item()
        flow = scale * s.r[..., None] * s.diff
        logits = scale * (s.r.sum(axis=0) - len(s.r) * s.w)
        return tuple(map(pb.asarray, (-flow.sum(axis=1), flow.sum(axis=0), logits)))

    return pb.autograd_function(forward, backward, name="mixture_of_gaussians")


@BOOK.wrong(
    lambda rng: ((t(np.sort(rng.normal(size=(6, 1)), axis=0)), t(rng.normal(size=6)), t(0.1)), {}),
    "half of the kernel's symmetric gradient is missing for the inputs",
    FACTOR,
    r"\bhalf\b|symmetric|transpos",
    MISSING,
)
def gp_loglik():
    @pb.autograd_function
    def gp_loglik(ctx, X, y, noise):
        """Log marginal likelihood with a squared exponential kernel; X: (n, d), y: (n,)."""
        x, yn = X.numpy(), y.numpy()
        diff = x[:, None] - x[None]
        K = np.exp(-0.5 * (diff**2).sum(axis=-1))
        A = K + (0.1 + noise.numpy() ** 2) * np.eye(len(yn))
        alpha = np.linalg.solve(A, yn)
        ctx.save_for_backward(A=A, K=K, alpha=alpha, diff=diff, noise=float(noise))
        return pb.asarray(-0.5 * yn @ alpha - 0.5 * np.linalg.slogdet(A)[1])

    @gp_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        gA = 0.5 * (np.outer(s.alpha, s.alpha) - np.linalg.inv(s.A)) * g.item()
        flow = -(gA * s.K)[..., None] * s.diff
        return {
            "X": pb.asarray(flow.sum(axis=1)),
            "y": pb.asarray(-s.alpha * g.item()),
            "noise": pb.asarray(2 * s.noise * np.trace(gA)),
        }

    return gp_loglik


@BOOK.right(lambda rng: ((t(spd(rng, 5)), t(rng.normal(size=5)), t(rng.normal())), {}))
def gaussian_logpdf():
    @pb.autograd_function
    def gaussian_logpdf(ctx, covariance: pb.Tensor, y: pb.Tensor, mean: pb.Tensor) -> pb.Tensor:
        """log N(y."""
        C = covariance.numpy()
        if not np.allclose(C, C.T):
            raise ValueError("gaussian_logpdf: covariance must be symmetric")
        L = np.linalg.cholesky(C)
        r = y.numpy() - mean.numpy()
        alpha = np.linalg.solve(C, r)
        ctx.save_for_backward(inverse=np.linalg.inv(C), alpha=alpha)
        logdet = 2 * np.log(np.diag(L)).sum()
        return pb.asarray(-0.5 * (r @ alpha + logdet + len(r) * np.log(2 * np.pi)))

    @gaussian_logpdf.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, scale = ctx.saved_variables, g.item()
        return {
            "covariance": pb.asarray(0.5 * scale * (np.outer(s.alpha, s.alpha) - s.inverse)),
            "y": pb.asarray(-scale * s.alpha),
            "mean": pb.asarray(scale * s.alpha.sum()),
        }

    return gaussian_logpdf


@BOOK.wrong(
    lambda rng: ((t(rng.dirichlet(np.ones(4), size=3)), t(1 + 2 * rng.random(4))), {}),
    "the digamma of the total concentration is missing",
    MISSING,
    r"\bterm\b|digamma|constant",
)
def dirichlet_logpdf():
    @pb.autograd_function
    def dirichlet_logpdf(ctx, p, alpha):
        """p: (n, k) positive, alpha: (k,); returns (n,)."""
        a = alpha.numpy()
        ctx.save_for_backward(p=p, alpha=alpha)
        constant = special.gammaln(a.sum()) - special.gammaln(a).sum()
        return pb.asarray(((a - 1) * np.log(p.numpy())).sum(axis=1) + constant)

    @dirichlet_logpdf.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, a = (v.numpy() for v in ctx.saved_tensors)
        gn = g.numpy()[:, None]
        by_alpha = gn * (np.log(p) - special.digamma(a))
        return {"p": pb.asarray(gn * (a - 1) / p), "alpha": pb.asarray(by_alpha.sum(axis=0))}

    return dirichlet_logpdf


@BOOK.right(lambda rng: ((t(0.2 + 3 * rng.random(6)), t(0.5 + 2 * rng.random(6)), t(1.3)), {}))
def gamma_logpdf():
    class GammaLogpdf(pb.Function):
        @staticmethod
        def forward(ctx, x, shape, rate):
            """log density of Gamma(shape, rate); x and shape: (n,), rate: ()."""
            xn, a, b = x.numpy(), shape.numpy(), rate.numpy()
            if (xn <= 0).any() or (a <= 0).any() or b <= 0:
                raise ValueError("GammaLogpdf: x, shape and rate must be positive")
            ctx.save_for_backward(x=x, shape=shape, rate=rate)
            return pb.asarray(a * np.log(b) + (a - 1) * np.log(xn) - b * xn - special.gammaln(a))

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, g):
            x, a, b = (v.numpy() for v in ctx.saved_tensors)
            gn = g.numpy()
            return {
                "x": pb.asarray(gn * ((a - 1) / x - b)),
                "shape": pb.asarray(gn * (np.log(b * x) - special.digamma(a))),
                "rate": pb.asarray((gn * (a / b - x)).sum()),
            }

    return GammaLogpdf.apply


def chain_given(steps=5, states=3):
    def given(rng):
        parts = rng.normal(size=(states, states)), rng.normal(size=(steps, states))
        return tuple(map(t, parts)), {}

    return given


def forward_backward(A, E):
    """Log partition function of a linear chain, and the marginals of edges and nodes."""
    T, K = E.shape
    f, b = np.zeros((T, K)), np.zeros((T, K))
    f[0] = E[0]
    for i in range(1, T):
        f[i] = special.logsumexp(f[i - 1][:, None] + A, axis=0) + E[i]
    for i in range(T - 2, -1, -1):
        b[i] = special.logsumexp(A + (E[i + 1] + b[i + 1])[None, :], axis=1)
    logZ = special.logsumexp(f[-1])
    edges = [np.exp(f[i][:, None] + A + (E[i + 1] + b[i + 1]) - logZ) for i in range(T - 1)]
    return logZ, np.array(edges).reshape(-1, K, K), np.exp(f + b - logZ)


@BOOK.wrong(
    chain_given(),
    "the marginals of the transitions are transposed",
    TRANSPOSED,
)
def crf_log_partition():
    @pb.autograd_function
    def crf_log_partition(ctx, transitions: pb.Tensor, emissions: pb.Tensor) -> pb.Tensor:
        """transitions: (k, k) from row to column, emissions: (t, k)."""
        logZ, edges, nodes = forward_backward(transitions.numpy(), emissions.numpy())
        ctx.save_for_backward(edges=edges, nodes=nodes)
        return pb.asarray(logZ)

    @crf_log_partition.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_transition = s.edges.sum(axis=0).T * g.item()
        return {
            "transitions": pb.asarray(by_transition),
            "emissions": pb.asarray(s.nodes * g.item()),
        }

    return crf_log_partition


@BOOK.right(chain_given(6, 4))
def hmm_loglik():
    @pb.autograd_function
    def hmm_loglik(ctx, logits, log_obs):
        """Log likelihood of a hidden chain; rows of logits: (k, k) are normalised here."""
        A = special.log_softmax(logits.numpy(), axis=1)
        logZ, edges, nodes = forward_backward(A, log_obs.numpy())
        ctx.save_for_backward(A=A, count=edges.sum(axis=0), nodes=nodes)
        return pb.asarray(logZ)

    @hmm_loglik.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        by_logit = s.count - np.exp(s.A) * s.count.sum(axis=1, keepdims=True)
        return {
            "logits": pb.asarray(g.item() * by_logit),
            "log_obs": pb.asarray(g.item() * s.nodes),
        }

    return hmm_loglik


@BOOK.wrong(
    chain_given(6, 2),
    "the marginals are shifted: an emission gets that of the step before",
    SHIFT,
)
def crf_nodes():
    def forward(ctx, A, E):
        logZ, edges, nodes = forward_backward(A.numpy(), E.numpy())
        ctx.save_for_backward(edges=edges, nodes=nodes)
        return pb.asarray(logZ)

    @pb.once_differentiable
    def backward(ctx, g):
        s = ctx.saved_variables
        nodes = np.concatenate([s.nodes[:1], s.nodes[:-1]])
        return pb.asarray(g.item() * s.edges.sum(axis=0)), pb.asarray(g.item() * nodes)

    return pb.autograd_function(forward, backward, name="crf_nodes")


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(1, 4))), t(rng.normal(size=(1, 4)))), {}),
    "the mean over the batch is not divided out in backward",
    BATCH,
    FACTOR,
    r"\bmean\b",
    where="batch > 1",
    shows=lambda rng: ((t(rng.normal(size=(3, 4))), t(rng.normal(size=(3, 4)))), {}),
)
def categorical_kl():
    @pb.autograd_function
    def categorical_kl(ctx, p_logits, q_logits):
        """Mean over the batch of KL(p, q); both (n, k)."""
        lp = special.log_softmax(p_logits.numpy(), axis=1)
        lq = special.log_softmax(q_logits.numpy(), axis=1)
        kl = (np.exp(lp) * (lp - lq)).sum(axis=1, keepdims=True)
        ctx.save_for_backward(lp=lp, lq=lq, kl=kl)
        return pb.asarray(kl.mean())

    @categorical_kl.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        p = np.exp(s.lp)
        by_p = p * (s.lp - s.lq - s.kl)
        return {
            "p_logits": pb.asarray(g.item() * by_p),
            "q_logits": g * pb.asarray(np.exp(s.lq) - p),
        }

    return categorical_kl


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 5))),), {}),
    "the gradient of the result is ignored",
    IGNORED,
)
def entropy():
    @pb.autograd_function
    def entropy(ctx, logits: pb.Tensor) -> pb.Tensor:
        """Entropy of each row of logits: (n, k)."""
        logp = special.log_softmax(logits.numpy(), axis=1)
        p = np.exp(logp)
        ctx.save_for_backward(p=p, logp=logp)
        return pb.asarray(-(p * logp).sum(axis=1))

    @entropy.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        p, logp = ctx.saved_variables.p, ctx.saved_variables.logp
        return {"logits": pb.asarray(-p * (logp - (p * logp).sum(axis=1, keepdims=True)))}

    return entropy


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(3, 4))),), {}),
    "for large values backward saturates: exp overflows and the gradient is not a number",
    MAGNITUDE,
    where="values above 710",
    shows=lambda rng: ((t(np.array([[720.0, 1.0, 719.0], [0.0, 730.0, 2.0]])),), {}),
)
def log_sum_exp():
    @pb.autograd_function
    def log_sum_exp(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.asarray(special.logsumexp(x.numpy(), axis=1))

    @log_sum_exp.backward
    @pb.once_differentiable
    def _(ctx, g):
        with np.errstate(over="ignore", invalid="ignore"):
            e = np.exp(ctx.saved_variables.x.numpy())
            return {"x": pb.asarray(g.numpy()[:, None] * (e / e.sum(axis=1, keepdims=True)))}

    return log_sum_exp


@BOOK.wrong(
    lambda rng: ((t(3 * rng.normal(size=6)), t(4.0)), {}),
    "backward takes a difference quotient with a step that is too small for float32",
    FLOAT32,
    where="float32",
)
def student_t_logpdf():
    def logpdf(x, df):
        constant = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * np.log(df)
        return constant - 0.5 * (df + 1) * np.log1p(x * x / df)

    @pb.autograd_function
    def student_t_logpdf(ctx, x, df):
        ctx.save_for_backward(x=x, df=df)
        return pb.asarray(logpdf(x.numpy(), df.numpy()))

    @student_t_logpdf.backward
    @pb.once_differentiable
    def _(ctx, g):
        x, df = (v.numpy() for v in ctx.saved_tensors)
        h = x.dtype.type(1e-6)
        by_x = (logpdf(x + h, df) - logpdf(x - h, df)) / (2 * h)
        by_df = (logpdf(x, df + h) - logpdf(x, df - h)) / (2 * h)
        return {"x": pb.asarray(g.numpy() * by_x), "df": pb.asarray((g.numpy() * by_df).sum())}

    return student_t_logpdf


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=(4, 3))), t(rng.normal(size=3)), t(0.5 + rng.random(3))), {}),
    "the location's gradient is summed over the features, not over the observations",
    AXIS,
    SUMMED,
)
def laplace_logpdf():
    def forward(ctx, x, loc, scale):
        z = (x.numpy() - loc.numpy()) / scale.numpy()
        ctx.save_for_backward(z=z, scale=scale)
        return pb.asarray(-np.abs(z) - np.log(2 * scale.numpy()))

    @pb.once_differentiable
    def backward(ctx, g):
        z, b, gn = ctx.saved_variables.z, ctx.saved_variables.scale.numpy(), g.numpy()
        flow = gn * np.sign(z) / b
        loc = np.resize(flow.sum(axis=1), b.shape)
        scale = (gn * (np.abs(z) - 1) / b).sum(axis=0)
        return {"x": pb.asarray(-flow), "loc": pb.asarray(loc), "scale": pb.asarray(scale)}

    return pb.autograd_function(forward, backward, name="laplace_logpdf")


@BOOK.wrong(
    lambda rng: ((t(1 + rng.random(5)), t(1 + rng.random(5)), 0.1 + 0.8 * rng.random(5)), {}),
    "the gradients of the two concentrations are exchanged",
    SWAPPED,
)
def beta_logpdf():
    @pb.autograd_function
    def beta_logpdf(ctx, a, b, x):
        """log density of Beta(a, b) at x, each (n,); x in (0, 1)."""
        an, bn = a.numpy(), b.numpy()
        ctx.save_for_backward(a=a, b=b, x=x)
        return pb.asarray((an - 1) * np.log(x) + (bn - 1) * np.log1p(-x) - special.betaln(an, bn))

    @beta_logpdf.backward
    @pb.once_differentiable
    def _(ctx, g):
        s, gn = ctx.saved_variables, g.numpy()
        a, b = s.a.numpy(), s.b.numpy()
        total = special.digamma(a + b)
        return {
            "b": pb.asarray(gn * (np.log(s.x) - special.digamma(a) + total)),
            "a": pb.asarray(gn * (np.log1p(-s.x) - special.digamma(b) + total)),
        }

    return beta_logpdf


@BOOK.right(lambda rng: ((t(rng.normal(size=(3, 5))), rng.gumbel(size=(3, 5))), {"tau": 0.5}))
def gumbel_softmax():
    @pb.autograd_function
    def gumbel_softmax(ctx, logits, noise, tau=1.0):
        """A relaxed draw and the index drawn; logits and noise: (n, k)."""
        z = (logits.numpy() + noise) / tau
        y = special.softmax(z, axis=1)
        ctx.save_for_backward(y=y, tau=tau)
        return {"sample": pb.asarray(y), "index": pb.asarray(y.argmax(axis=1))}

    @gumbel_softmax.backward
    @pb.once_differentiable
    def _(ctx, g_sample, g_index):
        y, gn = ctx.saved_variables.y, g_sample.numpy()
        grad = y * (gn - (gn * y).sum(axis=1, keepdims=True)) / ctx.saved_variables.tau
        return {"logits": pb.asarray(grad)}

    return gumbel_softmax


@BOOK.right(lambda rng: ((t(rng.dirichlet(np.ones(4), size=3)), rng.integers(0, 4, size=3)), {}))
def nll_of_probabilities():
    @pb.autograd_function
    def nll_of_probabilities(ctx, p, target):
        """Mean negative log of p: (n, k) at target: (n,); rows of p must sum to 1."""
        pn = p.numpy()
        if (pn <= 0).any() or not np.allclose(pn.sum(axis=1), 1, atol=1e-4):
            raise ValueError("nll_of_probabilities: rows of p must be positive and sum to 1")
        ctx.save_for_backward(p=p, target=target)
        return pb.asarray(-np.log(pn[np.arange(len(pn)), target]).mean())

    @nll_of_probabilities.backward
    @pb.once_differentiable
    def _(ctx, g):
        p, target = ctx.saved_variables.p.numpy(), ctx.saved_variables.target
        grad, rows = np.zeros_like(p), np.arange(len(p))
        grad[rows, target] = -g.item() / (len(p) * p[rows, target])
        return {"p": pb.asarray(grad)}

    return nll_of_probabilities


@BOOK.wrong(
    lambda rng: ((t(rng.normal(size=5)), rng.integers(0, 6, size=5)), {}),
    "with the identity link the derivative has the wrong sign",
    SIGN,
    at("link"),
    where='link="identity"',
    shows=lambda rng: ((t(1 + rng.random(5)), rng.integers(0, 6, size=5)), {"link": "identity"}),
)
def poisson_nll():
    @pb.autograd_function
    def poisson_nll(ctx, eta, counts, link: str = "log"):
        """Negative log likelihood without its constant."""
        e = eta.numpy()
        ctx.save_for_backward(eta=eta, counts=counts, link=link)
        if link == "log":
            return pb.asarray(np.exp(e) - counts * e)
        return pb.asarray(e - counts * np.log(e))

    @poisson_nll.backward
    @pb.once_differentiable
    def _(ctx, g):
        s = ctx.saved_variables
        e = s.eta.numpy()
        slope = np.exp(e) - s.counts if s.link == "log" else s.counts / e - 1
        return {"eta": g * pb.asarray(slope)}

    return poisson_nll
