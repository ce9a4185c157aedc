// What the page says. Each function takes the view `v` that page.js computes, or the data.

const MOST_NAMED = 3;  // groups

function penaltyValue(step) {
  return number(step.penalty === null ? Infinity : step.penalty);
}

function levelWords(level) {
  return number(100 * level, 6) + "\u00a0%";
}

function leadWords(data) {
  return `An interval says between which values the true ${data.target} of a row should lie. What that means here is `
    + `read off ${data.counts[3]} test rows, which the model has not seen.`;
}

// What the level promises, or that there are too few rows for it.
function promisedWords(v) {
  const m = v.data.counts[2], { rank, needed } = v.promise;
  if (rank > m) {
    return `${levelWords(v.level)} needs at least ${needed} calibration rows and there are ${m}: `
      + "the intervals are infinite.";
  }
  return `Promised: of new rows like these at least ${levelWords(v.level)} fall inside, on average`
    + (v.data.calibration === "asymmetric" ? "; each end misses at most half of the rest." : ".")
    + " The higher the level, the wider the intervals.";
}

function coverageWords(v) {
  const { range, value, n } = v.found.both, count = (share) => Math.round(n * (1 - share.value));
  const chance = Object.keys(v.chance).length ? ", grey what chance allows if the promise holds" : "";
  return `${Math.round(n * value)} of ${n} test rows; ${count(v.found.lower)} lie below their interval, `
    + `${count(v.found.upper)} above. Lines are 95\u00a0% sampling error (${percent(range[0])} to ${percent(range[1])})`
    + `${chance}, dashes what is promised.`;
}

function widthValue(v) {
  const { mean, error } = v.widths[v.stepNumber];
  return number(mean) + (error > 1e-6 * mean ? ` \u00b1 ${number(error, 2)}` : "");
}

function widthWords(v) {
  const { mean, below, above, narrow, wide } = v.widths[v.stepNumber];
  if (!isFinite(mean)) return "Infinite intervals cover everything.";
  const each = wide - narrow > 1e-3 * wide
    ? `Eight of ten are ${number(narrow, 3)} to ${number(wide, 3)} wide.` : "All are equally wide.";
  return `Mean width in ${v.data.target}, \u00b1 its 95\u00a0% sampling error. ${each} On average they reach from `
    + `${number(below, 3)} below to ${number(above, 3)} above the prediction.${emptyWords(v)}`;
}

// Calibration may narrow a band by more than its width.
function emptyWords(v) {
  const count = v.widths[v.stepNumber].empty;
  return count ? ` ${count} of ${v.data.counts[3]} intervals are empty: their midpoint stands for them.` : "";
}

// Of all groups along all axes those that hold less than the level, by more than their sampling error.
function whereWords(v) {
  const { short, count } = v.where;
  if (count === v.data.axes.length) return "Too few test rows to tell one place from another.";
  const rule = `Test rows were put in ${count} groups, by their place along each axis of the picture.`;
  const fewer = `are fewer inside than ${levelWords(v.level)}, beyond sampling error`;
  if (!short.length) return `${rule} In none of them ${fewer}.`;
  return `${rule} In ${short.length} of them ${fewer} (chance alone does that to one group in forty):`;
}

function whereItems(v) {
  const { short } = v.where, more = short.length - MOST_NAMED;
  const items = short.slice(0, MOST_NAMED).map((each) => `${groupWords(v.data, each)}: ${percent(each.value)} of ${each.n}`);
  return more > 0 ? [...items, `and ${more} more`] : items;
}

function groupWords(data, { axisNumber, from, to }) {
  const { ends } = data.groups[axisNumber], range = [ends[0][0], ends[1][ends[1].length - 1]];
  const [a, b] = [from, to].map((value) => within(value, range, 3));
  return `${data.axes[axisNumber].name} ${a === b ? a : `${a} to ${b}`}`;
}

function farWords(v) {
  const n = v.data.counts[3], { far } = v.path;
  return far ? `${far} of ${n} test rows lie far from the rows learnt from: little is known there.`
    : "No test row lies far from the rows learnt from.";
}

function localWords(v) {
  const n = v.data.counts[3], count = v.groups.length;
  return `Share inside of ${count === 1 ? "all" : `${count} groups of the`} ${n} test rows, with 95\u00a0% sampling `
    + "error; dashed: the level. The promise is about all rows together, not about every group.";
}

function summaryWords(v) {
  const { value, range, n } = v.found.both;
  const settings = v.isChoice ? "" : ` Symmetry penalty ${penaltyValue(v.step)}, learning coverage `
    + `${levelWords(v.path.coverage)}, ${v.data.scores[v.scoreNumber]} score.`;
  return `Level ${levelWords(v.level)}: ${percent(value, 1)} of ${n} test rows inside (${percent(range[0])} to `
    + `${percent(range[1])}), mean width ${number(v.widths[v.stepNumber].mean)}.${settings}`;
}

function elsewhereWords(v) {
  return `These are not the model\u2019s own settings: symmetry penalty ${penaltyValue(v.step)}, learning coverage `
    + `${levelWords(v.path.coverage)}, ${v.data.scores[v.scoreNumber]} score. \u201cHow it was learnt\u201d has the `
    + "way back.";
}

function captionWords(v) {
  const n = v.data.test.y.length, all = v.data.counts[3];
  if (!v.place.order) return "";
  const part = n < all ? `; ${n} of the ${all}, drawn at random` : "";
  return `One bar for each test row${part}, with the true value on it. A narrow screen draws fewer.`;
}

function sidesWords(v) {
  const most = v.path.steps[0].difference;
  if (v.step.penalty === null) return "One function for both sides";
  if (v.step.penalty === 0) return "Two independent functions";
  if (!(most > 0)) return "Both functions alike";
  return `The two functions differ by ${percent(v.step.difference / most)} of what they do at 0`;
}

// What the slider of the learning coverage does, and whether one sees it.
function learningWords(v) {
  const { data, path } = v, own = data.coverages[data.coverage][0].coverage;
  const asked = path.coverage === 1 ? "all learning rows" : `${levelWords(path.coverage)} of the learning rows`;
  const first = `The bands are asked to cover ${asked}, before calibration.`;
  if (v.isOwnCoverage) return `${first} This is what the model uses.`;
  const alike = v.likeOwn ? ` Calibration makes up for it: the intervals are as at ${levelWords(own)}.` : "";
  return `${first}${alike} The model uses ${levelWords(own)}; elsewhere only ${path.steps.length} symmetry penalties `
    + "are solved.";
}

const SCORES = {
  added: "Calibration adds one number to both bands, everywhere.",
  shifted: "Calibration adds one number to both ends, everywhere.",
  scaled: "Calibration multiplies both bands by one number, everywhere.",
};

function scoreWords(v) {
  const { data } = v, name = data.scores[v.scoreNumber];
  return `${SCORES[name] || ""}${v.likeScore ? " Both scores give the same intervals here." : ""}`;
}

// What calibration does at this level; nothing where rows are too few for it.
function quantileWords(v) {
  const m = v.data.counts[2], { rank: k } = v.promise;
  if (k > m) return "";
  const [outwards, inwards] = v.data.moves[v.scoreNumber];
  const move = (q, ends) => (q < 0 ? inwards : outwards).replace("{q}", number(Math.abs(q))).replace("{ends}", ends);
  if (v.data.calibration === "symmetric") return `Here: ${move(v.q[0], "both ends")} (score ${k} of ${m} in order).`;
  const both = [move(v.q[0], "the lower"), move(v.q[1], "the upper end")].join(" and ");
  return `Here: ${both} (scores ${k} of ${m} in order).`;
}

function gapWords(step) {
  const gap = step.certificate.gap;
  return gap === null ? INFINITY : Math.max(gap, 1e-16).toExponential(1).replace("-", MINUS);
}

function certificateWords(step) {
  const { status } = step.certificate;
  if (status !== "converged") {
    return `Not certified to the tolerance asked for (${status}): the gap is ${gapWords(step)}.`;
  }
  return `The cost of these bands is within ${gapWords(step)} (relative) of the best possible: `
    + "both bounds were computed for these data.";
}

// Names and values of what is known of the solve.
function certificateFacts(step) {
  const c = step.certificate, between = ([low, high]) => `${low} below, ${high} above`;
  return [
    ["status", c.status],
    ["relative gap", gapWords(step)],
    ["lowest cost", c.primal_value === null ? "unknown" : `${number(c.dual_value, 5)} to ${number(c.primal_value, 5)}`],
    ["rows that shape", between(step.shaping)],
    ["squares", between(step.squares)],
    ["kernel features", String(c.n_features)],
    ["work", `${c.iterations} iterations, ${number(c.seconds, 2)} s`],
  ];
}

// Doubts and a test of skew decide too, so that what was chosen need not score best.
function reasonWords(data) {
  const preferred = data.reasons.some((reason) => reason.includes(" % better"))
    ? "What is simpler, or follows skew that was found, is taken even if another value scores slightly better. " : "";
  return `${preferred}Each setting with its value, and what the best other one would cost on held-out learning rows:`;
}

function promiseWords(data) {
  return "The promise holds for each position of these controls, but not for one picked because its results on these "
    + "test rows look best." + (data.tuned ? " The data\u2019s choice was made on learning rows, so it holds for that." : "");
}

function footerWords(data) {
  const [given, learning, calibration, test] = data.counts;
  return [
    `${given} rows given: ${learning} learnt from, ${calibration} for calibration, ${test} for the test. `
      + `Predictions by ${data.model}.`,
    ...data.notes,
    "Written by sosbands; this file holds everything it shows and loads nothing.",
  ];
}
