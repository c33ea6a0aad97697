"""Draw the pictures of the documents.

    python docs/pictures.py

writes docs/images/*.svg. The numbers in them are computed: the curve is solved for, and its tangent
is the derivative that `pullback.implicit` gives.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pullback as pb

IMAGES = Path(__file__).parent / "images"

WIDTH, HEIGHT = 640, 380
LEFT, BOTTOM = 64, 330  # where the axes cross
UNIT = 160  # of an axis, in pixels
AT, CHANGE = 1.3, 1.0  # theta, and by how much it changes

STYLE = """
  .axis { stroke: #555; stroke-width: 1.5; fill: none }
  .curve { stroke: #1f5fa8; stroke-width: 2.5; fill: none }
  .tangent { stroke: #c2571a; stroke-width: 1.5; stroke-dasharray: 6 4 }
  .help { stroke: #999; stroke-width: 1; stroke-dasharray: 2 4 }
  .change { stroke: #c2571a; stroke-width: 2 }
  .point { fill: #1f5fa8 }
  text { font: 15px sans-serif; fill: #222 }
  .of-curve { fill: #1f5fa8 }
  .of-change { fill: #c2571a }
"""


def solution(theta):
    """Return x where F(x, theta) = x**3 + 0.4 x - 0.55 theta = 0."""
    return pb.implicit.root(lambda x, c: x**3 + 0.4 * x - 0.55 * c, 0.8, theta)


def place(theta, x):
    """Return where a point is on the page."""
    return round(LEFT + UNIT * theta, 1), round(BOTTOM - 250 * x, 1)


def line(kind, start, end, arrow=False):
    marker = ' marker-end="url(#arrow)"' if arrow else ""
    (a, b), (c, d) = start, end
    return f'  <line class="{kind}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"{marker}/>'


def text(at, words, kind="", anchor="start"):
    named = f' class="{kind}"' if kind else ""
    return f'  <text{named} x="{at[0]}" y="{at[1]}" text-anchor="{anchor}">{words}</text>'


def marker(name, color):
    shape = '<path d="M0,0 L8,4 L0,8 Z"'
    box = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
    return f'  <marker id="{name}" {box} orient="auto">{shape} fill="{color}"/></marker>'


def implicit():
    """Return the curve F(x, theta) = 0, and how x follows a change of theta along it."""
    x, slope = solution(AT), pb.grad(solution)(AT)
    here, across = place(AT, x), place(AT + CHANGE, x)
    follows = place(AT + CHANGE, x + slope * CHANGE)
    ends = [(AT + d, x + slope * d) for d in (-0.8, 1.35)]
    curve = " ".join("{},{}".format(*place(c, solution(c))) for c in np.linspace(0.15, 3.1, 60))
    beside = place(0.55, solution(0.55))
    return [
        line("axis", (LEFT, BOTTOM), (LEFT + 510, BOTTOM)),
        line("axis", (LEFT, BOTTOM), (LEFT, 24)),
        line("help", here, (here[0], BOTTOM)),
        line("help", here, (LEFT, here[1])),
        line("help", across, (across[0], BOTTOM)),
        f'  <polyline class="curve" points="{curve}"/>',
        line("tangent", place(*ends[0]), place(*ends[1])),
        line("change", here, across, arrow=True),
        line("change", across, follows, arrow=True),
        f'  <circle class="point" cx="{here[0]}" cy="{here[1]}" r="5"/>',
        text((LEFT - 12, here[1] + 5), "x*", anchor="end"),
        text((here[0], BOTTOM + 24), "θ", anchor="middle"),
        text((across[0], BOTTOM + 24), "θ + dθ", anchor="middle"),
        text((LEFT - 12, 36), "x", anchor="end"),
        text(((here[0] + across[0]) / 2, here[1] + 22), "dθ", "of-change", "middle"),
        text(
            (across[0] + 12, (across[1] + follows[1]) / 2 + 16),
            "dx = \N{MINUS SIGN}(∂F/∂x)⁻¹ ∂F/∂θ dθ",
            "of-change",
        ),
        text((beside[0] + 14, beside[1] + 22), "F(x, θ) = 0", "of-curve"),
        text((place(*ends[1])[0] - 8, place(*ends[1])[1] - 8), "tangent", "of-change", "end"),
    ]


PICTURES = {"implicit": (implicit, "The solution moves along the curve F(x, theta) = 0")}


def drawn(name):
    """Return a picture as SVG."""
    draw, title = PICTURES[name]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    background = f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    parts = [f"  <title>{title}</title>", f"  <style>{STYLE}  </style>"]
    return "\n".join([head, *parts, marker("arrow", "#c2571a"), background, *draw(), "</svg>", ""])


def main():
    IMAGES.mkdir(exist_ok=True)
    for name in PICTURES:
        (IMAGES / f"{name}.svg").write_text(drawn(name))


if __name__ == "__main__":
    main()
