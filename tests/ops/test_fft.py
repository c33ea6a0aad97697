"""Fourier transforms beyond their values and derivatives: identities, arguments, errors."""

import numpy as np
import pytest

import pullback as pb

NORMS = ["backward", "ortho", "forward"]


# -- identities -----------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("norm", "factor"), [("backward", 5.0), ("ortho", 1.0), ("forward", 0.2)])
def test_the_gradient_of_a_signals_energy_is_the_same_in_time_and_in_frequency(norm, factor, dtype):
    values = np.array([1.0, -2.0, 0.5, 3.0, 0.25])
    x = pb.tensor(values * (1 + 0.5j) if "complex" in dtype else values, requires_grad=True)
    spectrum = pb.fft.fft(x, norm=norm)
    (spectrum.abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * factor * x.detach().numpy(), rtol=1e-12)
    assert x.grad.dtype is x.dtype


@pytest.mark.parametrize("length", [4, 5])
@pytest.mark.parametrize("norm", NORMS)
def test_an_inverse_transform_brings_the_signal_back_and_the_gradient_too(norm, length):
    x = pb.tensor(np.sin(np.arange(length)), requires_grad=True)
    ways = [
        lambda t: pb.fft.ifft(pb.fft.fft(t, norm=norm), norm=norm).real,
        lambda t: pb.fft.irfft(pb.fft.rfft(t, norm=norm), n=length, norm=norm),
        lambda t: pb.fft.hfft(pb.fft.ihfft(t, norm=norm), n=length, norm=norm),
        lambda t: pb.fft.irfftn(pb.fft.rfftn(t, norm=norm), s=(length,), norm=norm),
    ]
    weights = pb.arange(length, dtype="float64")
    for there_and_back in ways:
        result = there_and_back(x)
        np.testing.assert_allclose(result.detach().numpy(), x.detach().numpy(), atol=1e-15)
        (g,) = pb.autograd.grad(result, x, weights)
        np.testing.assert_allclose(g.numpy(), weights.numpy(), atol=1e-14)


def test_a_convolution_by_transforms_has_the_gradient_of_the_sum_of_products():
    x = pb.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    kernel = pb.tensor([0.5, -1.0], dtype="float64", requires_grad=True)
    product = pb.fft.rfft(x, n=4) * pb.fft.rfft(kernel, n=4)
    result = pb.fft.irfft(product, n=4)
    np.testing.assert_allclose(result.tolist(), [0.5, 0.0, -0.5, -3.0], atol=1e-15)
    dx, dk = pb.autograd.grad(result, [x, kernel], pb.tensor([1.0, 10.0, 100.0, 1000.0]).double())
    np.testing.assert_allclose(dx.tolist(), [-9.5, -95.0, -950.0], rtol=1e-13)
    np.testing.assert_allclose(dk.tolist(), [321.0, 3210.0], rtol=1e-13)


@pytest.mark.parametrize("length", [4, 5])
def test_shifting_back_undoes_a_shift(length):
    x = pb.arange(length)
    assert pb.fft.ifftshift(pb.fft.fftshift(x)).tolist() == x.tolist()
    assert pb.fft.fftshift(x).tolist() == np.fft.fftshift(np.arange(length)).tolist()


# -- arguments ------------------------------------------------------------------------------------
def test_real_numbers_of_any_dtype_are_transformed():
    for dtype, result in [
        ("int32", "complex64"),
        ("float32", "complex64"),
        ("float64", "complex128"),
    ]:
        x = pb.tensor([1, 2, 3], dtype=dtype)
        assert pb.fft.fft(x).dtype.name == result
        assert pb.fft.rfft(x).dtype.name == result
    assert pb.fft.irfft(pb.tensor([True, True])).dtype is pb.float32


def test_an_array_is_transformed_as_a_tensor_is():
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(pb.fft.fft(array).numpy(), np.fft.fft(array), atol=1e-15)
    np.testing.assert_allclose(pb.fft.rfft(array, n=2).numpy(), np.fft.rfft(array, 2), atol=1e-15)


def test_lengths_go_to_the_last_axes_and_minus_1_keeps_one():
    x = pb.tensor(np.arange(24.0).reshape(2, 3, 4))
    assert pb.fft.fftn(x, s=(5, 6)).shape == (2, 5, 6)
    assert pb.fft.fftn(x, s=(-1, 2), axes=(0, 1)).shape == (2, 2, 4)
    assert pb.fft.rfftn(x, s=(3,), axes=(1,)).shape == (2, 2, 4)
    assert pb.fft.irfftn(x).shape == (2, 3, 6)
    np.testing.assert_allclose(
        pb.fft.irfftn(x, s=(-1, 5)).numpy(), np.fft.irfftn(x.numpy(), (3, 5), (1, 2)), atol=1e-14
    )


def test_a_transform_over_no_axes_is_a_copy():
    x = pb.tensor(2.0)
    assert pb.fft.fftn(x).item() == 2 + 0j
    assert pb.fft.ifftn(pb.tensor([1j]), axes=()).tolist() == [1j]


@pytest.mark.parametrize("n", [1, 4, 5])
def test_the_frequencies_are_those_of_numpy(n):
    for name in ("fftfreq", "rfftfreq"):
        ours, theirs = getattr(pb.fft, name), getattr(np.fft, name)
        assert ours(n).dtype is pb.float32
        result = ours(n, d=0.1, dtype=pb.float64, device="cpu")
        np.testing.assert_allclose(result.numpy(), theirs(n, 0.1), rtol=1e-15)


# name: (the wrong call, the built-in error, words of the message)


def test_one_axis_is_a_sequence_of_axes_to_a_fourier_transform():
    x = pb.ones(2, 2)
    assert pb.fft.fftn(x, axes=-1).tolist() == pb.fft.fft(x).tolist()
    assert pb.fft.irfftn(pb.fft.rfftn(x, s=2, axes=0), s=2, axes=0).tolist() == x.tolist()
