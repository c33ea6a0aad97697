"""One small change of the source that makes a wrong gradient right."""

from pullback.check.mending.search import Mending, mendings

__all__ = ["Mending", "mendings"]
