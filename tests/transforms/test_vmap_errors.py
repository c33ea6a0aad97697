"""Wrong use of vmap: what the errors say."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    BatchedValueError,
    DeviceError,
    GraphError,
    ShapeError,
    TensorIndexError,
)

X = np.arange(6.0).reshape(3, 2)


def identity(x):
    return x


def branch(x):
    return x if x.sum() > 0 else -x


ASKING = {
    "if": branch,
    "float": lambda x: float(x.sum()) * x,
    "int": lambda x: int(x.sum()) * x,
    "item": lambda x: x.sum().item() * x,
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: pb.asarray(x.numpy()),
    "asarray": lambda x: np.asarray(x),
    "detach": lambda x: x.detach().numpy(),
    "while": lambda x: next(iter(x)) if x[0] < 1 else x,
    "a slice": lambda x: x[: x[0].long()],
    "range": lambda x: [x for _ in range(x[0].long())],
}


@pytest.mark.parametrize("name", ASKING)
def test_one_value_is_refused_of_a_batch_naming_vmap_and_the_line(name):
    with pytest.raises(BatchedValueError) as raised:
        pb.vmap(ASKING[name])(X)
    text = str(raised.value)
    assert text.startswith("vmap: one value, the same for all samples, required by `if`, float()")
    assert "test_vmap_errors.py" in text
    assert "pb.where" in text
    assert isinstance(raised.value, GraphError)


def test_the_line_is_that_of_the_condition():
    with pytest.raises(BatchedValueError, match=r"return x if x\.sum\(\) > 0 else -x"):
        pb.vmap(branch)(X)


def test_what_all_samples_share_may_be_asked_for():
    assert pb.vmap(lambda x: x * float(pb.zeros(2).sum() + 1))(X).tolist() == X.tolist()


SHAPES = {
    "nonzero": lambda x: pb.nonzero(x)[0],
    "a mask": lambda x: x[x > 1],
    "masked_select": lambda x: pb.asarray(x).masked_select(x > 1),
    "argwhere": lambda x: pb.argwhere(x),
    "unique": lambda x: pb.unique_values(x // 3),
    "a mask of two axes": lambda x: pb.outer(x, x)[:, x > 1],
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_that_depends_on_values_is_refused_with_the_way_out(name):
    with pytest.raises(BatchedValueError, match=r"of one shape for all samples") as raised:
        pb.vmap(SHAPES[name])(X)
    assert "pb.where" in str(raised.value)
    assert "test_vmap_errors.py" in str(raised.value)


# -- writing ---------------------------------------------------------------------------------------
OUTSIDE = {
    "add_": lambda t, x: t.add_(x),
    "copy_": lambda t, x: t.copy_(x),
    "an item": lambda t, x: t.__setitem__(0, x[0]),
    "a detached value": lambda t, x: t.copy_(x.detach()),
    "at an index of its own": lambda t, x: t.__setitem__(x[:1].long() * 0, 1.0),
    "a mask of its own": lambda t, x: t.__setitem__(x > 1, 1.0),
    "a view": lambda t, x: t[:1].mul_(x[0]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_batch_is_not_written_to_a_tensor_from_outside(name):
    outside = pb.zeros(2, dtype="float64")
    with pytest.raises(DeviceError, match=r"vmap.*cannot be written to a tensor from") as raised:
        pb.vmap(lambda x: OUTSIDE[name](outside, x) or x)(X)
    assert "test_vmap_errors.py" in str(raised.value)
    assert outside.tolist() == [0.0, 0.0]


def test_a_batch_is_not_written_to_an_argument_without_an_axis():
    with pytest.raises(DeviceError, match=r"in_axes"):
        pb.vmap(lambda t, x: t.add_(x), in_axes=(None, 0))(pb.zeros(2, dtype="float64"), X)


# -- arguments -------------------------------------------------------------------------------------
CALLS = {
    "different lengths": (
        lambda: pb.vmap(lambda x, y: x)(np.ones(3), np.ones(4)),
        ShapeError,
        r"one length of all mapped axes required, got 3 in argument 0, 4 in argument 1",
    ),
    "different lengths in a container": (
        lambda: pb.vmap(identity)({"a": np.ones(3), "b": [np.ones(2)]}),
        ShapeError,
        r"3 in argument 0\['a'\], 2 in argument 0\['b'\]\[0\]",
    ),
    "no length": (
        lambda: pb.vmap(identity)(np.ones((0, 2))),
        ShapeError,
        "at least one sample required, got an axis of length 0 in argument 0",
    ),
    "nothing mapped": (
        lambda: pb.vmap(identity, in_axes=None)(X),
        ArgumentError,
        "at least one argument to map over required",
    ),
    "no arguments": (lambda: pb.vmap(lambda: X)(), ArgumentError, "at least one argument"),
    "axis too large": (
        lambda: pb.vmap(identity, in_axes=2)(X),
        TensorIndexError,
        r"an axis of argument 0 required, from -2 to 1, got 2",
    ),
    "axis too small": (
        lambda: pb.vmap(identity, in_axes=-3)(X),
        TensorIndexError,
        "from -2 to 1, got -3",
    ),
    "no axis": (
        lambda: pb.vmap(identity)(pb.tensor(1.0)),
        TensorIndexError,
        "a tensor with an axis to map over required in argument 0, got 0 dimensions",
    ),
    "no axis by keyword": (
        lambda: pb.vmap(lambda x, *, y: x)(X, y=pb.tensor(1.0)),
        TensorIndexError,
        "argument 'y'",
    ),
    "a number": (
        lambda: pb.vmap(lambda x, n: x)(X, 3),
        ArgumentTypeError,
        "a tensor or an array required in argument 1 to map over axis 0, got int",
    ),
    "too few axes": (
        lambda: pb.vmap(lambda x, y: x, in_axes=(0,))(X, X),
        ArgumentError,
        "an item of in_axes for each of 2 positional arguments required, got 1",
    ),
    "another structure": (
        lambda: pb.vmap(identity, in_axes=({"a": 0},))({"b": X}),
        ArgumentError,
        "in_axes of the structure of argument 0 required, dict of b, got dict of a",
    ),
    "a container for a tensor": (
        lambda: pb.vmap(identity, in_axes=((0, 1),))(X),
        ArgumentError,
        "in_axes of the structure of argument 0 required",
    ),
    "no axis at all": (
        lambda: pb.vmap(identity, in_axes=("a",))(X),
        ArgumentTypeError,
        "required as in_axes of argument 0, got 'a'",
    ),
    "axes by name": (
        lambda: pb.vmap(identity, in_axes={"x": 0})(X),
        ArgumentTypeError,
        "a tuple with one item for each positional argument",
    ),
    "axes twice": (
        lambda: pb.vmap(identity, in_axes=1, in_dims=1),
        ArgumentError,
        "in_axes or in_dims required, which mean the same",
    ),
    "a result of None": (
        lambda: pb.vmap(lambda x: None)(X),
        ArgumentTypeError,
        r"a result of .*lambda.* required, got None",
    ),
    "an empty result": (lambda: pb.vmap(lambda x: ())(X), ArgumentTypeError, "an empty one"),
    "a result with None": (
        lambda: pb.vmap(lambda x: (x, None))(X),
        ArgumentTypeError,
        r"tensors, arrays or numbers required in the result of .*\[1\], got NoneType",
    ),
    "a result of text": (lambda: pb.vmap(lambda x: "a")(X), ArgumentTypeError, "got str"),
    "out_axes of another structure": (
        lambda: pb.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X),
        ArgumentError,
        "out_axes of the structure of the result",
    ),
    "out_axes too large": (
        lambda: pb.vmap(identity, out_axes=2)(X),
        TensorIndexError,
        "from -2 to 1, got 2",
    ),
    "no axis for a batch": (
        lambda: pb.vmap(identity, out_axes=None)(X),
        ArgumentError,
        "an axis for the result of identity required in out_axes",
    ),
    "a random draw": (
        lambda: pb.vmap(lambda x: x + pb.rand(2))(X),
        ArgumentError,
        'randomness="different"',
    ),
    "another randomness": (
        lambda: pb.vmap(identity, randomness="new"),
        ArgumentError,
        'randomness "error", "same" or "different" required',
    ),
    "chunk_size 0": (
        lambda: pb.vmap(identity, chunk_size=0),
        ArgumentError,
        "a chunk_size of at least 1 required, got 0",
    ),
    "chunk_size of text": (
        lambda: pb.vmap(identity, chunk_size="2"),
        ArgumentTypeError,
        "required as chunk_size, got str",
    ),
    "no function": (lambda: pb.vmap(3), ArgumentTypeError, "vmap: a function required, got int"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_named(name):
    call, error, text = CALLS[name]
    with pytest.raises(error, match=text) as raised:
        call()
    assert str(raised.value).startswith("vmap:")


# -- operations of one's own -----------------------------------------------------------------------
def ruled(rule):
    op = pb.autograd_function(lambda ctx, x: x * 2, name="op")
    op.vmap(rule)
    return op


RULES = {
    "no pair": (lambda info, in_dims, x: x, "a pair \\(outputs, out_dims\\) required"),
    "axes of another form": (
        lambda info, in_dims, x: ((x, x), (0, 0, 0)),
        "out_dims for each of 2 outputs required",
    ),
    "no axis": (lambda info, in_dims, x: (x, "a"), "an axis, or None, for each output"),
    "axis out of range": (lambda info, in_dims, x: (x, 5), "an axis of 3 samples at each of out"),
    "another axis": (lambda info, in_dims, x: (x, 1), "an axis of 3 samples at each of out"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_rule_is_named(name):
    rule, text = RULES[name]
    with pytest.raises((ArgumentError, ShapeError), match=f"op.vmap: {text}"):
        pb.vmap(ruled(rule))(X)


def test_a_rule_is_checked_when_it_is_given():
    with pytest.raises(ArgumentError, match=r"write def vmap\(info, in_dims, \*args\)"):
        ruled(lambda x: x)
    with pytest.raises(ArgumentTypeError, match="a function required, got int"):
        ruled(3)
    with pytest.raises(ArgumentError, match=r"Wrong.vmap"):

        class Wrong(pb.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def vmap(x):
                return x


def test_numbers_that_differ_between_samples_are_no_result_of_an_operation():
    @pb.autograd_function
    def measured(ctx, x):
        return x * 2, float(x.sum())

    with pytest.raises(ArgumentError, match="tensors in the result of measured"):
        pb.vmap(lambda x: measured(x)[0])(X)


@pytest.mark.parametrize("size", [1, 3])
def test_draws_within_an_operation_ask_for_the_randomness(size):
    @pb.autograd_function
    def noisy(ctx, x):
        return x + pb.rand(x.shape, dtype=x.dtype)

    with pytest.raises(ArgumentError, match='randomness="different" or "same" required for noisy'):
        pb.vmap(noisy)(np.zeros((size, 2)))
