"""The programs under examples/ run as a user runs them, and print what they promise."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def run(program, *options, status=0):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / program), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tutorial():
    lines = run("two_layer_net.py").splitlines()
    return [re.fullmatch(r"Step: (\d+) : (\S+)", line).groups() for line in lines]


def test_the_tutorial_prints_the_first_and_every_hundredth_step(tutorial):
    assert [int(step) for step, _ in tutorial] == [1, 100, 200, 300, 400, 500]


def test_the_tutorial_learns_as_the_original_does(tutorial):
    # The original prints 33210170, 429.2728, 2.536572, 0.02151564, 0.0003944117, 4.690059e-05;
    # the random numbers differ, the course does not.
    losses = [float(loss) for _, loss in tutorial]
    assert 1e7 < losses[0] < 1e8
    assert 50 < losses[1] < 5000
    assert losses[2] < losses[1] / 20
    assert losses[3] < losses[2] / 20
    assert losses[4] < losses[3] / 5
    assert losses[5] < 1e-3


def test_the_tutorial_is_the_same_in_every_run():
    assert run("two_layer_net.py", "--steps", "1") == run("two_layer_net.py", "--steps", "1")


def test_the_digits_are_recognised():
    printed = run("digits.py")
    accuracy = re.search(r"accuracy on 360 held-out digits: (\d+\.\d+) %", printed)
    assert float(accuracy[1]) >= 96.0


def test_digits_fails_when_it_has_not_learnt_enough():
    printed = run("digits.py", "--epochs", "1", "--seed", "1", status=1)
    accuracy = re.search(r"accuracy on 360 held-out digits: (\d+\.\d+) %", printed)
    assert 20.0 < float(accuracy[1]) < 96.0


def test_the_tutorial_with_nn_and_an_optimizer_learns():
    lines = run("two_layer_net_nn.py", "--steps", "200").splitlines()
    losses = [float(line.rpartition(" ")[2]) for line in lines]
    assert losses[-1] < losses[0] / 1e6


def test_the_digits_are_recognised_with_nn():
    printed = run("digits_nn.py")
    accuracy = re.search(r"accuracy on 360 held-out digits: (\d+\.\d+) %", printed)
    assert float(accuracy[1]) >= 97.0
    assert len((EXAMPLES / "digits_nn.py").read_text().splitlines()) <= 35


@pytest.mark.stress
@pytest.mark.parametrize("program", ["characters.py", "transformer.py", "autoencoder.py"])
def test_a_model_is_trained_to_the_loss_that_its_program_states(program):
    assert "last loss" in run(program)


def test_extending_prints_the_value_and_gradient_of_every_operation():
    assert run("extending.py").splitlines() == [
        "linear without bias: [[-1.0, 4.5], [-1.0, 9.5], [-1.0, 14.5]]",
        "linear with bias:    [[9.0, 24.5], [9.0, 29.5], [9.0, 34.5]]",
        "  input.grad:  [[1.5, 1.0], [1.5, 1.0], [1.5, 1.0]]",
        "  weight.grad: [[9.0, 12.0], [9.0, 12.0]]",
        "  bias.grad:   [3.0, 3.0]",
        "mul_constant (two functions): 2.0, x.grad: tensor(2.)",
        "mul_constant (decorated): 2.0, x.grad: tensor(2.)",
        "mul_constant (class): 2.0, x.grad: tensor(2.)",
        "exp2: tensor([1.0000, 2.7183], grad_fn=<exp2Backward>)",
        "  i.grad: tensor([1.0000, 2.7183])",
        "my_relu: tensor([0., 2., 0., 4.], grad_fn=<MyReLUBackward>)",
        "  x.grad: tensor([0., 1., 0., 1.])",
    ]
