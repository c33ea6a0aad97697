"""The benchmarks run, and find that all peers compute the same; what they measure is not asked."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.peers

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    """The folder of the benchmarks can be imported from, and leaves nothing behind."""
    import torch

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.syspath_prepend(str(BENCH))
    before, threads = set(sys.modules), torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    for name in ("_timing", "_programs", "programs"):
        if name not in before:
            sys.modules.pop(name, None)


def figures(script, *options):
    done = subprocess.run(
        [sys.executable, BENCH / script, "--json", *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "program", ["lstm", "gmm", "tutorial", "perceptron", "attention", "lotka-volterra", "det"]
)
def test_values_of_a_program_agree_in_all_peers(program):
    options = ("--rounds", "1", "--only", program, "--lstm-characters", "32")
    found = figures("programs.py", *options)
    assert {row["name"].split(",")[0] for row in found} == {program}
    assert all(row["torch"] > 0 and row["torch_gc_off"] > 0 for row in found)


def test_derivatives_agree_in_all_peers():
    found = figures("transforms.py", "--rounds", "1")
    assert {row["name"] for row in found} >= {"fluidsim", "rnn", "jacobian", "hessian", "hvp"}
    assert all(row["autograd"] > 0 and row["torch"] > 0 and row["jax"] > 0 for row in found)


@pytest.mark.usefixtures("bench")
def test_a_program_whose_values_differ_is_not_timed():
    import programs
    from _programs import Program

    peers = {"pullback": lambda: lambda: [1.0], "torch": lambda: lambda: [1.1]}
    with pytest.raises(SystemExit, match=r"wrong: value 0 of pullback is .* away from torch's"):
        programs.measure_one(Program("wrong", peers), rounds=1)
    same = {"pullback": lambda: lambda: [1.0], "torch": lambda: lambda: [1.0]}
    known = Program("known", same, reference=lambda values: {"F": (float(values[0]), 2.0)})
    with pytest.raises(SystemExit, match=r"known: F of \w+ is 1.0, known is 2.0: not timed"):
        programs.measure_one(known, rounds=1)


def test_the_mix_agrees_with_torch_in_values_and_gradients():
    found = figures("mix.py", "--rounds", "1")
    assert len(found["mix"]) == 33
    assert [row["name"] for row in found["own"]] == ["positional", "by keyword", "default left out"]


def test_the_classes_of_tensors_agree_in_values():
    found = figures("tensor_classes.py", "--rounds", "1")
    assert len(found["rows"]) == 33 + 6


def test_calls_files_and_objects_of_a_call_are_counted():
    rows = figures("objects.py")
    assert all(r["functions"] >= r["files"] >= 1 and r["objects"] >= 1 for r in rows)


def test_operations_are_timed_beside_numpy_and_torch():
    rows = figures("ops.py", "--quick", "--only", "exp,var,logaddexp")["rows"]
    assert {row["name"] for row in rows} >= {"exp", "var", "var of rows"}
    assert all(row["sizes"]["1e4"]["backward_by_numpy"] > 0 for row in rows)


@pytest.mark.usefixtures("bench")
def test_a_record_holds_the_ratios_that_there_are(tmp_path, monkeypatch):
    import _timing

    monkeypatch.setattr(_timing, "RECORDS", tmp_path / "bench")
    options = SimpleNamespace(rounds=3, processes=1)
    _timing.record("some", options, {"row": {"PyTorch": 0.512345, "JAX": None}})
    found = json.loads((tmp_path / "bench" / "some.json").read_text())
    assert found["ratios"] == {"row": {"PyTorch": 0.5123}}
    assert found["rounds"] == 3
    assert found["versions"]["numpy"] == np.__version__


def test_a_record_of_some_programs_alone_is_refused():
    command = [sys.executable, BENCH / "programs.py", "--record", "--only", "det"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "--record: a record is of all programs, not of --only some\n"


@pytest.mark.usefixtures("bench")
def test_figures_of_several_processes_are_medians():
    import _timing

    runs = [{"name": "a", "us": [us, None]} for us in (3.0, 1.0, 2.0)]
    assert _timing.medians(runs) == {"name": "a", "us": [2.0, None]}
    rows = figures("programs.py", "--rounds", "1", "--processes", "2", "--only", "det")
    assert [row["name"] for row in rows] == ["det"]
