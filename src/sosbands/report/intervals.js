"use strict";
// Conformal calibration and its checks, as in sosbands.conformal and sosbands.metrics: numbers in, numbers out.

// Rank of the quantile among m scores: ceil(level (m + 1) - 1e-9), at least 1.
function conformalRank(m, level) {
  return Math.max(1, Math.ceil(level * (m + 1) - 1e-9));
}

// The k-th smallest of sorted scores, infinite if there are fewer than k.
function conformalQuantile(sorted, level) {
  const k = conformalRank(sorted.length, level);
  return k <= sorted.length ? sorted[k - 1] : Infinity;
}

// What calibration adds below and above: one quantile for both, or one for each, with half of the miscoverage.
function quantiles(scores, level) {
  if (scores.length === 1) {
    const q = conformalQuantile(scores[0], level);
    return [q, q];
  }
  const side = 1 - (1 - level) * 0.5;
  return [conformalQuantile(scores[0], side), conformalQuantile(scores[1], side)];
}

// Rows needed for a finite quantile.
function rowsNeeded(level) {
  let m = 1;
  while (conformalRank(m, level) > m) m += 1;
  return m;
}

// Both ends of one interval; where they cross, their midpoint twice.
function interval(center, below, above, q) {
  const lower = center - below - q[0], upper = center + above + q[1];
  if (lower <= upper) return [lower, upper];
  const middle = (lower + upper) / 2;
  return [middle, middle];
}

function intervals(center, below, above, q) {
  return center.map((c, i) => interval(c, below[i], above[i], q));
}

// Wilson's 95 % interval of a share.
function wilson(hits, n) {
  const z = 1.959964, p = hits / n, bottom = 1 + z * z / n;
  const middle = (p + z * z / (2 * n)) / bottom;
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / bottom;
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// Where the share of n new rows below the k-th of m scores lies, 95 % of the time, if all come from one distribution:
// the chance to be below is Beta(k, m + 1 - k), so that the count is beta-binomial.
function chanceRange(k, m, n) {
  const a = k, b = m + 1 - k, logs = [0];
  for (let j = 0; j < n; j += 1) logs.push(logs[j] + Math.log((n - j) * (a + j) / ((j + 1) * (n - j - 1 + b))));
  const most = logs.reduce((x, y) => Math.max(x, y)), weights = logs.map((value) => Math.exp(value - most));
  const total = weights.reduce((x, y) => x + y, 0);
  const quantile = (level) => {
    let count = -1, sum = 0;
    do sum += weights[count += 1]; while (sum < level * total && count < n);
    return count / n;
  };
  return [quantile(0.025), quantile(0.975)];
}

function share(flags) {
  const hits = flags.filter(Boolean).length;
  return { value: hits / flags.length, range: wilson(hits, flags.length), hits, n: flags.length };
}

// Mean with the half width of its 95 % interval.
function meanOf(values) {
  const n = values.length, mean = values.reduce((a, b) => a + b, 0) / n;
  if (!isFinite(mean)) return { mean, error: 0 };
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, n - 1);
  return { mean, error: 1.959964 * Math.sqrt(variance / n) };
}

// Coverage of the interval and of each end.
function coverageOf(y, ends) {
  const aboveLower = y.map((v, i) => v >= ends[i][0]), belowUpper = y.map((v, i) => v <= ends[i][1]);
  return {
    both: share(aboveLower.map((hit, i) => hit && belowUpper[i])),
    lower: share(aboveLower),
    upper: share(belowUpper),
  };
}

// Groups of rows along x, at most 6 with about equally many of them, at least 15; rows of one place stay together.
function groupsAlong(x) {
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b]);
  const count = Math.max(1, Math.min(6, Math.floor(x.length / 15)));
  const edges = Array.from({ length: count + 1 }, (_, k) => {
    let edge = Math.round(k * x.length / count);
    while (edge > 0 && edge < x.length && x[order[edge]] === x[order[edge - 1]]) edge += 1;
    return edge;
  });
  return edges.slice(1).map((edge, k) => order.slice(edges[k], edge)).filter((group) => group.length);
}
