"use strict";
// The viewer of one graph. Blocks fold repetitions; an opened block shows what it consists of.
// Nodes and leaves have numbers, leaves after the nodes; columns hold what is known of each node.

const SVG = "http://www.w3.org/2000/svg";
const byId = (name) => document.getElementById(name);
const MOST_ROWS = 100, MOST_LEAVES = 40, PAD = 12;
const LENSES = ["structure", "memory", "time", "gradient", "faults"];
const FAULTS = ["NaN", "infinity"], STAGES = ["begins here", "passes", "in gradient"];
let data, nodes, count, boxes, roots, chosen = null, lens = "structure", found = [], at = -1;
let isFound = new Set();
let view = { x: 0, y: 0, k: 1 }, shown = new Map();

async function unpacked() {
  const bytes = Uint8Array.from(atob(byId("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// -- what is known of a node ----------------------------------------------------------------------
const text = (key, k) => nodes[key] ? nodes[key][0][nodes[key][1][k]] : null;
const number = (key, k) => nodes[key] ? nodes[key][k] : null;
const size = (b) => {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (b < 1000 || unit === "GB") return `${unit === "B" ? b : b.toPrecision(3)} ${unit}`;
    b /= 1000;
  }
};
const seconds = (s) => s < 1e-3 ? `${(s * 1e6).toPrecision(3)} µs`
  : s < 1 ? `${(s * 1e3).toPrecision(3)} ms` : `${s.toPrecision(3)} s`;
const brief = (x) => Number.isFinite(x) ? x.toPrecision(3)
  : Number.isNaN(x) ? "NaN" : x > 0 ? "infinite" : "-infinite";

function timeOf(k) {
  const parts = [number("seconds", k), number("backward_seconds", k)];
  return parts.every((s) => s === null) ? null : parts.reduce((a, s) => a + (s || 0), 0);
}

// -- boxes ----------------------------------------------------------------------------------------
function boxOf(tree, parent) {
  const [name, repeats, children, own] = tree;
  const box = { name, repeats, parent, open: false, nodes: own, children: null, leaf: false };
  if (own) own.forEach((k, place) => singleOf.set(k, [box, place]));
  if (children) {
    box.children = children.map((child) => boxOf(child, box));
    box.nodes = box.children.flatMap((child) => child.nodes);
  }
  return box;
}

function leafBoxes() {
  const box = (numbers, name) => ({ name, repeats: 1, parent: null, nodes: numbers, leaf: true });
  const all = data.leaves.map((leaf, k) => [count + k, leaf[0] || "leaf"]);
  if (all.length <= MOST_LEAVES) return all.map(([k, name]) => box([k], name));
  const users = new Map();  // leaves that the same top block uses stand together
  for (let e = 0; e < data.sources.length; e++) {
    if (data.sources[e] >= count) {
      const user = topOf.get(data.targets[e]);
      users.set(data.sources[e], user);
    }
  }
  const groups = new Map();
  for (const [k, name] of all) {
    const key = users.get(k);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([k, name]);
  }
  return [...groups.values()].map((group) => box(group.map(([k]) => k),
    group.length < 4 ? group.map(([, name]) => name).join(", ")
      : `${group.length} leaves: ${group[0][1]}, ${group[1][1]}, ...`));
}

const topOf = new Map(), singleOf = new Map();
function visible() {
  const list = [];
  const walk = (box) => {
    if (box.open && box.children) box.children.forEach(walk); else list.push(box);
  };
  boxes.forEach(walk);
  return list;
}

// How often each loop around a node had turned. The nodes of a single operation stand in the order
// of all turns, the outermost loop's first.
function turnsOf(k) {
  const [box, place] = singleOf.get(k), loops = [], found = new Map();
  for (let outer = box.parent; outer; outer = outer.parent) if (outer.repeats > 1) loops.push(outer);
  let left = place, length = box.nodes.length;
  for (const loop of loops.reverse()) {
    length /= loop.repeats;
    found.set(loop, Math.floor(left / length));
    left %= length;
  }
  return found;
}

// Whether an edge leads to a later turn of a loop that both boxes are drawn within.
function isCarried(a, b, source, target) {
  if (!a.parent || !b.parent) return false;
  const from = turnsOf(source), to = turnsOf(target);
  for (let loop = a.parent; loop; loop = loop.parent) {
    if (from.has(loop) && to.has(loop) && from.get(loop) !== to.get(loop)) return true;
  }
  return false;
}

function arrows(list) {
  const where = new Map();
  list.forEach((box) => box.nodes.forEach((k) => where.set(k, box)));
  const found = new Map();
  for (let e = 0; e < data.sources.length; e++) {
    const a = where.get(data.sources[e]), b = where.get(data.targets[e]);
    if (!a || !b) continue;
    const carried = isCarried(a, b, data.sources[e], data.targets[e]);
    if (a === b) {
      if (a.repeats > 1 || carried) a.carries = true;
      continue;
    }
    const key = `${a.number}>${b.number}>${carried}`;
    if (!found.has(key)) found.set(key, { a, b, carried, times: 0 });
    found.get(key).times++;
  }
  return [...found.values()];
}

// -- lenses ---------------------------------------------------------------------------------------
// The bytes that nodes save, each array once: what the graph holds alone, and what is also yours.
function bytesOf(numbers) {
  const arrays = new Set(), total = [0, 0];
  for (const k of numbers) for (const array of nodes.saved[k]) arrays.add(array);
  for (const array of arrays) total[data.frees[array] ? 0 : 1] += data.sizes[array];
  return total;
}

const bytesText = ([alone, shared]) => [alone ? size(alone) : "",
  shared ? `(${size(shared)} also yours)` : ""].filter(Boolean).join(" ");

function valueOf(box) {
  if (lens === "memory") return box.leaf ? 0 : bytesOf(box.nodes)[0];
  let total = null;
  for (const k of box.nodes) {
    if (k >= count) continue;
    if (lens === "time") { const t = timeOf(k); if (t !== null) total = (total || 0) + t; }
    else if (lens === "gradient") {
      const g = number("grad_norm", k);
      if (g !== null) total = Number.isNaN(g) ? g : Math.max(total || 0, g);
    }
  }
  return total;
}

function noteOf(box) {
  if (lens === "memory") {
    return box.leaf ? size(box.nodes.reduce((sum, k) => sum + data.leaves[k - count][2], 0))
      : bytesText(bytesOf(box.nodes));
  }
  const value = valueOf(box);
  if (lens === "time") return value === null ? "" : seconds(value);
  if (lens === "gradient") return value === null ? "" : `gradient up to ${brief(value)}`;
  if (lens === "faults") return faultOf(box);
  if (box.leaf) return box.nodes.length === 1 ? data.leaves[box.nodes[0] - count][1] || "" : "";
  const shapes = new Set(box.nodes.slice(0, 500).map((k) => text("shape", k)));
  return shapes.size === 1 ? [...shapes][0] || "" : "";
}

function faultOf(box) {
  const own = box.nodes.filter((k) => k < count);
  const marks = FAULTS.map((kind) => {
    const known = new Set(own.map((k) => text(kind, k)));
    const stage = STAGES.find((each) => known.has(each));
    return stage ? `✗ ${kind} ${stage}` : "";
  });
  const verdicts = new Set(own.map((k) => text("verdict", k)).filter(Boolean));
  return [...marks, ...[...verdicts].map((v) => (v.startsWith("right") ? "✓ " : "✗ ") + v)]
    .filter(Boolean).join(", ");
}

// -- drawing --------------------------------------------------------------------------------------
function element(name, attributes, parent, content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (content !== undefined) made.textContent = content;
  if (parent) parent.append(made);
  return made;
}

const labelOf = (box) => (box.carries ? "↻ " : "") + (box.repeats > 1 ? `${box.repeats} × ` : "")
  + box.name;
const shorten = (s) => s.length > 44 ? s.slice(0, 42) + "…" : s;

function draw(keep) {
  const list = [...visible(), ...roots];
  list.forEach((box, k) => { box.number = k; box.carries = false; });
  const edges = arrows(list);
  const g = new dagre.graphlib.Graph({ compound: true, multigraph: true });
  g.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 20, marginy: 20,
    ranker: edges.length > 400 ? "longest-path" : "network-simplex" });
  g.setDefaultEdgeLabel(() => ({}));
  const clusters = new Map();
  const cluster = (box) => {
    if (!clusters.has(box)) {
      clusters.set(box, `c${clusters.size}`);
      g.setNode(clusters.get(box), {});
      if (box.parent) g.setParent(clusters.get(box), cluster(box.parent));
    }
    return clusters.get(box);
  };
  for (const box of list) {
    box.note = noteOf(box);
    const wide = Math.max((shorten(labelOf(box)).length + 2) * 7.6, box.note.length * 6.6, 40);
    g.setNode(`${box.number}`, { width: wide + 2 * PAD, height: box.note ? 42 : 28 });
    if (box.parent) g.setParent(`${box.number}`, cluster(box.parent));
  }
  edges.forEach((edge, k) => g.setEdge(`${edge.a.number}`, `${edge.b.number}`,
    { weight: edge.carried ? 0.1 : 1 }, `e${k}`));
  dagre.layout(g);
  paint(g, list, edges, clusters);
  if (!keep) fit(g.graph()); else place();
}

function paint(g, list, edges, clusters) {
  const svg = byId("graph");
  svg.replaceChildren();
  const defs = element("defs", {}, svg);
  const tip = element("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
    markerHeight: 7, orient: "auto" }, defs);
  element("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" }, tip);
  const all = element("g", { id: "all" }, svg);
  for (const [box, name] of clusters) paintOpen(all, box, g.node(name));
  edges.forEach((edge, k) => {
    const points = g.edge(`${edge.a.number}`, `${edge.b.number}`, `e${k}`).points;
    const group = element("g", { class: edge.carried ? "edge carried" : "edge" }, all);
    const d = points.map((p, i) => `${i ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("");
    element("path", { d, "marker-end": "url(#tip)" }, group);
    const middle = points[points.length >> 1];
    const says = (edge.carried ? "↻ next turn" : "") + (edge.times > 1 && !edge.carried
      ? `${edge.times}` : "");
    if (says) element("text", { x: middle.x + 4, y: middle.y }, group, says);
  });
  shown = new Map();
  const values = list.map((box) => valueOf(box) || 0);
  const most = Math.max(0, ...values.filter(Number.isFinite));
  const share = (value) => most ? Math.min(1, value / most) || 0 : 0;
  list.forEach((box, k) => paintBox(all, box, g.node(`${box.number}`), share(values[k])));
}

function paintOpen(parent, box, at) {
  const group = element("g", { class: "open box", tabindex: 0, role: "button",
    "aria-label": `${labelOf(box)}, opened; Enter folds it` }, parent);
  element("rect", { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width,
    height: at.height, rx: 8 }, group);
  element("text", { x: at.x - at.width / 2 + 6, y: at.y - at.height / 2 + 13, class: "note" },
    group, `▾ ${shorten(labelOf(box))}`);
  reacts(group, box);
}

function paintBox(parent, box, at, share) {
  const isUser = box.nodes.some((k) => k < count && text("op", k));
  const bad = lens === "faults" && box.note.includes("✗");
  const kinds = ["box", box.leaf && "leaf", isUser && "user", bad && "bad",
    box === chosen && "chosen", box.nodes.some((k) => isFound.has(k)) && "found"];
  const note = box.note ? `, ${box.note}` : "";
  const group = element("g", { class: kinds.filter(Boolean).join(" "), tabindex: 0,
    role: "button", "aria-label": labelOf(box) + note
      + (box.children ? "; Enter opens it" : "") }, parent);
  const x = at.x - at.width / 2, y = at.y - at.height / 2;
  element("rect", { x, y, width: at.width, height: at.height, rx: box.leaf ? 14 : 6 }, group);
  if (share > 0) {
    element("rect", { class: "bar", x: x + 3, y: y + at.height - 5, rx: 1, height: 3, style:
      "stroke:none", width: Math.max(2, share * (at.width - 6)) }, group);
  }
  const title = (box.children ? "▸ " : isUser ? "◆ " : "") + shorten(labelOf(box));
  element("text", { x: at.x, y: y + 18, "text-anchor": "middle" }, group, title);
  if (box.note) {
    element("text", { x: at.x, y: y + 34, "text-anchor": "middle", class: "note" }, group, box.note);
  }
  box.place = at;
  shown.set(box, group);
  reacts(group, box);
}

function reacts(group, box) {
  const act = () => { if (box.children) toggle(box); else choose(box); };
  group.addEventListener("click", (event) => { event.stopPropagation(); act(); });
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
  });
  group.addEventListener("focus", () => { if (!box.open && box !== chosen) choose(box, true); });
}

function toggle(box) {
  box.open = !box.open;
  choose(box, true);
  draw(true);
  const inner = box.open ? box.children[0] : box;
  const group = shown.get(inner);
  if (group) { group.focus({ preventScroll: true }); center(inner); }
}

// -- choosing, and what is told of it -------------------------------------------------------------
function choose(box, quiet) {
  if (chosen && shown.get(chosen)) shown.get(chosen).classList.remove("chosen");
  chosen = box;
  if (shown.get(box)) shown.get(box).classList.add("chosen");
  if (!quiet && shown.get(box)) shown.get(box).focus({ preventScroll: true });
  const aside = byId("details");
  aside.replaceChildren();
  const head = document.createElement("h2");
  head.textContent = labelOf(box);
  head.style.fontSize = "1rem";
  aside.append(head);
  if (box.leaf) return box.nodes.slice(0, MOST_ROWS).forEach((k) => tellLeaf(aside, k));
  if (box.nodes.length === 1) return tellNode(aside, box.nodes[0]);
  table(aside, [["nodes", box.nodes.length], ["repetitions", box.repeats],
    ["saves", bytesText(bytesOf(box.nodes))]]);
  for (const k of box.nodes.slice(0, MOST_ROWS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = [text("name", k), text("line", k), text("shape", k)].filter(Boolean)
      .join("  ");
    button.addEventListener("click", () => { aside.replaceChildren(); tellNode(aside, k); });
    aside.append(button, document.createElement("br"));
  }
  if (box.nodes.length > MOST_ROWS) aside.append(`... ${box.nodes.length - MOST_ROWS} more`);
}

function table(parent, rows) {
  const made = document.createElement("table");
  for (const [key, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    const row = made.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = key;
    row.append(head);
    row.insertCell().textContent = value;
  }
  parent.append(made);
}

function tellNode(parent, k) {
  const said = (key, show) => number(key, k) === null ? null : show(number(key, k));
  table(parent, [["operation", text("name", k)], ["user's operation", text("op", k)],
    ["line", text("line", k)], ["shape", text("shape", k)], ["dtype", text("dtype", k)],
    ["saves", bytesText(bytesOf([k]))],
    ["saved values", number("released", k) ? "released by backward" : "kept"],
    ["forward", said("seconds", seconds)], ["backward", said("backward_seconds", seconds)],
    ["least", said("min", brief)], ["largest", said("max", brief)],
    ["NaN", said("nan_count", String)], ["infinite", said("inf_count", String)],
    ["gradient's norm", said("grad_norm", brief)],
    ["NaN in gradient", said("grad_nan_count", String)],
    ["infinite in gradient", said("grad_inf_count", String)],
    ["checker", text("verdict", k)],
    ["id", data.id[k]]]);
  const inputs = [], users = [];
  for (let e = 0; e < data.sources.length; e++) {
    if (data.targets[e] === k) inputs.push(data.sources[e]);
    if (data.sources[e] === k) users.push(data.targets[e]);
  }
  links(parent, "inputs", inputs);
  links(parent, "used by", users);
}

function links(parent, words, numbers) {
  if (!numbers.length) return;
  const head = document.createElement("h3");
  head.style.fontSize = "13px";
  head.textContent = words;
  parent.append(head);
  for (const k of numbers.slice(0, MOST_ROWS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = nameOf(k);
    button.addEventListener("click", () => reveal(k));
    parent.append(button, " ");
  }
}

const nameOf = (k) => k < count ? text("op", k) || text("name", k)
  : data.leaves[k - count][0] || "leaf";

function tellLeaf(parent, k) {
  const [name, shape, bytes] = data.leaves[k - count];
  table(parent, [["leaf", name || "without a name"], ["shape", shape], ["bytes", size(bytes)]]);
}

// -- searching ------------------------------------------------------------------------------------
function search() {
  const asked = byId("search").value.trim().toLowerCase();
  found = [];
  at = -1;
  for (let k = 0; asked && k < data.id.length; k++) {
    const texts = k < count ? [text("name", k), text("op", k), text("line", k)] : [nameOf(k)];
    if (texts.some((t) => t && t.toLowerCase().includes(asked))) found.push(k);
  }
  isFound = new Set(found);
  byId("matches").textContent = asked ? `${found.length} found` : "";
  draw(true);
}

function next() {
  if (!found.length) return;
  at = (at + 1) % found.length;
  byId("matches").textContent = `${at + 1} of ${found.length}`;
  reveal(found[at]);
}

function reveal(k) {
  let box = [...boxes, ...roots].find((each) => each.nodes.includes(k));
  while (box && box.children) {
    box.open = true;
    box = box.children.find((each) => each.nodes.includes(k));
  }
  draw(true);
  choose(box);
  center(box);
  if (k < count) { byId("details").replaceChildren(); tellNode(byId("details"), k); }
}

// -- moving ---------------------------------------------------------------------------------------
function place() {
  const all = byId("all");
  if (all) all.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
}

function fit(graph) {
  if (!Number.isFinite(graph.width)) return;  // there is nothing to see
  const rect = byId("graph").getBoundingClientRect();
  view.k = Math.min(1.2, Math.max(0.05, Math.min(rect.width / graph.width,
    rect.height / graph.height)));
  if (view.k < 0.45) view.k = Math.min(0.8, Math.max(view.k, rect.width / graph.width, 0.45));
  view.x = (rect.width - graph.width * view.k) / 2;
  view.y = Math.max(8, (rect.height - graph.height * view.k) / 2);
  place();
}

function center(box) {
  if (!box || !box.place) return;
  const rect = byId("graph").getBoundingClientRect();
  view.x = rect.width / 2 - box.place.x * view.k;
  view.y = rect.height / 2 - box.place.y * view.k;
  place();
}

function zoom(factor, x, y) {
  const rect = byId("graph").getBoundingClientRect();
  x = x === undefined ? rect.width / 2 : x - rect.left;
  y = y === undefined ? rect.height / 2 : y - rect.top;
  const k = Math.min(4, Math.max(0.02, view.k * factor));
  view = { x: x - (x - view.x) * k / view.k, y: y - (y - view.y) * k / view.k, k };
  place();
}

function step(key) {
  if (!chosen || !chosen.place) return;
  const axis = key === "ArrowUp" || key === "ArrowDown" ? "y" : "x";
  const sign = key === "ArrowUp" || key === "ArrowLeft" ? -1 : 1, other = axis === "y" ? "x" : "y";
  let best = null, least = Infinity;
  for (const box of shown.keys()) {
    const ahead = sign * (box.place[axis] - chosen.place[axis]);
    const cost = ahead + 2 * Math.abs(box.place[other] - chosen.place[other]);
    if (box !== chosen && ahead > 1 && cost < least) { least = cost; best = box; }
  }
  if (best) { choose(best); center(best); }
}

function keys(event) {
  if (event.target.matches("input") && event.key !== "Escape") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); byId("search").focus(); }
  else if (event.key === "Escape") byId("graph").focus();
  else if (event.key === "+" || event.key === "=") zoom(1.25);
  else if (event.key === "-") zoom(0.8);
  else if (event.key === "0") draw(false);
  else if (event.key === "l" || event.key === "L") {
    setLens(LENSES[(LENSES.indexOf(lens) + 1) % LENSES.length]);
  } else if (event.key.startsWith("Arrow")) { event.preventDefault(); step(event.key); }
}

// -- the page -------------------------------------------------------------------------------------
const LEGEND = {
  structure: "◆ your operation, ▸ opens, ↻ goes on to the next turn of a loop",
  memory: "what would be freed with the graph; the bar is the share of the largest box",
  time: "forward and backward together, where record() was on",
  gradient: "the largest norm of a gradient that arrived, where record() was on",
  faults: "✗ where NaN or infinity begins and passes, and what the checker found",
};

function setLens(name) {
  lens = name;
  for (const button of byId("lenses").children) {
    button.setAttribute("aria-checked", button.dataset.lens === lens);
  }
  byId("legend").textContent = LEGEND[lens];
  draw(true);
}

function exported() {
  const svg = byId("graph"), all = byId("all"), box = all.getBBox(), copy = svg.cloneNode(true);
  copy.querySelector("#all").removeAttribute("transform");
  copy.setAttribute("viewBox", `${box.x - 10} ${box.y - 10} ${box.width + 20} ${box.height + 20}`);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", Math.ceil(box.width + 20));
  copy.setAttribute("height", Math.ceil(box.height + 20));
  const colours = getComputedStyle(document.documentElement);
  let rules = document.querySelector("style").textContent;
  rules = rules.replace(/var\((--\w+)\)/g, (_, name) => colours.getPropertyValue(name));
  copy.prepend(element("style", {}, null, rules));
  return new XMLSerializer().serializeToString(copy);
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exported()], { type: "image/svg+xml" }));
  link.download = "graph.svg";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function dragging() {
  const svg = byId("graph");
  let from = null;
  svg.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; });
  window.addEventListener("pointermove", (event) => {
    if (!from || !(event.buttons & 1)) { from = null; return; }
    view.x += event.clientX - from[0];
    view.y += event.clientY - from[1];
    from = [event.clientX, event.clientY];
    place();
  });
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
  }, { passive: false });
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function start() {
  data = await unpacked();
  nodes = data.nodes;
  for (const key of ["min", "max", "grad_norm"]) {  // words of numbers that are not finite
    const words = { inf: Infinity, "-inf": -Infinity, nan: NaN };
    if (nodes[key]) nodes[key] = nodes[key].map((v) => typeof v === "string" ? words[v] : v);
  }
  count = nodes.saved.length;
  boxes = data.blocks.map((tree) => boxOf(tree, null));
  boxes.forEach((box) => box.nodes.forEach((k) => topOf.set(k, box)));
  if (boxes.length === 1) boxes[0].open = Boolean(boxes[0].children);  // else there is little to see
  roots = leafBoxes();
  byId("summary").textContent = `${data.counts}: ${data.alone} held by the graph alone, `
    + `${data.shared} also yours`;
  for (const name of LENSES) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name[0].toUpperCase() + name.slice(1);
    button.dataset.lens = name;
    button.setAttribute("role", "radio");
    button.addEventListener("click", () => setLens(name));
    byId("lenses").append(button);
  }
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") next(); });
  byId("fold").addEventListener("click", () => {
    const close = (box) => { box.open = false; (box.children || []).forEach(close); };
    boxes.forEach(close);
    draw(false);
  });
  byId("fit").addEventListener("click", () => draw(false));
  byId("export").addEventListener("click", save);
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  });
  document.addEventListener("keydown", keys);
  dragging();
  setLens("structure");
  draw(false);
  document.documentElement.dataset.ready = "true";
}

start();
