// One bit, shown once its trainings are saved: how long each model learned to remember it, and the gradient that arrives.
"use strict";

function memoryPanel() {
  const { recall } = EXPORTED.figures;
  if (!recall) return;
  byId("memory").hidden = byId("memory-link").hidden = false;
  const cells = Object.keys(recall.delays);
  const longest = cells.map((cell) => recall.delays[cell]).reduce((a, b) => (b.length > a.length ? b : a));
  const delays = longest.map(({ delay }) => delay); // some model was tried at each
  const range = byId("memory-delay");
  const choice = byId("memory-cell");
  let before = null; // the cell that was chosen before

  const row = new TokenRow(byId("memory-delays"), {
    label: "Delay; choose one with the arrow keys",
    choose: (place) => {
      range.value = place;
      tell();
    },
    describe: (place) => `${delays[place].toLocaleString("en")} steps: ${outcome(at(place))}`,
  });
  const chart = new Chart(byId("memory-chart"), {
    xLabel: "delay",
    yLabel: "size",
    xLog: true,
    xTicks: delays,
  });
  furnish(chart.element, { role: "img" }, []);

  const find = (cell, delay) => recall.delays[cell].find((tried) => tried.delay === delay);
  const at = (place) => find(choice.value, delays[place]);
  const arriving = (cell, when) => delays.map((delay) => [delay, find(cell, delay)?.[`gradient_${when}`] ?? 0]);

  /** What became of the trainings at a delay. */
  function outcome(tried) {
    if (!tried) return "not tried, since a shorter delay wasn’t learned";
    const { solved, learning_rate, rates, solved_at, budget } = tried;
    if (!solved) {
      const failed = `none of ${counted(tried.tried, "training")} solved it`;
      return `${failed}, at ${counted(rates, "learning rate")}, ${counted(budget, "step")} each`;
    }
    const steps = `after ${counted(solved_at, "step")} (median) of at most ${budget.toLocaleString("en")}`;
    return `${solved} of ${counted(tried.tried, "seed")} solved it, ${steps}, at a learning rate of ${learning_rate}`;
  }

  function size(value) {
    if (value === null) return "none, since the loss wasn’t finite";
    return value ? sized(value) : "too small for float32";
  }

  /** The longest delay that was learned, and what is known of the next. */
  function reached({ delay, not_learned, budget_may_be_why }) {
    const longest = `the longest delay that most seeds learned is ${delay ? counted(delay, "step") : "none"}`;
    if (not_learned === null) return `${longest}; none longer was tried`;
    const next = not_learned.toLocaleString("en");
    if (!budget_may_be_why.length) return `${longest}; ${next} isn’t learned`;
    return `${longest}; whether more training would do for ${next} can’t be told (${budget_may_be_why.join("; ")})`;
  }

  /** The cell has changed. */
  function update() {
    const place = Math.min(Number(range.value), delays.length - 1);
    row.set(
      delays.map((delay) => [delay.toLocaleString("en"), "word"]),
      place,
    );
    delays.forEach((_, i) => {
      const tried = at(i);
      row.level(i, tried ? tried.solved / tried.tried : 0);
      row.spans[i].classList.toggle("waiting", !tried);
    });
    byId("memory-about").textContent =
      `${choice.value}: ${reached(recall.reach[choice.value])}. From outputs/recall.json. ` +
      "Gradients are medians over the seeds. Sizes below 10⁻²⁰ are drawn at the bottom.";
    byId("memory-curve-name").lastElementChild?.remove();
    byId("memory-curve-name").append(
      element(
        "ul",
        { class: "key" },
        keyLine("now", `${choice.value}, before training`),
        ...(before ? [keyLine("ghost", `${before}, before training`)] : []),
        keyLine("saved", `${choice.value}, after`),
      ),
    );
    tell();
  }

  /** The delay has changed. */
  function tell() {
    const place = Number(range.value);
    const tried = at(place);
    const steps = `${delays[place].toLocaleString("en")} steps`;
    byId("memory-delay-shown").textContent = delays[place].toLocaleString("en");
    range.setAttribute("aria-valuetext", steps);
    byId("memory-readout").replaceChildren(
      element("strong", {}, `${steps}: `),
      `${outcome(tried)}.`,
      tried
        ? ` The gradient that arrives: ${size(tried.gradient_before)} before training, ${size(tried.gradient_after)} after.`
        : "",
    );
    const curves = [
      ...(before ? [{ points: arriving(before, "before"), kind: "ghost" }] : []),
      { points: arriving(choice.value, "before"), kind: "now" },
      { points: arriving(choice.value, "after"), kind: "saved" },
    ];
    chart.set(curves, { x: delays[place], ys: tried ? [tried.gradient_before ?? 0] : [] });
    chart.element.setAttribute("aria-label", `Gradient against delay: ${byId("memory-readout").textContent}`);
    row.mark(place);
  }

  choice.append(...cells.map((cell) => element("option", { value: cell }, cell)));
  range.max = delays.length - 1;
  let last = choice.value;
  choice.addEventListener("change", () => {
    [before, last] = [last, choice.value];
    update();
    say(byId("memory-about").textContent);
  });
  range.addEventListener("input", tell);
  range.addEventListener("change", () => say(byId("memory-readout").textContent));
  update();
}
