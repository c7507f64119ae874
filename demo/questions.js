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
          `Counting with modified discounts, at its best context, takes ${kneser_ney.modified.toFixed(3)}.`,
        where: { panel: "read" },
      };
    },
  },
  {
    needs: ["beat_counting"],
    make({ beat_counting: { counting, LSTM, GPT, mixture } }) {
      const bits = [
        ["modified Kneser–Ney, which counts", counting],
        ["an LSTM of 512 units", LSTM],
        ["a GPT of four blocks", GPT],
        ["all of them mixed", mixture],
      ];
      return {
        ask: "Tuned and stopped on posts of their own, dropping and decaying: which guesses unseen posts best?",
        options: bits.map(([name]) => name),
        answer: argmax(bits.map(([, value]) => -value)),
        because: `Bits per character: ${bits.map(([name, value]) => `${value.toFixed(3)} (${name})`).join(", ")}.`,
        where: { panel: "read" },
      };
    },
  },
];

const meanOf = (reverse, length, attention, name) =>
  mean(reverse.runs.filter((run) => run.length === length && run.attention === attention).map((run) => run[name]));

/** Each: the outputs that it needs, and what follows: a question to answer aloud, why, and what which script measured. */
const ALOUD = [
  {
    needs: ["cells_table"],
    make: ({ cells_table: { units, state_bytes } }) => ({
      ask: "A recurrent network has read a thousand words. What does it still have of them?",
      because:
        "One vector, as long as it was before the first word. Each step makes it anew from the one before and the new " +
        "input, by the same weights. So a fixed number of weights reads any length, and all that was read shares the " +
        "same room.",
      measured: [
        [
          `A GRU’s state of ${units} units takes ${state_bytes.GRU.toLocaleString("en")} bytes after any number of tokens; ` +
            `what attention keeps grows by ${state_bytes["Transformer, token 1"].toLocaleString("en")} with each token`,
          "beyond/cells_table.py",
        ],
      ],
      panel: "serial",
    }),
  },
  {
    needs: ["parallel"],
    make: ({ parallel: { GRU, attention, sequence_length } }) => ({
      ask: "Why don’t more cores get a recurrent network through a sentence in fewer steps?",
      because:
        "A step needs the state that the step before it gives. The steps are a chain as long as the sentence, and cores " +
        "can only help within a step. Attention computes each position from the inputs alone, so all of them at once.",
      measured: [
        [
          `The GRU took ${GRU.ms.toFixed(0)} ms for ${sequence_length.toLocaleString("en")} steps, attention ` +
            `${attention.ms.toFixed(0)} ms for one pass with ${(attention.GFLOPs / GRU.GFLOPs).toFixed(1)} times the arithmetic`,
          "parallel.py",
        ],
      ],
      panel: "serial",
    }),
  },
  {
    needs: ["vanishing"],
    make({ vanishing }) {
      const [linear, tanh, grown] = [
        [0.9, "linear"],
        [0.9, "tanh"],
        [1.1, "linear"],
      ].map((which) => sized(fiftyBack(driven(vanishing, ...which))));
      return {
        ask: "Show step by step how the gradient of a plain recurrent network comes to nothing.",
        because:
          "From each state to the one before, it is multiplied by the slopes of tanh, which are 1 at most, and by the " +
          "recurrent matrix transposed, the same one every time. Factors that each shrink it a little make a power that " +
          "shrinks it to nothing, and nothing is learned from far away. A matrix that stretches enough makes it explode.",
        measured: [
          [
            `Fifty steps at radius 0.9 leave ${linear} of 1 without tanh and ${tanh} with it; at radius 1.1 without tanh ` +
              `it is ${grown}`,
            "vanishing.py",
          ],
        ],
        panel: "signal",
      };
    },
  },
  {
    needs: ["gates", "cell_path"],
    make({ gates, cell_path }) {
      const left = (bias) => sized(gate(gates, `LSTM, forget bias ${bias}`));
      return {
        ask: "What does a gradient find in an LSTM that a plain network doesn’t give it?",
        because:
          "A way along the cell, which is kept in part and added to, not multiplied by a matrix. On that way back each " +
          "step multiplies by the forget gate, unit by unit, and a gate near 1 leaves it as it is. It is no gift: the " +
          "gate has to be open, and much of what arrives has come by other ways, through the candidate.",
        measured: [
          [`Fifty steps back ${left(3)} arrives with a forget bias of 3 and ${left(0)} with 0`, "gates.py"],
          [
            `Of the ${sized(cell_path.full)} the cell alone would hand on ${sized(cell_path["cell alone"])}`,
            "beyond/cell_path.py",
          ],
        ],
        panel: "signal",
      };
    },
  },
  {
    needs: ["cells_table", "char_models"],
    make({ cells_table: { units, parameters }, char_models }) {
      const bits = (cell) =>
        mean(char_models.runs.filter((run) => run.cell === cell).map((run) => run.validation_bits_per_char)).toFixed(3);
      return {
        ask: "A GRU or an LSTM: what would decide it for you?",
        because:
          "Both stop the same decay in the same way, by adding to a state through gates. The GRU has two gates and one " +
          "state, so fewer weights and less to compute; the LSTM has three, and a cell apart from what it shows. Begin " +
          "with the smaller one, and let your own task say whether the other is worth its price.",
        measured: [
          [
            `A layer of ${units} units has ${parameters.GRU.toLocaleString("en")} parameters as a GRU and ` +
              `${parameters.LSTM.toLocaleString("en")} as an LSTM`,
            "beyond/cells_table.py",
          ],
          [
            `On unseen text, after ${char_models.runs[0].steps.toLocaleString("en")} steps of training, the GRU takes ` +
              `${bits("GRU")} bits per character and the LSTM ${bits("LSTM")}`,
            "char_models.py",
          ],
        ],
        panel: "signal",
      };
    },
  },
  {
    needs: ["reverse"],
    make({ reverse }) {
      const right = (name) => percent(meanOf(reverse, 20, false, name));
      return {
        ask: "What does a decoder read in training, what in use, and what does the difference cost?",
        because:
          "In training the right token before, so-called teacher forcing: it learns fast, since no step suffers from the " +
          "mistakes before it. In use it reads what it wrote itself. After a mistake it is where training never was, and " +
          "may make more of them: exposure bias.",
        measured: [
          [
            `Of twenty digits, without attention, ${right("teacher_forced_digits_right")} are right when each step reads ` +
              `the right digit before it, and ${right("digits_right")} when it reads its own`,
            "reverse.py",
          ],
        ],
        panel: "bottleneck",
      };
    },
  },
  {
    needs: ["reverse"],
    make({ reverse }) {
      const whole = (attention) =>
        [5, 10, 20].map((length) => percent(meanOf(reverse, length, attention, "sequences_right"))).join(", ");
      return {
        ask:
          "An encoder and a decoder do well on short inputs and badly on long ones. Why, and what does attention do " +
          "about it?",
        because:
          "All that the decoder gets is the encoder’s last state, as large for fifty tokens as for five, and what was " +
          "read first has been through most updates. With attention the decoder weighs all the states of the encoder at " +
          "each step, and nothing has to fit into the last one.",
        measured: [
          [
            `Whole sequences of 5, 10 and 20 digits right: without attention ${whole(false)}, with attention ${whole(true)}`,
            "reverse.py",
          ],
        ],
        panel: "bottleneck",
      };
    },
  },
  {
    needs: ["ctc", "ctc_digits"],
    make({ ctc, ctc_digits: { error } }) {
      return {
        ask: "How does CTC learn from transcripts without knowing which frame is which letter, and what can it not do?",
        because:
          "It counts every path, a label or a blank for each frame, that collapses to the transcript, and a recursion " +
          "along the frames adds up their probabilities without a list. The labels come in the order of the frames, and " +
          "there are no more of them than frames. A decoder with attention may write in another order, and at any length.",
        measured: [
          [
            `${ctc.labels_of_speech} labels in ${ctc.frames_of_speech} frames have ${sized(ctc.paths_of_speech)} paths`,
            "beyond/ctc.py",
          ],
          [
            `CTC gets ${percent(error["CTC, forwards"])} of the digits wrong in the order in which they are spoken and ` +
              `${percent(error["CTC, reversed"])} in the opposite one, attention ${percent(error["attention, reversed"])} there`,
            "beyond/ctc_digits.py",
          ],
        ],
        panel: "ctc",
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

  const aloud = ({ ask, because, measured, panel }) =>
    element(
      "details",
      {},
      element("summary", {}, ask),
      element("p", {}, because),
      element(
        "p",
        {},
        element("strong", {}, "Measured."),
        ...measured.flatMap(([figure, script]) => [` ${figure} (`, element("code", {}, script), ")."]),
        " ",
        linkTo(panel),
      ),
    );

  byId("questions-list").append(...questions.map(ask));
  byId("questions-aloud").append(...answered(ALOUD, EXPORTED.figures).map(aloud));
  tellScore();
}
