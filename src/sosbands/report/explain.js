// Why the interval of a test row is as wide as it is: words and factors that Python computed for the choice in use.

// The test row nearest to a place in the picture; in pixels.
function rowNear(v, picture, x, y) {
  const { test } = v.data, far = (i) => Math.hypot(picture.sx(spotOfRow(v, i)) - x, picture.sy(test.y[i]) - y);
  return test.y.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
}

function timesWords(value) {
  return "\u00d7" + number(value, 3);
}

function explainHead(v) {
  const { width, times } = v.data.why.rows[v.row];
  return `${number(width, 4)} wide, ${timesWords(times)} the typical width`;
}

// What is explained, if the controls are elsewhere.
function explainWhere(v) {
  const { data } = v, { level } = data.why;
  if (v.isChoice && v.levelNumber === level) return "";
  return `Explained at ${data.tuned ? "the data\u2019s choice" : "the settings given"} and ${levelWords(data.levels[level])}: `
    + "the controls are elsewhere.";
}

function explainNote(v) {
  const { why } = v.data;
  return "Click another row, or move along the picture. Factors multiply: those of columns to that of the shape, against "
    + `row ${why.typical_row}, a typical one. The typical width is ${number(why.typical, 4)}, the median of learning rows.`;
}

// A bar from 1 to the factor, to the right if it widens; all rows have one scale.
function factorBar(value, most) {
  const svg = node("svg", { viewBox: "-50 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  const end = 49 * Math.max(-1, Math.min(1, Math.log(value) / most));
  svg.append(node("rect", { class: "factor", x: Math.min(0, end), y: 1, width: Math.abs(end), height: 8 }));
  svg.append(node("line", { class: "factor-one", x1: 0, y1: 0, x2: 0, y2: 10 }));
  return svg;
}

// The largest factor of any row, as a logarithm; that of 1.5 at least.
function largestFactor(data) {
  const all = data.why.rows.flatMap((row) => row.factors.map(([, value]) => Math.abs(Math.log(value))));
  return Math.max(Math.log(1.5), ...all.filter(isFinite));
}

function factorRows(v, most) {
  const { names, rows } = v.data.why;
  return rows[v.row].factors.map(([k, value]) => {
    const row = document.createElement("tr"), bar = document.createElement("td");
    const name = Object.assign(document.createElement("th"), { scope: "row", textContent: names[k] });
    const times = Object.assign(document.createElement("td"), { textContent: timesWords(value) });
    if (k > 1) row.className = "part";
    bar.append(factorBar(value, most));
    row.append(name, bar, times);
    return row;
  });
}
