// Serial against parallel: steps one after the other against one pass, the way between two tokens, and what must be kept.
"use strict";

const STEP_MS = 130;
const FLOAT_BYTES = 4;

function serialPanel() {
  const { parallel, cells_table } = EXPORTED.figures;
  const { width } = parallel;
  const field = byId("serial-text");
  const length = byId("serial-length");
  const ends = [byId("serial-from"), byId("serial-to")];
  let words = [];
  let stop = null;
  const chart = new Chart(byId("serial-chart"), {
    height: 230,
    xLabel: "tokens read",
    yLabel: "numbers",
    xLog: true,
    xTicks: [16, 64, 256, 1024, 4096, 16384],
  });

  function update() {
    halt();
    words = field.value.trim() ? field.value.trim().split(/\s+/) : [];
    for (const id of ["serial-rnn", "serial-attention"]) {
      byId(id).replaceChildren(...words.map((word) => element("span", { class: "token" }, word)));
    }
    const places = ends.map((end) => Number(end.value));
    const kept = places.every((place) => place < words.length) && places[0] !== places[1];
    const [from, to] = kept ? places : [Math.min(1, words.length - 1), Math.max(0, words.length - 2)];
    ends.forEach((end, side) => {
      end.replaceChildren(...words.map((word, i) => element("option", { value: i }, `${i + 1} ${word}`)));
      end.value = [from, to][side];
    });
    count(words.length, 1);
    drawPath();
  }

  // ---- the race

  /** Show that the RNN has made so many of its steps, and attention so many passes. */
  function count(steps, passes) {
    byId("serial-rnn-count").textContent = `step ${steps} of ${words.length}`;
    byId("serial-attention-count").textContent =
      `step ${Math.min(passes, words.length)} of ${Math.min(1, words.length)}`;
    [...byId("serial-rnn").children].forEach((span, i) => span.classList.toggle("done", i < steps));
    for (const span of byId("serial-attention").children) span.classList.toggle("done", passes > 0);
  }

  function race() {
    if (stop) return finish();
    if (!words.length) return field.focus();
    byId("serial-play").textContent = "Stop";
    count(0, 0);
    let made = 0;
    stop = animate(
      words.length * STEP_MS,
      (share) => {
        const due = Math.floor(share * words.length);
        if (made === due) return;
        count((made = due), 1);
      },
      finish,
    );
  }

  function halt() {
    stop?.();
    stop = null;
    byId("serial-play").textContent = "Run both";
  }

  function finish() {
    halt();
    count(words.length, 1);
    say(`RNN: ${counted(words.length, "step")}, one after the other. Attention: 1 step.`);
  }

  // ---- the way between two tokens

  function drawPath() {
    const [from, to] = ends.map((end) => Number(end.value)).sort((a, b) => a - b);
    const distance = to - from;
    const wide = byId("serial-path").clientWidth || 600;
    const [gap, base] = [wide / Math.max(1, words.length), 108];
    const x = (i) => (i + 0.5) * gap;
    const parts = words.map((_, i) =>
      svg("circle", { class: i === from || i === to ? "end" : "", cx: x(i), cy: base, r: 4 }),
    );
    for (let i = from; i < to; i++) {
      parts.push(svg("path", { class: "hop", d: `M${x(i)},${base + 6}q${gap / 2},${Math.min(34, gap)} ${gap},0` }));
    }
    if (distance) {
      const rise = Math.min(2 * base - 30, 40 + (distance * gap) / 2);
      parts.push(
        svg("path", {
          class: "leap",
          d: `M${x(from)},${base - 6}q${(distance * gap) / 2},${-rise} ${distance * gap},0`,
        }),
      );
    }
    for (const end of new Set(words.length ? [from, to] : [])) {
      const anchor = x(end) < 60 ? "start" : x(end) > wide - 60 ? "end" : "middle";
      const at = { start: x(end) - 4, middle: x(end), end: x(end) + 4 }[anchor];
      parts.push(svg("text", { x: at, y: base + 52, "text-anchor": anchor }, words[end]));
    }
    const size = { viewBox: `0 0 ${wide} 170`, height: 170 };
    const picture = svg("svg", { class: "path", ...size, "aria-hidden": "true" }, ...parts);
    byId("serial-path").replaceChildren(picture);
    byId("serial-path-readout").textContent = !words.length
      ? "Type a sentence."
      : distance
        ? `From “${words[from]}” to “${words[to]}”: ${counted(distance, "step")} through the RNN’s states (dashed), 1 by attention (solid).`
        : `“${words[from]}” is the same token: no way at all.`;
  }

  // ---- as the text grows

  // What cells_table.py counted: the GRU's state, and the keys and values of one token.
  const { GRU: state, "Transformer, token 1": token } = cells_table.state_bytes;
  const kept = { gru: () => state / FLOAT_BYTES, attention: (tokens) => (tokens * token) / FLOAT_BYTES };
  const bytes = (numbers) => {
    const kib = (FLOAT_BYTES * numbers) / 1024;
    return kib < 1024 ? `${kib.toLocaleString("en")} KiB` : `${(kib / 1024).toLocaleString("en")} MiB`;
  };
  const operations = (flops) => `${sized(flops / 1e9)} × 10⁹`;

  function grow() {
    const tokens = 2 ** Number(length.value);
    byId("serial-length-shown").textContent = tokens.toLocaleString("en");
    length.setAttribute("aria-valuetext", `${tokens.toLocaleString("en")} tokens`);
    const rows = [
      ["steps, one after the other", tokens.toLocaleString("en"), "1"],
      ["longest way between two tokens", (tokens - 1).toLocaleString("en"), "1"],
      [
        "operations for the whole text",
        operations(gruOperations(tokens, width)),
        operations(attentionOperations(tokens, width)),
      ],
      [
        "numbers kept for the next token",
        ...["gru", "attention"].map((name) => kept[name](tokens).toLocaleString("en")),
      ],
      ["the same in float32", ...["gru", "attention"].map((name) => bytes(kept[name](tokens)))],
    ];
    byId("serial-table").replaceChildren(
      ...rows.map(([name, ...cells]) =>
        element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell) => element("td", {}, cell))),
      ),
    );
    const lengths = Array.from({ length: 11 }, (_, i) => 2 ** (i + 4));
    const curve = (name, kind) => ({ points: lengths.map((n) => [n, kept[name](n)]), kind });
    const cursor = { x: tokens, ys: [kept.gru(tokens), kept.attention(tokens)] };
    chart.set([curve("gru", "ghost"), curve("attention", "now")], cursor);
  }

  furnish(
    chart.element,
    { role: "img", "aria-label": "attention’s line rises with the text, the GRU’s stays level" },
    [],
  );
  new ResizeObserver(drawPath).observe(byId("serial-path"));
  field.addEventListener("input", update);
  for (const end of ends)
    end.addEventListener("change", () => (drawPath(), say(byId("serial-path-readout").textContent)));
  byId("serial-play").addEventListener("click", race);
  length.addEventListener("input", grow);
  byId("serial-width").textContent = width;
  byId("serial-chart").before(
    element("ul", { class: "key" }, keyLine("now", "attention: keys and values"), keyLine("ghost", "GRU: its state")),
  );
  const { GRU, attention, sequence_length } = parallel;
  byId("serial-about").textContent =
    `What is kept is from outputs/cells_table.json. Operations are counted as in parallel.py, which measured ${sequence_length.toLocaleString("en")} steps of width ` +
    `${width}: ${GRU.GFLOPs.toFixed(2)} × 10⁹ in ${GRU.ms.toFixed(0)} ms by the GRU, ` +
    `${attention.GFLOPs.toFixed(2)} × 10⁹ in ${attention.ms.toFixed(0)} ms by attention.`;
  update();
  grow();
}
