"use strict";
// What Python has computed for every step, score and level, looked up; and the ends that are drawn. Levels are positions.

// The data with lists in place of their numbers in the pool, and for each path a copy by score, steps and all.
function opened(data) {
  const lists = [];
  data.pool.forEach((entry) => lists.push(unpacked(data, entry, lists)));
  const list = (k) => (Array.isArray(k) ? k[0] : lists[k]);  // in brackets: one number for all
  const bands = ({ reach, units }) => ({ reach: reach.map(list), units: units.map(list) });
  const scored = (step, s) => {
    const { scores, ...common } = step, { test, curves, width, error, below, above, ...rest } = scores[s];
    const means = { width: lists[width], error: lists[error], below: lists[below], above: lists[above] };
    return { ...common, ...rest, ...means, test: bands(test), curves: curves.map(bands) };
  };
  const byScore = (path) => data.scores.map((_, s) => (
    { ...path, chosen: s === data.score ? path.chosen : null, steps: path.steps.map((step) => scored(step, s)) }));
  const paths = data.paths.map(byScore), others = data.coverages.map(byScore);
  const coverages = [paths[0], ...others].sort((a, b) => a[0].coverage - b[0].coverage);
  return { ...data, paths, coverages, coverage: coverages.indexOf(paths[0]) };
}

// An entry of the pool: [count, low, text], with true behind them differences; or [number of a list, places, values].
function unpacked(data, [first, low, text, isDifferences], lists) {
  if (Array.isArray(low)) {
    const made = [...lists[first]];
    low.forEach((place, i) => { made[place] = shifted(text[i], data.decimals); });
    return made;
  }
  let sum = 0;
  const whole = Array.from({ length: first }, (_, i) => {
    const value = low + decoded(data, text, first, i);
    sum = isDifferences ? sum + value : value;
    return sum;
  });
  return whole.map((value) => shifted(value, data.decimals));
}

function shifted(value, decimals) {
  return decimals >= 0 ? value / 10 ** decimals : value * 10 ** -decimals;
}

// The path on display: of a learning coverage where the lengthscale is that in use.
function pathAt(data, { path, coverage, score }) {
  return (path === 0 ? data.coverages[coverage] : data.paths[path])[score];
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
  const n = data.counts[3], share = (key) => shareOf(data, countAt(data, step[key], level), n);
  return { both: share("both"), lower: share("lower"), upper: share("upper") };
}

function countAt(data, text, level) {
  return decoded(data, text, data.levels.length, level);
}

// Where it lies by chance if the promise holds, of the whole interval or of each end.
function chanceAt(data, level) {
  const { chance } = data.promises[level];
  if (chance === null) return {};
  return data.calibration === "symmetric" ? { both: chance } : { lower: chance, upper: chance };
}

function widthAt(data, step, level) {
  const [mean, below, above] = [step.width, step.below, step.above].map((each) => each[level] ?? Infinity);
  return { mean, below, above, error: step.error[level] ?? 0, empty: countAt(data, step.empty, level) };
}

// Number i of `count` whole numbers that are written as one text.
function decoded(data, text, count, i) {
  const size = text.length / count, base = data.code.length;
  let sum = 0;
  for (let k = i * size; k < (i + 1) * size; k += 1) sum = sum * base + data.code.indexOf(text[k]);
  return sum;
}

// Coverage of each end for the groups of test rows along an axis: rows that are inside from some level on, and, where
// ends cross, what comes besides.
function groupsAt(data, step, axisNumber, level) {
  const { x, n, member } = data.groups[axisNumber], count = data.counts[3];
  const hits = x.map(() => [0, 0]);
  for (let i = 0; i < count; i += 1) {
    const group = hits[decoded(data, member, count, i)];
    [step.lower_from, step.upper_from].forEach((text, k) => { group[k] += decoded(data, text, count, i) <= level; });
  }
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
