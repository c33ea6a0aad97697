"""Spaces of values, with what a test of derivatives needs of them."""

import numpy as np


class VSpace:
    """The values of one structure, shapes and field; equal to that of other such values."""

    def __init__(self, value):
        self.value = value

    def _leaves(self, value):
        if isinstance(value, dict):
            return [leaf for key in sorted(value) for leaf in self._leaves(value[key])]
        if isinstance(value, (list, tuple)):
            return [leaf for item in value for leaf in self._leaves(item)]
        return [value]

    def _map(self, f, *values):
        first = values[0]
        if isinstance(first, dict):
            return {key: self._map(f, *[v[key] for v in values]) for key in first}
        if isinstance(first, (list, tuple)):
            return type(first)([self._map(f, *items) for items in zip(*values, strict=True)])
        return f(*values)

    @property
    def size(self):
        sizes = [np.size(x) * (2 if np.iscomplexobj(x) else 1) for x in self._leaves(self.value)]
        return sum(sizes)

    @property
    def shape(self):
        return np.shape(self.value)

    @property
    def iscomplex(self):
        return any(np.iscomplexobj(x) for x in self._leaves(self.value))

    def add(self, x, y):
        return self._map(lambda a, b: a + b, x, y)

    def scalar_mul(self, x, a):
        return self._map(lambda leaf: leaf * a, x)

    def covector(self, x):
        return self._map(lambda leaf: np.conj(leaf) if np.iscomplexobj(leaf) else leaf, x)

    def inner_prod(self, x, y):
        pairs = zip(self._leaves(x), self._leaves(y), strict=True)
        return sum(np.sum(np.real(np.conj(a) * b)) for a, b in pairs)

    def _filled(self, of):
        def filled(leaf):
            found = of(np.shape(leaf))
            if np.iscomplexobj(leaf):
                found = found + 1j * of(np.shape(leaf))
            return found if np.shape(leaf) else found[()]

        return self._map(filled, self.value)

    def randn(self):
        return self._filled(lambda shape: np.array(np.random.normal(size=shape)))

    def zeros(self):
        return self._filled(np.zeros)

    def ones(self):
        return self._filled(np.ones)

    def standard_basis(self):
        flat = self._leaves(self.value)
        for k, leaf in enumerate(flat):
            for index in np.ndindex(np.shape(leaf)):
                for one in (1.0, 1j) if np.iscomplexobj(leaf) else (1.0,):
                    parts = [np.zeros_like(np.asarray(part)) for part in flat]
                    parts[k][index] = one
                    pieces = iter(parts)
                    yield self._map(lambda _, pieces=pieces: next(pieces), self.value)

    def _key(self):
        def described(leaf):
            return (np.shape(leaf), np.iscomplexobj(leaf))

        return self._map(described, self.value)

    def __eq__(self, other):
        return self._key() == other._key()

    __hash__ = None

    def __repr__(self):
        return f"VSpace({self._key()})"


def vspace(value):
    if isinstance(value, (str, bytes)) or value is None:
        raise TypeError(f"Can't find vector space for value {value}")
    return VSpace(value)
