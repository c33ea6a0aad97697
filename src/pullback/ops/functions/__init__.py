"""Functions made of primitives, under the headings of the Array API and of PyTorch."""
