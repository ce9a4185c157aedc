"use strict";
// What Python has computed for every step, score and level, looked up; and the ends that are drawn. Levels are positions.

const MEANS = ["width", "error", "below", "above", "narrow", "wide"];

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
    const { scores, ...common } = step, { test, curve, ...rest } = scores[s];
    for (const name of MEANS) rest[name] = lists[rest[name]];
    return { ...common, ...rest, test: bands(test), curve: bands(curve) };
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
  const [mean, below, above, narrow, wide] = ["width", "below", "above", "narrow", "wide"]
    .map((name) => step[name][level] ?? Infinity);
  return { mean, below, above, narrow, wide, error: step.error[level] ?? 0, empty: step.empty[level] };
}

// Shares inside of the groups of test rows along an axis: rows that are inside from some level on, and, where ends
// cross, what comes besides.
function groupsAt(data, step, axisNumber, level) {
  const { ends, member, n } = data.groups[axisNumber], hits = n.map(() => 0);
  member.forEach((group, i) => { hits[group] += step.inside_from[i] <= level; });
  for (const [axis, g, at, more] of step.besides) if (axis === axisNumber && at === level) hits[g] += more;
  return hits.map((each, g) => (
    { ...shareOf(data, each, n[g]), axisNumber, group: g, from: ends[0][g], to: ends[1][g] }));
}

function isShort({ range }, level) {
  return range[1] < level;
}

// null stands for infinity.
function nearestPenalty(path, penalty) {
  return nearestTo(path.steps.map((step) => step.penalty ?? Number.MAX_VALUE), penalty ?? Number.MAX_VALUE);
}

function nearestTo(values, value) {
  return values.reduce((best, each, i) => (Math.abs(each - value) < Math.abs(values[best] - value) ? i : best), 0);
}
