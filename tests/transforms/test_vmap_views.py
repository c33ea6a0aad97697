"""reshape, ravel, flatten and contiguous copy under vmap and jvp where they do in eager code."""

import numpy as np
import pytest

import pullback as pb

VIEWS = {
    "T.reshape": lambda y: y.T.reshape(-1),
    "T.ravel": lambda y: y.T.ravel(),
    "T.flatten": lambda y: y.T.flatten(),
    "T.contiguous": lambda y: y.T.contiguous(),
    "reshape": lambda y: y.reshape(3, 2).reshape(-1),
    "reshape of rows": lambda y: y[1:].reshape(-1),
    "reshape of a column": lambda y: y[:, 0].reshape(2, 1),
    "ravel": lambda y: y.ravel(),
    "ravel of every other column": lambda y: y[:, ::2].ravel(),
    "contiguous": lambda y: y.contiguous(),
    "reshape of what is repeated": lambda y: pb.broadcast_to(y[:1], (2, 3)).reshape(-1),
    "np.reshape of what is reversed": lambda y: np.reshape(y[:, ::-1], -1),
    "np.ravel of swapped axes": lambda y: np.ravel(np.swapaxes(y[None], 0, 2)),
}
X = np.arange(6.0).reshape(2, 3) + 1


@pytest.mark.parametrize("make", [np.asarray, pb.asarray], ids=["array", "tensor"])
@pytest.mark.parametrize("name", VIEWS)
def test_vmap_and_jvp_copy_in_reshape_and_contiguous_where_eager_code_does(name, make):
    def changed(x):
        y = x * 1.0
        v = VIEWS[name](y)
        v *= 2.0
        return y * 1.0

    expected = changed(pb.asarray(X)).numpy()
    if make is np.asarray and "flatten" in name:
        expected = X  # of ndarray, always a copy
    many, value = make(np.stack([X, X])), make(X)
    np.testing.assert_array_equal(pb.vmap(changed)(many)[1], expected)
    out, tangent = pb.jvp(changed, (value,), (value,))
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(tangent, expected)


def test_vmap_refuses_view_where_eager_code_does():
    with pytest.raises(pb.AutogradError, match="copy"):
        pb.vmap(lambda x: pb.reshape(x.T, (-1,), copy=False))(np.stack([X, X]))
