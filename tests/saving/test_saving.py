"""pb.save and pb.load: what comes back, what is refused, what a killed process leaves."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import load_file, save_file

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError

DTYPES = ["?", "i1", "u8", "f2", "f4", ">f4", "<f8", ">f8", ">i2", "c8", "c16", ">c16"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def saved(path, **objects):
    pb.save(path, **objects)
    return pb.load(path)


# -- values ----------------------------------------------------------------------------------------
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))
    ),
    st.sampled_from(["C", "F", "reversed", "transposed", "strided"]),
)
def test_save_gives_arrays_back_exactly(tmp_path_factory, array, layout):
    path = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    laid_out = {
        "C": lambda: array,
        "F": lambda: np.asfortranarray(array) if array.ndim else array,
        "reversed": lambda: array[..., ::-1] if array.ndim else array,
        "transposed": lambda: array.T,
        "strided": lambda: np.repeat(array, 2, 0)[::2] if array.ndim else array,
    }[layout]()
    found = saved(path, a=laid_out)["a"]
    assert (found.dtype, found.shape) == (laid_out.dtype, laid_out.shape)
    assert found.tobytes() == laid_out.tobytes()


def test_save_gives_numbers_texts_and_containers_back(path):
    value = {"a": [1, 2.5, (3, "x", None, True)], 3: {"z": 1j}, "big": 2**100, "inf": [-np.inf]}
    assert saved(path, value=value, n=np.float32(0.5)) == {"value": value, "n": 0.5}


def test_save_tells_tensors_from_arrays(path):
    found = saved(path, t=pb.ones(2, requires_grad=True), a=np.ones(2))
    assert isinstance(found["t"], pb.Tensor)
    assert not found["t"].requires_grad
    assert isinstance(found["a"], np.ndarray)


def test_names_of_two_paths_that_would_meet_stay_apart(path):
    found = saved(path, a={"b.c": np.zeros(1), "b": {"c": np.ones(1)}})
    assert (found["a"]["b.c"][0], found["a"]["b"]["c"][0]) == (0.0, 1.0)


def test_generators_go_on_where_they_were(path):
    own, numpys, pythons = pb.Generator(seed=1), np.random.default_rng(2), random.Random(3)
    legacy = np.random.RandomState(4)
    legacy.normal()
    everything = {"own": own, "numpys": numpys, "pythons": pythons, "legacy": legacy}
    pb.save(path, **everything)

    def draw():
        drawn = pb.rand(2, generator=own).tolist(), numpys.random(), pythons.gauss(0, 1)
        return *drawn, legacy.normal()

    first = draw()
    draw()
    pb.load(path, **everything)
    assert draw() == first


# -- load into objects -----------------------------------------------------------------------------
def test_load_fills_tensors_and_arrays_in_place(path):
    w, a = pb.tensor([1.0, 2.0], requires_grad=True), np.array([1, 2])
    pb.save(path, w=w, a=a, epoch=4)
    with pb.no_grad():
        w.zero_()
    a[:] = 0
    assert pb.load(path, w=w, a=a) == {"epoch": 4}
    assert (w.tolist(), w.requires_grad, a.tolist()) == ([1.0, 2.0], True, [1, 2])


def test_load_lists_all_differences_and_leaves_the_objects_as_they_were(path):
    net = pb.nn.Linear(2, 1)
    pb.save(path, net=net, w=np.zeros(3), optimizer=pb.optim.SGD(net.parameters()))
    other, w = pb.nn.Linear(3, 1), pb.ones(2)
    good = pb.nn.Linear(2, 1)
    before = good.weight.tolist()
    with pytest.raises(ArgumentError) as caught:
        pb.load(path, net=other, w=w, optimiser=None)
    assert str(caught.value).splitlines() == [
        "load: the file differs from the objects:",
        "  net: Linear.load_state_dict: the state of this module required, got one that differs:",
        "    weight: shape (1, 3) required, got (1, 2)",
        "  w: shape (2,) of float32 required, got shape (3,) of float64",
        "  optimiser: missing; the file has net, w, optimizer, 'optimizer' meant?",
    ]
    with pytest.raises(ArgumentError, match="w: shape"):
        pb.load(path, net=good, w=w)
    assert good.weight.tolist() == before


def test_load_of_a_file_made_elsewhere_gives_its_tensors(path):
    save_file({"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)}, path)
    state = pb.load(path)
    layer = pb.nn.Linear(2, 1)
    layer.load_state_dict(state)
    assert layer.weight.tolist() == [[1.0, 1.0]]
    with pytest.raises(ArgumentError, match="no objects for a file that pullback did not save"):
        pb.load(path, layer=layer)


def test_other_programs_read_the_arrays_by_their_names(path):
    pb.save(path, net=pb.nn.Linear(2, 1))
    assert {name: a.shape for name, a in load_file(path).items()} == {
        "net.weight": (1, 2),
        "net.bias": (1,),
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (object(), "got object as 'x'"),
        ([{"f": len}], r"got builtin_function_or_method as 'x\.0\.f'"),
        ({(1, 2): 3}, r"dicts with texts or whole numbers for keys required, got \(1, 2\) in 'x'"),
        (np.array(["a"]), "arrays of numbers of at most 64 bits a part required, got <U1 as 'x'"),
        (pb.nn.Linear, "got type as 'x'"),
    ],
)
def test_save_refuses_by_name_and_writes_nothing(path, value, text):
    pb.save(path, a=1)
    with pytest.raises(ArgumentTypeError, match=f"save: .*{text}"):
        pb.save(path, x=value)
    assert pb.load(path) == {"a": 1}
    assert os.listdir(path.parent) == [path.name]


def test_save_asks_for_names_where_an_object_has_none(path):
    with pytest.raises(
        pb.errors.ArgumentTypeError, match=r"a path, then names.*got dict, str"
    ) as e:
        pb.save({"w": pb.ones(2)}, str(path))
    assert "pb.save(path, model=model" in str(e.value)


def test_load_says_what_is_wrong_with_a_file(path, tmp_path):
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ArgumentError, match="load: a whole file of the safetensors format"):
        pb.load(path)
    with pytest.raises(FileNotFoundError):
        pb.load(tmp_path / "absent")
    header = json.dumps({"version": 99, "objects": {}})
    save_file({}, path, {"pullback": header})
    with pytest.raises(ArgumentError, match="a file of version 1 or older required, got 99"):
        pb.load(path)


# -- processes -------------------------------------------------------------------------------------
TRAINING = """
import random, sys
import numpy as np
import pullback as pb

kind, path, stop, begin = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pb.manual_seed(0)
rng = np.random.default_rng(1)
x = rng.standard_normal((30, 4)).astype("float32")
y = x.sum(1, keepdims=True)
F, schedules = pb.nn.functional, pb.optim.lr_scheduler


class Tied(pb.nn.Module):
    def __init__(self):
        self.encoder = pb.nn.Linear(4, 4, bias=False)
        self.decoder = pb.nn.Linear(4, 4, bias=False)
        self.decoder.weight = self.encoder.weight
        self.head = pb.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.decoder(self.encoder(x).tanh()))


layers = [pb.nn.Linear(4, 8), pb.nn.BatchNorm1d(8), pb.nn.ReLU()]
layers += [pb.nn.Dropout(0.3)] if kind == "dropout" else []
net = Tied() if kind == "tied" else pb.nn.Sequential(*layers, pb.nn.Linear(8, 1))
if kind == "momentum":
    optimizer = pb.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
else:
    optimizer = pb.optim.AdamW(net.parameters(), lr=0.01)
schedule = schedules.OneCycleLR(optimizer, 0.05, total_steps=100) if kind == "schedule" else None
batches = pb.data.batches(x, y, size=7, seed=5 if kind == "shuffling" else None)
parts = {"net": net, "optimizer": optimizer, "batches": batches}
parts |= {"schedule": schedule} if schedule else {}
step = 0
if begin:
    rest = pb.load(path, **parts)
    step = rest["step"]
    pb.set_rng_state(rest["rng"])
while step < stop:
    for a, b in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(net(pb.asarray(a)), pb.asarray(b))
        loss.backward()
        optimizer.step()
        if schedule:
            schedule.step()
        step += 1
        print(step, loss.item().hex())
        if step == stop:
            break
if stop < 20:
    pb.save(path, **parts, step=step, rng=pb.get_rng_state())
"""


@pytest.mark.parametrize("kind", ["adam", "momentum", "dropout", "schedule", "shuffling", "tied"])
def test_load_resumes_in_a_new_process_bit_for_bit(path, kind):
    stop = str(np.random.default_rng(len(kind)).integers(1, 20))

    def run(stop, begin):
        command = [sys.executable, "-c", TRAINING, kind, str(path), stop, begin]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    whole = run("20", "0")
    assert run(stop, "0") + run("20", stop) == whole


WRITING = """
import sys
import numpy as np
import pullback as pb

k = 0
while True:
    pb.save(sys.argv[1], k=k, a=np.full(200_000, float(k)))
    if k == 0:
        print("begun", flush=True)
    k += 1
"""


@pytest.mark.parametrize("count", [4, pytest.param(50, marks=pytest.mark.stress)])
def test_a_killed_save_leaves_a_whole_file(path, count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        command = [sys.executable, "-c", WRITING, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = pb.load(path)
        assert (found["a"] == found["k"]).all()
        for part in path.parent.glob("*.part"):
            part.unlink()


def test_load_of_a_file_that_torch_save_wrote_names_the_way(tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", b"")
    with pytest.raises(ArgumentError, match=r"hint: a file that torch\.save wrote is read by"):
        pb.load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(ArgumentError) as caught:
        pb.load(path)
    assert "hint" not in str(caught.value)
