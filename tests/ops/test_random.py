"""Random tensors: seeds, generators, shapes, dtypes, and what the numbers look like."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import pullback as pb

DRAWS = {
    "randn": lambda **options: pb.randn(3, 4, **options),
    "rand": lambda **options: pb.rand(3, 4, **options),
    "randint": lambda **options: pb.randint(0, 1000, (3, 4), **options),
    "randperm": lambda **options: pb.randperm(50, **options),
}


def every_draw(test):
    return pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())(test)


@every_draw
def test_the_same_seed_gives_the_same_numbers(draw):
    pb.manual_seed(7)
    first, second = draw().tolist(), draw().tolist()
    pb.manual_seed(7)
    assert draw().tolist() == first
    assert draw().tolist() == second
    assert first != second
    pb.manual_seed(8)
    assert draw().tolist() != first


@every_draw
def test_a_generator_of_ones_own_leaves_the_default_one_alone(draw):
    pb.manual_seed(7)
    expected = draw().tolist()
    pb.manual_seed(7)
    own = pb.Generator(seed=7)
    assert draw(generator=own).tolist() == expected
    assert draw().tolist() == expected
    assert draw(generator=pb.Generator(seed=3)).tolist() != expected


@every_draw
def test_a_generator_goes_on_from_a_state_that_was_kept(draw):
    generator = pb.Generator(seed=1)
    draw(generator=generator)
    state = generator.get_state()
    expected = draw(generator=generator).tolist()
    draw(generator=generator)
    generator.set_state(state)
    assert draw(generator=generator).tolist() == expected


def test_manual_seed_returns_the_generator():
    generator = pb.manual_seed(3)
    assert isinstance(generator, pb.Generator)
    expected = pb.rand(2).tolist()
    assert generator.manual_seed(3) is generator
    assert pb.rand(2).tolist() == expected


def test_generators_without_a_seed_differ():
    draws = {tuple(pb.rand(4, generator=pb.Generator()).tolist()) for _ in range(5)}
    assert len(draws) == 5


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_must_be_an_integer_that_is_not_negative(seed):
    with pytest.raises(ValueError, match="seed must be a non-negative integer") as caught:
        pb.manual_seed(seed)
    assert repr(seed) in str(caught.value)


def test_a_seed_that_is_refused_leaves_the_generator_as_it_was():
    pb.manual_seed(5)
    expected = pb.rand(3).tolist()
    pb.manual_seed(5)
    with pytest.raises(ValueError, match="seed"):
        pb.manual_seed(-5)
    assert pb.rand(3).tolist() == expected


@pytest.mark.parametrize("name", ["randn", "rand"])
def test_floats_take_sizes_dtypes_and_requires_grad(name):
    make = getattr(pb, name)
    assert make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == (2, 3)
    assert make(()).shape == ()
    assert make(0).shape == (0,)
    assert make(2).dtype is pb.float32
    for dtype in ("float16", "float64", "complex64", "complex128"):
        assert make(2, dtype=dtype).dtype.name == dtype
    assert make(2, requires_grad=True).is_leaf
    assert make(2, requires_grad=True).requires_grad
    assert make(2, device="cpu").device == "cpu"
    with pytest.raises(TypeError, match="floating or complex dtype required, got int64"):
        make(2, dtype="int64")
    with pytest.raises(ValueError, match=f"{name}: sizes must not be negative"):
        make(-1)


def test_integers_lie_between_their_bounds():
    pb.manual_seed(0)
    x = pb.randint(-2, 3, (1000,))
    assert x.dtype is pb.int64
    assert set(x.tolist()) == {-2, -1, 0, 1, 2}
    assert set(pb.randint(2, (100,)).tolist()) == {0, 1}
    assert pb.randint(5, 6, (2, 2), dtype="int8").dtype is pb.int8
    assert pb.randint(5, 6).tolist() == 5
    assert pb.randint(10, size=(3,)).shape == (3,)
    with pytest.raises(ValueError, match="randint: low must be below high, got 3 and 3"):
        pb.randint(3, 3, (1,))


def test_a_permutation_has_each_integer_once():
    pb.manual_seed(0)
    x = pb.randperm(100)
    assert x.dtype is pb.int64
    assert sorted(x.tolist()) == list(range(100))
    assert x.tolist() != list(range(100))
    assert pb.randperm(0).shape == (0,)
    assert pb.randperm(3, dtype="int32").dtype is pb.int32


@pytest.mark.parametrize("name", ["randn_like", "rand_like"])
def test_like_follows_shape_and_dtype(name):
    make = getattr(pb, name)
    x = make(pb.zeros(2, 3, dtype="float64"))
    assert (x.shape, x.dtype) == ((2, 3), pb.float64)
    assert make(pb.zeros(2), dtype="float64", requires_grad=True).requires_grad
    pb.manual_seed(2)
    expected = make(pb.zeros(4)).tolist()
    pb.manual_seed(2)
    assert getattr(pb, name.removesuffix("_like"))(4).tolist() == expected


def test_the_numbers_are_spread_as_they_should():
    pb.manual_seed(1)
    normal = pb.randn(20000, dtype="float64").numpy()
    even = pb.rand(20000, dtype="float64").numpy()
    wide = pb.randn(20000, dtype="complex128").numpy()
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.03
    assert even.min() >= 0
    assert even.max() < 1
    assert abs(even.mean() - 0.5) < 0.01
    assert abs(np.mean(np.abs(wide) ** 2) - 1) < 0.03


def test_small_floats_never_round_up_to_one():
    pb.manual_seed(0)
    assert pb.rand(5000, dtype="float16").numpy().max() < 1


def test_threads_may_draw_from_the_default_generator():
    pb.manual_seed(0)
    drawn = []

    def draw():
        for _ in range(200):
            drawn.append(pb.rand(1, dtype="float64").item())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 800


def test_manual_seed_of_a_wrong_seed_leaves_the_generators_as_they_are():
    program = "import pullback as pb\ntry: pb.manual_seed('a')\nexcept ValueError: pb.rand(2)"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert pb.randint(0, 5, 3).shape == (3,)
