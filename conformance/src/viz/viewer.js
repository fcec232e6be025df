"use strict";
// Draws the program in the element `data`: what is in view, on a canvas. Rows, their order and bends of edges come laid out; here nodes get their
// places, because an unfolded one is as large as what is in it.
(() => {
const started = performance.now();
const D = JSON.parse(document.getElementById("data").textContent);
const [NAME, OPCODE, SHAPE, OPERANDS, CALLED, ATTRS, OPS, BYTES, TIMES, SPENT, FROM] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const I = D.instructions, C = D.computations, [NODE_W, NODE_H] = D.node;
const GAP = 18, BEND = 6, ROW_GAP = 38, PAD = 14, HEAD = 26;
const $ = id => document.getElementById(id);
const canvas = $("graph"), ctx = canvas.getContext("2d"), tip = $("tip");

// ---- facts
const home = new Int32Array(I.length), users = Array.from(I, () => []), caller = new Int32Array(C.length).fill(-1);
C.forEach((c, n) => home.fill(n, c.first, c.first + c.count));
I.forEach((x, i) => {
  for (const o of new Set(x[OPERANDS])) users[o].push(i);
  for (const c of x[CALLED]) if (caller[c] < 0) caller[c] = i;
});
C.forEach(c => {
  c.row = new Int32Array(c.x.length);
  c.rows.forEach((r, n) => r.forEach(e => { c.row[e] = n; }));
  // Of each row the pieces of edges that go down from it; edges without bends over several rows are shown when one looks at an end.
  c.down = c.rows.map(() => []);
  c.far = new Map();
  c.edges.forEach(([from, to, ...bends]) => {
    if (!bends.length && c.row[to] > c.row[from] + 1) {
      for (const end of [from, to]) { if (!c.far.has(end)) c.far.set(end, []); c.far.get(end).push([from, to]); }
      return;
    }
    let last = from;
    for (const next of [...bends, to]) { c.down[c.row[last]].push([last, next, from, to]); last = next; }
  });
});
const count = n => n < 1e5 ? n.toLocaleString("en-US") : n < 1e6 ? (n / 1e3).toFixed(0) + "k" : n < 1e9 ? (n / 1e6).toFixed(1) + "M" : n < 1e12 ? (n / 1e9).toFixed(1) + "G" : n.toExponential(1);
const size = n => n < 1024 ? n + " B" : n < 2 ** 20 ? (n / 1024).toFixed(1) + " KiB" : n < 2 ** 30 ? (n / 2 ** 20).toFixed(1) + " MiB" : n < 2 ** 60 ? (n / 2 ** 30).toFixed(1) + " GiB" : "unbounded";
const time = us => us < 1e3 ? us.toFixed(0) + " us" : us < 1e6 ? (us / 1e3).toFixed(2) + " ms" : (us / 1e6).toFixed(2) + " s";
const share = (part, all) => all > 0 ? ` (${(100 * part / all).toFixed(1)}%)` : "";
const opcode = i => D.opcodes[I[i][OPCODE]], shape = i => D.shapes[I[i][SHAPE]];
const runs = i => I[i][TIMES] ?? 1;
const measures = {
  kind: null,
  operations: i => I[i][OPS] * runs(i),
  bytes: i => I[i][BYTES] * runs(i),
};
if (D.total_us !== null) measures.time = i => I[i][SPENT] ? I[i][SPENT][1] : 0;
const entryTotal = what => { let sum = 0; for (let i = C[0].first; i < C[0].first + C[0].count; i++) sum += measures[what](i); return sum; };
const totals = { operations: entryTotal("operations"), bytes: entryTotal("bytes"), time: D.total_us };

// ---- instances: a computation where it is unfolded
function instance(comp, parent, node) { return { comp, parent, node, open: new Map(), w: 0, h: 0, px: 0, py: 0 }; }
const top_ = instance(0, null, -1);
// Innermost first; nothing here recurses deeper than what is unfolded.
function place(n) {
  const c = C[n.comp], entries = c.x.length;
  n.x = new Float64Array(entries); n.width = new Float64Array(entries); n.height = new Float64Array(entries); n.rowY = new Float64Array(c.rows.length + 1);
  for (let e = 0; e < entries; e++) { n.x[e] = c.x[e]; n.width[e] = e < c.count ? NODE_W : BEND; n.height[e] = e < c.count ? NODE_H : 0; }
  for (const [e, kids] of n.open) {
    let w = PAD, h = 0;
    for (const k of kids) { place(k); k.px = w; k.py = HEAD + PAD; w += k.w + PAD; h = Math.max(h, k.h); }
    n.width[e] = Math.max(w, NODE_W); n.height[e] = HEAD + h + 2 * PAD;
  }
  let y = 0, left = Infinity, right = -Infinity;
  c.rows.forEach((row, r) => {
    if (n.open.size && row.some(e => n.open.has(e))) spread(n, row);
    let h = 0;
    for (const e of row) { h = Math.max(h, n.height[e]); left = Math.min(left, n.x[e] - n.width[e] / 2); right = Math.max(right, n.x[e] + n.width[e] / 2); }
    n.rowY[r] = y; y += h + ROW_GAP;
  });
  n.rowY[c.rows.length] = y;
  for (let e = 0; e < entries; e++) n.x[e] -= left;
  n.w = Math.max(right - left, 60); n.h = Math.max(y - ROW_GAP, 20);
  n.widest = Math.max(NODE_W, ...[...n.open.keys()].map(e => n.width[e]));
}
// Neighbours of what is unfolded move aside, as far as they must.
function spread(n, row) {
  const apart = (a, b) => (n.width[a] + n.width[b]) / 2 + GAP;
  const wish = row.map(e => n.x[e]), lo = wish.slice(), hi = wish.slice();
  for (let k = 1; k < row.length; k++) lo[k] = Math.max(lo[k], lo[k - 1] + apart(row[k - 1], row[k]));
  for (let k = row.length - 2; k >= 0; k--) hi[k] = Math.min(hi[k], hi[k + 1] - apart(row[k], row[k + 1]));
  row.forEach((e, k) => { n.x[e] = (lo[k] + hi[k]) / 2; });
}
const rowHeight = (n, r) => n.rowY[r + 1] - n.rowY[r] - ROW_GAP;
const midY = (n, e) => { const r = C[n.comp].row[e]; return n.rowY[r] + rowHeight(n, r) / 2; };
const boxOf = (n, e) => [n.x[e] - n.width[e] / 2, midY(n, e) - n.height[e] / 2, n.width[e], n.height[e]];
function originOf(n) {
  let x = 0, y = 0;
  for (; n.parent; n = n.parent) { const b = boxOf(n.parent, n.node); x += b[0] + n.px; y += b[1] + n.py; }
  return [x, y];
}
const MAX_UNFOLDED = 60000;
let drawnNodes = C[0].count;
function unfold(n, e) {
  const called = I[C[n.comp].first + e][CALLED];
  if (!called.length || n.open.has(e)) return false;
  const more = called.reduce((s, c) => s + C[c].count, 0);
  if (drawnNodes + more > MAX_UNFOLDED) return false;
  // A program that does not verify may call in circles.
  for (let up = n; up; up = up.parent) if (called.includes(up.comp)) return false;
  n.open.set(e, called.map(c => instance(c, n, e)));
  drawnNodes += more;
  return true;
}
function fold(n, e) {
  const close = kids => kids.forEach(k => { drawnNodes -= C[k.comp].count; k.open.forEach(close); });
  const kids = n.open.get(e);
  if (!kids) return false;
  close(kids); n.open.delete(e);
  return true;
}

// ---- the view
let scale = 1, ox = 0, oy = 0, vw = 0, vh = 0, colours = {}, colourBy = "kind", selected = null, hovered = null, matches = new Set(), pending = false;
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const k of ["bg", "fg", "dim", "line", "card", "edge", "far", "mark", "select", "group", ...D.families]) colours[k] = style.getPropertyValue("--" + k).trim();
}
const heat = t => { const h = 50 - 50 * t; return matchMedia("(prefers-color-scheme: dark)").matches ? `hsl(${h} 70% ${16 + 18 * t}%)` : `hsl(${h} 95% ${96 - 38 * t}%)`; };
let heatTop = 1;
function setColour(by) {
  colourBy = by;
  const f = measures[by];
  heatTop = 1;
  if (f) for (let i = 0; i < I.length; i++) if (!I[i][CALLED].length || opcode(i) === "fusion") heatTop = Math.max(heatTop, f(i));
  const legend = $("legend");
  legend.replaceChildren();
  const label = (text, colour) => { const s = document.createElement("span"); s.textContent = text; s.style.background = colour; legend.append(s); };
  if (f) { label("little", heat(0)); label("most " + by, heat(1)); } else D.families.forEach(x => label(x, colours[x]));
  redraw();
}
function fillOf(i) {
  const f = measures[colourBy];
  // Three decades of cost.
  return f ? heat(Math.max(0, 1 + Math.log10(Math.max(f(i), 1e-9) / heatTop) / 3)) : colours[D.families[D.family[I[i][OPCODE]]]];
}
function redraw() { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } }
function resize() {
  const ratio = devicePixelRatio || 1;
  for (const c of [canvas, $("memory")]) { const b = c.getBoundingClientRect(); c.width = Math.round(b.width * ratio); c.height = Math.round(b.height * ratio); }
  vw = canvas.width / ratio; vh = canvas.height / ratio;
}
function draw() {
  const ratio = devicePixelRatio || 1;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = colours.bg; ctx.fillRect(0, 0, vw, vh);
  ctx.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * ox, ratio * oy);
  const view = [-ox / scale, -oy / scale, (vw - ox) / scale, (vh - oy) / scale];
  ctx.textAlign = "center"; ctx.lineJoin = "round";
  drawInstance(top_, 0, 0, view);
  for (const at of [selected, hovered]) if (at) highlight(at);
  drawMemory();
}
// The rows from one height to another.
function rowsIn(n, y0, y1) {
  const rows = C[n.comp].rows.length;
  let lo = 0, hi = rows;
  while (lo < hi) { const m = (lo + hi) >> 1; if (n.rowY[m + 1] - ROW_GAP < y0) lo = m + 1; else hi = m; }
  let end = lo;
  while (end < rows && n.rowY[end] <= y1) end++;
  return [lo, end];
}
function edgeEnds(n, a, b, fx, fy) {
  const c = C[n.comp], ya = midY(n, a) + (a < c.count ? n.height[a] / 2 : 0), yb = midY(n, b) - (b < c.count ? n.height[b] / 2 : 0);
  return [fx + n.x[a], fy + ya, fx + n.x[b], fy + yb];
}
function trace(x0, y0, x1, y1) { const m = (y0 + y1) / 2; ctx.moveTo(x0, y0); if (scale < 0.2) ctx.lineTo(x1, y1); else ctx.bezierCurveTo(x0, m, x1, m, x1, y1); }
function drawInstance(n, fx, fy, view) {
  const c = C[n.comp], [r0, r1] = rowsIn(n, view[1] - fy, view[3] - fy);
  ctx.lineWidth = Math.max(1.1, 0.5 / scale); ctx.strokeStyle = colours.edge; ctx.beginPath();
  for (let r = Math.max(0, r0 - 1); r < r1; r++) for (const [a, b] of c.down[r]) {
    const p = edgeEnds(n, a, b, fx, fy);
    if (Math.max(p[0], p[2]) >= view[0] && Math.min(p[0], p[2]) <= view[2]) trace(...p);
  }
  // Ends of edges that are not drawn.
  if (scale > 0.3) for (let r = r0; r < r1; r++) for (const e of c.rows[r]) for (const [from, to] of c.far.get(e) ?? []) {
    const x = fx + n.x[e], y = fy + midY(n, e), h = n.height[e] / 2;
    if (from === e) { ctx.moveTo(x, y + h); ctx.lineTo(x, y + h + 7); } else { ctx.moveTo(x, y - h); ctx.lineTo(x, y - h - 7); }
  }
  ctx.stroke();
  const words = scale > 0.33;
  for (let r = r0; r < r1; r++) for (const e of c.rows[r]) {
    if (e >= c.count) continue;
    const [bx, by, w, h] = boxOf(n, e), x = fx + bx, y = fy + by, i = c.first + e;
    if (x + w < view[0] || x > view[2]) continue;
    const kids = n.open.get(e), hit = matches.has(i), root = c.root === i;
    ctx.fillStyle = kids ? colours.group : fillOf(i);
    ctx.strokeStyle = hit ? colours.mark : root ? colours.fg : colours.edge;
    ctx.lineWidth = hit ? Math.max(3, 2 / scale) : root ? 2.4 : 1;
    ctx.beginPath();
    if (words) ctx.roundRect(x, y, w, h, 6); else ctx.rect(x, y, w, h);
    ctx.fill(); if (words || hit) ctx.stroke();
    if (kids) {
      ctx.fillStyle = fillOf(i); ctx.beginPath(); ctx.roundRect(x, y, w, HEAD, [6, 6, 0, 0]); ctx.fill();
      if (words) { ctx.fillStyle = colours.fg; ctx.font = "600 12px ui-monospace, Menlo, Consolas, monospace"; ctx.fillText(cut("\u2212 " + I[i][NAME] + "  " + opcode(i), (w - 16) / 7.3), x + w / 2, y + 17); }
      for (const k of kids) {
        if (words && kids.length > 1) { ctx.fillStyle = colours.dim; ctx.font = "10.5px ui-monospace, Menlo, Consolas, monospace"; ctx.fillText(cut(C[k.comp].name, k.w / 6.4), x + k.px + k.w / 2, y + HEAD + 10); }
        if (x + k.px + k.w >= view[0] && x + k.px <= view[2]) drawInstance(k, x + k.px, y + k.py, view);
      }
    } else if (words) {
      ctx.fillStyle = colours.fg; ctx.font = "12px ui-monospace, Menlo, Consolas, monospace";
      ctx.fillText(cut((I[i][CALLED].length ? "+ " : "") + I[i][NAME], 22), x + w / 2, y + 19);
      ctx.fillStyle = colours.dim; ctx.font = "10.5px ui-monospace, Menlo, Consolas, monospace";
      ctx.fillText(cut(opcode(i) + " " + shape(i).replace(/\{[^}]*\}/g, ""), 26), x + w / 2, y + 36);
    }
  }
}
const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.max(1, most - 1)) + "\u2026";
function highlight({ n, e }) {
  const [fx, fy] = originOf(n), c = C[n.comp], [x, y, w, h] = boxOf(n, e);
  ctx.strokeStyle = colours.select; ctx.lineWidth = Math.max(2.2, 1.6 / scale); ctx.beginPath();
  c.edges.forEach(([from, to, ...bends]) => {
    if (from !== e && to !== e) return;
    let last = from;
    for (const next of [...bends, to]) { trace(...edgeEnds(n, last, next, fx, fy)); last = next; }
  });
  ctx.roundRect(fx + x, fy + y, w, h, 6);
  ctx.stroke();
}
function hitTest(px, py) {
  let x = (px - ox) / scale, y = (py - oy) / scale, n = top_, found = null;
  for (;;) {
    const c = C[n.comp], [r0, r1] = rowsIn(n, y, y);
    let inside = null;
    for (let r = r0; r < r1 && !inside; r++) for (const e of c.rows[r]) {
      if (e >= c.count) continue;
      const b = boxOf(n, e);
      if (x >= b[0] && x <= b[0] + b[2] && y >= b[1] && y <= b[1] + b[3]) { inside = { n, e, b, head: y <= b[1] + HEAD }; break; }
    }
    if (!inside) return found;
    found = inside;
    const kids = n.open.get(inside.e);
    if (!kids) return found;
    x -= inside.b[0]; y -= inside.b[1];
    const kid = kids.find(k => x >= k.px && x <= k.px + k.w && y >= k.py && y <= k.py + k.h);
    if (!kid) return found;
    x -= kid.px; y -= kid.py; n = kid;
  }
}
const numberOf = at => C[at.n.comp].first + at.e;

// ---- moving
function fit() {
  scale = Math.min((vw - 40) / top_.w, (vh - 40) / top_.h, 1.2);
  ox = (vw - top_.w * scale) / 2; oy = Math.max(20, (vh - top_.h * scale) / 2);
  redraw();
}
function center(at, least) {
  const [fx, fy] = originOf(at.n), [x, y, w, h] = boxOf(at.n, at.e);
  if (scale < least) scale = least;
  ox = vw / 2 - (fx + x + w / 2) * scale; oy = vh / 2 - (fy + y + Math.min(h, vh / scale) / 2) * scale;
  redraw();
}
function zoom(factor, px, py) {
  const next = Math.min(Math.max(scale * factor, 0.004), 6);
  ox = px - (px - ox) * next / scale; oy = py - (py - oy) * next / scale; scale = next;
  redraw();
}
// Everything around an instruction is unfolded, so that it is there to be looked at.
function reveal(i) {
  const way = [];
  for (let at = i, steps = 0; at >= 0 && steps < 10000; at = caller[home[at]], steps++) { way.push(at); if (home[at] === 0) break; }
  if (home[way[way.length - 1]] !== 0) { show(i, null); return; }
  let n = top_;
  for (let k = way.length - 1; k > 0; k--) {
    const e = way[k] - C[n.comp].first;
    if (!n.open.has(e)) unfold(n, e);
    const next = (n.open.get(e) ?? []).find(x => x.comp === home[way[k - 1]]);
    if (!next) { show(i, null); return; }
    n = next;
  }
  place(top_);
  selected = { n, e: i - C[n.comp].first };
  show(i, selected);
  center(selected, 0.6);
}
function toggle(at) {
  const [fx, fy] = originOf(at.n), b = boxOf(at.n, at.e), sx = (fx + b[0] + b[2] / 2) * scale + ox, sy = (fy + b[1]) * scale + oy;
  if (!(at.n.open.has(at.e) ? fold(at.n, at.e) : unfold(at.n, at.e))) return;
  place(top_);
  // It stays where it was.
  const [gx, gy] = originOf(at.n), a = boxOf(at.n, at.e);
  ox = sx - (gx + a[0] + a[2] / 2) * scale; oy = sy - (gy + a[1]) * scale;
  hovered = null;
  redraw();
}
function unfoldLevel() {
  const level = [];
  const visit = n => { for (let e = 0; e < C[n.comp].count; e++) if (I[C[n.comp].first + e][CALLED].length && !n.open.has(e)) level.push([n, e]); n.open.forEach(kids => kids.forEach(visit)); };
  visit(top_);
  level.forEach(([n, e]) => unfold(n, e));
  place(top_); fit();
}
function foldAll() { top_.open.clear(); drawnNodes = C[0].count; selected = hovered = null; place(top_); fit(); }

// ---- what is said of an instruction
function facts(i) {
  const x = I[i], lines = [];
  if (x[OPS] > 1) lines.push(["operations", count(x[OPS] * runs(i)) + share(x[OPS] * runs(i), totals.operations)]);
  if (x[BYTES] > 0) lines.push(["bytes", size(x[BYTES] * runs(i)) + share(x[BYTES] * runs(i), totals.bytes)]);
  if (x[TIMES] === null) lines.push(["executions", home[i] !== 0 && caller[home[i]] >= 0 ? "applied to elements" : "none"]);
  else if (x[TIMES] !== 1) lines.push(["executions", count(x[TIMES])]);
  if (x[SPENT]) lines.push(["time", `${time(x[SPENT][1])}${share(x[SPENT][1], D.total_us)} in ${count(x[SPENT][0])} execution${x[SPENT][0] === 1 ? "" : "s"} (interpreter)`]);
  return lines;
}
function show(i, at) {
  const box = $("details"), x = I[i];
  box.replaceChildren();
  const add = (tag, text, cls) => { const el = document.createElement(tag); el.textContent = text; if (cls) el.className = cls; box.append(el); return el; };
  const link = j => { const b = add("button", "", "row"); b.textContent = I[j][NAME]; const w = document.createElement("i"); w.textContent = "  " + opcode(j) + "  " + shape(j); b.append(w); b.onclick = () => reveal(j); };
  add("h2", x[NAME]);
  add("div", opcode(i) + (C[home[i]].root === i ? ", the result of " : ", in ") + C[home[i]].name, "text");
  add("h3", "shape and layout"); add("div", shape(i), "text");
  if (x[ATTRS]) { add("h3", "attributes"); add("div", x[ATTRS], "text"); }
  for (const [what, text] of facts(i)) { add("h3", what); add("div", text, "text"); }
  if (x[FROM]) { add("h3", "from"); add("div", x[FROM], "text"); }
  if (x[CALLED].length) {
    add("h3", "runs");
    for (const c of x[CALLED]) { const b = add("button", C[c].name + " ", "row"); const w = document.createElement("i"); w.textContent = C[c].count + " instructions"; b.append(w); if (at) b.onclick = () => toggle(at); }
  }
  const list = (what, of) => { if (!of.length) return; add("h3", `${what} (${of.length})`); of.slice(0, 60).forEach(link); if (of.length > 60) add("div", "...", "text"); };
  list("operands", x[OPERANDS]);
  list("users", users[i]);
}
// Before anything is selected: what takes most.
function overview() {
  const box = $("details"), by = D.total_us !== null ? "time" : "operations", f = measures[by];
  box.replaceChildren();
  const add = (tag, text, cls) => { const el = document.createElement(tag); el.textContent = text; if (cls) el.className = cls; box.append(el); return el; };
  add("h2", D.file);
  add("div", `${C[0].count.toLocaleString("en-US")} instructions in ${C[0].name}`, "text");
  const most = [...I.keys()].filter(i => f(i) > 1 && !["while", "call", "conditional"].includes(opcode(i)) && I[i][TIMES] !== null).sort((a, b) => f(b) - f(a)).slice(0, 20);
  if (most.length) add("h3", "most " + by);
  for (const i of most) {
    const b = add("button", I[i][NAME], "row"), w = document.createElement("i");
    w.textContent = `  ${opcode(i)}  ${by === "time" ? time(f(i)) : count(f(i))}${share(f(i), totals[by])}`; b.append(w); b.onclick = () => reveal(i);
  }
  add("h3", "keys"); add("div", "drag, scroll: move, zoom\n+ before a name, double click: unfold\n/ search   f fit   r result\ne unfold a level   c fold", "text");
}
function tipText(i) {
  const x = I[i], lines = [`${x[NAME]}`, `${opcode(i)}  ${cut(shape(i), 200)}`];
  for (const [what, text] of facts(i)) lines.push(`${what}: ${text}`);
  return lines.join("\n");
}

// ---- searching
const MAX_ROWS = 300;
function search(text) {
  const box = $("found");
  matches = new Set();
  box.replaceChildren();
  const wanted = text.trim().toLowerCase();
  if (wanted) {
    const ops = D.opcodes.map(o => o.toLowerCase().includes(wanted));
    // Whole opcodes and names first.
    const found = [];
    for (let i = 0; i < I.length; i++) if (ops[I[i][OPCODE]] || I[i][NAME].toLowerCase().includes(wanted)) found.push(i);
    const rank = i => I[i][NAME].toLowerCase() === wanted ? 0 : opcode(i) === wanted ? 1 : 2;
    found.sort((a, b) => rank(a) - rank(b) || a - b);
    matches = new Set(found);
    const head = document.createElement("p");
    head.textContent = `${found.length.toLocaleString("en-US")} of ${I.length.toLocaleString("en-US")} instructions` + (found.length > MAX_ROWS ? `, the first ${MAX_ROWS}` : "");
    box.append(head);
    for (const i of found.slice(0, MAX_ROWS)) {
      const b = document.createElement("button"), w = document.createElement("i");
      b.className = "row"; b.textContent = I[i][NAME]; w.textContent = "  " + opcode(i) + "  in " + C[home[i]].name; b.append(w);
      b.onclick = () => { box.querySelectorAll(".on").forEach(o => o.classList.remove("on")); b.classList.add("on"); reveal(i); };
      box.append(b);
    }
  }
  redraw();
}

// ---- memory
const M = D.memory.points, peak = M.reduce((best, p, k) => p[1] > M[best][1] ? k : best, 0);
let memoryAt = -1;
function drawMemory() {
  const c = $("memory"), g = c.getContext("2d"), ratio = devicePixelRatio || 1, w = c.width / ratio, h = c.height / ratio;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  if (!M.length) return;
  const most = Math.max(M[peak][1], 1), y = b => h - 2 - (h - 24) * b / most, step = w / M.length;
  g.fillStyle = colours.contraction; g.beginPath(); g.moveTo(0, h);
  M.forEach((p, k) => { g.lineTo(k * step, y(p[1])); g.lineTo((k + 1) * step, y(p[1])); });
  g.lineTo(w, h); g.fill();
  const mark = (k, colour) => { g.fillStyle = colour; g.fillRect(k * step, 20, Math.max(1.5, step), h); };
  mark(peak, colours.mark);
  if (selected) M.forEach((p, k) => { if (p[0] === numberOf(selected)) mark(k, colours.select); });
  if (memoryAt >= 0) mark(memoryAt, colours.fg);
  const k = memoryAt >= 0 ? memoryAt : peak;
  const what = D.memory.measured ? "memory over a run of the interpreter" : "memory over the program, before any is reused";
  $("memory-text").textContent = `${what}: ${memoryAt >= 0 ? "" : "at most "}${size(M[k][1])} after ${I[M[k][0]][NAME]}`;
}

// ---- events
$("title").textContent = `${D.module}  \u00b7  ${I.length.toLocaleString("en-US")} instructions, ${C.length.toLocaleString("en-US")} computations  \u00b7  ${count(totals.operations)} operations, ${size(totals.bytes)} read and written` + (D.total_us !== null ? `  \u00b7  ${time(D.total_us)}` : "");
Object.keys(measures).forEach(k => $("colour").append(new Option(k, k)));
$("colour").onchange = e => setColour(e.target.value);
$("fit").onclick = fit;
$("home").onclick = () => { if (C[0].root !== null) reveal(C[0].root); };
$("unfold").onclick = unfoldLevel;
$("fold").onclick = foldAll;
let timer = 0;
$("search").oninput = e => { clearTimeout(timer); timer = setTimeout(() => search(e.target.value), 60); };
$("search").onkeydown = e => { if (e.key === "Enter") { const rows = [...$("found").querySelectorAll(".row")]; const k = rows.findIndex(r => r.classList.contains("on")); (rows[k + 1] ?? rows[0])?.click(); } if (e.key === "Escape") { e.target.value = ""; search(""); canvas.focus(); } };
const pointers = new Map();
let moved = 0;
canvas.onpointerdown = e => { canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, [e.offsetX, e.offsetY]); moved = 0; };
canvas.onpointermove = e => {
  const last = pointers.get(e.pointerId);
  if (last) {
    const others = [...pointers].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
    if (others.length) { const d = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1; zoom(d([e.offsetX, e.offsetY], others[0]) / d(last, others[0]), (e.offsetX + others[0][0]) / 2, (e.offsetY + others[0][1]) / 2); }
    else { ox += e.offsetX - last[0]; oy += e.offsetY - last[1]; }
    moved += Math.abs(e.offsetX - last[0]) + Math.abs(e.offsetY - last[1]);
    pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
    tip.hidden = true; redraw();
    return;
  }
  const at = hitTest(e.offsetX, e.offsetY), same = at && hovered && at.n === hovered.n && at.e === hovered.e;
  if (!same && (at || hovered)) { hovered = at; redraw(); }
  tip.hidden = !at;
  if (at) {
    if (!same) tip.textContent = tipText(numberOf(at));
    tip.style.left = Math.min(e.offsetX + 14, Math.max(0, vw - tip.offsetWidth - 6)) + "px";
    tip.style.top = Math.min(e.offsetY + 14, Math.max(0, vh - tip.offsetHeight - 6)) + "px";
  }
};
canvas.onpointerup = canvas.onpointercancel = e => {
  if (!pointers.delete(e.pointerId) || moved > 4 || e.type !== "pointerup") return;
  const at = hitTest(e.offsetX, e.offsetY);
  selected = at;
  if (at) {
    show(numberOf(at), at);
    const sx = e.offsetX, b = boxOf(at.n, at.e), left = (originOf(at.n)[0] + b[0]) * scale + ox;
    // The sign before the name.
    if (at.head && sx - left < 30 * scale && I[numberOf(at)][CALLED].length) toggle(at);
  }
  else overview();
  redraw();
};
canvas.onpointerleave = () => { hovered = null; tip.hidden = true; redraw(); };
canvas.ondblclick = e => { const at = hitTest(e.offsetX, e.offsetY); if (at && I[numberOf(at)][CALLED].length) toggle(at); };
canvas.onwheel = e => { e.preventDefault(); const by = e.deltaMode === 1 ? 30 : 1; zoom(Math.exp(-e.deltaY * by * (e.ctrlKey ? 0.01 : 0.0016)), e.offsetX, e.offsetY); };
document.onkeydown = e => {
  if (e.target === $("search") || e.ctrlKey || e.metaKey || e.altKey) return;
  const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
  if (pan) { ox += pan[0]; oy += pan[1]; redraw(); e.preventDefault(); return; }
  const does = { "/": () => { $("search").focus(); e.preventDefault(); }, f: fit, r: () => $("home").click(), e: unfoldLevel, c: foldAll, "+": () => zoom(1.25, vw / 2, vh / 2), "=": () => zoom(1.25, vw / 2, vh / 2), "-": () => zoom(0.8, vw / 2, vh / 2),
    Enter: () => { if (selected) toggle(selected); } }[e.key];
  if (does) does();
};
$("memory").onpointermove = e => { if (M.length) { memoryAt = Math.min(M.length - 1, Math.max(0, Math.floor(e.offsetX / $("memory").getBoundingClientRect().width * M.length))); redraw(); } };
$("memory").onpointerleave = () => { memoryAt = -1; redraw(); };
$("memory").onclick = () => { if (memoryAt >= 0) reveal(M[memoryAt][0]); };
addEventListener("resize", () => { resize(); redraw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

// ---- the first picture
readColours(); resize(); place(top_); setColour("kind"); overview();
if ((vh - 40) / top_.h >= 0.25 && (vw - 40) / top_.w >= 0.25) fit();
else { scale = Math.min(1, Math.max(0.5, (vw - 40) / top_.w)); ox = (vw - top_.w * scale) / 2; oy = 20; }
draw();
if (location.hash.length > 1) {
  const [what, value] = decodeURIComponent(location.hash.slice(1)).split("=");
  if (what === "search") { $("search").value = value; search(value); $("found").querySelector(".row")?.click(); }
  if (what === "unfold") unfoldLevel();
  if (what === "fit") fit();
  draw();
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
document.documentElement.dataset.drawn = String(Math.round(performance.now() - started));
})();
