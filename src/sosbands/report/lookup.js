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

// Coverage of each end for the groups of test rows along an axis. Their counts are texts, a few digits for each level.
function groupsAt(data, step, axisNumber, level) {
  const { x, n } = data.groups[axisNumber];
  return x.map((place, i) => {
    const digits = n[i].toString(36).length;
    const hits = step.groups[axisNumber][i].map((text) => parseInt(text.substr(digits * level, digits), 36));
    const [lower, upper] = hits.map((each) => shareOf(data, each, n[i]));
    return { x: place, found: { lower, upper } };
  });
}
