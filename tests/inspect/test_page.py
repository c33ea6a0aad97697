"""`Graph.save` and notebooks: one file with all it needs, and the graph packed in it."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

import pullback as pb


def graph_of_a_loop(count=30):
    w = pb.tensor([[0.5, 0.1], [0.2, 0.4]], dtype=pb.float64, requires_grad=True)
    h = pb.ones((1, 2), dtype=pb.float64)
    with pb.inspect.record():
        for _ in range(count):
            h = (h @ w).tanh()
        loss = h.sum()
        loss.backward()
    return pb.inspect.graph(loss)


def packed(page):
    (data,) = re.findall(r'<script id="data" type="text/plain">([^<]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(data)))


def test_save_writes_one_page_that_asks_for_nothing_else(tmp_path):
    path = tmp_path / "g.html"
    graph_of_a_loop().save(path)
    page = path.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "Graph of loss" in page
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", page)) - {"http://www.w3.org/2000/svg"}
    assert not addresses
    assert not re.findall(r"<!--[A-Z]+-->", page)
    assert "Permission is hereby granted" in page


def test_save_packs_every_node_leaf_and_edge(tmp_path):
    path, g = tmp_path / "g.html", graph_of_a_loop()
    g.save(path)
    data = packed(path.read_text("utf-8"))
    assert data["id"] == [each.id for each in (*g.nodes, *g.leaves)]
    assert len(data["sources"]) == len(data["targets"]) == len(g.edges)
    names, which = data["nodes"]["name"]
    assert [names[k] for k in which] == [node.name for node in g.nodes]
    assert data["leaves"] == [["w", "2x2", 32]]
    assert [data["nodes"]["max"][k] for k in (0, 1)] == [
        float(f"{node.max:.4g}") for node in g.nodes[:2]
    ]


def test_save_of_a_large_graph_stays_small(tmp_path):
    path = tmp_path / "g.html"
    graph_of_a_loop(1_500).save(path)
    assert path.stat().st_size < 300_000


def test_save_of_numbers_that_are_not_finite_is_readable(tmp_path):
    w = pb.tensor([1.0, 0.0], requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        loss = (1 / w).exp().reciprocal().sum()
    pb.inspect.graph(loss).save(tmp_path / "g.html")
    largest = packed((tmp_path / "g.html").read_text("utf-8"))["nodes"]["max"]
    assert largest[:2] == ["inf", "inf"]
    assert largest[-1] == pytest.approx(0.3679)


def test_a_notebook_shows_the_page_in_a_frame_and_text_beside():
    bundle = graph_of_a_loop(3)._repr_mimebundle_()
    assert bundle["text/plain"].startswith("graph of 7 nodes and 1 leaf")
    assert bundle["text/html"].startswith("<iframe ")
    assert "srcdoc=" in bundle["text/html"]


def test_show_opens_a_file_in_a_browser(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    graph_of_a_loop(3).show()
    assert opened[0].startswith("file:///")
    assert opened[0].endswith(".html")
