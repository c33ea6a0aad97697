"""`interop.scipy.special`: what SciPy's functions take beyond pullback's of their name."""

import numpy as np
import pytest
import scipy.special

import pullback as pb
from pullback.check import gradcheck
from pullback.interop.scipy import special


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_erf_takes_complex_numbers(name):
    z = pb.tensor(np.array([0.5 + 0.3j, -1.0 + 0.1j]), requires_grad=True)
    out = getattr(special, name)(z)
    np.testing.assert_allclose(
        out.detach().numpy(), getattr(scipy.special, name)(z.detach().numpy())
    )
    assert gradcheck(getattr(special, name), (z,))


def test_erf_of_a_number_is_scipys():
    assert special.erf(0.5) == scipy.special.erf(0.5)
    assert special.erf(0.5 + 1j) == scipy.special.erf(0.5 + 1j)
