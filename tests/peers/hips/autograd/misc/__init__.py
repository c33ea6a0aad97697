"""HIPS autograd's own helpers; a graph is recorded anew at each call."""

import os

__path__.append(os.path.join(os.environ["HIPS_AUTOGRAD"], "misc"))

from autograd.misc.flatten import flatten


def const_graph(fun, *args, **kwargs):
    return (lambda x: fun(x, *args, **kwargs)) if args or kwargs else fun
