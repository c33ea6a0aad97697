"""Calls of `scipy.signal`."""

import numpy as np
from tests.scipy_support._calls import beside, call, space, table

pair = call((6,), (4,), low=-2.0)
image = call((4, 5), (2, 3), low=-2.0)
series = call((12,), low=-2.0)
long = call((40,), low=-2.0)
filters = call((3,), (3,))
complex_zpk = call((2,), (2,), (), kind="c", run=lambda f, z, p, k: f(z, p, space(k).real(k)))

GRID = np.array([0.3, 0.6, 0.9])
SOS = np.array([[0.2, 0.3, 0.2, 1.0, -0.4, 0.3]])
number = {"low": 0.2, "high": 0.8}


def makes(*arguments, **settings):
    """Return a call of a function that makes arrays of the namespace it is given."""
    return call(run=lambda f, xp: f(*arguments, xp=xp, **settings))


def pair_of(z):
    """Return numbers and their conjugates."""
    xp = space(z)
    return xp.concat([z, xp.conj(z)])


def sections(x):
    """Return filters in sections, whose fourth number is 1."""
    return space(x).concat([x[:, :3], x[:, :1] * 0 + 1, x[:, 4:] / 4], axis=1)


def of_number(*before, after=(), **settings):
    """Return a call with a tensor for one number."""
    return call((), run=lambda f, x: f(*before, x, *after, **settings), **number)


SIGNAL = table(
    "signal",
    {
        "abcd_normalize": call((2, 2), (2, 1), (1, 2), (1, 1)),
        "convolve correlate": pair,
        "convolve[method='fft'] correlate[method='fft']": [
            call((6,), (4,), low=-2.0, method="fft"),
            call((4, 5), (2, 3), low=-2.0, method="fft", mode="same"),
        ],
        "fftconvolve oaconvolve": [pair, call((6,), (4,), mode="same")],
        "convolve2d correlate2d": image,
        "choose_conv_method": pair,
        "deconvolve": call((6,), (3,)),
        "cspline1d qspline1d detrend hilbert": series,
        "cspline1d_eval qspline1d_eval": call((6,), run=lambda f, x: f(x, beside(x, [0.5, 2.5]))),
        "cspline2d": call((16, 16), precision=1e-3),
        "spline_filter": call((40, 40)),
        "hilbert2": call((4, 4)),
        "envelope": long,
        "gauss_spline": call((5,), run=lambda f, x: f(x, 3)),
        "bilinear": filters,
        "filtfilt": call(
            (20,), run=lambda f, x: f(beside(x, [0.2, 0.3]), beside(x, [1.0, -0.4]), x)
        ),
        "lfilter": [
            call((6,), run=lambda f, x: f(beside(x, [0.2, 0.3]), beside(x, [1.0, -0.4]), x)),
            call((2,), (2,), (6,)),
        ],
        "lfilter_zi": filters,
        "lfiltic": call((3,), (3,), (2,)),
        "normalize tf2zpk": filters,
        "tf2sos": filters,
        "bilinear_zpk": call(
            (2,), (2,), (), kind="c", run=lambda f, z, p, k: f(z, p, space(k).real(k), 2.0)
        ),
        "lp2bp lp2bs lp2hp lp2lp": filters,
        "lp2hp[wo] lp2lp[wo] lp2bp[wo] lp2bs[wo]": call((3,), (3,), ()),
        "lp2bp_zpk lp2bs_zpk lp2hp_zpk lp2lp_zpk freqz_zpk zpk2tf": complex_zpk,
        "zpk2sos": call(
            (1,),
            (1,),
            kind="c",
            run=lambda f, z, p: f(pair_of(z), pair_of(p), 1.0),
        ),
        "freqs_zpk": call(
            (2,),
            (2,),
            (),
            kind="c",
            run=lambda f, z, p, k: f(z, p, space(k).real(k), worN=beside(z, GRID)),
        ),
        "freqs freqz": call((3,), (3,), run=lambda f, b, a: f(b, a, worN=beside(b, GRID))),
        "freqz_sos sosfreqz": call((1, 6), run=lambda f, x: f(sections(x), worN=4)),
        "group_delay": call((3,), (3,), run=lambda f, b, a: f((b, a), w=4)),
        "sos2tf sos2zpk sosfilt_zi": call((1, 6), run=lambda f, x: f(sections(x))),
        "sosfilt": call((8,), run=lambda f, x: f(beside(x, SOS), x)),
        "sosfiltfilt": call((20,), run=lambda f, x: f(beside(x, SOS), x)),
        "medfilt": call((7,), kernel_size=3),
        "medfilt2d": call((4, 4), kernel_size=3),
        "order_filter": call((4, 4), run=lambda f, x: f(x, beside(x, np.ones((3, 3))), 2)),
        "wiener": call((6,), mysize=3),
        "minimum_phase": call(
            (9,), run=lambda f, x: f(x + space(x).flip(x) + beside(x, 40.0 * (np.arange(9) == 4)))
        ),
        "resample": call((8,), num=5),
        "resample_poly": call((8,), up=2, down=3),
        "savgol_filter": call((9,), window_length=5, polyorder=2),
        "upfirdn": call((3,), (6,), up=2),
        "vectorstrength": call((5,), run=lambda f, x: f(x, 0.7)),
        "bode impulse": call((2,), run=lambda f, x: f((x, beside(x, [1.0, 2.0, 3.0])))),
        "place_poles": call(
            (3, 3), (3, 1), run=lambda f, a, b: f(a, b, beside(a, [-1.0, -2.0, -3.0])).gain_matrix
        ),
        "firls": call((4,), run=lambda f, x: f(5, beside(x, [0.0, 0.1, 0.2, 0.5]), x, fs=1.0)),
        "remez": call((2,), run=lambda f, x: f(5, beside(x, [0.0, 0.1, 0.2, 0.5]), x, fs=1.0)),
        "firwin": of_number(5),
        "firwin2": call((3,), run=lambda f, x: f(5, beside(x, [0.0, 0.5, 1.0]), x)),
        "bessel butter": of_number(2),
        "cheby1 cheby2": of_number(2, 3.0),
        "ellip": of_number(2, 1.0, 3.0),
        "iirfilter": of_number(2, btype="low"),
        "buttord cheb1ord cheb2ord ellipord iirdesign": of_number(after=(0.9, 1.0, 20.0)),
        "besselap buttap": makes(2),
        "cheb1ap cheb2ap": of_number(2),
        "ellipap": of_number(2, 0.5),
        "gammatone": of_number(after=("fir",), numtaps=4),
        "iirnotch iirpeak": of_number(after=(5.0,)),
        "iircomb": of_number(0.25),
        "savgol_coeffs": makes(5, 2),
        "get_window": makes("hann", 5),
    },
)

WINDOWS = table(
    "signal.windows",
    {
        "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming": makes(5),
        "hann lanczos nuttall parzen triang taylor tukey exponential": makes(5),
        "chebwin": makes(5, 60.0),
        "kaiser gaussian general_hamming": of_number(5),
        "kaiser_bessel_derived": of_number(6),
        "general_gaussian": of_number(5, 1.5),
        "general_cosine": call((3,), run=lambda f, x: f(5, x)),
        "get_window": makes("hann", 5),
    },
)

CALLS = {**SIGNAL, **WINDOWS}
