"""NumPy's functions on tensors, recorded: importing this attaches the two protocols to Tensor."""

from pullback.numpy_protocol.protocol import NumPyMethods
from pullback.ops.methods.attach import attach, methods_of

attach(methods_of(NumPyMethods))
