"""The grad modes, as blocks and as decorators, for the tests of modes."""

import pytest

import pullback as pb

OFF = {
    "no_grad": lambda: pb.no_grad(),
    "set_grad_enabled": lambda: pb.set_grad_enabled(False),
    "inference_mode": lambda: pb.inference_mode(),
}
DECORATORS = {
    "no_grad": pb.no_grad,
    "no_grad()": pb.no_grad(),
    "inference_mode": pb.inference_mode,
    "inference_mode()": pb.inference_mode(),
    "inference_mode(True)": pb.inference_mode(True),
}
every_off = pytest.mark.parametrize("off", OFF.values(), ids=OFF.keys())
every_decorator = pytest.mark.parametrize("decorate", DECORATORS.values(), ids=DECORATORS.keys())
