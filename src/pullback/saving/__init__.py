"""Checkpoints: states of training in one file, without pickle."""

from pullback.public_names import listed as _listed
from pullback.saving.files import load as load, save as save

__all__ = ["load", "save"]
__dir__ = _listed(__name__)
