"""Functions of functions: users of the engine."""

from pullback.transforms.grad import elementwise_grad, grad, value_and_grad

__all__ = ["elementwise_grad", "grad", "value_and_grad"]
