"""What a wrong call of an operation says: the operation, each input, what was required."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

X = "shape (2, 3), dtype float32"
V = "shape (2,), dtype float32"
STRICT = "array_api_strict on array_api_strict:CPU_DEVICE"
NUMPY = "numpy on cpu"


def m():
    return pb.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def v():
    return pb.tensor([1.0, 2.0])


def other():
    return pb.asarray(array_api_strict.asarray([1.0, 2.0], dtype=array_api_strict.float32))


def i8():
    return pb.tensor([1, 2], dtype="int8")


def z():
    return pb.tensor([1j, 2.0])


def b():
    return pb.tensor([True, False])


def q():
    return pb.zeros(2, 2, 2)


# name: (the wrong call, the built-in error, words of the message)
SHAPES = {
    "add": (lambda: m() + v(), ValueError, ("add: ", f"x: {X}", f"y: {V}")),
    "sub numpy": (
        lambda: m() - np.ones(4),
        ValueError,
        ("sub: ", f"x: {X}", "y: shape (4,), dtype float64"),
    ),
    "mul": (lambda: v() * m(), ValueError, ("mul: ", f"x: {V}", f"y: {X}")),
    "pow": (lambda: m() ** v(), ValueError, ("pow: ", f"x: {X}", f"y: {V}")),
    "maximum": (lambda: pb.maximum(m(), v()), ValueError, ("maximum: ", f"x: {X}", f"y: {V}")),
    "comparison": (lambda: m() < v(), ValueError, ("lt: ", f"x: {X}", f"y: {V}")),
    "where": (
        lambda: pb.where(b(), m(), m()),
        ValueError,
        ("where: ", "condition: shape (2,), dtype bool", f"x: {X}", f"y: {X}"),
    ),
    "masked_fill": (
        lambda: m().masked_fill(b(), 0.0),
        ValueError,
        ("masked_fill: ", f"x: {X}", "mask: shape (2,), dtype bool", "value: float 0.0"),
    ),
    "matmul inner": (
        lambda: m() @ m(),
        ValueError,
        ("two matrices", f"x: {X}", f"y: {X}"),
    ),
    "matmul scalar": (
        lambda: m() @ 2,
        ValueError,
        ("matmul: ", f"x: {X}", "y: shape (), dtype float32"),
    ),
    "matmul stacks": (
        lambda: pb.zeros(2, 3, 4) @ pb.zeros(3, 4, 5),
        ValueError,
        ("matmul: ", "x: shape (2, 3, 4)", "y: shape (3, 4, 5)"),
    ),
    "mm of a vector": (
        lambda: m().mm(v()),
        ValueError,
        ("mm: two matrices", f"x: {X}", f"y: {V}", "hint: use matmul"),
    ),
    "mm inner": (lambda: m().mm(m()), ValueError, ("mm: two matrices", f"x: {X}", f"y: {X}")),
    "concat": (
        lambda: pb.concat([m(), v()]),
        ValueError,
        ("concat: ", f"arrays[0]: {X}", f"arrays[1]: {V}", "hint: use stack"),
    ),
    "concat of scalars": (
        lambda: pb.cat([pb.tensor(1.0), pb.tensor(2.0)]),
        ValueError,
        ("cat: ", "arrays[1]: shape (), dtype float32", "hint: use stack"),
    ),
    "stack": (
        lambda: pb.stack([m(), v()]),
        ValueError,
        ("stack: ", f"arrays[0]: {X}", f"arrays[1]: {V}", "hint: use concat"),
    ),
    "reshape": (lambda: m().reshape(4), ValueError, ("reshape: ", "(4,)", "(2, 3)")),
    "reshape of two -1": (lambda: m().reshape(-1, -1), ValueError, ("reshape: ", "one -1")),
    "reshape that does not divide": (
        lambda: m().reshape(4, -1),
        ValueError,
        ("reshape: ", "6 elements", "(2, 3)", "(4, -1)"),
    ),
    "view of other memory": (
        lambda: m().t().view(6),
        ValueError,
        ("view: ", "(6,)", "x: shape (3, 2), dtype float32", "hint: use reshape"),
    ),
    "expand": (lambda: m().expand(4, 3), ValueError, ("expand: ", "(4, 3)", f"x: {X}")),
    "expand to less": (lambda: m().expand(3), ValueError, ("expand: ", "(2, 3)")),
    "expand -1": (lambda: v().expand(-1, 2), ValueError, ("expand: ", "-1")),
    "broadcast_to": (
        lambda: pb.broadcast_to(m(), (3, 3)),
        ValueError,
        ("broadcast_to: ", "(3, 3)", X),
    ),
    "squeeze": (lambda: pb.squeeze(m(), axis=0), ValueError, ("squeeze: axis 0", "(2, 3)")),
    "split": (lambda: m().split([1, 2]), ValueError, ("split: ", "(1, 2)", "axis 0", "(2, 3)")),
    "sum_to_size": (lambda: m().sum_to_size(4), ValueError, ("sum_to_size: ", "(4,)", "(2, 3)")),
    "diagonal": (lambda: v().diagonal(), ValueError, ("diagonal: ", "(2,)")),
    "t": (lambda: q().t(), ValueError, ("t: ", "(2, 2, 2)", "hint: use transpose")),
    "mT": (lambda: v().mT, ValueError, ("matrix_transpose: ", "(2,)")),
    "unbind a scalar": (lambda: pb.tensor(1.0).unbind(), ValueError, ("unbind: ", "0-d")),
    "split a scalar": (lambda: pb.tensor(1.0).split(1), ValueError, ("split: ", "0-d")),
    "a number alone": (
        lambda: pb.exp(2.0),
        TypeError,
        ("exp: a Tensor or an array required as 'x', got float", "hint: make a tensor"),
    ),
    "numbers alone": (
        lambda: pb.mul(2.0, 3),
        TypeError,
        ("mul: a Tensor or an array required as 'x' or 'y', got float and int",),
    ),
    "item": (lambda: m().item(), ValueError, ("item: ", "(2, 3)", "tolist()")),
    "bool": (lambda: bool(m()), ValueError, ("bool: ", "(2, 3)", "any()")),
    "in place": (
        lambda: v().unsqueeze(1).add_(m()),
        ValueError,
        ("add_: ", "(2, 3)", "(2, 1)", "hint: "),
    ),
    "in place, not broadcastable": (lambda: m().mul_(v()), ValueError, ("mul", f"x: {X}", V)),
    "copy_": (lambda: m().copy_(v()), ValueError, (X, f"value: {V}")),
    "setitem": (
        lambda: m().__setitem__(0, v()),
        ValueError,
        ("setitem: ", "(3,)", f"x: {X}", f"value: {V}"),
    ),
    "setitem by an array": (
        lambda: m().__setitem__([0, 1, 1], q()),
        ValueError,
        ("setitem: ", "(3, 3)", f"x: {X}", "value: shape (2, 2, 2)"),
    ),
    "max of nothing": (lambda: pb.zeros(0).max(), ValueError, ("max: ", "(0,)")),
    "amin of nothing": (lambda: pb.zeros(0, 2).amin(0), ValueError, ("min: ", "(0, 2)")),
    "argmax of nothing": (lambda: pb.zeros(0).argmax(), ValueError, ("argmax: ", "shape (0,)")),
    "fill_": (lambda: m().fill_(v()), ValueError, ("fill_: ", f"value: {V}")),
}

AXES = {
    **{
        name: (call, IndexError, (f"{name}: axis", "[-2, 1]", f"got {axis}"))
        for name, axis, call in [
            ("sum", 2, lambda: m().sum(2)),
            ("prod", -3, lambda: pb.prod(m(), axis=-3)),
            ("mean", 5, lambda: m().mean((0, 5))),
            ("var", 3, lambda: m().var((0, 3))),
            ("max", 2, lambda: m().max(2)),
            ("any", 2, lambda: m().any(2)),
            ("argmin", 9, lambda: m().argmin(9)),
            ("cumsum", 2, lambda: m().cumsum(2)),
            ("softmax", -4, lambda: m().softmax(-4)),
            ("log_softmax", 2, lambda: m().log_softmax(2)),
            ("logsumexp", 2, lambda: m().logsumexp(2)),
            ("transpose", 2, lambda: m().transpose(0, 2)),
            ("permute", 2, lambda: m().permute(0, 2)),
            ("squeeze", 2, lambda: m().squeeze(2)),
            ("flip", 2, lambda: m().flip(2)),
            ("unbind", 2, lambda: m().unbind(2)),
            ("split", 2, lambda: m().split(1, 2)),
            ("chunk", 2, lambda: m().chunk(1, 2)),
            ("flatten", 2, lambda: m().flatten(0, 2)),
            ("cat", 2, lambda: pb.cat([m(), m()], 2)),
            ("select", 2, lambda: m().select(2, 0)),
            ("narrow", 2, lambda: m().narrow(2, 0, 1)),
        ]
    },
    "expand_dims": (lambda: m().unsqueeze(3), IndexError, ("unsqueeze: axis", "[-3, 2]", "3")),
    "stack": (lambda: pb.stack([m()], axis=3), IndexError, ("stack: axis", "[-3, 2]", "3")),
    "an axis twice": (lambda: m().sum((0, -2)), ValueError, ("sum: ", "more than once")),
    "an axis left out": (lambda: q().permute(0, 1), ValueError, ("permute: ", "3 axes")),
    "no integer": (lambda: m().sum(1.5), TypeError, ("sum: axis", "integer", "float")),
    "flatten backwards": (lambda: q().flatten(2, 0), ValueError, ("flatten: ", "2, 0")),
    "narrow too far": (lambda: m().narrow(1, 2, 2), ValueError, ("narrow: ", "axis 1", "(2, 3)")),
    "parts of length 0": (lambda: m().split(0), ValueError, ("split: ", "got 0")),
    "no chunks": (lambda: m().chunk(0), ValueError, ("chunk: ", "got 0")),
}

INDICES = {
    "too large": (lambda: m()[2], IndexError, ("index 2", "axis 0", X)),
    "too many": (lambda: m()[0, 0, 0], IndexError, ("too many indices", X)),
    "float": (lambda: m()[1.0], IndexError, ("getitem: ", "integers, slices", "float")),
    "text": (lambda: m()["a"], IndexError, ("getitem: ", "integers, slices", "str")),
    "float tensor": (lambda: m()[v()], IndexError, ("getitem: ", "integer or bool", "float32")),
    "list": (lambda: m()[[0, 2]], IndexError, ("index 2", X)),
    "mask": (lambda: m()[pb.tensor([True] * 3)], IndexError, ("boolean index", X)),
    "written too far": (lambda: m().__setitem__(2, 0.0), IndexError, ("index 2", X)),
    "select": (lambda: m().select(0, 2), IndexError, ("index 2", X)),
}

DTYPES = {
    "mean of integers": (lambda: i8().mean(), TypeError, ("mean: ", "int8", "float()")),
    "not of floats": (lambda: ~m(), TypeError, ("bitwise_invert: ", f"x: {X}")),
    "and of floats": (lambda: m() & m(), TypeError, ("bitwise_and: ", f"x: {X}", f"y: {X}")),
    "bool minus bool": (lambda: b() - b(), TypeError, ("sub: ", "dtype bool")),
    "order of complex": (lambda: z() < z(), TypeError, ("less: ", "real numbers", "complex64")),
    "maximum of complex": (lambda: pb.maximum(z(), z()), TypeError, ("maximum: ", "complex64")),
    "max of complex": (lambda: z().max(), TypeError, ("max: ", "complex64", "hint: ")),
    "argmax of complex": (lambda: z().argmax(), TypeError, ("argmax: ", "complex64")),
    "relu of complex": (lambda: z().relu(), TypeError, ("relu: ", "complex64")),
    "clamp of complex": (lambda: z().clamp(0, 1), TypeError, ("clamp: ", "complex64")),
    "floor of complex": (lambda: z().floor(), TypeError, ("floor: ", "complex64")),
    "imag of floats": (lambda: m().imag, TypeError, ("imag: ", "complex", "float32")),
    "condition": (
        lambda: pb.where(m(), m(), m()),
        TypeError,
        ("where: a bool condition", f"condition: {X}", "hint: compare"),
    ),
    "mask": (
        lambda: m().masked_fill(m(), 0.0),
        TypeError,
        ("masked_fill: a bool mask", f"mask: {X}", "hint: compare"),
    ),
    "complex into floats": (
        lambda: m().__setitem__((0, 0), z()[0]),
        TypeError,
        ("setitem: ", "float32", f"x: {X}", "value: shape (), dtype complex64", "hint: take real"),
    ),
    "copy_ of complex": (lambda: v().copy_(z()), TypeError, ("copy_: ", "float32", f"x: {V}")),
    "fill_ with complex": (lambda: v().fill_(z()[0]), TypeError, ("fill_: ", "complex64")),
    "mask in place": (
        lambda: m().masked_fill_(m(), 0.0),
        TypeError,
        ("masked_fill_: a bool mask", f"mask: {X}"),
    ),
    "float into integers": (lambda: i8().add_(0.5), TypeError, ("add_: ", "float32", "int8")),
    "negative power of integers": (
        lambda: i8() ** -1,
        ValueError,
        ("pow: ", "x: shape (2,), dtype int8", "y: int -1"),
    ),
}

KINDS = {
    "text": (lambda: m() + "a", TypeError, ("add: ", "'y'", "str", "hint: ")),
    "None": (lambda: m() * None, TypeError, ("mul: ", "'y'", "NoneType")),
    "list": (lambda: m() / [1.0, 2.0], ValueError, ("div: shapes that broadcast", f"y: {V}")),
    "function of a number": (lambda: pb.exp(2.0), TypeError, ("exp: ", "'x'", "float")),
    "function of a list": (lambda: pb.sum([1.0]), TypeError, ("sum: ", "'x'", "list")),
    "shape function of a list": (
        lambda: pb.reshape([1.0, 2.0], (2, 1)),
        TypeError,
        ("reshape: ", "'x'", "list", "hint: make a tensor"),
    ),
    "squeeze a number": (lambda: pb.squeeze(2.0, 0), TypeError, ("squeeze: ", "float")),
    "clamp text": (lambda: pb.clamp("a", 0, 1), TypeError, ("clamp: ", "str")),
    "variance of a list": (lambda: pb.var([1.0, 2.0]), TypeError, ("var: ", "list")),
    "expand_as a number": (lambda: m().expand_as(2), TypeError, ("expand_as: ", "'other'", "int")),
    "concat a tensor": (lambda: pb.cat(m()), TypeError, ("concat: ", "list or tuple", "Tensor")),
    "concat nothing": (lambda: pb.cat([]), ValueError, ("concat: ", "none")),
    "concat text": (lambda: pb.cat([m(), "a"]), TypeError, ("cat: ", "arrays[1]", "str")),
    "clamp without bounds": (lambda: m().clamp(), ValueError, ("clamp: ", "min and max")),
    "clamp in place without bounds": (lambda: m().clamp_(), ValueError, ("clamp", "min and max")),
    "copy_ of text": (lambda: m().copy_("a"), TypeError, ("copy_: ", "str")),
    "fill_ of text": (lambda: m().fill_("a"), TypeError, ("fill_: ", "str")),
    "write text": (lambda: m().__setitem__(0, "a"), TypeError, ("setitem: ", "str")),
    "write None": (lambda: m().__setitem__(0, None), TypeError, ("setitem: ", "None")),
    "write too large a number": (
        lambda: i8().__setitem__(0, 300),
        TypeError,
        ("setitem: ", "int8", "300"),
    ),
    "sizes": (lambda: m().reshape(1.5), TypeError, ("reshape: ", "integers")),
    "len": (lambda: len(pb.tensor(1.0)), TypeError, ("len: ", "0-d")),
    "dtype": (lambda: m().to("float31"), TypeError, ("dtype", "float31")),
}

LIBRARIES = {
    "add": (lambda: v() + other(), (f"x: {V}, {NUMPY}", f"y: {V}, {STRICT}")),
    "add the other way": (lambda: other() + v(), (f"x: {V}, {STRICT}", f"y: {V}, {NUMPY}")),
    "mul an array": (lambda: other() * np.ones(2, np.float32), (f"x: {V}, {STRICT}", "numpy")),
    "matmul": (lambda: v() @ other(), (f"x: {V}, {NUMPY}", f"y: {V}, {STRICT}")),
    "cat": (
        lambda: pb.cat([v(), other()]),
        (f"arrays[0]: {V}, {NUMPY}", f"arrays[1]: {V}, {STRICT}"),
    ),
    "stack": (lambda: pb.stack([other(), v()]), (f"arrays[0]: {V}, {STRICT}",)),
    "where": (lambda: pb.where(b(), v(), other()), ("condition: shape (2,), dtype bool", STRICT)),
    "add_": (lambda: v().add_(other()), (f"x: {V}, {NUMPY}", f"y: {V}, {STRICT}")),
    "masked_fill_": (
        lambda: v().masked_fill_(pb.asarray(array_api_strict.asarray([True, False])), 0.0),
        (f"x: {V}, {NUMPY}", "mask: shape (2,), dtype bool", STRICT),
    ),
    "setitem": (
        lambda: v().__setitem__(0, other()[0]),
        (f"x: {V}, {NUMPY}", f"value: shape (), dtype float32, {STRICT}"),
    ),
}


def message_of(call, builtin):
    with pytest.raises(pb.AutogradError) as caught:
        call()
    assert isinstance(caught.value, builtin), caught.type.__mro__
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "builtin", "words"),
    [row for table in (SHAPES, AXES, INDICES, DTYPES, KINDS) for row in table.values()],
    ids=[
        f"{kind} {name}"
        for kind, table in [
            ("shape:", SHAPES),
            ("axis:", AXES),
            ("index:", INDICES),
            ("dtype:", DTYPES),
            ("kind:", KINDS),
        ]
        for name in table
    ],
)
def test_a_wrong_call_names_the_operation_and_its_inputs(call, builtin, words):
    message = message_of(call, builtin)
    assert [word for word in words if word not in message] == [], message


# What Python says itself: a call that the signature does not allow.
CALLS = {
    "axis by position": (
        lambda: pb.exp(m(), 0),
        "exp() takes 1 positional argument but 2 were given",
    ),
    "too many in place": (
        lambda: m().mul_(1, 2),
        "mul_() takes 2 positional arguments but 3 were given",
    ),
    "too few": (lambda: pb.mul(m()), "multiply() missing 1 required positional argument: 'y'"),
    "an unknown keyword": (
        lambda: pb.exp(m(), inplace=True),
        "exp() got an unexpected keyword argument 'inplace'",
    ),
    "an array by keyword": (
        lambda: pb.exp(x=m()),
        "exp() got some positional-only arguments passed as keyword arguments: 'x'",
    ),
    "a setting by position": (
        lambda: pb.linalg.matmul(m(), m(), m()),
        "matmul() takes 2 positional arguments but 3 were given",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_the_signature_does_not_allow_is_the_error_of_python(name):
    call, says = CALLS[name]
    for _ in range(2):  # before and after the call is compiled
        with pytest.raises(TypeError) as caught:
            call()
        assert caught.type is TypeError
        assert str(caught.value).endswith(says)


@pytest.mark.parametrize("name", LIBRARIES)
def test_two_array_libraries_in_one_operation_are_refused(name):
    call, words = LIBRARIES[name]
    message = message_of(call, RuntimeError)
    assert [word for word in words if word not in message] == [], message
    assert "one device and of one array library" in message
    assert "hint: move them first" in message


def test_copying_between_libraries_is_what_copy_is_for():
    x, y = v(), other().requires_grad_()
    x.copy_(y)
    assert x.device == "cpu"
    x.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert y.grad.device == y.device


@pytest.mark.parametrize(
    "call",
    [
        lambda: m().sum(foo=1),
        lambda: pb.softmax(m(), foo=1),
        lambda: m().mul_(1, alpha=2),
        lambda: pb.add(m()),
        lambda: pb.exp(m(), m()),
        lambda: m() << 1,
        lambda: "a" - m(),
    ],
)
def test_a_call_of_the_wrong_form_is_pythons_own_type_error(call):
    with pytest.raises(TypeError):
        call()


def test_a_number_that_the_dtype_cannot_hold_is_refused():
    message = message_of(lambda: i8() + 300, pb.AutogradError)
    assert "add: " in message
    assert "300" in message
    assert "int8" in message


def test_an_operation_that_failed_leaves_tensors_and_modes_as_they_were():
    x = m().requires_grad_()
    y = x * 2
    with pytest.raises(ValueError, match="add"):
        y.add_(v())
    assert y._version == 0
    assert pb.is_grad_enabled()
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
