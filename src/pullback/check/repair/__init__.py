"""One small change of the source that makes a wrong gradient right.

The hooks that it puts into functions show as well which way their branches went, and whether what
they repeat has come to rest.
"""

from pullback.check.repair.branches import Branches
from pullback.check.repair.held import Held, held
from pullback.check.repair.search import Mending, mendings
from pullback.check.repair.settling import has_settled

__all__ = ["Branches", "Held", "Mending", "has_settled", "held", "mendings"]
