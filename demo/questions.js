// The last panel: questions whose answers are worked out from the figures that the scripts saved.
"use strict";

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const nearest = (value, candidates) => argmax(candidates.map((candidate) => -Math.abs(Math.log(value / candidate))));

const fiftyBack = (curve) => curve.every_step.at(-1);
const driven = (vanishing, radius, activation) =>
  vanishing.gradient_size.find((c) => c.radius === radius && c.activation === activation && c.inputs !== false);
const gate = (gates, name) => gates.gradient_size[name].at(-1);
const withoutAttention = (reverse, length) => reverse.runs.filter((run) => run.length === length && !run.attention);

/** Each: the outputs that it needs, and what follows from them: question, options, which is right, why, where to look. */
const QUESTIONS = [
  {
    needs: ["gates"],
    make({ gates }) {
      const cells = ["RNN", "GRU, default", "LSTM, forget bias 1"];
      return {
        ask: "Untrained and fifty steps long: which cell passes most of the gradient back to the first input?",
        options: ["a plain RNN", "a GRU as it comes", "an LSTM with forget bias 1"],
        answer: argmax(cells.map((cell) => gate(gates, cell))),
        because: `What arrives is ${cells.map((cell) => `${sized(gate(gates, cell))} (${cell})`).join(", ")}.`,
        where: { panel: "signal", experiment: "LSTM, forget bias 1" },
      };
    },
  },
  {
    needs: ["gates"],
    make({ gates }) {
      const left = [0, 1, 3].map((bias) => gate(gates, `LSTM, forget bias ${bias}`));
      return {
        ask: "An LSTM’s forget bias is set to 3 instead of 0. What is left of the gradient after fifty steps?",
        options: left.map((size) => `about ${sized(size)}`),
        answer: 2,
        because: `A bias of 0 leaves ${sized(left[0])}, 1 leaves ${sized(left[1])}, and 3 leaves ${sized(left[2])}.`,
        where: { panel: "signal", experiment: "LSTM, forget bias 3" },
      };
    },
  },
  {
    needs: ["vanishing"],
    make({ vanishing }) {
      const size = fiftyBack(driven(vanishing, 0.9, "linear"));
      const sizes = [0.9, 0.5, 0.05, 0.005];
      return {
        ask: "A linear network multiplies every vector’s length by 0.9 at each step. What is left of 1 after fifty?",
        options: sizes.map((option) => `about ${option}`),
        answer: nearest(size, sizes),
        because: `Only ${sized(size)}, which is 0.9⁵⁰.`,
        where: { panel: "signal", experiment: "radius 0.9, linear" },
      };
    },
  },
  {
    needs: ["vanishing"],
    make({ vanishing }) {
      const [tanh, linear] = ["tanh", "linear"].map((activation) => fiftyBack(driven(vanishing, 1.1, activation)));
      return {
        ask: "The radius is 1.1, but the units are tanh and inputs drive them. After fifty steps the gradient has …",
        options: ["exploded (above 10)", "kept its size (0.1 to 10)", "vanished (below 0.1)"],
        answer: tanh > 10 ? 0 : tanh > 0.1 ? 1 : 2,
        because: `${sized(tanh)} is left with tanh, whose slope only ever shrinks what passes, and ${sized(linear)} without.`,
        where: { panel: "signal", experiment: "radius 1.1, tanh" },
      };
    },
  },
  {
    needs: ["reverse"],
    make({ reverse }) {
      const runs = withoutAttention(reverse, 20);
      const shares = [0.02, 0.2, 0.5, 0.9];
      const digits = percent(mean(runs.map((run) => run.digits_right)));
      return {
        ask: "Trained on twenty digits without attention for 2,000 steps: how many whole sequences come out right?",
        options: shares.map((share) => `about ${Math.round(100 * share)}%`),
        answer: nearest(mean(runs.map((run) => run.sequences_right)), shares),
        because:
          `${runs.map((run) => percent(run.sequences_right)).join(" and ")}, with one seed and another, ` +
          `though ${digits} of the single digits are right.`,
        where: { panel: "bottleneck" },
      };
    },
  },
  {
    needs: ["reverse"],
    make({ reverse }) {
      const places = withoutAttention(reverse, 40).map((run) => run.right_by_position);
      const early = mean(places.flatMap((right) => right.slice(0, 5)));
      const late = mean(places.flatMap((right) => right.slice(-5)));
      return {
        ask: "At forty digits the model without attention collapses. Which digits of its answer does it still get right?",
        options: ["the first ones it writes", "the last ones it writes", "all equally badly"],
        answer: early - late > 0.1 ? 0 : late - early > 0.1 ? 1 : 2,
        because:
          `${percent(early)} of the first five and ${percent(late)} of the last five are right; guessing gets 10%. ` +
          "One state has to hold all forty, and what it read last it has to write first.",
        where: { panel: "bottleneck" },
      };
    },
  },
  {
    needs: ["parallel"],
    make({ parallel: { GRU, attention } }) {
      const told = ({ ms, GFLOPs }) => `${ms.toFixed(0)} ms for ${GFLOPs.toFixed(2)} billion operations`;
      return {
        ask: "A GRU and attention read 1,024 vectors of width 256. Which is done first, and which computes more?",
        options: ["the GRU: it computes less", "attention, though it computes more", "attention: it computes less"],
        answer: GRU.ms < attention.ms ? 0 : attention.GFLOPs > GRU.GFLOPs ? 1 : 2,
        because: `The GRU took ${told(GRU)}, one step after the other; attention ${told(attention)}, all at once.`,
        where: { panel: "serial" },
      };
    },
  },
  {
    needs: ["kneser_ney", "char_models"],
    make({ kneser_ney, char_models }) {
      const of = (cell) =>
        char_models.runs.filter((run) => run.cell === cell).map((run) => run.validation_bits_per_char);
      const bits = [["Kneser–Ney counts with one fixed discount", kneser_ney.fixed_discount]];
      for (const cell of ["RNN", "GRU", "LSTM"]) bits.push([`a trained ${cell}`, mean(of(cell))]);
      return {
        ask: "Which of these guesses the next character of unseen posts best, the networks after 3,000 steps of training?",
        options: bits.map(([name]) => name),
        answer: argmax(bits.map(([, value]) => -value)),
        because:
          `Bits per character: ${bits.map(([name, value]) => `${value.toFixed(3)} (${name})`).join(", ")}. ` +
          `Counting with modified discounts, the best of seven contexts, takes ${kneser_ney.modified.toFixed(3)}.`,
        where: { panel: "read" },
      };
    },
  },
];

/** Which number a panel has on the page: those that are hidden have none. */
const numberOfPanel = (id) =>
  1 + [...document.querySelectorAll("main section:not([hidden])")].findIndex((section) => section.id === id);

const linkTo = (panel) => element("a", { href: `#${panel}` }, `See it in panel ${numberOfPanel(panel)}.`);

/** Of a list, what the saved outputs are enough for. */
const answered = (list, figures) =>
  list.filter(({ needs }) => needs.every((name) => name in figures)).map(({ make }) => make(figures));

function questionsPanel(showExperiment) {
  const questions = answered(QUESTIONS, EXPORTED.figures);
  const given = new Map(); // the first choice of each question, which is what counts

  function tellScore() {
    const right = questions.filter(({ answer }, i) => given.get(i) === answer).length;
    const open = questions.length - given.size;
    byId("questions-score").textContent = given.size
      ? `${right} of ${given.size} right at the first try${open ? `, ${open} to go` : ""}.`
      : `${counted(open, "question")}; the first try counts.`;
  }

  function ask({ ask, options, answer, because, where }, i) {
    const reason = element("p", { class: "because", hidden: "" });
    const link = linkTo(where.panel);
    if (where.experiment) link.addEventListener("click", () => showExperiment(where.experiment));
    const labels = options.map((option, place) => {
      const choose = () => {
        if (!given.has(i)) given.set(i, place);
        labels[place].classList.add(place === answer ? "right" : "not");
        const verdict = place === answer ? "Right. " : "No. ";
        reason.replaceChildren(element("strong", {}, verdict), `${because} `, link);
        reason.hidden = false;
        say(verdict + because);
        tellScore();
      };
      return element(
        "label",
        {},
        element("input", { type: "radio", name: `question-${i}`, change: choose }),
        ` ${option}`,
      );
    });
    return element("fieldset", { class: "question" }, element("legend", {}, `${i + 1}. ${ask}`), ...labels, reason);
  }

  byId("questions-list").append(...questions.map(ask));
  tellScore();
}
