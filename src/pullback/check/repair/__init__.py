"""One small change of the source that makes a wrong gradient right."""

from pullback.check.repair.held import Held, held
from pullback.check.repair.search import Mending, mendings

__all__ = ["Held", "Mending", "held", "mendings"]
