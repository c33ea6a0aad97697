"""What an operation returns is a view only where it is declared one.

Called as a function and as a method, on the shapes of its samples and on such as leave it nothing
to do, where a step within it is most likely to return what it was given.
"""

import itertools

import numpy as np
import pytest
from tests.ops import _cases
from tests.ops._cases import host, mostly

import pullback as pb

CASES = [case for case in _cases.cases() if not case.op.view]

# Where there is nothing to do, these return the tensor itself, as PyTorch's do.
RETURN_THE_TENSOR_ITSELF = {"dropout", "sum_to_size", "to"}


def shapes_of(case):
    """Return the shapes of a sample, with axes of length 1 or 0 in the place of some, and none."""
    shapes = case.sample.shapes
    found = [shapes, tuple(() for _ in shapes)]
    for length in (1, 0):
        found.append(tuple(tuple(length for _ in shape) for shape in shapes))
        for axis in range(max(map(len, shapes), default=0)):
            found.append(
                tuple(replaced(shape, length, lambda i, a=axis: i == a) for shape in shapes)
            )
            found.append(
                tuple(replaced(shape, length, lambda i, a=axis: i != a) for shape in shapes)
            )
    return dict.fromkeys(found)


def replaced(shape, length, where):
    return tuple(length if where(i) else n for i, n in enumerate(shape))


def settings_of(case):
    """Return the settings of a sample, the same with 1 for larger numbers, and none."""
    given = case.settings()
    ones = {k: 1 if type(value) is int and value > 1 else value for k, value in given.items()}
    return [given, ones, {}]


def calls(case):
    """Yield functions, each with arrays and settings that it may accept."""
    dtype = np.dtype("complex128" if case.complex else "float64")
    method = getattr(pb.Tensor, case.name, None)
    functions = [case.declaration.call, *([method] if callable(method) else [])]
    rng = case.rng()
    for shapes, settings in itertools.product(shapes_of(case), settings_of(case)):
        pairs = zip(case.domains, shapes, strict=True)
        arrays = [_cases.draw(domain, shape, dtype, rng) for domain, shape in pairs]
        for function in functions:
            yield function, arrays, settings


def tensors_in(value):
    if isinstance(value, pb.Tensor):
        return [value]
    parts = value if isinstance(value, (tuple, list)) else ()
    return [t for part in parts for t in tensors_in(part)]


@pytest.mark.filterwarnings("ignore")  # of divisions by zero, and means of nothing
@mostly(CASES)
def test_a_result_that_is_not_declared_a_view_is_a_tensor_of_its_own(case):
    accepted = 0
    for function, arrays, settings in calls(case):
        try:
            tensors = case.within(_cases.leaves(arrays))
            results = tensors_in(function(*tensors, **settings))
        except (pb.AutogradError, TypeError, ValueError, IndexError, AttributeError):
            continue
        accepted += 1
        shapes = [a.shape for a in arrays]
        for result in results:
            if case.name not in RETURN_THE_TENSOR_ITSELF or not any(result is t for t in tensors):
                assert result._base is None, (shapes, settings)
                assert not any(np.may_share_memory(host(result), host(t)) for t in tensors), shapes
    assert accepted
