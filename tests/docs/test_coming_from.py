"""The tables of the pages "Coming from": a program for each row, and what our side gives."""

import re

import numpy as np
import pytest
from tests.docs._rows_finite_differences import FINITE_DIFFERENCES
from tests.docs._rows_hips_autograd import CONVENTIONS, HIPS_AUTOGRAD
from tests.docs._rows_jax import JAX
from tests.docs._rows_pytorch import PYTORCH
from tests.docs._rows_r_torch import R_TORCH
from tests.docs.coming_from import CODE, A, X, assert_same, cubes, rows, run, square

import pullback as pb
from pullback.compat.autograd import grad

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


def test_every_import_of_compat_autograd_has_its_program():
    lefts = [left.strip("`") for left, *_ in rows("compat.md") if re.match("`(import|from) ", left)]
    assert sorted(lefts) == sorted(HIPS_AUTOGRAD)


@pytest.mark.parametrize("statement", HIPS_AUTOGRAD)
def test_the_import_of_compat_autograd_runs(statement):
    expression, wanted = HIPS_AUTOGRAD[statement]
    names = {"numpy": np, "grad": grad}
    assert_same(run(f"$0\nresult = {expression}", f"`{statement}`", **names), wanted)


@pytest.mark.parametrize("left", CONVENTIONS)
def test_the_conventions_of_compat_autograd_and_of_pb_are_those_of_the_page(left):
    cells = next(row for row in rows("compat.md") if row[0] == left)[1:]
    stated = [eval(CODE.findall(cell)[0]) for cell in cells]
    assert [CONVENTIONS[left](each) for each in (grad, pb.grad)] == stated
