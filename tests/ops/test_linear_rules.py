"""Gradient rules are linear in g, zeros in it included: forward mode transposes them."""

import numpy as np
import pytest
from tests.ops._cases import cases, leaves

import pullback as pb


@pytest.mark.filterwarnings("ignore:.*equal (singular|eigen)")
@pytest.mark.parametrize("scale", [1.0, 0.0])
@pytest.mark.parametrize("case", cases(differentiable=True), ids=str)
def test_a_gradient_rule_is_linear_in_the_gradient_of_the_result(case, scale):
    arrays = [a * scale if a.dtype.kind in "fc" else a for a in case.arrays()]
    tensors = leaves(arrays, case.wanted)
    inputs, rng = [tensors[i] for i in case.wanted], case.rng()

    def pulled(seeds):
        seeds = [pb.asarray(v).to(r.dtype) for v, r in zip(seeds, results, strict=True)]
        found = pb.autograd.grad(results, inputs, seeds, retain_graph=True, allow_unused=True)
        return [0.0 if g is None else g.numpy() for g in found]

    with np.errstate(all="ignore"):
        try:
            results = [r for r in case.results(case.within(tensors)) if r.requires_grad]
            h = [np.asarray(rng.normal(size=r.shape)) for r in results]
            pulled(h)
        except pb.AutogradError:  # not defined at 0
            assert scale == 0
            return
        # Some are 0 in g, and some in the sum.
        some = [v * rng.choice([0.0, -0.5, 1.5], size=v.shape) for v in h]
        for g in (some, [-v / 2 for v in h]):
            of_sum = pulled([2 * a + b for a, b in zip(g, h, strict=True)])
            sums = [2 * a + b for a, b in zip(pulled(g), pulled(h), strict=True)]
            for found, expected in zip(of_sum, sums, strict=True):
                finite = np.isfinite(expected)
                assert (np.isfinite(found) == finite).all()  # 2 inf - inf is NaN
                size = np.max(np.abs(expected), initial=0, where=finite)
                assert (np.abs(found - expected)[finite] <= 1e-12 * (1 + size)).all()
