// What the page says. Each function takes the view `v` that page.js computes, or the data.

const CRITERIA = {
  "interval-score": "the interval score (width, plus what misses cost), its sign turned,",
  hsic: "HSIC of widths and residuals",
  dcor: "the distance correlation of widths and residuals",
};

function penaltyWords(step) {
  return number(step.penalty === null ? Infinity : step.penalty);
}

function levelWords(level) {
  return number(100 * level, 6) + "\u00a0%";
}

function sidesWords(v) {
  const most = v.path.steps[0].difference;
  if (v.step.penalty === null) return "One band shared by both sides";
  if (v.step.penalty === 0) return "Two independent bands";
  if (!(most > 0)) return "Both bands alike";
  return `The two bands differ by ${percent(v.step.difference / most)} of what they do at 0`;
}

function criterionWords(v) {
  const value = v.step.criterion;
  return `${sidesWords(v)}.` + (value === null ? "" : ` Criterion ${number(value)}, the higher the better.`);
}

function choiceWords(data) {
  return data.tuned ? "the data\u2019s choice" : "as given";
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
  scaled: "Calibration multiplies both bands by one number, everywhere.",
};

function scoreWords(v) {
  const { data } = v, name = data.scores[v.scoreNumber];
  return `${SCORES[name] || ""}${v.likeScore ? " Both scores give the same intervals here." : ""}`;
}

function summaryWords(v) {
  const { value, range, n } = v.found.both;
  return `Symmetry penalty ${penaltyWords(v.step)}, level ${levelWords(v.level)}, learning coverage `
    + `${levelWords(v.path.coverage)}, ${v.data.scores[v.scoreNumber]} score: ${percent(value, 1)} of ${n} test rows `
    + `inside (${percent(range[0])} to ${percent(range[1])}), mean width ${number(v.widths[v.stepNumber].mean)}.`;
}

function coverageWords(v) {
  const { range, n } = v.found.both;
  const chance = Object.keys(v.chance).length
    ? "; grey: where it lies 95\u00a0% of the time if the promise holds, as calibration rows vary too" : "";
  return `${n} test rows. Lines: 95\u00a0% sampling error (${percent(range[0])} to ${percent(range[1])})${chance}; `
    + "dashed: the level, and half of the misses for each end.";
}

function localWords(v) {
  const n = v.data.test.y.length, count = v.groups.length;
  return `${count === 1 ? "All" : count + " groups of the"} ${n} test rows, ordered along this axis: share above the `
    + "lower end (\u25bc) and below the upper end (\u25b2), with 95\u00a0% sampling error. "
    + "Dashed: half of the misses for each.";
}

function widthValue(v) {
  const { mean, error } = v.widths[v.stepNumber];
  return number(mean) + (error > 1e-6 * mean ? ` \u00b1 ${number(error, 2)}` : "");
}

function widthWords(v) {
  const { mean, below, above } = v.widths[v.stepNumber];
  if (!isFinite(mean)) return "Infinite intervals cover everything.";
  return `Test rows: ${number(below, 3)} below and ${number(above, 3)} above the prediction; `
    + `\u00b1 is the 95\u00a0% sampling error.${emptyWords(v)} The curve: mean width at each penalty.`;
}

// Calibration may narrow a band by more than its width.
function emptyWords(v) {
  const count = v.widths[v.stepNumber].empty;
  return count ? ` ${count} of ${v.data.counts[3]} intervals are empty: their midpoint stands for them.` : "";
}

function quantileWords(v) {
  const m = v.data.counts[2], { rank: k, needed } = v.promise;
  if (k > m) {
    return `${levelWords(v.level)} needs at least ${needed} calibration rows and there are ${m}: `
      + "the intervals are infinite.";
  }
  const [outwards, inwards] = v.data.moves[v.scoreNumber];
  const move = (q, ends) => (q < 0 ? inwards : outwards).replace("{q}", number(Math.abs(q))).replace("{ends}", ends);
  if (v.data.calibration === "symmetric") {
    return `Calibration: ${move(v.q[0], "both ends")} (score ${k} of ${m} in order).`;
  }
  const both = [move(v.q[0], "the lower"), move(v.q[1], "the upper end")].join(" and ");
  return `Calibration: ${both} (scores ${k} of ${m} in order).`;
}

function captionWords(v) {
  const n = v.data.test.y.length;
  if (v.place.axis.prediction) {
    const part = n > MOST_BARS ? ` (about ${MOST_BARS} of ${n} drawn)` : "";
    return `Each bar is the interval of a test row${part}, at its prediction. Pale grey bars: little data nearby.`;
  }
  if (v.data.axes.length === 1) return "";
  return "Other features at their medians. The rows differ in those too, so this curve need not cover them.";
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
    ["rows that shape", between(step.active.map((rows) => rows.length))],
    ["squares", between(step.squares)],
    ["kernel features", String(c.n_features)],
    ["work", `${c.iterations} iterations, ${number(c.seconds, 2)} s`],
  ];
}

// Doubts and a test of skew decide too, so that what was chosen need not score best.
function reasonWords(data) {
  const preferred = data.reasons.some((reason) => reason.includes(" % better"))
    ? "What is simpler, or follows skew that was found, is taken even if another value scores slightly better. " : "";
  return `${preferred}Each setting with its value, and what the best other one would cost on held-out rows:`;
}

function settingWords(data, step) {
  return `In use: symmetry penalty ${penaltyWords(step)}, ${data.settings}. The curve above the slider: `
    + `${CRITERIA[data.criterion] || data.criterion} on held-out learning rows, at the lengthscale shown, `
    + "with this learning coverage and score.";
}

function promiseWords(data) {
  return "For each position of the sliders and each score: of new rows like the calibration rows at least the level falls inside, on average. "
    + (data.calibration === "asymmetric" ? "Each end misses at most half of the rest. " : "")
    + (data.tuned ? "The data\u2019s choice was made on learning rows, so the promise holds for it; it does not"
      : "It does not hold")
    + " for settings picked because their results here look best.";
}

function footerWords(data) {
  const [given, learning, calibration, test] = data.counts;
  return [
    `${given} rows given: ${learning} learnt from, ${calibration} for calibration, ${test} for the test. `
      + `Point model: ${data.model}.`,
    ...data.notes,
    "Written by sosbands; this file holds everything it shows and loads nothing.",
  ];
}
