"""Checkpoints: states of training in one file, without pickle."""

from pullback.saving.files import load as load, save as save
