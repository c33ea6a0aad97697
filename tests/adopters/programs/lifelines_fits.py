"""Survival models fitted to data that come with lifelines."""

import warnings

import lifelines
import numpy as np
from lifelines.datasets import load_rossi, load_waltons

warnings.simplefilter("ignore")
UNIVARIATE = ["Weibull", "Exponential", "LogNormal", "LogLogistic", "GeneralizedGamma"]
REGRESSIONS = ["WeibullAFT", "LogNormalAFT", "LogLogisticAFT"]
WALTONS, ROSSI = load_waltons(), load_rossi()


def univariate(name):
    fitter = getattr(lifelines, f"{name}Fitter")()
    return fitter.fit(WALTONS["T"], WALTONS["E"])


def regression(name):
    return getattr(lifelines, f"{name}Fitter")().fit(ROSSI, "week", "arrest")


FITS = {name: (univariate, name) for name in UNIVARIATE}
FITS |= {name: (regression, name) for name in REGRESSIONS}


def run(name):
    fit, model = FITS[name]
    fitter = fit(model)
    return fitter.log_likelihood_, np.asarray(fitter.summary["coef"]), fitter.variance_matrix_
