"use strict";
// What Python has computed for every step and level, looked up; and the ends that are drawn. Levels are positions.

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

function widthAt(step, level) {
  const [mean, below, above] = [step.width, step.below, step.above].map((each) => each[level] ?? Infinity);
  return { mean, below, above, error: step.error[level], empty: step.empty[level] };
}

// Number i of `count` whole numbers that are written as one text.
function decoded(data, text, count, i) {
  const size = text.length / count, base = data.code.length;
  return [...text.substr(i * size, size)].reduce((sum, digit) => sum * base + data.code.indexOf(digit), 0);
}

// Coverage of each end for the groups of test rows along an axis; what is stored are their misses.
function groupsAt(data, step, axisNumber, level) {
  const { x, n } = data.groups[axisNumber];
  return x.map((place, i) => {
    const missed = step.groups[axisNumber][i].map((text) => decoded(data, text, data.levels.length, level));
    const [lower, upper] = missed.map((each) => shareOf(data, n[i] - each, n[i]));
    return { x: place, found: { lower, upper } };
  });
}
