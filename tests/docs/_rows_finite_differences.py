"""The rows of docs/coming-from.md: a program of finite differences, and ours for the same value."""

FINITE_DIFFERENCES = {
    "`approx_fprime(x, s, 1e-7)`": (
        "from scipy.optimize import approx_fprime\nresult = $0",
        "result = $0",
    ),
    "`check_grad(s, slope, x) < 1e-5`": (
        "from scipy.optimize import check_grad\n"
        "slope = lambda x: approx_fprime(x, s, 1e-8)\n"
        "from scipy.optimize import approx_fprime\nresult = bool($0)",
        "result = $0",
    ),
    "`derivative(np.sin, 1.0).df`": (
        "from scipy.differentiate import derivative\nresult = $0",
        "result = $0",
    ),
    "`jacobian(f, x).df`": (
        "from scipy.differentiate import jacobian\nresult = $0",
        "result = $0",
    ),
    "`hessian(s, x).ddf`": (
        "from scipy.differentiate import hessian\nresult = $0",
        "result = $0",
    ),
    "`[(s(x + h * e) - s(x - h * e)) / (2 * h) for e in np.eye(3)]`": (
        "h = 1e-6\nresult = np.array($0)",
        "result = $0",
    ),
    "`(s(x + h * v) - s(x - h * v)) / (2 * h)`": ("h = 1e-6\nresult = $0", "result = $0"),
    "`np.sin(1.0 + 1e-30j).imag / 1e-30`": ("result = $0", "result = $0"),
    "`(slope(x + h * v) - slope(x - h * v)) / (2 * h)`": (
        "from scipy.optimize import approx_fprime\nh = 1e-3\n"
        "slope = lambda x: approx_fprime(x, s, 1e-7)\nresult = $0",
        "result = $0",
    ),
}
