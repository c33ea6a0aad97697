"""One small change of the source that makes a wrong gradient right.

The hooks that it puts into functions show as well which way their branches went.
"""

from pullback.check.mending.branches import Branches
from pullback.check.mending.held import Held, held
from pullback.check.mending.search import Mending, mendings

__all__ = ["Branches", "Held", "Mending", "held", "mendings"]
