"""Transforms: functions that take a function and return one that computes its gradient."""

from pullback.transforms.grad import elementwise_grad, grad, value_and_grad

__all__ = ["elementwise_grad", "grad", "value_and_grad"]
