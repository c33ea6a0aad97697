"""One small change of the source that makes a wrong gradient right.

The hooks that it puts into functions show as well which way their branches went.
"""

from pullback.check.repair.branches import Branches
from pullback.check.repair.held import Held, held
from pullback.check.repair.search import Mending, mendings

__all__ = ["Branches", "Held", "Mending", "held", "mendings"]
