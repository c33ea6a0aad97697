"""The methods of Tensor: importing this attaches them, and hands core what it records itself."""

from pullback.core.function.namespace import CORE_OPS
from pullback.ops.functions.creation import beside
from pullback.ops.functions.data_types import astype
from pullback.ops.methods.absent import ABSENT
from pullback.ops.methods.attach import TensorMethods
from pullback.ops.primitives.arithmetic import where_p

__all__ = ["ABSENT", "TensorMethods"]

CORE_OPS.astype = astype
CORE_OPS.where = where_p.public
CORE_OPS.beside = beside
