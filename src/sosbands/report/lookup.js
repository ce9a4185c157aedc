"use strict";
// What Python has computed for every step, score and level, looked up; and the ends that are drawn. Levels are positions.

// What Python has written: JSON in gzip in base64.
async function readData() {
  if (!("DecompressionStream" in window)) throw new Error("it needs a browser of 2023 or later");
  const bytes = Uint8Array.from(atob(at("data").textContent), (letter) => letter.charCodeAt(0));
  return opened(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json());
}

// The data with lists in place of their numbers in the pool, and for each path a copy by score, steps and all.
function opened(data) {
  const lists = data.pool;
  const list = (k) => (Array.isArray(k) ? k[0] : lists[k]);  // in brackets: one number for all
  const bands = ({ reach, units }) => ({ reach: reach.map(list), units: units.map(list) });
  const scored = (step, s) => {
    const { scores, ...common } = step, { test, curves, width, error, below, above, ...rest } = scores[s];
    const means = { width: lists[width], error: lists[error], below: lists[below], above: lists[above] };
    return { ...common, ...rest, ...means, test: bands(test), curves: curves.map(bands) };
  };
  const byScore = (path) => data.scores.map((_, s) => (
    { ...path, chosen: s === data.score ? path.chosen : null, steps: path.steps.map((step) => scored(step, s)) }));
  return { ...data, coverages: data.coverages.map(byScore) };
}

// The path on display.
function pathAt(data, { coverage, score }) {
  return data.coverages[coverage][score];
}

// What calibration moves the lower and the upper end by, in units of the band; null stands for infinity.
function quantilesAt(step, level) {
  return [step.q[0], step.q[step.q.length - 1]].map((side) => side[level] ?? Infinity);
}

// How far the end k of one interval lies from the prediction, before ends that cross are put together.
function reachOf(bands, k, i, q) {
  const units = bands.units[k], unit = Array.isArray(units) ? units[i] : units;
  return bands.reach[k][i] + (isFinite(q[k]) ? q[k] * unit : q[k]);
}

// Both ends of each interval; where they cross, their midpoint twice.
function endsOf(center, bands, q) {
  return center.map((c, i) => {
    const lower = c - reachOf(bands, 0, i, q), upper = c + reachOf(bands, 1, i, q), middle = (lower + upper) / 2;
    return lower <= upper ? [lower, upper] : [middle, middle];
  });
}

// A share of n test rows with its 95 % sampling error.
function shareOf(data, hits, n) {
  return { value: hits / n, range: data.share_ranges[n][hits], n };
}

// Coverage of the interval and of each end.
function coverageAt(data, step, level) {
  const n = data.counts[3], share = (key) => shareOf(data, step[key][level], n);
  return { both: share("both"), lower: share("lower"), upper: share("upper") };
}

// Where it lies by chance if the promise holds, of the whole interval or of each end.
function chanceAt(data, level) {
  const { chance } = data.promises[level];
  if (chance === null) return {};
  return data.calibration === "symmetric" ? { both: chance } : { lower: chance, upper: chance };
}

function widthAt(data, step, level) {
  const [mean, below, above] = [step.width, step.below, step.above].map((each) => each[level] ?? Infinity);
  return { mean, below, above, error: step.error[level] ?? 0, empty: step.empty[level] };
}

// Coverage of each end for the groups of test rows along an axis: rows that are inside from some level on, and, where
// ends cross, what comes besides.
function groupsAt(data, step, axisNumber, level) {
  const { x, n, member } = data.groups[axisNumber], hits = x.map(() => [0, 0]);
  [step.lower_from, step.upper_from].forEach((from, k) => {
    member.forEach((group, i) => { hits[group][k] += from[i] <= level; });
  });
  for (const [axis, g, k, at, more] of step.besides) if (axis === axisNumber && at === level) hits[g][k] += more;
  return x.map((place, g) => {
    const [lower, upper] = hits[g].map((each) => shareOf(data, each, n[g]));
    return { x: place, found: { lower, upper } };
  });
}

// null stands for infinity.
function nearestPenalty(path, penalty) {
  return nearestTo(path.steps.map((step) => step.penalty ?? Number.MAX_VALUE), penalty ?? Number.MAX_VALUE);
}

function nearestTo(values, value) {
  return values.reduce((best, each, i) => (Math.abs(each - value) < Math.abs(values[best] - value) ? i : best), 0);
}
