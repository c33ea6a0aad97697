"""The tables of the pages "Coming from": a program for each row, and what our side gives."""

import numpy as np
import pytest
from tests.docs._rows_finite_differences import FINITE_DIFFERENCES
from tests.docs._rows_hips_autograd import CONVENTIONS, HIPS_AUTOGRAD, OWN_OPERATION
from tests.docs._rows_jax import JAX
from tests.docs._rows_pytorch import PYTORCH
from tests.docs._rows_r_torch import R_TORCH
from tests.docs.coming_from import A, X, assert_same, cubes, hips_names, rows, run, square

import pullback as pb
from pullback.compat import autograd

PAGES = {"from-jax.md": JAX, "from-pytorch.md": PYTORCH}
ROWS = [(page, *row) for page in PAGES for row in rows(page)]


@pytest.mark.parametrize(
    ("page", "programs"),
    [*PAGES.items(), ("coming-from.md", FINITE_DIFFERENCES), ("from-r-torch.md", R_TORCH)],
)
def test_every_row_of_coming_from_has_its_program(page, programs):
    assert sorted(theirs for theirs, _ in rows(page)) == sorted(programs)


@pytest.mark.parametrize(("page", "theirs", "ours"), ROWS)
def test_the_row_of_coming_from_runs_on_pb(page, theirs, ours):
    same, program, wanted = PAGES[page][theirs]
    x, v, a = pb.tensor(X), pb.ones(3), pb.tensor(A)
    names = {"x": x, "v": v, "a": a, "f": square, "s": cubes}
    assert_same(run(program, ours, pb=pb, np=np, **names), wanted)
    if ours.startswith("the same"):
        assert_same(run(same, theirs, torch=pb, np=np, **names), wanted)


@pytest.mark.parametrize(("theirs", "ours"), rows("coming-from.md"))
def test_the_row_of_coming_from_gives_on_pb_what_differences_approximate(theirs, ours):
    differences, program = FINITE_DIFFERENCES[theirs]
    if "scipy" in differences:
        pytest.importorskip("scipy")
    names = {"np": np, "x": X, "v": np.ones(3), "f": square, "s": cubes}
    approximate = run(differences, theirs, **names)
    np.testing.assert_allclose(run(program, ours, pb=pb, **names), approximate, 1e-4, 1e-5)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(("theirs", "ours"), rows("from-r-torch.md"))
def test_the_row_of_coming_from_r_torch_runs_on_pb(theirs, ours):
    program, wanted = R_TORCH[theirs]
    names = {"x": pb.tensor(X), "a": pb.tensor(A), "s": cubes}
    assert_same(run(program, ours, pb=pb, np=np, **names), wanted)


def test_every_row_of_compat_autograd_has_its_program():
    imports = [f"`{statement}`" for statement in HIPS_AUTOGRAD]
    lefts = [left for left, *_ in rows("compat.md")]
    assert sorted(lefts) == sorted([*imports, *CONVENTIONS, *OWN_OPERATION])


@pytest.mark.parametrize("statement", HIPS_AUTOGRAD)
def test_the_import_of_compat_autograd_runs(statement):
    expression, wanted = HIPS_AUTOGRAD[statement]
    names = {"numpy": np, "grad": autograd.grad}
    assert_same(run(f"$0\nresult = {expression}", f"`{statement}`", **names), wanted)


@pytest.mark.parametrize("left", CONVENTIONS)
def test_the_conventions_of_compat_autograd_and_of_pb_are_those_of_the_page(left):
    compat, own = next(row for row in rows("compat.md") if row[0] == left)[1:]
    program, wanted, program_of_pb, wanted_of_pb = CONVENTIONS[left]
    assert_same(run(program, f"{left} {compat}", **hips_names(autograd)), wanted)
    assert_same(run(program_of_pb, own, pb=pb, numpy=np), wanted_of_pb)


@pytest.mark.parametrize("left", OWN_OPERATION)
def test_the_row_of_an_own_operation_runs_on_compat_autograd_and_on_pb(left):
    own = dict(row for row in rows("compat.md") if len(row) == 2)[left]
    theirs, ours, wanted = OWN_OPERATION[left]
    assert_same(run(theirs, left, **hips_names(autograd)), wanted)
    assert_same(run(ours, own, pb=pb), wanted)
