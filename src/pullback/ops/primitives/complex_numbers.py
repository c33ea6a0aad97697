"""Complex numbers: their parts, conjugates and directions.

None of these is holomorphic: the rules say the gradient dL/dx + i dL/dy themselves.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import complex_of, library_of
from pullback.ops.declare import READ_ONLY, elementwise, op_for, operation, standard
from pullback.ops.examples import documented
from pullback.ops.samples import both, only_complex, real, sample

conj_p = elementwise(
    "conj",
    lambda xp, x: xp.conj(x) if "complex" in str(x.dtype) else library_of(x).copy(x),
    x=lambda g, xp: xp.conj(g),
    holomorphic=False,
    domain=both(-2, 2),
    methods="conj conj_physical",
    doc=documented(
        "Return the complex conjugate.",
        "pb.conj(pb.tensor([1.0 + 2.0j]))",
        "tensor([1.-2.j])",
    ),
    numpy="conjugate",
)
conj = conj_p.public


def _turn(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the part of g that turns x, over its magnitude; 0 where x is 0."""
    along = out * xp.real(xp.conj(out) * g)
    safe = xp.where(x == 0, xp.ones_like(x), x)
    return xp.where(x == 0, xp.zeros_like(g), (g - along) / xp.abs(safe))


sgn_p = elementwise(
    "sgn",
    standard("sign"),
    x=_turn,
    holomorphic=False,
    domain=only_complex(-2, 2),
    reference="numpy.sign",
    doc="Return x / abs(x), 0 where x is 0.",
)


def _to_complex(xp: Any, g: Any, *, imaginary: bool) -> Any:
    library = library_of(g)
    return library.astype(g, complex_of(library.dtype(g))) * (1j if imaginary else 1)


to_complex_p = operation(
    "to_complex",
    _to_complex,
    rules={
        "g": lambda g, imaginary, xp: xp.imag(g) if imaginary else xp.real(g),
    },
    holomorphic=False,
    domain=real(-2, 2),
    samples=(sample((3,), imaginary=False), sample((3,), imaginary=True)),
    reference=(lambda g, imaginary: 1j * g if imaginary else g + 0j),
    result_dtype="complex",
    scalars=False,
    doc="Return g, or g times the imaginary unit, as complex numbers.",
    batch="leading",
    moves=True,
)


real_p = operation(
    "real",
    lambda xp, x: xp.real(x),
    rules={"x": lambda g, xp: op_for(xp, to_complex_p)(g, imaginary=False)},
    view=READ_ONLY,
    holomorphic=False,
    domain=only_complex(-2, 2),
    samples=(sample((3, 4)),),
    result_dtype="real",
    scalars=False,
    doc="Return the real part of complex numbers.",
    batch="leading",
    moves=True,
)


imag_p = operation(
    "imag",
    lambda xp, x: xp.imag(x),
    rules={"x": lambda g, xp: op_for(xp, to_complex_p)(g, imaginary=True)},
    view=READ_ONLY,
    holomorphic=False,
    domain=only_complex(-2, 2),
    samples=(sample((3, 4)),),
    result_dtype="real",
    scalars=False,
    doc="Return the imaginary part of complex numbers.",
    batch="leading",
    moves=True,
)
