"""The array libraries that the seam is tested with."""

import array_api_strict
import numpy as np
import pytest

from pullback.arrays import Library, library_of


@pytest.fixture(params=[np, array_api_strict], ids=["numpy", "strict"])
def library(request) -> Library:
    return library_of(request.param.asarray(0.0))
