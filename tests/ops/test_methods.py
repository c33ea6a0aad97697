"""The two faces: Tensor methods as in PyTorch, functions as in the Array API standard."""

import inspect

import numpy as np
import pytest

import pullback as pb
from pullback.ops import declare
from pullback.ops.methods.attach import TensorMethods, declared_methods, methods_of

DATA = np.array([[1.5, -2.0, 0.25], [0.5, 3.0, -1.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4)


def matrix():
    return pb.tensor(DATA)


def cube():
    return pb.tensor(CUBE)


# -- where methods come from ----------------------------------------------------------------------
def test_every_declared_method_is_attached():
    attached = {name: getattr(pb.Tensor, name, None) for name in declare.METHODS}
    assert attached == declared_methods()


def test_no_method_is_both_declared_and_defined_by_hand():
    assert methods_of(*TensorMethods.__mro__[:-1]).keys() & declare.METHODS.keys() == set()


def test_a_method_defined_by_hand_is_no_declared_function():
    functions = {d.public for d in declare.REGISTRY.values()}
    by_hand = methods_of(*TensorMethods.__mro__[:-1])
    named = {name for name, value in by_hand.items() if name[:2] != "__" and value in functions}
    assert named == set()  # a declaration lists those


# -- dim, keepdim and axis, keepdims --------------------------------------------------------------
REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "all": np.all,
    "var": lambda a, **over: np.var(a, ddof=1, **over),
    "std": lambda a, **over: np.std(a, ddof=1, **over),
    "logsumexp": lambda a, **over: np.log(np.sum(np.exp(a), **over)),
}


@pytest.mark.parametrize("over", [None, 0, -1, (0, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_takes_dim_and_keepdim_or_axis_and_keepdims(name, over):
    method = getattr(pb.tensor(np.sin(CUBE)), name)
    for keep in (False, True):
        expected = REDUCTIONS[name](np.sin(CUBE), axis=over, keepdims=keep)
        results = [
            method(dim=over, keepdim=keep),
            method(over, *([None] if name in ("var", "std") else []), keep),
            method(axis=over, keepdims=keep),
            method(over, keepdims=keep),
        ]
        for result in results:
            assert result.shape == expected.shape
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_takes_dim_and_keepdim_or_axis_and_keepdims(name):
    method, expected = getattr(matrix(), name), getattr(np, name)
    assert method().item() == expected(DATA)
    assert method().shape == ()
    assert method(1).tolist() == expected(DATA, 1).tolist()
    assert method(dim=0).tolist() == expected(DATA, 0).tolist()
    assert method(axis=0, keepdims=True).tolist() == expected(DATA, 0, keepdims=True).tolist()
    assert method(1, True).shape == (2, 1)


@pytest.mark.parametrize("name", ["cumsum", "softmax", "log_softmax"])
def test_a_method_along_one_axis_takes_dim_or_axis(name):
    method = getattr(matrix(), name)
    first = method(0).tolist()
    assert method(dim=0).tolist() == first
    assert method(axis=-2).tolist() == first
    assert method(1).tolist() != first
    with pytest.raises(TypeError, match=f"{name}: axis must be an integer, got NoneType"):
        method()


@pytest.mark.parametrize(
    "name",
    [*REDUCTIONS, "argmax", "argmin", "cumsum", "softmax", "log_softmax", "squeeze", "max", "min"],
)
def test_dim_and_axis_together_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}: give dim or axis, not both"):
        getattr(matrix(), name)(dim=0, axis=1)


def test_variance_has_bessels_correction_as_a_method_and_none_as_a_function():
    x = pb.tensor([1.0, 2.0, 4.0, 5.0])
    assert x.var().item() == pytest.approx(10 / 3)
    assert x.var(unbiased=False).item() == 2.5
    assert x.var(False).item() == 2.5
    assert x.var(True).item() == pytest.approx(10 / 3)
    assert x.std(False).item() == pytest.approx(2.5**0.5)
    assert x.var(correction=0).item() == 2.5
    assert x.var(correction=2).item() == 5.0
    assert x.var(correction=None).item() == x.var(True).item() == x.var(0, True).item()
    assert x.var(False).item() == x.var(0, False).item() == 2.5
    assert pb.var(x).item() == 2.5
    assert pb.var(x, correction=1).item() == pytest.approx(10 / 3)
    assert pb.std(x, correction=2).item() == pytest.approx(5**0.5)
    assert pb.tensor([1.0]).var().isnan().item()


# -- max and min ----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["max", "min"])
def test_max_along_a_dim_returns_values_and_indices(name):
    pair = getattr(matrix(), name)(dim=1)
    assert type(pair)._fields == ("values", "indices")
    values, indices = pair
    assert values.tolist() == getattr(DATA, name)(axis=1).tolist()
    assert indices.tolist() == getattr(np, f"arg{name}")(DATA, axis=1).tolist()
    assert indices.dtype is pb.int64
    assert not indices.requires_grad
    assert getattr(matrix(), name)(-1, keepdim=True).values.shape == (2, 1)
    assert getattr(matrix(), name)(axis=0, keepdims=True)[1].shape == (1, 3)


def test_max_along_a_dim_gives_the_gradient_to_the_first_of_equals():
    x = pb.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 1.0]], requires_grad=True)
    values, indices = x.max(dim=1)
    assert indices.tolist() == [1, 0]
    (values * pb.tensor([10.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0, 0.0], [1.0, 0.0, 0.0]]


def test_max_of_a_scalar_and_of_two_tensors():
    values, indices = pb.tensor(2.0).max(dim=0)
    assert (values.item(), indices.item()) == (2.0, 0)
    x, y = pb.tensor([1.0, 4.0]), pb.tensor([3.0, 2.0])
    assert x.max(y).tolist() == [3.0, 4.0]
    assert x.min(y).tolist() == [1.0, 2.0]


# -- shapes ---------------------------------------------------------------------------------------
SHAPES = {
    "reshape sizes": (lambda x: x.reshape(3, -1), (3, 8)),
    "reshape tuple": (lambda x: x.reshape((4, 6)), (4, 6)),
    "reshape list": (lambda x: x.reshape([-1]), (24,)),
    "reshape_as": (lambda x: x.reshape_as(pb.zeros(6, 4)), (6, 4)),
    "view": (lambda x: x.view(6, 4), (6, 4)),
    "view tuple": (lambda x: x.view((-1, 2)), (12, 2)),
    "view_as": (lambda x: x.view_as(pb.zeros(4, 6)), (4, 6)),
    "flatten": (lambda x: x.flatten(), (24,)),
    "flatten from": (lambda x: x.flatten(1), (2, 12)),
    "flatten to": (lambda x: x.flatten(end_dim=1), (6, 4)),
    "permute": (lambda x: x.permute(2, 0, 1), (4, 2, 3)),
    "permute tuple": (lambda x: x.permute((1, -1, 0)), (3, 4, 2)),
    "permute dims": (lambda x: x.permute(dims=(1, 0, 2)), (3, 2, 4)),
    "transpose": (lambda x: x.transpose(0, 2), (4, 3, 2)),
    "transpose negative": (lambda x: x.transpose(-1, -3), (4, 3, 2)),
    "swapaxes": (lambda x: x.swapaxes(0, 1), (3, 2, 4)),
    "T": (lambda x: x.T, (4, 3, 2)),
    "mT": (lambda x: x.mT, (2, 4, 3)),
    "t": (lambda x: x[0].t(), (4, 3)),
    "t of a vector": (lambda x: x[0, 0].t(), (4,)),
    "t of a scalar": (lambda x: x[0, 0, 0].t(), ()),
    "unsqueeze": (lambda x: x.unsqueeze(0), (1, 2, 3, 4)),
    "unsqueeze last": (lambda x: x.unsqueeze(-1), (2, 3, 4, 1)),
    "unsqueeze dim": (lambda x: x.unsqueeze(dim=1), (2, 1, 3, 4)),
    "squeeze": (lambda x: x[:1, :, :1].squeeze(), (3,)),
    "squeeze dim": (lambda x: x[:1, :, :1].squeeze(0), (3, 1)),
    "squeeze dims": (lambda x: x[:1, :, :1].squeeze((0, 2)), (3,)),
    "squeeze where it cannot": (lambda x: x.squeeze(1), (2, 3, 4)),
    "expand": (lambda x: x[:, :1].expand(2, 5, 4), (2, 5, 4)),
    "expand keeping": (lambda x: x[:, :1].expand(-1, 5, -1), (2, 5, 4)),
    "expand more": (lambda x: x.expand(7, -1, -1, -1), (7, 2, 3, 4)),
    "expand tuple": (lambda x: x[0, 0].expand((2, 4)), (2, 4)),
    "expand_as": (lambda x: x[0, 0].expand_as(x), (2, 3, 4)),
    "broadcast_to": (lambda x: x[0].broadcast_to(5, 3, 4), (5, 3, 4)),
    "flip": (lambda x: x.flip(0, 2), (2, 3, 4)),
    "flip dims": (lambda x: x.flip(dims=(1,)), (2, 3, 4)),
    "select": (lambda x: x.select(1, 2), (2, 4)),
    "narrow": (lambda x: x.narrow(2, -3, 2), (2, 3, 2)),
    "diagonal": (lambda x: x[0].diagonal(), (3,)),
    "sum_to_size": (lambda x: x.sum_to_size(3, 1), (3, 1)),
    "sum_to_size tuple": (lambda x: x.sum_to_size((4,)), (4,)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_method_gives_the_shape(name):
    method, shape = SHAPES[name]
    assert method(cube()).shape == shape


def test_flatten_of_a_scalar_has_one_axis():
    assert pb.tensor(3.0).flatten().tolist() == [3.0]


PARTS = {
    "split": (lambda x: x.split(2), [2, 2, 1]),
    "split sizes": (lambda x: x.split([1, 4]), [1, 4]),
    "split dim": (lambda x: x.unsqueeze(0).split(3, dim=1), [3, 2]),
    "chunk": (lambda x: x.chunk(2), [3, 2]),
    "chunk of few": (lambda x: x.chunk(4), [2, 2, 1]),
    "unbind": (lambda x: x.unbind(), [None] * 5),
    "iteration": (tuple, [None] * 5),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_cover_the_tensor(name):
    take_apart, lengths = PARTS[name]
    x = pb.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    parts = take_apart(x)
    assert isinstance(parts, tuple)
    assert [p.shape[-1] if p.shape else None for p in parts] == lengths
    assert [v for p in parts for v in p.reshape(-1).tolist()] == x.tolist()


def test_cat_and_stack_take_pytorchs_dim_and_the_standards_axis():
    x = matrix()
    assert pb.cat([x, x], 1).shape == pb.concat([x, x], axis=1).shape == (2, 6)
    assert pb.cat((x, x), dim=-1).tolist() == np.concatenate([DATA, DATA], -1).tolist()
    assert pb.stack([x, x], dim=1).tolist() == np.stack([DATA, DATA], 1).tolist()
    assert pb.concat([x, x], axis=None).shape == (12,)
    assert [row.shape for row in pb.unbind(x, dim=1)] == [(2,)] * 3


# -- copies and casts -----------------------------------------------------------------------------
CASTS = {
    "float": pb.float32,
    "double": pb.float64,
    "half": pb.float16,
    "int": pb.int32,
    "long": pb.int64,
    "bool": pb.bool,
}


@pytest.mark.parametrize("name", CASTS)
def test_a_cast_gives_the_dtype_and_truncates(name):
    result = getattr(pb.tensor([0.0, 1.75, -2.5], dtype=pb.float64), name)()
    assert result.dtype is CASTS[name]
    exact = {"int": [0, 1, -2], "long": [0, 1, -2], "bool": [False, True, True]}
    assert result.tolist() == exact.get(name, [0.0, 1.75, -2.5])


def test_to_takes_dtypes_devices_and_tensors_and_returns_itself_where_nothing_changes():
    x = matrix()
    assert x.to(pb.float64) is x
    assert x.to("cpu") is x
    assert x.to("cpu", pb.float32).dtype is pb.float32
    assert x.to(device="cpu", dtype="int8").dtype is pb.int8
    assert x.to(np.float32).dtype is pb.float32
    assert x.to(pb.tensor([1])).dtype is pb.int64
    assert x.type(pb.float32).dtype is pb.float32
    copy = x.to(pb.float64, copy=True)
    assert copy is not x
    assert not np.may_share_memory(copy.numpy(), x.numpy())
    assert pb.astype(x, pb.float64, copy=False) is x
    assert pb.astype(x, pb.float64) is not x


def test_a_cast_to_real_numbers_takes_the_real_part():
    assert pb.tensor([1.0 + 2.0j]).to(pb.float64).tolist() == [1.0]


def test_contiguous_returns_itself_or_a_copy_in_row_major_order():
    x = matrix()
    assert x.is_contiguous()
    assert x.contiguous() is x
    assert not x.t().is_contiguous()
    assert x.t().contiguous().is_contiguous()
    assert x.t().contiguous().tolist() == DATA.T.tolist()


def test_new_tensors_follow_dtype_and_device():
    x = pb.tensor([1], dtype=pb.int16)
    for made in (x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_tensor([[1, 2, 3], [4, 5, 6]])):
        assert (made.shape, made.dtype, made.device) == ((2, 3), pb.int16, "cpu")


def test_where_and_masked_fill_as_methods():
    x, mask = pb.tensor([1.0, 2.0, 3.0]), pb.tensor([True, False, True])
    assert x.where(mask, pb.tensor([7.0, 8.0, 9.0])).tolist() == [1.0, 8.0, 3.0]
    assert x.where(mask, 0.0).tolist() == [1.0, 0.0, 3.0]
    assert x.masked_fill(mask, -1).tolist() == [-1.0, 2.0, -1.0]
    assert pb.where(x > 1, x, 0).tolist() == [0.0, 2.0, 3.0]
    assert pb.where(True, x, 0.0).tolist() == [1.0, 2.0, 3.0]


def test_clamp_takes_numbers_tensors_and_one_bound():
    x = pb.tensor([-1.0, 0.5, 2.0])
    low = pb.tensor([0.0, 1.0, 1.0])
    assert x.clamp(0, 1).tolist() == [0.0, 0.5, 1.0]
    assert x.clamp(min=0).tolist() == [0.0, 0.5, 2.0]
    assert x.clip(max=0.5).tolist() == [-1.0, 0.5, 0.5]
    assert x.clamp(low, 1.5).tolist() == [0.0, 1.0, 1.5]
    assert x.clone().clamp_(low, 1.5).tolist() == [0.0, 1.0, 1.5]
    assert x.clone().clamp_(max=0.5).tolist() == [-1.0, 0.5, 0.5]
    assert pb.tensor([1, 3]).clamp(min=1.5).tolist() == [1.5, 3.0]


def test_clamp_in_place_by_a_tensor_is_recorded():
    x = pb.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    low = pb.tensor([0.0, 0.0, 3.0], requires_grad=True)
    y = x * 2
    y.clamp_(min=low)
    assert y.tolist() == [0.0, 1.0, 4.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0]
    assert low.grad.tolist() == [1.0, 0.0, 0.0]


def test_fill_takes_a_number_or_a_scalar_tensor_and_is_recorded():
    x = pb.tensor([1.0, 2.0])
    assert x.fill_(3).tolist() == [3.0, 3.0]
    value = pb.tensor(5.0, requires_grad=True)
    y = pb.zeros(3)
    y.fill_(value)
    y.sum().backward()
    assert value.grad.item() == 3.0


def test_numpy_arrays_on_either_side_of_an_operator():
    x, a = pb.tensor([1.0, 2.0], dtype=pb.float64), np.array([10.0, 20.0])
    assert (a * x).tolist() == (x * a).tolist() == [10.0, 40.0]
    assert isinstance(a - x, pb.Tensor)
    assert (a - x).tolist() == [9.0, 18.0]
    assert (np.float64(1) - x).tolist() == [0.0, -1.0]
    assert (a @ x).item() == 50.0


def test_the_functions_of_one_face_show_their_parameters():
    shown = ["x", "axis", "dtype", "keepdims", "dim", "keepdim"]
    assert list(inspect.signature(pb.sum).parameters) == shown
    assert list(inspect.signature(pb.Tensor.sum).parameters)[1:3] == ["dim", "keepdim"]
    assert pb.multiply.__name__ == "multiply"
    assert pb.Tensor.mul_.__name__ == "mul_"


def test_stack_as_a_method():
    x = pb.tensor([1.0, 2.0])
    assert x.stack([x, x + 2.0], dim=1).tolist() == [[1.0, 3.0], [2.0, 4.0]]
