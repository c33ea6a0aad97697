"""Calls of `scipy.stats`."""

from tests.scipy_support._calls import beside, call, space, table

one = call((12,), low=-2.0, high=2.0)
positive = call((6,))
two = call((7,), (7,), low=-2.0, high=2.0)
three = call((5,), (6,), (7,), low=-2.0, high=2.0)
rows = call((4, 5), axis=1)
long = call((24,), low=-2.0, high=2.0)


def cdf(x):
    """A distribution function that arrays of every library go through."""
    return 1 / (1 + space(x).exp(-x))


def mean(x, axis):
    return space(x).mean(x, axis=axis)


def pvalue(x, axis):
    return cdf(mean(x, axis))


def gap(x, y, axis):
    return mean(x, axis) - mean(y, axis)


def drawn(x):
    """Return what draws samples in the namespace of `x`."""
    import numpy as np

    rng = np.random.default_rng(5)
    return lambda size: beside(x, rng.uniform(-2, 2, size))


CALLS = table(
    "stats",
    {
        "alexandergovern bartlett f_oneway kruskal levene fligner": three,
        "friedmanchisquare": call((7,), (7,), (7,)),
        "ansari mood mannwhitneyu brunnermunzel cramervonmises_2samp epps_singleton_2samp": two,
        "ttest_ind[equal_var=False]": call((7,), (7,), equal_var=False),
        "wilcoxon ttest_rel ttest_ind pearsonr spearmanrho chatterjeexi": two,
        "bootstrap": call(
            (6,),
            run=lambda f, x: [
                (r.confidence_interval.low, r.confidence_interval.high, r.standard_error)
                for r in [
                    f((x,), mean, n_resamples=20, rng=1, method="percentile", vectorized=True)
                ]
            ],
        ),
        "boxcox_llf yeojohnson_llf": call((8,), run=lambda f, x: f(0.7, x)),
        "chisquare": call(
            (5,), (5,), run=lambda f, x, y: f(x, y * space(x).sum(x) / space(x).sum(y))
        ),
        "power_divergence": [
            call(
                (5,),
                (5,),
                run=lambda f, x, y, k=k: f(x, y * space(x).sum(x) / space(x).sum(y), lambda_=k),
            )
            for k in ("pearson", "log-likelihood", "freeman-tukey", "neyman", 0.7)
        ],
        "circmean circstd circvar": positive,
        "combine_pvalues": [
            call((4,), low=0.1, high=0.9, method=method)
            for method in ("fisher", "pearson", "tippett", "stouffer", "mudholkar_george")
        ],
        "cramervonmises ks_1samp": call((7,), run=lambda f, x: f(x, cdf), low=-2.0),
        "describe": call((8,)),
        "differential_entropy": [
            call((30,), low=-2.0, method=method)
            for method in ("vasicek", "van es", "ebrahimi", "correa")
        ],
        "directional_stats": call((5, 3), run=lambda f, x: [vars(f(x))["mean_direction"]]),
        "entropy": [call((5,)), call((5,), (5,)), call((3, 4), axis=1, base=2.0)],
        "false_discovery_control": call((5,), low=0.01, high=0.9),
        "gmean hmean gstd gzscore": [positive, rows],
        "pmean": call((5,), run=lambda f, x: f(x, 1.7)),
        "iqr median_abs_deviation variation sem skew kurtosis zscore": [positive, rows],
        "jarque_bera kstat kstatvar rankdata mode sigmaclip": one,
        "mode[axis=1]": rows,
        "kurtosistest skewtest normaltest": long,
        "lmoment": one,
        "moment": [call((5,), order=3), call((4, 5), order=2, axis=1)],
        "monte_carlo_test": call(
            (6,),
            run=lambda f, x: [
                (r.statistic, r.pvalue)
                for r in [f(x, drawn(x), mean, n_resamples=19, vectorized=True)]
            ],
        ),
        "permutation_test": call(
            (4,),
            (5,),
            run=lambda f, x, y: [
                (r.statistic, r.pvalue, r.null_distribution)
                for r in [f((x, y), gap, n_resamples=19, vectorized=True, rng=1)]
            ],
        ),
        "power": call(
            (),
            run=lambda f, x: (
                f(
                    lambda y, axis: pvalue(y * x, axis),
                    drawn(x),
                    (beside(x, 5),),
                    n_resamples=5,
                    vectorized=True,
                ).power
            ),
        ),
        "quantile": [
            call((6,), run=lambda f, x: f(x, beside(x, [0.2, 0.55]))),
            call((6,), (), run=lambda f, x, p: f(x, p / 3)),
        ],
        "tmax tmin tmean tsem tstd tvar": positive,
        "trim_mean": call((10,), run=lambda f, x: f(x, 0.2)),
        "ttest_1samp": call((6,), run=lambda f, x: f(x, 1.0)),
        "ttest_ind_from_stats": call((), (), (), (), run=lambda f, m, s, n, t: f(m, s, 6, n, t, 8)),
        "zmap": call((5,), (6,)),
    },
)
