"""Sliding windows of the seam, on NumPy and on a library that has nothing but the standard."""

import numpy as np

from pullback.arrays import library_of

A = np.arange(30.0).reshape(5, 6)


def on(library, values):
    return library.from_numpy(np.array(values))


def host(array):
    return library_of(array).to_numpy(array)


def test_windows_step_and_reach_along_each_axis(library):
    windows = host(library.windows(on(library, A), (2, 3), (2, 1), (1, 2)))
    assert windows.shape == (2, 2, 2, 3)
    assert windows[1, 0].tolist() == [[12.0, 14.0, 16.0], [18.0, 20.0, 22.0]]
    assert windows[0, 1].tolist() == [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]


def test_windows_of_the_last_axes_alone(library):
    windows = host(library.windows(on(library, A), (4,), (2,), (1,)))
    assert windows.shape == (5, 2, 4)
    assert windows[1, 1].tolist() == [8.0, 9.0, 10.0, 11.0]


def test_windows_of_an_array_with_other_strides(library):
    turned = library.xp.permute_dims(on(library, A), (1, 0))
    assert host(library.windows(turned, (2,), (3,), (1,)))[2, 1].tolist() == [20.0, 26.0]


def test_windows_show_numpys_memory_and_cannot_be_written_to():
    a = A.copy()
    windows = library_of(a).windows(a, (2,), (1,), (1,))
    a[0, 1] = 7.0
    assert windows[0, 0, 1] == windows[0, 1, 0] == 7.0
    assert not windows.flags.writeable


def test_fold_adds_windows_up_where_they_overlap(library):
    ones = library.xp.ones((3, 2), dtype=library.xp.float64)
    assert host(library.fold(ones, (4,), (1,), (1,), (0,))).tolist() == [1.0, 2.0, 2.0, 1.0]
    assert host(library.fold(ones, (7,), (2,), (2,), (0,))).tolist() == [1, 0, 2, 0, 2, 0, 1]


def test_fold_leaves_out_what_falls_outside(library):
    windows = on(library, [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    assert host(library.fold(windows, (2,), (1,), (1,), (-1,))).tolist() == [12.0, 23.0]
    assert host(library.fold(windows, (2,), (1,), (1,), (1,))).tolist() == [0.0, 1.0]
    assert host(library.fold(windows, (2,), (1,), (1,), (-9,))).tolist() == [0.0, 0.0]
    assert host(library.fold(windows, (2,), (1,), (1,), (9,))).tolist() == [0.0, 0.0]


def test_fold_is_the_transpose_of_windows(library):
    rng = np.random.default_rng(0)
    settings = ((2, 1), (1, 2))
    weights = rng.random((2, 2, 2, 3))
    windows = host(library.windows(on(library, A), (2, 3), *settings))
    folded = host(library.fold(on(library, weights), (5, 6), *settings, (0, 0)))
    np.testing.assert_allclose(np.sum(windows * weights), np.sum(A * folded), rtol=1e-13)
