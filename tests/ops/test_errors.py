"""What a wrong call of an operation says: the operation, each input, what was required."""

import array_api_strict
import pytest

import pullback as pb


def m():
    return pb.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def v():
    return pb.tensor([1.0, 2.0])


def other():
    return pb.asarray(array_api_strict.asarray([1.0, 2.0], dtype=array_api_strict.float32))


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


def test_an_operation_that_failed_leaves_tensors_and_modes_as_they_were():
    x = m().requires_grad_()
    y = x * 2
    with pytest.raises(ValueError, match="add"):
        y.add_(v())
    assert y._version == 0
    assert pb.is_grad_enabled()
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2
