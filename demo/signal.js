// The signal on the way back: the state rolls forward through an untrained network, and the gradient comes back.
"use strict";

const WIDTH = 64;
const INPUT = 0.5; // standard deviation of what the inputs add in vanishing.py's network
const STEPS_BACK = [1, 10, 25, 50];
const SEEDS = [0, 1, 2, 3, 4]; // of gates.py
const FORWARD_MS = 25; // for each token, and on the way back
const BACK_MS = 45;
const WORD = 4; // times as long as a character, since there are fewer
const OWN = "own";
const GATES = { RNN: {}, GRU: { u: "update", r: "reset" }, LSTM: { f: "forget", i: "input", o: "output" } };
const HELD = new Map([["", "computed"], ["1", "open"], ["0", "shut"]]); // what a gate can be held at

/** How bright a token is at a size: 0 at 10⁻⁸, 1 at 10⁴. */
const brightness = (size) => (size > 0 ? Math.max(0, Math.min(1, (Math.log10(size) + 8) / 12)) : 0);

/** The experiments whose curves are saved: vanishing.py's cases with their own draws, and gates.py's cells. */
function savedExperiments() {
  const { vanishing, gates } = EXPORTED.figures;
  const normal = unpack(EXPORTED.vanishing.normal, Float64Array);
  const perCase = normal.length / vanishing.gradient_size.length;
  const driven = vanishing.gradient_size.map(({ radius, activation, inputs = true, every_step }, i) => {
    const drawn = normal.subarray(i * perCase, (i + 1) * perCase);
    const vectors = Array.from({ length: perCase / WIDTH }, (_, t) => drawn.subarray(t * WIDTH, (t + 1) * WIDTH));
    const name = `radius ${radius.toFixed(1)}, ${activation}${inputs ? "" : ", no inputs"}`;
    return { script: "vanishing.py", name, setting: { cell: "RNN", radius, activation, inputs }, every_step, vectors };
  });
  const gated = Object.entries(gates.every_step).map(([name, every_step]) => {
    const bias = name.match(/bias ([+-]?\d+)/);
    const setting = { cell: name.slice(0, 4).replace(/\W/g, ""), bias: bias && Number(bias[1]), inputs: true };
    return { script: "gates.py", name, setting, every_step };
  });
  return [...driven, ...gated];
}

/** A character or word as a number of 32 bits: its characters are the digits, to the base 65,599. */
const numberOf = (token) => [...token].reduce((number, c) => Math.imul(number, 65599) + c.codePointAt(0), 0) >>> 0;

/** A vector for each character or word, the same whenever it comes: what torch draws with its number as the seed. */
const meaning = (token) => new TorchRandom(numberOf(token)).normals(WIDTH);

/** A sentence as tokens: what stands between spaces, or every character. */
const split = (text, words) => (words ? text.split(/\s+/).filter(Boolean) : [...text]);

/** Everything that a setting leads to: tokens, states, gradients on the way back, and their sizes at each token. */
class Passage {
  constructor(Q, setting, experiment, text) {
    this.setting = setting;
    this.experiment = experiment;
    if (experiment?.script === "gates.py") return this.gates();
    this.tokens = experiment
      ? Array.from(experiment.vectors.slice(1), (_, t) => String(t + 1))
      : split(text, setting.words);
    const vectors = experiment?.vectors ?? [new TorchRandom(0).normals(WIDTH), ...this.tokens.map(meaning)];
    if (setting.cell === "RNN") {
      this.network = plainNetwork(Q, setting.radius, setting.activation === "linear", setting.inputs ? INPUT : 0);
      const first = { h: vectors[0].map((value) => 0.5 * value) };
      this.states = forward(this.network, first, vectors.slice(1));
    } else {
      this.network = untrainedCell(setting.cell, WIDTH, SEEDS[0], setting.bias, setting.gates).cell;
      const inputs = vectors.slice(1).map((x) => (setting.inputs ? x : zeros(WIDTH)));
      this.states = forward(this.network, { h: zeros(WIDTH), c: setting.cell === "LSTM" && zeros(WIDTH) }, inputs);
    }
  }

  /** gates.py's five networks, each on its own inputs. What is shown of the states is the first one's. */
  gates() {
    const { cell, bias } = this.setting;
    this.runs = SEEDS.map((seed) => {
      const drawn = untrainedCell(cell, WIDTH, seed, bias);
      return { network: drawn.cell, states: forward(drawn.cell, { h: zeros(WIDTH), c: zeros(WIDTH) }, drawn.inputs) };
    });
    Object.assign(this, this.runs[0]);
    this.tokens = this.states.slice(1).map((_, t) => String(t + 1));
  }

  /** The sizes from ``start`` steps back on, with the output at a token (the first one is 1). */
  sizesFrom(output) {
    const upTo = (states) => states.slice(0, output + 1);
    if (!this.runs) return { start: 0, sizes: sizesAtStates(this.network, upTo(this.states)) };
    const all = this.runs.map(({ network, states }) => sizesAtInputs(network, upTo(states)));
    const median = (k) => all.map((sizes) => sizes[k]).sort((a, b) => a - b)[(SEEDS.length - 1) / 2];
    return { start: 1, sizes: all[0].map((_, k) => median(k)) };
  }

  gradientsFrom(output) {
    const everyDirection = new Float64Array(WIDTH).fill(1 / Math.sqrt(WIDTH));
    return backward(this.network, this.states.slice(0, output + 1), everyDirection);
  }

  get name() {
    if (this.experiment) return `${this.experiment.script}: ${this.experiment.name}`;
    const { cell, radius, activation, bias, gates, inputs, words } = this.setting;
    const which = cell === "RNN" ? `plain RNN, radius ${radius}, ${activation}` : `${cell}, gate bias ${signed(bias)}`;
    const held = Object.entries(gates ?? {}).map(([gate, value]) => `, ${GATES[cell][gate]} ${HELD.get(String(value))}`);
    return which + held.join("") + (inputs ? "" : ", no inputs") + (words ? ", words" : "");
  }
}

const ABOUT_TOKENS =
  "Nothing is learned here: a character, or a word between spaces, is a random vector that torch draws from a seed " +
  "made of its letters, the same whenever it comes. Words make fewer steps, not other ones.";

/** What a setting's network is made of. */
function aboutNetwork(experiment, cell) {
  if (experiment?.script === "gates.py") {
    return (
      "The five networks and inputs of gates.py, drawn again; what counts is the gradient of the sum of the last " +
      "state, at the input, and the median of the five."
    );
  }
  if (experiment) return "The matrix and the random inputs of vanishing.py, which don’t depend on the sentence.";
  if (cell === "RNN") {
    return (
      "The matrix is orthogonal, times the radius. A plain RNN has no gate to bias, to open or to shut. " + ABOUT_TOKENS
    );
  }
  const gate = cell === "GRU" ? "update" : "forget";
  const keeps = cell === "GRU" ? "An open update gate keeps the whole state, as in torch. " : "";
  return (
    `The weights are as torch draws them, except the bias of the ${gate} gate. A gate that is held is 1 or 0 for all ` +
    `units at every step, and no gradient goes through it. ${keeps}${ABOUT_TOKENS}`
  );
}

const signed = (value) => (value > 0 ? `+${value}` : String(value).replace("-", "−"));

/** Sets the panel up. What it returns shows a saved experiment, by name. */
function signalPanel() {
  const values = unpack(EXPORTED.vanishing.Q, Float64Array);
  const Q = { rows: WIDTH, columns: WIDTH, values };
  const experiments = savedExperiments();
  const field = byId("signal-text");
  const choice = byId("signal-case");
  const radios = (name) => [...document.getElementsByName(`signal-${name}`)];
  const chosen = (name) => radios(name).find((radio) => radio.checked).value;
  let passage = null;
  let output = 0; // the token whose state sends the gradient, from 1
  let now = null; // the curve of this setting: {name, start, sizes}
  let before = null; // and of the one before
  let settled = null; // the curve when the reader last let go of a control
  let back = 25; // steps back that are read off
  let stop = null;

  const strip = new Strip(byId("signal-state"), WIDTH);
  const tokens = new TokenRow(byId("signal-tokens"), {
    label: "Output position; choose a token with the arrow keys",
    choose: (place) => {
      output = place + 1;
      trace();
      settle();
    },
    describe: (place) => `token ${place + 1}, ${spoken(passage.tokens[place])}`,
    hover: (place) => place >= 0 && place < output && !stop && readOff(stepsTo(place)),
  });
  const chart = new Chart(byId("signal-chart"), {
    xLabel: "steps back",
    yLabel: "size",
    xTicks: [1, 10, 20, 30, 40, 50, 60, 80, 100, 120],
    point: (x) => now && readOff(Math.round(x)),
  });
  const tellChart = slider(chart.element, {
    label: "Steps back at which the curve is read",
    count: () => now.sizes.length,
    place: () => back - now.start,
    move: (place) => readOff(place + now.start),
    describe: () => byId("signal-readout").textContent,
  });

  // ---- from the controls to a setting, and back

  function setting() {
    const cell = chosen("cell");
    const gates = Object.keys(GATES[cell]).map((gate) => [gate, chosen(gate)]);
    return {
      cell,
      activation: chosen("activation"),
      radius: Number(byId("signal-radius").value),
      bias: Number(byId("signal-bias").value),
      gates: Object.fromEntries(gates.filter(([, held]) => held).map(([gate, held]) => [gate, Number(held)])),
      inputs: byId("signal-inputs").checked,
      words: chosen("unit") === "words",
    };
  }

  /** The controls as a setting has them; its gates are as computed where it doesn't hold them. */
  function put({ cell, activation, radius, bias, gates = {}, inputs }) {
    for (const gate of Object.values(GATES).flatMap(Object.keys)) {
      radios(gate).forEach((radio) => (radio.checked = radio.value === String(gates[gate] ?? "")));
    }
    radios("cell").forEach((radio) => (radio.checked = radio.value === cell));
    if (activation) radios("activation").forEach((radio) => (radio.checked = radio.value === activation));
    if (radius !== undefined) byId("signal-radius").value = radius;
    if (typeof bias === "number") byId("signal-bias").value = bias;
    byId("signal-inputs").checked = inputs;
  }

  function tellControls() {
    const { cell, radius, bias } = setting();
    const drawn = passage.experiment && passage.setting.bias === null;
    const plain = cell === "RNN";
    for (const id of ["signal-radius", "signal-bias"]) {
      const off = plain === (id === "signal-bias");
      byId(id).disabled = off;
      byId(id).parentElement.classList.toggle("off", off);
    }
    byId("signal-activation").disabled = !plain;
    byId("signal-unit").disabled = Boolean(passage.experiment);
    byId("signal-gates").hidden = plain;
    for (const fieldset of byId("signal-gates").children) fieldset.hidden = !(fieldset.dataset.gate in GATES[cell]);
    byId("signal-radius-shown").textContent = radius.toFixed(2);
    byId("signal-bias-shown").textContent = drawn ? "as drawn" : signed(bias);
    field.disabled = Boolean(passage.experiment);
    byId("signal-which").textContent = aboutNetwork(passage.experiment, cell);
  }

  // ---- from a setting to curves

  /** A control has changed: compute everything again. */
  function update() {
    halt();
    const experiment = experiments[choice.value];
    const last = !passage || output === passage.tokens.length;
    passage = new Passage(Q, experiment?.setting ?? setting(), experiment, field.value);
    const count = passage.tokens.length;
    output = experiment || last ? count : Math.min(output, count);
    tokens.set(
      passage.tokens.map((token) => [experiment ? token : visible(token), kindOf(token)]),
      output - 1,
    );
    tellControls();
    trace();
  }

  const unit = () => (passage.experiment ? "step" : passage.setting.words ? "word" : "character");

  const kindOf = (token) => (unit() !== "character" ? unit() : visible(token) === token ? "" : "blank");

  /** The output position has changed: the way back starts elsewhere. */
  function trace() {
    halt();
    now = { name: passage.name, ...passage.sizesFrom(output) };
    before = settled;
    light();
    tellFirst();
    const { experiment } = passage;
    const saved = experiment && output === passage.tokens.length ? experiment.every_step : null;
    byId("signal-curve-name").replaceChildren(
      passage.runs ? "Size of the gradient at the input against steps back" : "Size of the gradient against steps back",
      element(
        "ul",
        { class: "key" },
        keyLine("now", now.name),
        ...(before ? [keyLine("ghost", `before: ${before.name}`)] : []),
        ...(saved ? [keyLine("saved", `outputs/${experiment.script.replace("py", "json")}`)] : []),
      ),
    );
    const points = ({ sizes, start }) => sizes.map((size, k) => [k + start, size]);
    now.curves = [
      ...(before ? [{ points: points(before), kind: "ghost" }] : []),
      { points: points(now), kind: "now" },
      ...(saved ? [{ points: saved.map((size, k) => [k + 1, size]), kind: "saved" }] : []),
    ];
    const cells = (curve) => STEPS_BACK.map((k) => element("td", {}, shownAt(curve, k)));
    byId("signal-table").replaceChildren(
      ...[
        ["this setting", now],
        ["before", before],
      ]
        .filter(([, curve]) => curve)
        .map(([name, curve]) => element("tr", {}, element("th", { scope: "row" }, name), ...cells(curve))),
    );
    readOff(back);
  }

  const at = (curve, k) => curve.sizes[k - curve.start];
  const shownAt = (curve, k) => (at(curve, k) === undefined ? "–" : sized(at(curve, k)));

  /** The reader has let go of a control: the next change is compared with this curve. */
  function settle() {
    settled = now;
  }

  /** Every token lit by the size at it. */
  function light() {
    tokens.spans.forEach((_, place) => {
      const size = at(now, stepsTo(place));
      tokens.level(place, size === undefined ? 0 : brightness(size));
    });
    showState(output);
  }

  /** How many steps back a token is: its state, or its input, which is a step further. */
  const stepsTo = (place) => output - 1 - place + now.start;

  function showState(t) {
    const { h } = passage.states[t];
    const name = t ? `h${subscript(t)}, after “${spoken(passage.tokens[t - 1])}”` : "h₀, before the first token";
    byId("signal-state-name").textContent = `State ${name}`;
    strip.show(h, `State ${name}: ${WIDTH} units`);
  }

  /** What has come all the way: the size at the first token. */
  function tellFirst() {
    const steps = stepsTo(0);
    byId("signal-first").replaceChildren(
      ...(output
        ? [
            `At the first ${unit()}, “${spoken(passage.tokens[0])}”, ${counted(steps, "step")} back: `,
            element("strong", {}, sized(at(now, steps))),
          ]
        : ["Type a sentence."]),
    );
  }

  function readOff(steps) {
    back = Math.max(now.start, Math.min(now.start + now.sizes.length - 1, steps));
    const place = output - 1 - back + now.start;
    const where = place >= 0 ? `at “${spoken(passage.tokens[place])}”` : "at the initial state";
    const earlier = before && at(before, back) !== undefined ? `; before: ${sized(at(before, back))}` : "";
    byId("signal-readout").replaceChildren(
      element("strong", {}, sized(at(now, back))),
      ` ${counted(back, "step")} back, ${where}${earlier}`,
    );
    chart.set(now.curves, { x: back, ys: [at(now, back)] });
    tellChart();
  }

  // ---- the state rolls forward, the gradient comes back

  function play() {
    if (stop) return light(halt());
    if (!output) return field.focus();
    const gradients = passage.gradientsFrom(output);
    tokens.spans.forEach((span, place) => {
      span.classList.add("waiting");
      tokens.level(place, 0);
    });
    byId("signal-play").textContent = "Stop";
    let read = 0;
    const rollForward = (share) => {
      const due = Math.round(share * output);
      if (read === due) return;
      for (; read < due; read++) tokens.spans[read].classList.remove("waiting");
      pulse(read - 1);
      showState(read);
    };
    let come = -1; // steps back
    const comeBack = (share) => {
      const due = Math.round(share * (output - 1));
      if (come === due) return;
      for (; come < due; come++) tokens.level(output - 2 - come, brightness(at(now, come + 1 + now.start)));
      pulse(output - 1 - come);
      readOff(come + now.start);
      const which = passage.runs ? " in the first network" : `, of size ${sized(at(now, come))}`;
      const name = `Gradient at h${subscript(output - come)}${which}: its largest entry fills the strip`;
      byId("signal-state-name").textContent = name;
      strip.show(gradients[come].h, name, true);
    };
    const pace = output * (passage.setting.words ? WORD : 1);
    const turn = () => (stop = animate(pace * BACK_MS, comeBack, () => light(halt())));
    stop = animate(pace * FORWARD_MS, rollForward, turn);
  }

  function pulse(place) {
    tokens.element.querySelector(".pulse")?.classList.remove("pulse");
    tokens.spans[place]?.classList.add("pulse");
  }

  function halt() {
    stop?.();
    stop = null;
    pulse(-1);
    tokens.spans.forEach((span) => span.classList.remove("waiting"));
    byId("signal-play").textContent = "Play";
  }

  // ---- wiring

  /** Take a setting from the captions. */
  function apply(wanted) {
    choice.value = OWN;
    put({ ...setting(), gates: {}, ...wanted });
    update();
    settle();
    say(`${now.name}: ${byId("signal-readout").textContent}`);
  }

  function touched() {
    choice.value = OWN;
    update();
  }

  for (const [gate, name] of Object.values(GATES).flatMap(Object.entries)) {
    const options = [...HELD].map(([value, held]) => {
      const radio = element("input", { type: "radio", name: `signal-${gate}`, value });
      radio.checked = !value;
      return element("label", {}, radio, ` ${held}`);
    });
    const legend = element("legend", {}, `${name} gate`);
    byId("signal-gates").append(element("fieldset", { "data-gate": gate }, legend, ...options));
  }
  choice.append(element("option", { value: OWN }, "your own sentence and settings"));
  for (const script of ["vanishing.py", "gates.py"]) {
    const options = experiments
      .map((experiment, i) => [experiment, element("option", { value: i }, experiment.name)])
      .filter(([experiment]) => experiment.script === script)
      .map(([, option]) => option);
    choice.append(element("optgroup", { label: `as in ${script}` }, ...options));
  }
  choice.addEventListener("change", () => {
    put(experiments[choice.value]?.setting ?? setting());
    update();
    settle();
  });
  const controls = [
    ...["cell", "activation", "unit", ...Object.values(GATES).flatMap(Object.keys)].flatMap(radios),
    ...["radius", "bias", "inputs"].map((id) => byId(`signal-${id}`)),
  ];
  for (const control of controls) {
    control.addEventListener("input", touched);
    control.addEventListener("change", () => {
      settle();
      say(`${now.name}: ${byId("signal-readout").textContent}`);
    });
  }
  field.addEventListener("input", update);
  field.addEventListener("change", settle);
  byId("signal-play").addEventListener("click", play);
  for (const link of document.querySelectorAll("[data-signal]")) {
    link.addEventListener("click", () => apply(JSON.parse(link.dataset.signal)));
  }
  update();
  settle();
  return (name) => {
    choice.value = experiments.findIndex((experiment) => experiment.name === name);
    choice.dispatchEvent(new Event("change"));
  };
}

const subscript = (n) => String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
