// Pictures: scales, frames and marks as SVG. Text enters as text only.

const MINUS = "\u2212", INFINITY = "\u221e";

// A number with so many significant digits, without zeros at the end.
function number(value, digits = 4) {
  if (!isFinite(value)) return (value < 0 ? MINUS : "") + INFINITY;
  const size = Math.abs(value), far = value !== 0 && (size >= 1e7 || size < 1e-4);
  const text = far ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  return text.replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1").replaceAll("-", MINUS);
}

// A number to a few digits of a range, so that neighbours in it differ however large they are.
function within(value, [low, high], digits = 4) {
  if (!isFinite(value)) return number(value);
  const decimals = digits - 1 - Math.floor(Math.log10(high - low));
  if (decimals > 9 || Math.abs(value) >= 1e9) return number(value, 6);
  return String(Number(value.toFixed(Math.max(0, decimals)))).replace("-", MINUS);
}

function percent(value, digits = 0) {
  return (100 * value).toFixed(digits) + "\u00a0%";
}

const SVG = document.querySelector("svg").namespaceURI;

function node(tag, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

// What is in use stands before the colon.
function reasonItem(reason) {
  const [value, ...rest] = reason.split(": "), item = document.createElement("li");
  item.append(element("b", value), ["", ...rest].join(": "));
  return item;
}

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

// Round numbers in [low, high], about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / count, unit = 10 ** Math.floor(Math.log10(raw));
  const off = (factor) => Math.abs(Math.log(factor * unit / raw));
  const step = unit * [1, 2, 5, 10].reduce((best, factor) => (off(factor) < off(best) ? factor : best));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k += 1) found.push(k * step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const most = Math.max(Math.abs(low), Math.abs(high)), far = most >= 1e6 || decimals > 5;
  const digits = Math.min(15, Math.max(3, Math.ceil(Math.log10(most / step)) + 1));  // neighbours must differ
  const label = (value) => (far ? number(value, digits) : value.toFixed(decimals).replace("-", MINUS));
  return found.map((value) => [value, Object.is(value, -0) || Math.abs(value) < step * 1e-9 ? "0" : label(value)]);
}

// An empty picture with its scales. Options: x and y ranges, margins, labels, percent axes.
class Picture {
  constructor(svg, options) {
    const box = svg.getBoundingClientRect();
    this.width = Math.max(120, box.width);
    this.height = Math.max(40, box.height);
    this.svg = svg;
    svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    svg.replaceChildren();
    const m = options.margin;
    this.left = m.left;
    this.right = this.width - m.right;
    this.top = m.top;
    this.bottom = this.height - m.bottom;
    [this.x0, this.x1] = options.x;
    [this.y0, this.y1] = options.y;
  }

  sx(value) { return this.left + (value - this.x0) / (this.x1 - this.x0) * (this.right - this.left); }

  // Far outside values, infinite ones too, stop a little beyond the picture.
  sy(value) {
    const at = this.bottom - (value - this.y0) / (this.y1 - this.y0) * (this.bottom - this.top);
    return Math.min(this.bottom + 4000, Math.max(this.top - 4000, at));
  }

  x(pixel) { return this.x0 + (pixel - this.left) / (this.right - this.left) * (this.x1 - this.x0); }

  add(tag, attributes, text = null) {
    const made = node(tag, attributes, text);
    (this.layer || this.svg).append(made);
    return made;
  }

  line(name, x1, y1, x2, y2) { return this.add("line", { class: name, x1, y1, x2, y2 }); }

  text(words, x, y, anchor = "middle", name = "") {
    return this.add("text", { x, y, "text-anchor": anchor, class: name }, words);
  }

  yAxis(marks) {
    for (const [value, label] of marks) {
      const y = this.sy(value);
      this.line("grid", this.left, y, this.right, y);
      this.text(label, this.left - 7, y + 4, "end");
    }
  }

  xAxis(marks, name) {
    this.line("frame", this.left, this.bottom, this.right, this.bottom);
    for (const [value, label, anchor] of marks) {
      const x = this.sx(value);
      this.line("frame", x, this.bottom, x, this.bottom + 4);
      this.text(label, x, this.bottom + 17, anchor);
    }
    const width = this.right - this.left;
    if (name) this.text(shortened(name, width / 7), this.left + width / 2, this.bottom + 34, "middle", "strong");
  }

  // What is drawn from now on is cut off at the frame.
  clip() {
    const id = this.svg.id + "-clip";
    const path = this.add("clipPath", { id });
    const width = this.right - this.left, height = this.bottom - this.top;
    path.append(node("rect", { x: this.left, y: this.top, width, height }));
    this.layer = this.add("g", { "clip-path": `url(#${id})` });
  }
}

function shortened(words, letters) {
  return words.length <= letters ? words : words.slice(0, Math.max(1, Math.floor(letters) - 1)) + "\u2026";
}

const r2 = (value) => Math.round(value * 100) / 100;

function polyline(points) {
  return points.length ? "M" + points.map(([x, y]) => `${r2(x)} ${r2(y)}`).join("L") : "";
}

function dots(points) {
  return points.map(([x, y]) => `M${r2(x)} ${r2(y)}h0`).join("");
}

function rings(points, radius) {
  const arc = (way) => `a${radius} ${radius} 0 1 0 ${way * 2 * radius} 0`;
  return points.map(([x, y]) => `M${r2(x - radius)} ${r2(y)}${arc(1)}${arc(-1)}`).join("");
}

function crosses(points, arm) {
  return points.map(([x, y]) =>
    `M${r2(x - arm)} ${r2(y - arm)}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`).join("");
}

// Triangles that point up (sign -1) or down (sign 1).
function triangles(points, size, sign) {
  return points.map(([x, y]) =>
    `M${r2(x - size)} ${r2(y - sign * size * 0.7)}h${2 * size}l${-size} ${sign * 1.6 * size}z`).join("");
}

function dashes(points, arm) {
  return points.map(([x, y]) => `M${r2(x - arm)} ${r2(y)}h${2 * arm}`).join("");
}

function bars(points) {
  return points.map(([x, from, to]) => `M${r2(x)} ${r2(from)}V${r2(to)}`).join("");
}

// Stretches of the grid where the flag holds, as pairs of places half a step beyond their points.
function runs(grid, flags) {
  const found = [], half = grid.length > 1 ? (grid[1] - grid[0]) / 2 : 0;
  flags.forEach((flag, i) => {
    if (!flag) return;
    if (i && flags[i - 1]) found[found.length - 1][1] = grid[i] + half;
    else found.push([grid[i] - half, grid[i] + half]);
  });
  return found;
}

// Smallest and largest finite number, with a little space around.
function rangeOf(values, space = 0.05) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low && value !== -Infinity) low = value;
    if (value > high && value !== Infinity) high = value;
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * space || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}
