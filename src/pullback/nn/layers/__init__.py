"""Layers: modules under PyTorch's names, with its arguments, defaults and names of states."""
