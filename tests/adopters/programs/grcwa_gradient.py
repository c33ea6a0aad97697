"""The gradient of a photonic crystal's reflection by the permittivity of its grid (grcwa)."""

import autograd.numpy as np
import grcwa
from autograd import value_and_grad

grcwa.set_backend("autograd")
N = 20
GRID = np.linspace(0.0, 1.0, N)
ROUND = (GRID[:, None] - 0.5) ** 2 + (GRID - 0.5) ** 2 < 0.16


def reflection(x):
    crystal = grcwa.obj(21, [0.1, 0], [0, 0.1], 1.0, np.pi / 18, np.pi / 9, verbose=0)
    crystal.Add_LayerUniform(1.0, 1.0)
    crystal.Add_LayerGrid(x[0], N, N)
    crystal.Add_LayerUniform(1.0, 1.0)
    crystal.Init_Setup(Pscale=1.0, Gmethod=0)
    crystal.MakeExcitationPlanewave(1, 0, 0, 0, order=0)
    crystal.GridLayer_geteps(x[1:])
    return crystal.RT_Solve(normalize=1)[0]


def run():
    x = np.concatenate([[0.2], np.where(ROUND, 12.0, 1.0).ravel()])
    return value_and_grad(reflection)(x)
