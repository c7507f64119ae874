// The bottleneck: two models that reverse digits, one through a single state, one with attention.
"use strict";

const MOST_DIGITS = 20;
const DIGIT_MS = 110; // for each digit written
const KINDS = ["ghost", "now"]; // of line, without attention and with it

function bottleneckPanel() {
  const names = { without_attention: "without attention", attention: "with attention" };
  const models = Object.entries(names).map(([key, name]) => [name, EXPORTED[key], new Reverser(EXPORTED[key])]);
  const field = byId("bottleneck-digits");
  let digits = [];
  let answers = []; // of each model: its digits, with logits and weights
  let chosen = 0; // the digit of the answer whose weights are shown
  let shown = 0; // how many digits have been written so far
  let stop = null;

  const read = digitRow("digits read");
  const wanted = digitRow("the other way round");
  const written = models.map(([name]) => digitRow(name));
  const tell = slider(written[1].element, {
    label: "Digits written with attention; choose one to see where it looked",
    count: () => shown,
    place: () => chosen,
    move: choose,
    describe: (i) => `digit ${i + 1}: ${answers[1][i].digit}, ${isRight(1, i) ? "right" : "wrong"}; ${lookedAt(i)}`,
  });
  written[1].element.addEventListener("pointerover", (event) =>
    choose([...written[1].element.children].indexOf(event.target)),
  );

  function digitRow(name) {
    const row = { name: element("span", {}, name), score: element("span", {}) };
    row.element = element("div", { class: "digits" });
    byId("bottleneck-rows").append(element("p", { class: "digits-name" }, row.name, row.score), row.element);
    return row;
  }

  const goal = (i) => digits[digits.length - 1 - i];
  const isRight = (model, i) => answers[model][i].digit === goal(i);

  /** The place that a digit's weights are largest at, in words. */
  function lookedAt(i) {
    const { weights } = answers[1][i];
    const place = argmax(weights);
    return `looked at digit ${place + 1} read, ${digits[place]}, with weight ${weights[place].toFixed(2)}`;
  }

  function update() {
    halt();
    const kept = field.value.replace(/\D/g, "").slice(0, MOST_DIGITS);
    const dropped = [...new Set(field.value.replace(/\d/g, ""))];
    if (dropped.length) {
      const names = dropped.map((character) => `“${spoken(character)}”`).join(", ");
      byId("bottleneck-note").textContent = `Only digits: ${names} left out.`;
      field.value = kept;
    }
    digits = [...kept].map(Number);
    answers = models.map(([, , model]) => (digits.length ? model.write(digits) : []));
    shown = digits.length;
    draw();
    choose(digits.length ? chosen : -1);
    tellScores();
  }

  /** The rows and the grid, as far as the decoders have written. */
  function draw() {
    chosen = Math.max(0, Math.min(chosen, shown - 1));
    const spans = (values, wrong = () => false) =>
      values.map((value, i) => element("span", { class: wrong(i) ? "wrong" : "" }, String(value)));
    read.element.replaceChildren(...spans(digits));
    wanted.element.replaceChildren(...spans([...digits].reverse()));
    labelled(read, digits.join(" "));
    labelled(wanted, [...digits].reverse().join(" "));
    written.forEach((row, model) => {
      const answer = answers[model].slice(0, shown).map(({ digit }) => digit);
      const wrong = answer.map((_, i) => i).filter((i) => !isRight(model, i));
      row.element.replaceChildren(...spans(answer, (i) => wrong.includes(i)));
      row.score.textContent = digits.length ? `${answer.length - wrong.length} of ${answer.length} right` : "";
      if (model) return;
      const places = wrong.length ? `; wrong at ${wrong.map((i) => i + 1).join(", ")}` : "";
      labelled(row, `${answer.join(" ")}; ${row.score.textContent}${places}`);
    });
    drawGrid();
    tell();
  }

  const labelled = (row, text) =>
    furnish(row.element, { role: "img", "aria-label": `${row.name.textContent}: ${text || "nothing yet"}` }, []);

  /** A row for each digit written, a column for each digit read; a square's area is the weight. */
  function drawGrid() {
    const n = digits.length;
    const parts = [svg("rect", { class: "frame", x: 1, y: 1, width: n, height: n })];
    digits.forEach((digit, j) => parts.push(svg("text", { x: j + 1.5, y: 0.75 }, String(digit))));
    for (let i = 0; i < shown; i++) {
      const { digit, weights } = answers[1][i];
      parts.push(svg("text", { x: 0.5, y: i + 1.7 }, String(digit)));
      weights.forEach((weight, j) => {
        const side = 0.94 * Math.sqrt(weight);
        const [x, y] = [j + 1.5 - side / 2, i + 1.5 - side / 2];
        if (weight > 1e-3) parts.push(svg("rect", { class: "weight", x, y, width: side, height: side }));
      });
    }
    const label = `Attention weights, ${n} by ${n}: the row of digits written with attention tells each one’s largest`;
    const grid = svg(
      "svg",
      { class: "grid", viewBox: `0 0 ${n + 1.2} ${n + 1.2}`, style: `--digits: ${n + 1.2}`, role: "img", "aria-label": label },
      ...parts,
    );
    grid.addEventListener("pointermove", (event) => {
      const { top, height } = grid.getBoundingClientRect();
      choose(Math.floor(((event.clientY - top) / height) * (n + 1.2) - 1));
    });
    byId("bottleneck-grid").replaceChildren(...(n ? [grid] : []));
  }

  function choose(place) {
    if (!digits.length) byId("bottleneck-looked").textContent = "Type a digit.";
    if (!(place >= 0 && place < shown)) return;
    chosen = place;
    byId("bottleneck-looked").textContent =
      `Digit ${place + 1} written, ${answers[1][place].digit}: ${lookedAt(place)}.`;
    [...written[1].element.children].forEach((span, i) => span.classList.toggle("chosen", i === place));
    [...read.element.children].forEach((span, j) => {
      span.classList.add("looked");
      span.style.setProperty("--level", answers[1][place].weights[j].toFixed(3));
    });
    const grid = byId("bottleneck-grid").firstChild;
    grid.querySelector(".here")?.remove();
    grid.append(svg("rect", { class: "here", x: 1, y: place + 1, width: digits.length, height: 1 }));
    tell();
  }

  const rightAt = (length) => models.map(([, exported]) => exported.sequences_right[length - exported.length[0]]);

  function tellScores() {
    const [without, having] = rightAt(digits.length);
    drawScores();
    byId("bottleneck-scores").textContent = digits.length
      ? `Of 1,000 new sequences of ${counted(digits.length, "digit")}, the model without attention reverses ` +
        `${percent(without)} without a fault, the one with attention ${percent(having)}.`
      : "";
  }

  /** Both models' scores against length, with the present length marked. */
  function drawScores() {
    const x = (length) => 44 + ((length - 1) / (MOST_DIGITS - 1)) * 260;
    const y = (share) => 12 + (1 - share) * 130;
    const parts = [0, 0.5, 1].flatMap((share) => [
      svg("line", { class: "axis", x1: x(1), x2: x(MOST_DIGITS), y1: y(share), y2: y(share) }),
      svg("text", { x: x(1) - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share)),
    ]);
    for (const length of [1, 5, 10, 15, 20])
      parts.push(svg("text", { x: x(length), y: 164, "text-anchor": "middle" }, String(length)));
    models.forEach(([, { sequences_right, length }], i) => {
      const d = sequences_right.map((share, k) => `${k ? "L" : "M"}${x(k + length[0])},${y(share)}`).join("");
      parts.push(svg("path", { class: `curve ${KINDS[i]}`, d }));
    });
    if (digits.length) {
      const at = x(digits.length);
      parts.push(svg("line", { class: "cursor", x1: at, x2: at, y1: y(1), y2: y(0) }));
      parts.push(...rightAt(digits.length).map((share) => svg("circle", { class: "point", cx: at, cy: y(share), r: 4 })));
    }
    const label = models
      .map(([name, { sequences_right }]) => `${name} ${percent(sequences_right[0])} to ${percent(sequences_right.at(-1))}`)
      .join(", ");
    byId("bottleneck-chart").replaceChildren(
      element("ul", { class: "key" }, ...models.map(([name], i) => keyLine(KINDS[i], name))),
      svg(
        "svg",
        { class: "scores", viewBox: "0 0 320 170", role: "img", "aria-label": `From 1 to ${MOST_DIGITS} digits: ${label}` },
        ...parts,
      ),
    );
  }

  function sumUp() {
    const texts = written.map((row) => `${row.name.textContent}: ${row.score.textContent}`);
    say(digits.length ? texts.join("; ") : "no digits");
  }

  function play() {
    if (stop) return finish();
    if (!digits.length) return field.focus();
    byId("bottleneck-play").textContent = "Stop";
    shown = 0;
    draw();
    stop = animate(
      digits.length * DIGIT_MS,
      (share) => {
        const due = Math.round(share * digits.length);
        if (due === shown) return;
        shown = due;
        draw();
        choose(shown - 1);
      },
      finish,
    );
  }

  function halt() {
    stop?.();
    stop = null;
    byId("bottleneck-play").textContent = "Watch them write";
  }

  function finish() {
    halt();
    shown = digits.length;
    draw();
    choose(shown - 1);
    sumUp();
  }

  field.addEventListener("input", () => {
    update();
    sumUp();
  });
  field.addEventListener("change", () => (byId("bottleneck-note").textContent = "")); // it is left: read by now
  byId("bottleneck-play").addEventListener("click", play);
  byId("bottleneck-random").addEventListener("click", () => {
    field.value = Array.from({ length: MOST_DIGITS }, () => Math.floor(10 * Math.random())).join("");
    update();
    play();
  });
  const { length, steps, seed } = EXPORTED.attention;
  byId("bottleneck-about").textContent =
    `Trained by seq2seq.py’s own training on ${length[0]} to ${length[1]} random digits, ${steps.toLocaleString("en")} ` +
    `steps, seed ${seed}. Each model reads its own digit before it writes the next. ` +
    "Wrong digits are shown inverted.";
  update();
}
