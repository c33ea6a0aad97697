"""pullback as a namespace: constants, dtypes and how they promote, what it tells of itself."""

import itertools
import math
import types

import array_api_compat
import array_api_strict
import numpy as np
import pytest

import pullback as pb
from pullback.arrays import CUPY

NAMES = [
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
]
STRICT = "array_api_strict:CPU_DEVICE"


@pytest.fixture
def double():
    pb.set_default_dtype("float64")
    yield
    pb.set_default_dtype("float32")


# -- found from a tensor --------------------------------------------------------------------------
def test_a_tensor_leads_to_the_package():
    x = pb.ones(2)
    assert x.__array_namespace__() is pb
    assert array_api_compat.array_namespace(x, pb.zeros(3)) is pb
    assert pb.__array_api_version__ == "2024.12"


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12", None])
def test_every_version_up_to_the_current_is_served(version):
    assert pb.ones(2).__array_namespace__(api_version=version) is pb


@pytest.mark.parametrize("version", ["2020.01", "2030.12", "latest", 2024])
def test_another_version_is_refused(version):
    with pytest.raises(ValueError, match=r"__array_namespace__: a version up to 2024\.12 required"):
        pb.ones(2).__array_namespace__(api_version=version)


def test_array_api_compat_takes_a_tensor_for_nothing_else():
    x = pb.ones((2, 3))
    for name in ("cupy", "dask", "jax", "numpy", "pydata_sparse", "torch", "ndonnx"):
        assert not getattr(array_api_compat, f"is_{name}_array")(x), name
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.device(x) == "cpu"
    assert array_api_compat.size(x) == 6
    assert array_api_compat.to_device(x, "cpu") is x


def test_a_function_written_for_the_standard_is_differentiable():
    def normalized(x):
        xp = array_api_compat.array_namespace(x)
        return x / xp.sqrt(xp.sum(x * x))

    x = pb.tensor([3.0, 4.0], requires_grad=True)
    y = normalized(x)
    assert y.tolist() == pytest.approx([0.6, 0.8])
    y[0].backward()
    assert x.grad.tolist() == pytest.approx([0.128, -0.096])
    assert normalized(np.array([3.0, 4.0])).tolist() == [0.6, 0.8]


# -- constants ------------------------------------------------------------------------------------
def test_constants():
    assert (pb.e, pb.pi, pb.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(pb.nan)
    assert pb.newaxis is None
    assert pb.ones(3)[pb.newaxis, :].shape == (1, 3)


# -- dtypes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_finfo_has_the_numbers_of_numpy(name):
    ours, theirs = pb.finfo(getattr(pb, name)), np.finfo(name)
    for field in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, field) == getattr(theirs, field)
        assert type(getattr(ours, field)) is (int if field == "bits" else float)
    assert ours.dtype == theirs.dtype
    assert pb.finfo(pb.ones(2, dtype=name)) == ours


@pytest.mark.parametrize("name", NAMES[1:9])
def test_iinfo_has_the_numbers_of_numpy(name):
    ours, theirs = pb.iinfo(getattr(pb, name)), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert ours.dtype == theirs.dtype
    assert pb.iinfo(pb.ones(2, dtype=name)) == pb.iinfo(np.ones(2, name)) == ours


@pytest.mark.parametrize(
    ("function", "wrong", "words"),
    [
        (pb.finfo, pb.int8, "finfo: a floating or complex dtype required, got int8"),
        (pb.finfo, pb.bool, "finfo: a floating or complex dtype required, got bool"),
        (pb.iinfo, pb.float32, "iinfo: an integer dtype required, got float32"),
        (pb.iinfo, pb.bool, "iinfo: an integer dtype required, got bool"),
        (pb.finfo, 3, "finfo: a dtype or a Tensor required, got int"),
        (pb.iinfo, [1], "iinfo: a dtype or a Tensor required, got list"),
    ],
)
def test_limits_of_another_kind_of_dtype_are_refused(function, wrong, words):
    with pytest.raises(TypeError, match=words):
        function(wrong)


KINDS = [
    *("bool", "signed integer", "unsigned integer", "integral"),
    *("real floating", "complex floating", "numeric"),
]


@pytest.mark.parametrize("kind", [*KINDS, ("bool", "integral"), ("real floating", "bool")])
def test_isdtype_answers_as_array_api_strict(kind):
    for name in NAMES:
        ours = pb.isdtype(getattr(pb, name), kind)
        assert ours is array_api_strict.isdtype(getattr(array_api_strict, name), kind)


def test_a_dtype_is_a_kind_of_its_own():
    assert pb.isdtype(pb.float16, "real floating")
    assert pb.isdtype(pb.int8, pb.int8)
    assert not pb.isdtype(pb.int8, pb.uint8)
    assert pb.isdtype(np.dtype("int8"), (pb.float32, "integral"))


@pytest.mark.parametrize("kind", ["float", "float32", ("bool", "spam")])
def test_an_unknown_kind_is_refused_with_those_there_are(kind):
    with pytest.raises(ValueError, match=r"isdtype: a kind of dtype, one of 'bool', .* required"):
        pb.isdtype(pb.float32, kind)


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except TypeError:
        return None


PAIRS = list(itertools.product(NAMES, NAMES))


def test_two_dtypes_promote_as_the_standard_says_where_it_says_so():
    defined = 0
    for a, b in PAIRS:
        pair = getattr(array_api_strict, a), getattr(array_api_strict, b)
        theirs = outcome(array_api_strict.result_type, *pair)
        if theirs is None:
            continue
        defined += 1
        expected = str(theirs).rpartition(".")[2]
        assert pb.result_type(getattr(pb, a), getattr(pb, b)).name == expected
        x, y = pb.ones(2, dtype=a), pb.ones(2, dtype=b)
        assert pb.result_type(x, y).name == expected
        assert pb.result_type(x, b).name == expected
        if a != "bool":
            assert (x + y).dtype.name == expected
    assert defined == 73


def test_mixed_kinds_promote_by_category_which_the_standard_leaves_open():
    assert pb.result_type(pb.int64, pb.float32) is pb.float32
    assert pb.result_type(pb.bool, pb.int8) is pb.int8
    with pytest.raises(TypeError, match="dtypes with a common one required"):
        pb.result_type(pb.uint64, pb.int8)


@pytest.mark.parametrize("x", NAMES)
@pytest.mark.parametrize("number", [True, 2, 2.5, 2j])
def test_result_type_is_the_dtype_of_the_operation(x, number):
    tensor = pb.ones(2, dtype=x)
    assert pb.result_type(tensor, number) is pb.result_type(number, tensor)
    assert pb.result_type(tensor, number) is (tensor * number).dtype
    scalar = pb.full((), number)
    assert pb.result_type(tensor, scalar) is (tensor * scalar).dtype
    both = tensor[0], scalar
    assert outcome(pb.result_type, *both) is outcome(lambda a, b: (a * b).dtype, *both)


def test_result_type_of_numbers_alone_and_of_nothing():
    assert pb.result_type(1, 2.0) is pb.float32
    assert pb.result_type(True) is pb.bool
    assert pb.result_type(np.ones(2), pb.float32) is pb.float64
    with pytest.raises(ValueError, match="result_type: at least one array or dtype required"):
        pb.result_type()


def test_can_cast_follows_promotion():
    for a, b in PAIRS:
        pair = getattr(array_api_strict, a), getattr(array_api_strict, b)
        if outcome(array_api_strict.result_type, *pair) is not None:
            ours = pb.can_cast(getattr(pb, a), getattr(pb, b))
            assert ours is array_api_strict.can_cast(*pair), (a, b)
    assert pb.can_cast(pb.int64, pb.float32)
    assert not pb.can_cast(pb.float32, pb.int64)
    assert not pb.can_cast(pb.uint64, pb.int64)
    assert pb.can_cast(pb.ones(2, dtype="int8"), pb.int16)
    with pytest.raises(TypeError, match="can_cast: a dtype or a Tensor required"):
        pb.can_cast(1.5, pb.float32)


# -- shapes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shapes", [(), ((),), ((3, 1), (4,)), ((0, 1), (1, 5)), ((2, 1, 3), (4, 1), ()), ((3,), (0, 1))]
)
def test_shapes_broadcast_as_in_numpy(shapes):
    assert pb.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


def test_sizes_may_stand_for_shapes():
    assert pb.broadcast_shapes(3, (2, 1)) == (2, 3)


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((0,), (2,)), ((1, 2), (3, 4, 3))])
def test_shapes_that_do_not_broadcast_are_refused(shapes):
    with pytest.raises(ValueError, match="broadcast_shapes: shapes that broadcast required") as e:
        pb.broadcast_shapes(*shapes)
    assert all(str(shape) in str(e.value) for shape in shapes)


# -- what there is --------------------------------------------------------------------------------
def test_capabilities_and_devices():
    info = pb.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert pb.zeros((1,) * 64).ndim == 64
    assert info.default_device() == pb.zeros(1).device == "cpu"
    assert info.devices()[0] == "cpu"
    assert all(pb.zeros(1, device=device).device == device for device in info.devices())


def test_default_dtypes_are_those_that_numbers_get():
    info = pb.__array_namespace_info__()
    assert info.default_dtypes() == info.default_dtypes(device="cpu")
    assert info.default_dtypes() == {
        "real floating": pb.tensor(1.5).dtype,
        "complex floating": pb.tensor(1j).dtype,
        "integral": pb.tensor(1).dtype,
        "indexing": pb.tensor([1, 2]).argmax().dtype,
    }


@pytest.mark.usefixtures("double")
def test_default_dtypes_follow_the_default_dtype():
    found = pb.__array_namespace_info__().default_dtypes()
    assert (found["real floating"], found["complex floating"]) == (pb.float64, pb.complex128)


@pytest.mark.parametrize("kind", [None, *KINDS, ("bool", "real floating"), ()])
def test_dtypes_are_those_of_the_standard(kind):
    ours = pb.__array_namespace_info__().dtypes(kind=kind)
    theirs = array_api_strict.__array_namespace_info__().dtypes(kind=kind)
    assert set(ours) == set(theirs)
    assert all(ours[name] is getattr(pb, name) for name in ours)


def test_dtypes_of_a_device():
    info = pb.__array_namespace_info__()
    pb.asarray(array_api_strict.asarray([1.0]))
    assert info.dtypes(device="cpu") == info.dtypes(device=STRICT) == info.dtypes()
    for ask in (info.dtypes, info.default_dtypes):
        with pytest.raises(ValueError, match="device: "):
            ask(device="gpu")
    with pytest.raises(ValueError, match="a kind of dtype"):
        info.dtypes(kind="float")


def test_the_devices_are_the_cpu_and_every_gpu(monkeypatch):
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 2)
    cuda = types.SimpleNamespace(is_available=lambda: True, runtime=runtime)
    monkeypatch.setitem(vars(CUPY), "cupy", types.SimpleNamespace(cuda=cuda))
    assert pb.__array_namespace_info__().devices() == ["cpu", "cuda:0", "cuda:1"]
