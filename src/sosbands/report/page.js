// From sliders to numbers, words and pictures.

(async function run() {
  const failed = (reason) => {
    at("failure").hidden = false;
    at("failure").textContent = "This page has failed: " + reason;
  };
  window.addEventListener("error", (event) => failed(event.message));
  window.addEventListener("unhandledrejection", (event) => failed(event.reason));
  const data = await readData();
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const choice = { coverage: data.coverage, score: data.score };
  const start = pathAt(data, choice).chosen, own = pathAt(data, choice).steps[start];
  const most = data.why ? largestFactor(data) : 1;
  const state = {
    ...choice, step: start, penalty: own.penalty, level: data.level, axis: 0, at: 0, row: null, isPicked: false,
    show: { test: true, learning: false, calibration: false, shaping: false },
  };
  const cache = {};  // of the ranges, by coverage, score, axis and level
  let drawn = null, frame = 0, speaking = 0, picture = null;

  // Everything that pictures and words show, from the state.
  function view() {
    const path = pathAt(data, state), step = path.steps[state.step], level = data.levels[state.level];
    const place = placeOf(data, path, state.axis), q = quantilesAt(step, state.level);
    const key = [state.coverage, state.score, state.axis, state.level].join();
    const ends = endsOf(place.center, place.bands(step), q);
    cache[key] = cache[key] || rangesOf(data, path, place, state.level);
    return {
      data, path, step, level, place, q, axisNumber: state.axis, stepNumber: state.step, levelNumber: state.level,
      scoreNumber: state.score, at: state.at, row: state.row, show: state.show, ranges: cache[key], ends,
      isOwnCoverage: state.coverage === data.coverage, isChoice: isChoice(),
      likeOwn: isLike(ends, { coverage: data.coverage }),
      likeScore: data.scores.every((_, score) => isLike(ends, { score })),
      promise: data.promises[state.level],
      found: coverageAt(data, step, state.level),
      chance: chanceAt(data, state.level),
      widths: path.steps.map((each) => widthAt(data, each, state.level)),
      groups: groupsAt(data, step, state.axis, state.level),
      where: whereShort(step, level),
    };
  }

  // Groups along all axes that hold less than the level, the farthest from it first.
  function whereShort(step, level) {
    const all = data.axes.flatMap((_, k) => groupsAt(data, step, k, state.level));
    const short = all.filter((each) => isShort(each, level)).sort((a, b) => a.range[1] - b.range[1]);
    return { short, count: all.length };
  }

  function isChoice() {
    return state.step === start && Object.entries(choice).every(([name, value]) => state[name] === value);
  }

  // Whether these ends are those of other settings, up to rounding; at the nearest penalty that is solved there.
  function isLike(ends, changes) {
    const path = pathAt(data, { ...state, ...changes }), place = placeOf(data, path, state.axis);
    const step = path.steps[nearestPenalty(path, pathAt(data, state).steps[state.step].penalty)];
    const others = endsOf(place.center, place.bands(step), quantilesAt(step, state.level));
    return ends.every(([a, b], i) => [a - others[i][0], b - others[i][1]].every(
      (difference) => isNaN(difference) || Math.abs(difference) <= 1e-3 * (b - a)));
  }

  function update() {
    const v = view();
    showControls(v);
    showReadout(v);
    showWords(v);
    drawReach(v);
    drawLocal(v);
    drawCoverage(v);
    if (v.row !== null) showExplanation(v);
    if (at("learnt").open) drawWidth(v);
    moveBands(v);
    clearTimeout(speaking);
    speaking = setTimeout(() => say("status", summaryWords(v)), 300);
  }

  // The ends slide from where they are to where they belong, unless less motion is wanted.
  function moveBands(v) {
    const key = state.axis, from = drawn && drawn.key === key ? drawn.ends : null;
    const same = ([a, b], [c, d]) => (a === c && b === d) || !isFinite(b - a) || !isFinite(d - c);
    cancelAnimationFrame(frame);
    if (!from || reduced.matches || v.ends.every((end, i) => same(end, from[i]))) {
      settle(v, key);
      return;
    }
    const begin = performance.now();
    const tick = (now) => {
      const t = Math.min(1, Math.max(0, (now - begin) / 220)), s = t * t * (3 - 2 * t);
      if (t >= 1) {
        settle({ ...v, at: state.at }, key);
        return;
      }
      const ends = v.ends.map((end, i) => end.map((value, k) => from[i][k] + s * (value - from[i][k])));
      drawn = { key, ends };
      picture = drawBands({ ...v, at: state.at }, ends);
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  }

  function settle(v, key) {
    drawn = { key, ends: v.ends };
    picture = drawBands(v, v.ends);
  }

  function say(id, words) {
    if (at(id).textContent !== words) at(id).textContent = words;  // what has not changed is not read out again
  }

  function showControls(v) {
    at("axis").value = state.axis;
    at("penalty").max = v.path.steps.length - 1;
    at("penalty").value = state.step;
    at("penalty").setAttribute("aria-valuetext", `${penaltyValue(v.step)}: ${sidesWords(v)}`);
    say("penalty-value", penaltyValue(v.step));
    at("learning").value = state.coverage;
    at("learning").setAttribute("aria-valuetext", levelWords(v.path.coverage));
    say("learning-value", levelWords(v.path.coverage));
    data.scores.forEach((name, i) => { at(`score-${name}`).checked = i === state.score; });
    at("level").value = state.level;
    at("level").setAttribute("aria-valuetext", levelWords(v.level));
    say("level-value", levelWords(v.level));
    at("inspect").value = spotOf(v, state.at);
    at("choice").disabled = v.isChoice;
    at("elsewhere").hidden = v.isChoice;
    say("elsewhere", v.isChoice ? "" : elsewhereWords(v));
  }

  function showReadout(v) {
    const i = state.at, { axis, order } = v.place, exact = (value) => within(value, v.ranges.y, 5);
    say("read-x-name", order ? `true (row ${data.test.number[order[i]]})` : axis.name);
    say("read-x", order ? exact(data.test.y[order[i]]) : within(v.place.x[i], v.ranges.x));
    say("read-center", exact(v.place.center[i]));
    say("read-lower", exact(v.ends[i][0]));
    say("read-upper", exact(v.ends[i][1]));
    const support = v.place.support[i];
    say("read-support", `${support < data.little_support ? "little" : "enough"} (${support.toFixed(2)})`);
    const [name, x, center, lower, upper] = ["x-name", "x", "center", "lower", "upper"]
      .map((part) => at(`read-${part}`).textContent);
    at("inspect").setAttribute("aria-valuetext", `${name} ${x}: prediction ${center}, interval ${lower} to ${upper}`);
  }

  function showWords(v) {
    say("level-words", promisedWords(v));
    say("coverage-value", percent(v.found.both.value, 1));
    say("coverage-words", coverageWords(v));
    say("width-value", widthValue(v));
    say("width-words", widthWords(v));
    say("where-value", `${v.where.short.length} of ${v.where.count}`);
    say("where-words", whereWords(v));
    at("where-groups").replaceChildren(...whereItems(v).map((words) => element("li", words)));
    say("far-words", farWords(v));
    say("local-words", localWords(v));
    say("bands-words", `${summaryWords(v)} Drawn in order of ${v.place.axis.name}.`);
    say("chart-caption", captionWords(v));
    say("penalty-words", `${sidesWords(v)}. The curve is the mean width at each penalty.`);
    say("learning-words", learningWords(v));
    say("score-words", scoreWords(v));
    say("quantile-words", quantileWords(v));
    say("certificate", certificateWords(v.step));
    const facts = certificateFacts(v.step).flatMap(([name, value]) => [element("dt", name), element("dd", value)]);
    at("facts").replaceChildren(...facts);
  }

  function showExplanation(v) {
    const question = `Why is the interval of row ${data.test.number[v.row]} this wide?`;
    say("explain-title", question);
    say("explain-where", explainWhere(v));
    say("explain-head", explainHead(v));
    say("explain-words", data.why.rows[v.row].words);
    say("explain-note", explainNote(v));
    at("factors").replaceChildren(...factorRows(v, most));
  }

  function showConstants() {
    say("lead", leadWords(data));
    say("decision", data.sentence);
    at("reasons").replaceChildren(...data.reasons.map(reasonItem));
    say("why-words", reasonWords(data));
    at("why").hidden = !data.reasons.length;
    say("decision-numbers", `In use: symmetry penalty ${penaltyValue(own)}, ${data.settings}.`);
    at("explain").hidden = data.why === null;
    say("promise", promiseWords(data));
    at("footer").replaceChildren(...footerWords(data).map((note) => element("p", note)));
    const { steps } = pathAt(data, choice), last = steps[steps.length - 1];
    if (last.penalty !== null) say("most", penaltyValue(last));
    if (!data.tuned && !data.reasons.length) say("decision-title", "What was given");
  }

  function fillChoices() {
    at("axis").replaceChildren(...data.axes.map(({ name }, i) => (
      Object.assign(element("option", name), { value: i }))));
    at("axis-label").hidden = data.axes.length < 2;
    at("level").max = data.levels.length - 1;
    at("learning").max = data.coverages.length - 1;
    at("scores").replaceChildren(...data.scores.map((name, i) => {
      const box = Object.assign(document.createElement("input"), { type: "radio", name: "score", id: `score-${name}` });
      box.addEventListener("change", () => change({ score: i }));
      const label = element("label", name);
      label.prepend(box);
      return label;
    }));
  }

  function fillLegend() {
    at("legend").replaceChildren(...legendItems(data).map(([name, words, icon]) => {
      const item = document.createElement("li"), holder = document.createElement(name ? "label" : "span");
      if (name) {
        const box = document.createElement("input");
        Object.assign(box, { type: "checkbox", checked: state.show[name], id: `show-${name}` });
        box.addEventListener("change", () => { state.show[name] = box.checked; update(); });
        holder.append(box);
      }
      holder.append(icon, element("span", words));
      item.append(holder);
      return item;
    }));
  }

  function change(changes, remember = true) {
    Object.assign(state, changes);
    const path = pathAt(data, state), size = placeOf(data, path, state.axis).x.length;
    if ("axis" in changes) state.at = Math.floor((size - 1) / 2);
    if ("step" in changes) state.penalty = path.steps[state.step].penalty;
    else state.step = nearestPenalty(path, state.penalty);
    state.at = Math.max(0, Math.min(size - 1, state.at));
    const place = placeOf(data, path, state.axis);
    if (changes.isAtRow) state.at = nearestTo(place.x, spotOfRow({ data, place, axisNumber: state.axis }, state.row));
    if (data.why && state.row === null) state.row = rowRead();
    update();
    if (remember) history.replaceState(null, "", "#" + address());
  }

  function address() {
    const path = pathAt(data, state), { penalty } = path.steps[state.step];
    const parts = [`level=${data.levels[state.level]}`, `penalty=${penalty === null ? "inf" : penalty}`];
    if (data.coverages.length > 1) parts.push(`coverage=${path.coverage}`);
    parts.push(`score=${data.scores[state.score]}`);
    if (data.axes.length > 1) parts.push(`axis=${state.axis}`);
    if (state.isPicked) parts.push(`row=${data.test.number[state.row]}`);
    return parts.join("&");
  }

  // What stands after # in the address, penalty=10&level=0.9&axis=1: the nearest that there is.
  function readAddress() {
    const words = new URLSearchParams(location.hash.slice(1)), changes = {};
    if (words.has("axis") && data.axes[words.get("axis")]) changes.axis = Number(words.get("axis"));
    const coverages = data.coverages.map(([path]) => path.coverage), wanted = words.get("penalty");
    if (data.scores.includes(words.get("score"))) changes.score = data.scores.indexOf(words.get("score"));
    if (Number(words.get("coverage")) > 0) changes.coverage = nearestTo(coverages, Number(words.get("coverage")));
    const path = pathAt(data, { ...state, ...changes });
    if (wanted !== null && (wanted === "inf" || Number(wanted) >= 0)) {
      changes.step = nearestPenalty(path, wanted === "inf" ? null : Number(wanted));
    }
    if (Number(words.get("level")) > 0) changes.level = nearestTo(data.levels, Number(words.get("level")));
    const row = words.has("row") ? data.test.number.indexOf(Number(words.get("row"))) : -1;
    if (data.why && data.why.rows[row]) Object.assign(changes, { row, isPicked: true, isAtRow: true });
    return changes;
  }

  // Where a place lies along the axis, in thousandths.
  function spotOf(v, i) {
    return Math.round(1000 * (v.place.x[i] - v.ranges.x[0]) / (v.ranges.x[1] - v.ranges.x[0]));
  }

  // A single step, by an arrow key, is one place; anything else is the place nearest to the thumb.
  function inspect() {
    const v = view(), spot = Number(at("inspect").value), moved = spot - spotOf(v, state.at);
    const x = v.ranges.x[0] + spot / 1000 * (v.ranges.x[1] - v.ranges.x[0]);
    change({ at: Math.abs(moved) === 1 ? state.at + moved : nearestTo(v.place.x, x) }, false);
    if (data.why) change({ row: rowRead(), isPicked: true }, false);
  }

  // The test row at the place that is read, or the nearest one along the curve.
  function rowRead() {
    const place = placeOf(data, pathAt(data, state), state.axis);
    return place.order ? place.order[state.at] : nearestTo(data.test.x[state.axis], place.x[state.at]);
  }

  // The test row nearest to the pointer is explained.
  function pick(event) {
    point(event);
    if (!picture || !data.why) return;
    const box = at("bands").getBoundingClientRect(), v = view();
    const near = () => rowNear(v, picture, event.clientX - box.left, event.clientY - box.top);
    change({ row: v.place.order ? rowRead() : near(), isPicked: true });
  }

  function point(event) {
    if (!picture) return;
    const x = picture.x(event.clientX - at("bands").getBoundingClientRect().left);
    const nearest = nearestTo(view().place.x, x);
    if (nearest !== state.at) change({ at: nearest }, false);
  }

  function redraw() {
    drawn = null;
    update();
  }

  function listen() {
    at("penalty").addEventListener("input", () => change({ step: Number(at("penalty").value) }));
    at("learning").addEventListener("input", () => change({ coverage: Number(at("learning").value) }));
    at("level").addEventListener("input", () => change({ level: Number(at("level").value) }));
    at("axis").addEventListener("change", () => change({ axis: Number(at("axis").value) }));
    at("inspect").addEventListener("input", inspect);
    at("choice").addEventListener("click", () => change({ ...choice, step: start }));
    at("learnt").addEventListener("toggle", redraw);
    at("bands").addEventListener("pointermove", point);
    at("bands").addEventListener("pointerdown", pick);  // a click gets lost where the pointer moves and redraws
    window.addEventListener("hashchange", () => change(readAddress(), false));
    window.matchMedia("print").addEventListener("change", redraw);
    new ResizeObserver(redraw).observe(document.querySelector("main"));
  }

  fillChoices();
  fillLegend();
  showConstants();
  change({ axis: 0, ...readAddress() }, false);
  at("learnt").open = !isChoice();
  listen();
}());
