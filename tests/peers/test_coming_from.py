"""The tables of the pages "Coming from": their side gives what ours does."""

import numpy as np
import pytest
from tests.coming_from import PAGES, A, X, assert_same, rows, run

pytestmark = pytest.mark.peers


def square(x):
    return x**2


def cubes(x):
    return (x**3).sum()


@pytest.mark.parametrize(("theirs", "ours"), rows("from-jax.md"))
def test_the_row_of_coming_from_runs_on_jax(theirs, ours):
    jax = pytest.importorskip("jax")
    program, _, wanted = PAGES["from-jax.md"][theirs]
    x, v, a = (jax.numpy.asarray(value) for value in (X, np.ones(3), A))
    assert_same(run(program, theirs, jax=jax, x=x, v=v, a=a, f=square, s=cubes), wanted)
