"""What the imports of docs/compat.md are used for, on either side, and what both give."""

import numpy as np

HIPS_AUTOGRAD = {
    "import pullback.compat.autograd.numpy as np": ("np.tanh(1.0)", np.tanh(1.0)),
    "import pullback.compat.autograd.numpy.random as npr": (
        "npr.RandomState(0).rand()",
        np.random.RandomState(0).rand(),
    ),
    "from pullback.compat.autograd import grad, jacobian": (
        "grad(lambda x: x**2)(3.0), jacobian(lambda x: x**2)(numpy.ones(2))",
        (6.0, 2 * np.eye(2)),
    ),
    "from pullback.compat.autograd.extend import primitive, defvjp": (
        "[f := primitive(lambda x: x), defvjp(f, lambda ans, x: lambda g: 5 * g), grad(f)(1.0)][2]",
        5.0,
    ),
    "from pullback.compat.autograd.scipy.special import gammaln": ("gammaln(4.0)", np.log(6.0)),
    "import pullback.compat.autograd.scipy.stats.norm as norm": (
        "norm.logpdf(0.0)",
        -0.5 * np.log(2 * np.pi),
    ),
    "from pullback.compat.autograd.misc.optimizers import adam": (
        "adam(lambda x, i: 2 * x, numpy.ones(2), num_iters=1, step_size=0.1)",
        np.full(2, 0.9),
    ),
    "from pullback.compat.autograd.misc import flatten": (
        "flatten((1.0, numpy.ones(2)))[0]",
        np.ones(3),
    ),
    "from pullback.compat.autograd.builtins import isinstance": (
        "[isinstance((1.0,), tuple), isinstance(1.0, tuple)]",
        (True, False),
    ),
    "from pullback.compat.autograd.test_util import check_grads": (
        "check_grads(lambda x: x**2, modes=['rev'])(1.0) is None",
        True,
    ),
    "import pullback.compat.autograd as autograd": ("autograd.grad(lambda x: x**3)(1.0)", 3.0),
}

# What a gradient is by convention, as its cell says: of HIPS autograd's names, and of pullback's.
CONVENTIONS = {
    "gradient of `abs(z) ** 2` at `1 + 2j`": lambda grad: grad(lambda z: abs(z) ** 2)(1 + 2j),
    "gradient by a Python float": lambda grad: type(grad(lambda x: x**2)(3.0)),
}
