"""Callbacks get containers; progress is shown by tqdm."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.optimize import minimize

METHODS = [
    *("Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA"),
    *("SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-krylov", "trust-exact"),
]
every_method = pytest.mark.parametrize("method", METHODS)
START = {"a": 0.5, "b": np.zeros((2, 1), np.float32)}


def cost(p):
    return (p["a"] - 1) ** 2 + ((p["b"] - 2) ** 2).sum() + p["a"] ** 2 * p["b"].sum() / 10


@every_method
def test_a_callback_gets_the_container(method):
    seen = []
    found = minimize(cost, START, method=method, callback=lambda p, *_: seen.append(p))
    assert len(seen) >= 2
    for p in seen:
        assert set(p) == {"a", "b"}
        assert (type(p["a"]), p["b"].shape, p["b"].dtype) == (float, (2, 1), np.float32)
    np.testing.assert_allclose(seen[-1]["b"], found.x["b"], atol=1e-2)


@every_method
def test_a_callback_by_name_gets_a_result_with_the_container(method):
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.x, intermediate_result.fun))

    minimize(cost, START, method=method, callback=callback)
    x, value = seen[-1]
    assert set(x) == {"a", "b"}
    assert abs(float(cost({k: pb.asarray(np.asarray(v)) for k, v in x.items()})) - value) < 1e-5


def test_trust_constr_tells_its_state_beside_x():
    seen = []
    minimize(cost, START, method="trust-constr", callback=lambda p, state: seen.append((p, state)))
    assert set(seen[0][1].x) == set(seen[0][1].grad) == set(seen[0][0]) == {"a", "b"}


@pytest.mark.parametrize("method", ["BFGS", "COBYQA", "SLSQP", "trust-constr", "Nelder-Mead"])
def test_stop_iteration_ends_the_search(method):
    seen = []

    def callback(p, *_):
        seen.append(p)
        raise StopIteration

    minimize(cost, START, method=method, callback=callback)
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead", "trust-constr", "SLSQP"])
def test_progress_is_shown(method, capsys):
    count = []
    found = minimize(
        cost,
        START,
        method=method,
        progress=True,
        callback=lambda *_: count.append(1),
        options={"maxiter": 500},
    )
    shown = capsys.readouterr().err
    assert "minimize:" in shown
    assert f" {len(count)}/500 [" in shown
    assert f"fun={found.fun:.3g}"[:6] in shown


def test_progress_needs_no_callback(capsys):
    minimize(cost, START, progress=True)
    assert "minimize:" in capsys.readouterr().err
    minimize(cost, START)
    assert capsys.readouterr().err == ""


def test_progress_ends_when_the_function_raises(capsys):
    calls = []

    def failing(p):
        calls.append(1)
        if len(calls) > 3:
            raise RuntimeError("mine")
        return cost(p)

    with pytest.raises(RuntimeError, match="mine"):
        minimize(failing, START, progress=True)
    assert capsys.readouterr().err.endswith("\n")


def test_progress_without_tqdm_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(pb.errors.MissingExtraError, match=r"pip install 'pullback\[progress\]'"):
        minimize(cost, START, progress=True)
    minimize(cost, START)


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    for call in (minimize, pb.optimize.root, pb.optimize.least_squares):
        text = rf"{call.__name__}: SciPy required.*\nhint: pip install 'pullback\[scipy\]'"
        with pytest.raises(pb.errors.MissingExtraError, match=text):
            call(cost, START)
