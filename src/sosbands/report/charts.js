// The pictures of the page. Each takes the view `v` that page.js computes from the sliders.

const THUMB = 22;  // px, as in the style sheet
const MOST_BARS = 160;

const at = (id) => document.getElementById(id);

// Everything about the axis on display that does not depend on penalty and level.
function placeOf(data, path, axisNumber) {
  const axis = data.axes[axisNumber], test = data.test;
  if (!axis.prediction) {
    return { axis, x: axis.x, center: axis.center, support: path.curve_support[axisNumber],
      bands: (step) => step.curves[axisNumber] };
  }
  const order = test.center.map((_, i) => i).sort((a, b) => test.center[a] - test.center[b]);
  const pick = (values) => (Array.isArray(values) ? order.map((i) => values[i]) : values);
  return { axis, order, x: pick(test.center), center: pick(test.center), support: pick(path.test_support),
    bands: ({ test: { reach, units } }) => ({ reach: reach.map(pick), units: units.map(pick) }) };
}

// Ranges that stay the same while the penalty moves, so that only the bands do.
function rangesOf(data, path, place, axisNumber, level) {
  const kinds = [data.learning, data.calibration_rows, data.test];
  const all = path.steps.map((step) => ({ bands: place.bands(step), q: quantilesAt(step, level) }));
  const ends = all.flatMap(({ bands, q }) => endsOf(place.center, bands, q).flat());
  const reach = all.flatMap(({ bands, q }) => [0, 1].flatMap((k) => place.x.map((_, i) => reachOf(bands, k, i, q))));
  const across = kinds.flatMap((rows) => rows.x[axisNumber]);
  const x = place.axis.prediction ? rangeOf(across, 0.03) : [place.x[0], place.x[place.x.length - 1]];
  const y = rangeOf([...kinds.flatMap((rows) => rows.y), ...place.center, ...ends]);
  return { x, y, reach: rangeOf([0, ...reach], 0.06) };
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
  p.xAxis(ticks(...v.ranges.x, p.width < 500 ? 4 : 8), v.place.axis.name);
  p.clip();
  if (v.place.axis.prediction) drawBars(p, v, ends);
  else drawCurves(p, v, ends);
  drawRows(p, v);
  p.layer = null;
  drawCursor(p, v, ends);
  drawPicked(p, v);
  // the slider below runs along the axis
  at("inspect-label").style.width = `${p.left - THUMB / 2}px`;
  at("inspect").style.width = `${p.right - p.left + THUMB}px`;
  return p;
}

function drawNoData(p, v) {
  if (v.place.axis.prediction) return;
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

function drawBars(p, v, ends) {
  const { x, center, support } = v.place;
  const every = Math.max(1, x.length / MOST_BARS);
  const shown = Array.from({ length: Math.floor((x.length - 1) / every) + 1 }, (_, k) => Math.round(k * every));
  ["lower", "upper"].forEach((side, k) => {
    const bar = (i) => [p.sx(x[i]), p.sy(center[i]), p.sy(ends[i][k])];
    p.add("path", { class: "bar-far", d: bars(shown.filter((i) => support[i] < v.data.little_support).map(bar)) });
    p.add("path", { class: `bar-${side}`, d: bars(shown.filter((i) => support[i] >= v.data.little_support).map(bar)) });
  });
  const [a, b] = v.ranges.x;
  p.line("prediction", p.sx(a), p.sy(a), p.sx(b), p.sy(b));
}

function drawRows(p, v) {
  const { data, step, axisNumber } = v;
  const spot = (rows) => (i) => [p.sx(rows.x[axisNumber][i]), p.sy(rows.y[i])];
  const all = (rows) => rows.y.map((_, i) => i);
  if (v.show.learning) p.add("path", { class: "learning", d: dots(all(data.learning).map(spot(data.learning))) });
  if (v.show.calibration) {
    p.add("path", { class: "calibration", d: rings(all(data.calibration_rows).map(spot(data.calibration_rows)), 2.5) });
  }
  if (v.show.test) {
    const drawn = all(data.test).slice(0, data.drawn_test);
    const inside = (i) => v.levelNumber >= step.inside_from[i];
    p.add("path", { class: "inside", d: dots(drawn.filter(inside).map(spot(data.test))) });
    p.add("path", { class: "outside", d: crosses(drawn.filter((i) => !inside(i)).map(spot(data.test)), 4) });
  }
  if (v.show.shaping) {
    p.add("path", { class: "shapes-lower", d: triangles(step.active[0].map(spot(data.learning)), 4.5, 1) });
    p.add("path", { class: "shapes-upper", d: triangles(step.active[1].map(spot(data.learning)), 4.5, -1) });
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

// The test row whose width is explained.
function drawPicked(p, v) {
  if (v.row === null) return;
  const cx = p.sx(v.data.test.x[v.axisNumber][v.row]), cy = p.sy(v.data.test.y[v.row]);
  p.add("circle", { class: "picked", cx, cy, r: 8 });
}

function drawReach(v) {
  const { left, reach } = margins(v);
  const margin = { left, right: 10, top: 8, bottom: 22 };
  const p = new Picture(at("reach"), { x: v.ranges.x, y: v.ranges.reach, margin });
  drawNoData(p, v);
  p.xAxis(ticks(...v.ranges.x, p.width < 500 ? 4 : 8), "");
  if (!v.q.some(isFinite)) {
    p.text("infinite at this level", (p.left + p.right) / 2, (p.top + p.bottom) / 2, "middle");
    return;
  }
  p.yAxis(reach);
  p.clip();
  ["lower", "upper"].forEach((side, k) => {
    const distance = v.ends.map((end, i) => (k ? 1 : -1) * (end[k] - v.place.center[i]));
    const points = v.place.x.map((value, i) => [p.sx(value), p.sy(distance[i])]);
    if (v.place.axis.prediction) p.add("path", { class: `dot-${side}`, d: dots(points) });
    else p.add("path", { class: `end-${side} reach-${side}`, d: polyline(points) });
  });
  p.layer = null;
  p.line("cursor", p.sx(v.place.x[v.at]), p.top, p.sx(v.place.x[v.at]), p.bottom);
}

function drawLocal(v) {
  const target = v.promise.end, groups = v.groups;
  const lowest = Math.min(target, ...groups.flatMap((g) => [g.found.lower.range[0], g.found.upper.range[0]]));
  const margin = { left: margins(v).left, right: 10, top: 8, bottom: 42 };
  const p = new Picture(at("local"), { x: v.ranges.x, y: [lowest - 0.03, 1.02], margin });
  p.yAxis(ticks(lowest, 1, 3).map(([value]) => [value, percent(value)]));
  p.xAxis(ticks(...v.ranges.x, p.width < 500 ? 4 : 8), v.place.axis.name);
  p.line("target", p.left, p.sy(target), p.right, p.sy(target));
  for (const { x, found } of groups) {
    ["lower", "upper"].forEach((side, k) => {
      const px = p.sx(x) + (k ? 6 : -6), { value, range } = found[side];
      p.line(`whisker ${side}`, px, p.sy(range[0]), px, p.sy(range[1]));
      p.add("path", { class: `mark ${side}`, d: triangles([[px, p.sy(value)]], 5, k ? -1 : 1) });
    });
  }
}

// A number per step of the penalty slider, each above the place where the thumb stops; null if none is finite.
function drawTrend(id, values, v, top) {
  const finite = values.filter((value) => value !== null && isFinite(value)), last = Math.max(1, values.length - 1);
  const margin = { left: THUMB / 2, right: THUMB / 2, top, bottom: 8 };
  const p = new Picture(at(id), { x: [0, last], y: rangeOf(finite, 0.1), margin });
  if (!finite.length) {
    p.text("infinite at this level", p.width / 2, p.height / 2, "middle");
    return null;
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
  return p;
}

function drawCriterion(v) {
  const values = v.path.steps.map((step) => step.criterion), chosen = v.path.chosen;
  if (v.step.criterion === null) {
    const p = new Picture(at("criterion"), { x: [0, 1], y: [0, 1], margin: { left: 0, right: 0, top: 0, bottom: 0 } });
    p.text("criterion not evaluated for these settings", p.width / 2, p.height / 2, "middle");
    return;
  }
  const p = drawTrend("criterion", values, v, 26);
  if (chosen === null) return;
  const late = chosen > (values.length - 1) / 2, x = p.sx(chosen) + (late ? 11 : -11);
  p.text(choiceWords(v.data), x, p.sy(values[chosen]) - 13, late ? "end" : "start", "chosen-word");
}

function drawWidth(v) {
  const means = v.widths.map((width) => width.mean), p = drawTrend("width", means, v, 20);
  if (!p) return;
  p.text(number(means[0], 3), 0, 12, "start");
  p.text(number(means[means.length - 1], 3), p.width, 12, "end");
}

function drawCoverage(v) {
  const half = v.promise.end;
  const rows = [["inside", "both", v.level], ["above lower end", "lower", half], ["below upper end", "upper", half]];
  const lowest = Math.min(v.level, ...rows.map(([, key]) => v.found[key].range[0]), ...Object.values(v.chance).flat());
  const margin = { left: 114, right: 62, top: 2, bottom: 18 };
  const p = new Picture(at("coverage"), { x: [Math.floor(lowest * 20 - 0.2) / 20, 1], y: [0, 1], margin });
  for (const [value] of ticks(p.x0, 1, (p.right - p.left) / 75)) {
    p.line("grid", p.sx(value), p.top, p.sx(value), p.bottom);
    p.text(percent(value), p.sx(value), p.bottom + 14, "middle");
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
  const [, learning, calibration, test] = data.counts;
  const isFar = (s) => s < data.little_support;
  const far = data.coverages[data.coverage][0].curve_support.some((support) => support.some(isFar));
  return [
    [null, "prediction", icon(["prediction", "M1 8H21"])],
    [null, "interval below it", icon(["fill-lower", "M1 3H21V13H1Z"], ["end-lower", "M1 13H21"])],
    [null, "interval above it", icon(["fill-upper", "M1 3H21V13H1Z"], ["end-upper", "M1 3H21"])],
    ["learning", `${learning} learning rows`, icon(["learning", dots([[11, 8]])])],
    ["shaping", "that shape a band",
      icon(["shapes-lower", triangles([[6, 8]], 4.5, 1)], ["shapes-upper", triangles([[16, 8]], 4.5, -1)])],
    ["calibration", `${calibration} calibration rows`, icon(["calibration", rings([[11, 8]], 2.5)])],
    ["test", `${test} test rows, inside or outside`,
      icon(["inside", dots([[5, 8]])], ["outside", crosses([[16, 8]], 4)])],
    ...(far ? [[null, "no data nearby", icon(["nodata", "M1 1H21V15H1Z"])]] : []),
  ];
}
