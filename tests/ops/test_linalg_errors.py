"""What linear algebra refuses, and the words of it."""

import numpy as np
import pytest

import pullback as pb
from pullback import errors, linalg


def ones(*shape, dtype=None):
    return pb.ones(shape, dtype=dtype)


NAN = pb.full((2, 2), np.nan)
ERRORS = {
    "singular inverse": (
        lambda: linalg.inv(ones(2, 2)),
        errors.ArgumentError,
        ("inv: invertible matrices required", "x: shape (2, 2), dtype float32"),
    ),
    "singular system": (
        lambda: linalg.solve(ones(2, 2), ones(2)),
        errors.ArgumentError,
        ("solve: invertible matrices x1 required", "x2: shape (2,)"),
    ),
    "negative power of a singular matrix": (
        lambda: linalg.matrix_power(ones(2, 2), -1),
        errors.ArgumentError,
        ("matrix_power: invertible",),
    ),
    "power with a fraction": (
        lambda: linalg.matrix_power(ones(2, 2), 0.5),
        errors.ArgumentTypeError,
        ("matrix_power: an integer n required", "float"),
    ),
    "not positive definite": (
        lambda: linalg.cholesky(-ones(2, 2)),
        errors.ArgumentError,
        ("cholesky: positive definite matrices required",),
    ),
    "no convergence": (lambda: linalg.svd(NAN), errors.ArgumentError, ("svd: finite matrices",)),
    "no convergence of values": (
        lambda: linalg.svdvals(NAN),
        errors.ArgumentError,
        ("svdvals: finite matrices",),
    ),
    "no convergence of pinv": (
        lambda: linalg.pinv(NAN),
        errors.ArgumentError,
        ("pinv: finite matrices",),
    ),
    "right side of other length": (
        lambda: linalg.solve(ones(2, 2), ones(3)),
        errors.ShapeError,
        ("solve: a vector of 2 elements or matrices of 2 rows required", "(3,)"),
    ),
    "right side without dimensions": (
        lambda: linalg.solve(ones(2, 2), ones()),
        errors.ShapeError,
        ("solve: ", "got ()"),
    ),
    "stacks of systems": (
        lambda: linalg.solve(ones(2, 2, 2), ones(3, 2, 2)),
        errors.ShapeError,
        ("solve: stacks whose shapes broadcast", "(2,) and (3,)"),
    ),
    "stacks of matrices": (
        lambda: pb.matmul(ones(2, 2, 2), ones(3, 2, 2)),
        errors.ShapeError,
        ("matmul: stacks whose shapes broadcast", "y: shape (3, 2, 2)"),
    ),
    "half precision": (
        lambda: linalg.inv(ones(2, 2, dtype="float16")),
        errors.DTypeError,
        ("inv: ", "float16"),
    ),
    "half precision of a decomposition": (
        lambda: linalg.svd(ones(2, 2, dtype="float16")),
        errors.DTypeError,
        ("svd: ", "float16"),
    ),
    "mode": (lambda: linalg.qr(ones(2, 2), mode="r"), errors.ArgumentError, ("qr: mode=", "'r'")),
    "list": (lambda: linalg.svd([[1.0]]), errors.ArgumentTypeError, ("svd: ", "list")),
    "cross of two": (lambda: pb.cross(ones(2), ones(2)), errors.ShapeError, ("cross: ", "(2,)")),
    "cross along an axis of two kinds": (
        lambda: pb.cross(ones(3, 3), ones(3), axis=0),
        errors.ArgumentError,
        ("cross: an axis counted from the end",),
    ),
    "cross of stacks": (
        lambda: pb.cross(ones(2, 3), ones(4, 3)),
        errors.ShapeError,
        ("cross: stacks", "(2, 3) and (4, 3)"),
    ),
    "vecdot of scalars": (
        lambda: pb.vecdot(ones(), ones(2)),
        errors.ShapeError,
        ("vecdot: at least 1 dimension", "x1: shape ()"),
    ),
    "vecdot": (
        lambda: pb.vecdot(ones(2), ones(3)),
        errors.ShapeError,
        ("vecdot: one length along axis -1", "2 and 3"),
    ),
    "outer": (lambda: pb.outer(ones(2, 2), ones(2)), errors.ShapeError, ("outer: two vectors",)),
    "bmm of matrices": (
        lambda: pb.bmm(ones(2, 2), ones(2, 2)),
        errors.ShapeError,
        ("bmm: shapes (b, n, k) and (b, k, m)", "hint: use matmul"),
    ),
    "bmm of two lengths": (
        lambda: pb.bmm(ones(1, 2, 2), ones(3, 2, 2)),
        errors.ShapeError,
        ("bmm: stacks of one length", "1 and 3"),
    ),
    "mv": (lambda: pb.mv(ones(2, 2), ones(3)), errors.ShapeError, ("mv: shapes (n, m) and (m,)",)),
    "dot": (lambda: pb.dot(ones(2), ones(3)), errors.ShapeError, ("dot: shapes (n,) and (n,)",)),
    "addmm": (
        lambda: pb.addmm(ones(3), ones(2, 2), ones(2, 2)),
        errors.ShapeError,
        ("addmm: an input that broadcasts", "(2, 2)", "input: shape (3,)"),
    ),
    "norm of an unknown order": (
        lambda: linalg.vector_norm(ones(2), ord="fro"),
        errors.ArgumentTypeError,
        ("vector_norm: a number as ord", "str"),
    ),
    "smallest of nothing": (
        lambda: linalg.vector_norm(ones(0), ord=-np.inf),
        errors.ArgumentError,
        ("vector_norm: elements", "x: shape (0,)"),
    ),
    "matrix norm of nothing": (
        lambda: linalg.matrix_norm(ones(0, 2), ord=2),
        errors.ArgumentError,
        ("matrix_norm: elements", "x: shape (0, 2)"),
    ),
    "matrix norm of an unknown order": (
        lambda: linalg.matrix_norm(ones(2, 2), ord=3),
        errors.ArgumentError,
        ("matrix_norm: ord one of", "got 3"),
    ),
    "nuclear norm of a vector": (
        lambda: pb.norm(ones(2), "nuc"),
        errors.ArgumentError,
        ("norm: two dimensions", "got 1"),
    ),
    "cdist": (
        lambda: pb.cdist(ones(2, 2), ones(2, 3)),
        errors.ShapeError,
        ("cdist: rows of one length", "2 and 3"),
    ),
    "diagonal of one axis": (
        lambda: ones(2, 2).diagonal(0, 1, -1),
        errors.ArgumentError,
        ("diagonal: two different dimensions", "1 and -1"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_use_is_refused_by_name(name):
    call, error, words = ERRORS[name]
    with pytest.raises(error) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []


SQUARE = ("cholesky", "det", "eigh", "eigvalsh", "inv", "slogdet")
MATRICES = (*SQUARE, "diagonal", "matrix_norm", "matrix_rank", "pinv", "qr", "svd", "svdvals")


@pytest.mark.parametrize("name", [*MATRICES, "trace"])
def test_matrices_are_asked_for(name):
    with pytest.raises(errors.ShapeError, match=rf"{name}: a matrix or a stack .*\(3,\)"):
        getattr(linalg, name)(ones(3))


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices_are_asked_for(name):
    with pytest.raises(errors.ShapeError, match=f"{name}: as many rows as columns.* 2 rows and 3"):
        getattr(linalg, name)(ones(4, 2, 3))
