// The pictures of the page. Each takes the view `v` that page.js computes from the sliders.

const THUMB = 22;  // px, as in the style sheet
const BAR = 4;  // px that the interval of a row takes

const at = (id) => document.getElementById(id);

// What is drawn along an axis, whatever the settings: the only feature has a curve; else test rows stand side by side,
// in order, so that no row stands over an interval that is not its own.
function placeOf(data, path, axisNumber) {
  const axis = data.axes[axisNumber], test = data.test;
  if (data.is_curve) {
    return { axis, x: axis.x, center: axis.center, support: path.curve_support, bands: (step) => step.curve };
  }
  const along = test.x[axisNumber];
  const order = along.map((_, i) => i).sort((a, b) => along[a] - along[b] || test.center[a] - test.center[b]);
  const pick = (values) => (Array.isArray(values) ? order.map((i) => values[i]) : values);
  return { axis, order, along: pick(along), x: order.map((_, i) => i), center: pick(test.center),
    support: pick(path.test_support), bands: ({ test: { reach, units } }) => (
      { reach: reach.map(pick), units: units.map(pick) }) };
}

// Ranges that stay the same while the penalty moves, so that only the bands do.
function rangesOf(data, path, place, level) {
  const all = path.steps.map((step) => ({ bands: place.bands(step), q: quantilesAt(step, level) }));
  const ends = all.flatMap(({ bands, q }) => endsOf(place.center, bands, q).flat());
  const reach = all.flatMap(({ bands, q }) => [0, 1].flatMap((k) => place.x.map((_, i) => reachOf(bands, k, i, q))));
  const last = place.x.length - 1, kinds = [data.test, data.learning, data.calibration_rows].filter(Boolean);
  return {
    x: place.order ? [-0.5, last + 0.5] : [place.x[0], place.x[last]],
    y: rangeOf([...kinds.flatMap((rows) => rows.y), ...place.center, ...ends]),
    reach: rangeOf([0, ...reach], 0.06),
  };
}

// Marks of the axis: round numbers along a curve; the values of some rows, from the first to the last.
function marksOf(v, p) {
  const few = p.width < 500;
  if (!v.place.order) return ticks(...v.ranges.x, few ? 4 : 8);
  const { along } = v.place, last = along.length - 1, range = [along[0], along[last]], most = few ? 3 : 6;
  const count = Math.min(most, along.length), places = Array.from({ length: count }, (_, k) => k / Math.max(1, count - 1));
  return places.map((part) => {
    const i = Math.round(part * last);
    return [i, within(along[i], range, 3), part === 0 ? "start" : part === 1 ? "end" : "middle"];
  }).filter(([, label], k, marks) => k === 0 || label !== marks[k - 1][1]);
}

function axisName(v) {
  return v.place.order ? `test rows in order of ${v.place.axis.name}` : v.place.axis.name;
}

function leftMargin(...axes) {
  return 14 + 7 * Math.max(4, ...axes.flat().map(([, label]) => label.length));
}

function margins(v) {
  const y = ticks(...v.ranges.y, 5), reach = ticks(...v.ranges.reach, 3);
  return { left: leftMargin(y, reach), y, reach };
}

function drawBands(v, ends) {
  const { left, y } = margins(v), svg = at("bands");
  const p = new Picture(svg, { x: v.ranges.x, y: v.ranges.y, margin: { left, right: 10, top: 24, bottom: 42 } });
  p.text(shortened(v.data.target, p.width / 8), 0, 13, "start", "strong");
  drawNoData(p, v);
  p.yAxis(y);
  p.xAxis(marksOf(v, p), axisName(v));
  p.clip();
  if (v.place.order) drawBars(p, v, ends);
  else {
    drawCurves(p, v, ends);
    drawRows(p, v);
  }
  p.layer = null;
  drawCursor(p, v, ends);
  drawPicked(p, v);
  // the slider below runs along the axis
  at("inspect-label").style.width = `${p.left - THUMB / 2}px`;
  at("inspect").style.width = `${p.right - p.left + THUMB}px`;
  return p;
}

function drawNoData(p, v) {
  if (v.place.order) return;
  for (const [from, to] of runs(v.place.x, v.place.support.map((s) => s < v.data.little_support))) {
    const a = Math.max(p.left, p.sx(from)), b = Math.min(p.right, p.sx(to));
    if (b > a) p.add("rect", { class: "nodata", x: a, y: p.top, width: b - a, height: p.bottom - p.top });
  }
}

function drawCurves(p, v, ends) {
  const { x, center } = v.place;
  const middle = x.map((value, i) => [p.sx(value), p.sy(center[i])]);
  ["lower", "upper"].forEach((side, k) => {
    const edge = x.map((value, i) => [p.sx(value), p.sy(ends[i][k])]);
    p.add("path", { class: `fill-${side}`, d: polyline([...edge, ...[...middle].reverse()]) + "Z" });
    p.add("path", { class: `end-${side}`, d: polyline(edge) });
  });
  p.add("path", { class: "prediction", d: polyline(middle) });
}

// Rows with their intervals, as many as there is room for, evenly among all.
function drawBars(p, v, ends) {
  const { x, center, support, order } = v.place, { test } = v.data;
  const every = Math.max(1, BAR * x.length / (p.right - p.left));
  const shown = Array.from({ length: Math.floor((x.length - 1) / every) + 1 }, (_, k) => Math.round(k * every));
  const isFar = (i) => support[i] < v.data.little_support;
  ["lower", "upper"].forEach((side, k) => {
    const bar = (i) => [p.sx(x[i]), p.sy(center[i]), p.sy(ends[i][k])];
    p.add("path", { class: "bar-far", d: bars(shown.filter(isFar).map(bar)) });
    p.add("path", { class: `bar-${side}`, d: bars(shown.filter((i) => !isFar(i)).map(bar)) });
  });
  p.add("path", { class: "tick", d: dashes(shown.map((i) => [p.sx(x[i]), p.sy(center[i])]), 1.5) });
  if (v.show.test) drawTest(p, v, shown.map((i) => order[i]), (row) => [p.sx(order.indexOf(row)), p.sy(test.y[row])]);
}

function drawTest(p, v, rows, spot) {
  const inside = (row) => v.levelNumber >= v.step.inside_from[row];
  p.add("path", { class: "inside", d: dots(rows.filter(inside).map(spot)) });
  p.add("path", { class: "outside", d: crosses(rows.filter((row) => !inside(row)).map(spot), 4) });
}

// Rows of a table with one feature, which the curve is about.
function drawRows(p, v) {
  const { data, step } = v, { learning, calibration_rows: held, test } = data;
  const spot = (rows) => (i) => [p.sx(rows.x[0][i]), p.sy(rows.y[i])];
  const all = (rows) => rows.y.map((_, i) => i);
  if (v.show.learning) p.add("path", { class: "learning", d: dots(all(learning).map(spot(learning))) });
  if (v.show.calibration) p.add("path", { class: "calibration", d: rings(all(held).map(spot(held)), 2.5) });
  if (v.show.test) drawTest(p, v, all(test), spot(test));
  if (v.show.shaping) {
    p.add("path", { class: "shapes-lower", d: triangles(step.active[0].map(spot(learning)), 4.5, 1) });
    p.add("path", { class: "shapes-upper", d: triangles(step.active[1].map(spot(learning)), 4.5, -1) });
  }
}

function drawCursor(p, v, ends) {
  const i = v.at, x = p.sx(v.place.x[i]);
  p.line("cursor", x, p.top, x, p.bottom);
  for (const value of [ends[i][0], v.place.center[i], ends[i][1]]) {
    const y = p.sy(value);
    if (y >= p.top && y <= p.bottom) p.add("circle", { class: "cursor-dot", cx: x, cy: y, r: 3.5 });
  }
}

// Where a test row lies along the axis.
function spotOfRow(v, row) {
  return v.place.order ? v.place.order.indexOf(row) : v.data.test.x[v.axisNumber][row];
}

// The test row whose width is explained.
function drawPicked(p, v) {
  if (v.row === null) return;
  const cx = p.sx(spotOfRow(v, v.row)), cy = p.sy(v.data.test.y[v.row]);
  p.add("circle", { class: "picked", cx, cy, r: 8 });
}

function drawReach(v) {
  const { left, reach } = margins(v);
  const margin = { left, right: 10, top: 8, bottom: 42 };
  const p = new Picture(at("reach"), { x: v.ranges.x, y: v.ranges.reach, margin });
  drawNoData(p, v);
  p.xAxis(marksOf(v, p), axisName(v));
  if (!v.q.some(isFinite)) {
    p.text("infinite at this level", (p.left + p.right) / 2, (p.top + p.bottom) / 2);
    return;
  }
  p.yAxis(reach);
  p.clip();
  ["lower", "upper"].forEach((side, k) => {
    const distance = v.ends.map((end, i) => (k ? 1 : -1) * (end[k] - v.place.center[i]));
    const points = v.place.x.map((value, i) => [p.sx(value), p.sy(distance[i])]);
    if (v.place.order) p.add("path", { class: `dot-${side}`, d: dots(points) });
    else p.add("path", { class: `end-${side} reach-${side}`, d: polyline(points) });
  });
  p.layer = null;
  p.line("cursor", p.sx(v.place.x[v.at]), p.top, p.sx(v.place.x[v.at]), p.bottom);
}

function drawLocal(v) {
  const lowest = Math.min(v.level, ...v.groups.map((g) => g.range[0]));
  const margin = { left: margins(v).left, right: 10, top: 8, bottom: 42 };
  const p = new Picture(at("local"), { x: v.ranges.x, y: [lowest - 0.03, 1.02], margin });
  p.yAxis(ticks(lowest, 1, 3).map(([value]) => [value, percent(value)]));
  p.xAxis(marksOf(v, p), axisName(v));
  p.line("target", p.left, p.sy(v.level), p.right, p.sy(v.level));
  for (const each of v.groups) {
    const { from, to, group, value, range } = each, { order, x } = v.place;
    const mine = order ? x.filter((i) => v.data.groups[v.axisNumber].member[order[i]] === group) : null;
    if (mine && !mine.length) continue;
    const [a, b] = (mine ? [mine[0] - 0.3, mine[mine.length - 1] + 0.3] : [from, to]).map((place) => p.sx(place));
    const kind = isShort(each, v.level) ? "short" : "both";
    p.line(`whisker ${kind}`, (a + b) / 2, p.sy(range[0]), (a + b) / 2, p.sy(range[1]));
    p.line(`span ${kind}`, a, p.sy(value), b, p.sy(value));
    p.add("circle", { class: `mark ${kind}`, cx: (a + b) / 2, cy: p.sy(value), r: 4 });
  }
}

// The mean width at each step of the penalty slider, above the place where its thumb stops.
function drawWidth(v) {
  const values = v.widths.map((width) => width.mean);
  const finite = values.filter((value) => value !== null && isFinite(value)), last = values.length - 1;
  const margin = { left: THUMB / 2, right: THUMB / 2, top: 20, bottom: 8 };
  const p = new Picture(at("width"), { x: [0, Math.max(1, last)], y: rangeOf(finite, 0.1), margin });
  if (!finite.length) {
    p.text("infinite at this level", p.width / 2, p.height / 2);
    return;
  }
  const points = values.map((value, i) => [p.sx(i), p.sy(value)]);
  p.add("path", { class: "trend", d: polyline(points) });
  points.forEach(([cx, cy]) => p.add("circle", { class: "trend-dot", cx, cy, r: 2.5 }));
  if (v.path.chosen !== null) {
    const [cx, cy] = points[v.path.chosen];
    p.add("circle", { class: "chosen", cx, cy, r: 8 });
  }
  const [cx, cy] = points[v.stepNumber];
  p.add("circle", { class: "now", cx, cy, r: 4.5 });
  p.text(`mean width ${number(values[0], 3)}`, 0, 12, "start");
  p.text(number(values[last], 3), p.width, 12, "end");
}

function drawCoverage(v) {
  const half = v.promise.end;
  const rows = [["inside", "both", v.level], ["not below", "lower", half], ["not above", "upper", half]];
  const lowest = Math.min(v.level, ...rows.map(([, key]) => v.found[key].range[0]), ...Object.values(v.chance).flat());
  const margin = { left: 72, right: 58, top: 2, bottom: 18 };
  const p = new Picture(at("coverage"), { x: [Math.floor(lowest * 20 - 0.2) / 20, 1], y: [0, 1], margin });
  for (const [value] of ticks(p.x0, 1, (p.right - p.left) / 75)) {
    p.line("grid", p.sx(value), p.top, p.sx(value), p.bottom);
    p.text(percent(value), p.sx(value), p.bottom + 14);
  }
  rows.forEach(([words, key, target], k) => {
    const y = p.top + (k + 0.5) * (p.bottom - p.top) / 3, { value, range } = v.found[key];
    const strong = key === "both" ? "strong" : "";
    p.text(words, 0, y + 4, "start", strong);
    if (v.chance[key]) {
      const [from, to] = v.chance[key].map((each) => p.sx(Math.max(p.x0, each)));
      p.add("rect", { class: "chance", x: from, y: y - 7, width: to - from, height: 14 });
    }
    p.line(`whisker ${key}`, p.sx(range[0]), y, p.sx(range[1]), y);
    if (key === "both") p.add("circle", { class: "mark both", cx: p.sx(value), cy: y, r: 5 });
    else p.add("path", { class: `mark ${key}`, d: triangles([[p.sx(value), y]], 5, key === "lower" ? 1 : -1) });
    p.line("target", p.sx(target), y - 9, p.sx(target), y + 9);
    p.text(percent(value, 1), p.width, y + 4, "end", strong);
  });
}

// Name of the switch (or null), words and icon of each kind of mark.
function legendItems(data) {
  const icon = (...parts) => {
    const svg = node("svg", { viewBox: "0 0 22 16", "aria-hidden": "true" });
    parts.forEach(([name, d]) => svg.append(node("path", { class: name, d })));
    return svg;
  };
  const isFar = (s) => s < data.little_support, { curve_support: curve, test_support: rows } = pathAt(data, data);
  const test = `test row inside its interval, or outside`, bar = (name, d) => icon([name, d]);
  const marks = icon(["inside", dots([[5, 8]])], ["outside", crosses([[16, 8]], 4)]);
  if (!data.is_curve) {
    return [
      [null, "prediction", bar("tick", "M7 8H15")],
      [null, "interval below it", bar("bar-lower", "M11 1V15")],
      [null, "interval above it", bar("bar-upper", "M11 1V15")],
      ["test", test, marks],
      ...(rows.some(isFar) ? [[null, "little data nearby", bar("bar-far", "M11 1V15")]] : []),
    ];
  }
  return [
    [null, "prediction", bar("prediction", "M1 8H21")],
    [null, "interval below it", icon(["fill-lower", "M1 3H21V13H1Z"], ["end-lower", "M1 13H21"])],
    [null, "interval above it", icon(["fill-upper", "M1 3H21V13H1Z"], ["end-upper", "M1 3H21"])],
    ["test", test, marks],
    ["learning", "rows learnt from", icon(["learning", dots([[11, 8]])])],
    ["shaping", "those that shape the interval",
      icon(["shapes-lower", triangles([[6, 8]], 4.5, 1)], ["shapes-upper", triangles([[16, 8]], 4.5, -1)])],
    ["calibration", "rows calibrated on", icon(["calibration", rings([[11, 8]], 2.5)])],
    ...(curve.some(isFar) ? [[null, "little data nearby", icon(["nodata", "M1 1H21V15H1Z"])]] : []),
  ];
}
