"""Calls of `scipy.ndimage`."""

import numpy as np
from scipy import ndimage
from tests.scipy_support._calls import beside, call, table

image = call((4, 5))
sized = call((4, 5), size=3)
weighted = call((4, 5), (3, 3))
LABELS = np.array([[1, 1, 0, 2, 2]] * 4)
PIXELS = np.arange(20, dtype=np.uint8).reshape(4, 5)

CALLS = table(
    "ndimage",
    {
        "affine_transform": call(
            (4, 4), run=lambda f, x: f(x, beside(x, [[1.0, 0.1], [0.0, 0.9]]))
        ),
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss": image,
        "binary_opening binary_propagation": image,
        "black_tophat grey_closing grey_dilation grey_erosion grey_opening": sized,
        "maximum_filter median_filter minimum_filter morphological_gradient": sized,
        "morphological_laplace uniform_filter white_tophat": sized,
        "center_of_mass extrema maximum maximum_position mean median minimum": image,
        "minimum_position standard_deviation sum variance": [
            image,
            call((4, 5), run=lambda f, x: f(x, beside(x, LABELS), beside(x, [1, 2]))),
        ],
        "sum_labels": image,
        "convolve correlate": weighted,
        "convolve1d correlate1d": call((4, 5), (3,)),
        "distance_transform_bf distance_transform_cdt distance_transform_edt": image,
        "find_objects value_indices": call(run=lambda f, xp: f(xp.asarray(LABELS))),
        "fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform": call(
            (4, 4), run=lambda f, x: f(x, 0.7)
        ),
        "gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace": call(
            (4, 5), run=lambda f, x: f(x, 0.7)
        ),
        "generic_filter": call((4, 5), run=lambda f, x: f(x, max, size=3)),
        "generic_filter1d": call(
            (4, 5), run=lambda f, x: f(x, lambda i, o: o.__setitem__(..., i[1:-1]), 3)
        ),
        "generic_gradient_magnitude generic_laplace": call(
            (4, 5),
            run=lambda f, x: f(x, ndimage.sobel),
        ),
        "geometric_transform": call((4, 4), run=lambda f, x: f(x, lambda p: (p[0] - 0.5, p[1]))),
        "histogram": call((4, 5), min=0.0, max=2.0, bins=4),
        "iterate_structure": call((3, 3), iterations=2),
        "label": image,
        "labeled_comprehension": call(
            (4, 5),
            run=lambda f, x: f(x, beside(x, LABELS), beside(x, [1, 2]), np.mean, float, 0.0),
        ),
        "laplace prewitt sobel spline_filter spline_filter1d": image,
        "map_coordinates": call((4, 4), (2, 3)),
        "maximum_filter1d minimum_filter1d uniform_filter1d": sized,
        "percentile_filter": call((4, 5), percentile=40, size=3),
        "rank_filter": call((4, 5), rank=2, size=3),
        "rotate": call((4, 5), angle=20.0),
        "shift": call((4, 5), shift=0.4),
        "zoom": call((4, 5), zoom=1.5),
        "vectorized_filter": call(
            (4, 5), run=lambda f, x: f(x, lambda w, axis: (w * w).sum(axis=axis), size=3)
        ),
        "watershed_ift": call(run=lambda f, xp: f(xp.asarray(PIXELS), xp.asarray(LABELS))),
    },
)
