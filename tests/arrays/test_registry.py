"""Which library an array or a device belongs to."""

import importlib
import sys

import array_api_strict
import numpy as np
import pytest

import pullback as pb
from pullback.arrays import (
    NUMPY,
    Library,
    cuda_is_available,
    is_array,
    library_for,
    library_of,
)
from pullback.errors import ArgumentError, ArgumentTypeError, DeviceError, MissingExtraError


class Subclass(np.ndarray):
    pass


def test_numpy_arrays_and_their_subclasses():
    assert library_of(np.ones(2)) is NUMPY
    assert library_of(np.ones(2).view(Subclass)) is NUMPY
    assert is_array(np.ones(2).view(Subclass))
    assert NUMPY.xp.exp is np.exp
    assert repr(NUMPY) == "<array library numpy>"


def test_any_library_of_the_standard_is_found_by_its_namespace():
    found = library_of(array_api_strict.ones(2))
    assert type(found) is Library
    assert found is library_of(array_api_strict.ones((3, 4)))
    assert found.name == "array_api_strict"
    assert is_array(array_api_strict.ones(2))


@pytest.mark.parametrize("thing", [1.0, [1.0], "x", None, np.float64(1.0)])
def test_what_is_no_array(thing):
    assert not is_array(thing)
    text = f"^array: an array required, got {type(thing).__name__}\nhint: pass a NumPy array"
    with pytest.raises(ArgumentTypeError, match=text):
        library_of(thing)


def test_a_type_of_pullback_is_no_array_though_it_speaks_the_standard():
    class Boxed:
        __module__ = "pullback.core.tensor.tensor"

        def __array_namespace__(self):
            raise AssertionError("asked")

    class Derived(Boxed):
        __module__ = "somewhere"

    assert not is_array(Boxed())
    assert not is_array(Derived())


def test_matrices_are_refused_because_their_products_would_be_others():
    text = r"no np\.matrix required, got matrix\nhint: write np\.asarray\(x\)"
    for use in (library_of, pb.asarray, pb.grad(lambda x: np.sum(x * x)), pb.ones(2, 2).__matmul__):
        with pytest.raises(ArgumentTypeError, match=text):
            use(np.eye(2).view(np.matrix))


def test_masked_arrays_are_refused_because_their_mask_would_be_lost():
    text = "an array without a mask required, got MaskedArray\nhint: fill it first"
    with pytest.raises(ArgumentTypeError, match=text):
        library_of(np.ma.masked_array([1.0, 2.0], [True, False]))


def test_cpu_is_numpy():
    assert library_for("cpu") == (NUMPY, None)
    assert library_for(None) == (NUMPY, None)


def test_devices_of_another_library_are_found_by_the_names_it_gives_them():
    strict = library_of(array_api_strict.ones(2))
    for device in array_api_strict.__array_namespace_info__().devices():
        if device is not None:
            array = array_api_strict.ones(2, dtype=array_api_strict.float32, device=device)
            assert library_for(strict.device(array)) == (strict, device)
    assert library_for("array_api_strict")[1] == array_api_strict.ones(2).device


def test_an_unknown_device_of_a_known_library():
    library_of(array_api_strict.ones(2))
    with pytest.raises(
        DeviceError, match=r"^device: one of array_api_strict:CPU_DEVICE.* got 'arr"
    ):
        library_for("array_api_strict:spam")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", "cpu:1", "", 3])
def test_an_unknown_device(device):
    text = f'^device: "cpu", "cuda" or "cuda:<number>" required, got {device!r}$'
    with pytest.raises(ArgumentError, match=text):
        library_for(device)


def test_a_missing_cupy_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    cupy_ = importlib.import_module("pullback.arrays.cupy_")
    fresh = cupy_.CuPy()
    text = r"""^device "cuda": CuPy required, got .*cupy.*\nhint: pip install 'pullback\[cuda\]'$"""
    for ask in (lambda: fresh.xp, lambda: fresh.native_device("cuda"), lambda: fresh.array_types):
        with pytest.raises(MissingExtraError, match=text):
            ask()
    assert fresh.is_available() is False


class NoGpu:
    class cuda:  # noqa: N801 (named as in CuPy)
        @staticmethod
        def is_available():
            return False


class OneGpu(NoGpu):
    class cuda(NoGpu.cuda):  # noqa: N801
        Device = staticmethod(lambda number=None: ("device", number))

        class runtime:  # noqa: N801
            getDeviceCount = staticmethod(lambda: 1)  # noqa: N815

        @staticmethod
        def is_available():
            return True


class BrokenDriver:
    @property
    def cuda(self):
        raise OSError("libcuda.so.1: cannot open shared object file")


@pytest.fixture
def with_cupy(monkeypatch):
    """Make a CuPy library that finds the given module for cupy."""

    def make(module):
        monkeypatch.setitem(sys.modules, "cupy", module)
        return importlib.import_module("pullback.arrays.cupy_").CuPy()

    return make


def test_a_machine_without_a_gpu(with_cupy):
    library = with_cupy(NoGpu)
    assert library.is_available() is False
    with pytest.raises(
        DeviceError, match="a GPU that CuPy can use required, got none\nhint: check"
    ):
        library.native_device("cuda")


def test_a_broken_driver_is_no_gpu(with_cupy):
    assert with_cupy(BrokenDriver()).is_available() is False


def test_the_number_of_a_gpu(with_cupy):
    library = with_cupy(OneGpu)
    assert library.native_device("cuda") == ("device", None)
    assert library.native_device("cuda:0") == ("device", 0)
    with pytest.raises(DeviceError, match=r"^device: cuda:0 to cuda:0 required, got cuda:1$"):
        library.native_device("cuda:1")


def test_asking_for_cuda_never_raises():
    assert cuda_is_available() in (True, False)
