// One token at a time: a trained GRU reads a text one character at a time, and goes on with it.
"use strict";

const LIKELIEST = 5;
const WRITTEN = 120; // characters that it writes at a time
const LONGEST = 600; // characters
const WRITE_MS = 45; // for each character

function readPanel() {
  const exported = EXPORTED.characters;
  const model = new CharacterModel(exported);
  const field = byId("read-text");
  const temperature = byId("read-temperature");
  let steps = []; // for each character: the state after it, and its own bits
  let own = Infinity; // how many characters the reader typed; the model wrote the rest
  let stop = null;

  const strip = new Strip(byId("read-state"), exported.hidden);
  const tokens = new TokenRow(byId("read-tokens"), {
    label: "Characters read; choose one with the arrow keys",
    choose: show,
    describe: (i) =>
      `${spoken(steps[i].character)}, character ${i + 1}${i ? `, ${steps[i].bits.toFixed(1)} bits` : ""}`,
  });
  const rows = Array.from({ length: LIKELIEST }, () => {
    const parts = ["character", "bar", "share"].map((kind) => element("span", { class: kind }));
    byId("read-next").append(element("li", {}, ...parts));
    return parts;
  });

  /** Read what is new in the text: what comes before that has been read already. */
  function read() {
    const characters = [...field.value];
    let same = 0;
    while (same < characters.length && steps[same]?.character === characters[same]) same++;
    steps = steps.slice(0, same);
    for (const character of characters.slice(same)) {
      const before = steps.at(-1)?.state ?? model.first;
      const bits = steps.length ? model.bits(before, character) : 0; // there is nothing to guess the first one from
      steps.push({ character, bits, state: model.read(before, character) });
    }
    tokens.set(
      steps.map(({ character }, i) => [visible(character), kindOf(character, i)]),
      steps.length - 1,
    );
    steps.forEach(({ bits }, i) => tokens.level(i, Math.min(1, bits / 8)));
    tellUnknown(characters);
    show(tokens.chosen);
  }

  const kindOf = (character, i) => `${i >= own ? "written" : ""} ${visible(character) === character ? "" : "blank"}`;

  function tellUnknown(characters) {
    const unknown = [...new Set(characters.filter((character) => !model.knows(character)))];
    byId("read-unknown").textContent = unknown.length
      ? `${unknown.join(" ")}: never seen in training, so it reads the sign that stands for all such characters.`
      : "";
  }

  function show(place) {
    const step = steps[place];
    const name = step ? `“${spoken(step.character)}”` : "nothing";
    byId("read-state-name").textContent = `State after ${name}: ${exported.hidden} units from −1 to 1`;
    const above = step ? step.state.h.filter((value) => value > 0).length : 0;
    strip.show((step?.state ?? model.first).h, `State after ${name}: ${above} of ${exported.hidden} units above zero`);

    const odds = step ? model.odds(step.state) : [];
    const best = [...odds.keys()].sort((a, b) => odds[b] - odds[a]);
    rows.forEach(([character, bar, share], i) => {
      const id = best[i];
      const shown = model.characters[id];
      character.textContent = step ? visible(shown) : "";
      character.title = step ? spoken(shown) : "";
      bar.style.transform = `scaleX(${odds[id] ?? 0})`;
      share.textContent = step ? percent(odds[id]) : "";
    });

    const scored = steps.slice(1, place + 1);
    const mean = scored.reduce((sum, { bits }) => sum + bits, 0) / scored.length;
    byId("read-bits").replaceChildren(
      ...(!step
        ? ["Type something: the first character is what it starts from."]
        : !place
          ? ["The first character is given; from the second on it pays for each in bits."]
          : [
              element("strong", {}, mean.toFixed(2)),
              ` bits per character so far, ${step.bits.toFixed(2)} for ${name}`,
            ]),
    );
  }

  function goOn() {
    if (stop) return finish();
    if (!steps.length) return field.focus();
    own = Math.min(own, steps.length);
    byId("read-go").textContent = "Stop";
    const count = Math.min(WRITTEN, LONGEST - steps.length);
    let written = 0;
    stop = animate(
      count * WRITE_MS,
      (share) => {
        const due = Math.round(share * count);
        if (written === due) return;
        for (; written < due; written++) {
          const state = steps.at(-1).state;
          const odds = model.odds(state, Number(temperature.value));
          const character = model.characters[pick(odds, Math.random())];
          steps.push({ character, bits: model.bits(state, character), state: model.read(state, character) });
        }
        field.value = steps.map(({ character }) => character).join("");
        field.scrollTop = field.scrollHeight;
        read();
      },
      finish,
    );
  }

  function finish() {
    stop?.();
    stop = null;
    byId("read-go").textContent = "Go on";
    say(
      `It wrote: ${steps
        .slice(own)
        .map(({ character }) => character)
        .join("")}`,
    );
  }

  field.addEventListener("input", () => {
    if (stop) finish();
    own = Infinity;
    read();
  });
  byId("read-go").addEventListener("click", goOn);
  byId("read-clear").addEventListener("click", () => {
    if (stop) finish();
    field.value = "";
    own = Infinity;
    read();
    field.focus();
  });
  temperature.addEventListener("input", tellTemperature);
  function tellTemperature() {
    const value = Number(temperature.value);
    byId("read-temperature-shown").textContent = value ? value.toFixed(1) : "0 (likeliest)";
  }

  byId("read-hidden").textContent = exported.hidden;
  byId("read-about").textContent =
    `Trained by charlm.py on the text of 28 posts: GRU, ${exported.hidden} units, seed ${exported.seed}, step ` +
    `${exported.step.toLocaleString("en")}, ${model.characters.length} characters. On two held-out posts it takes ` +
    `${exported.validation_bits_per_char.toFixed(3)} bits per character.`;
  tellTemperature();
  read();
}

/** The index at which the odds, added up, pass a random number from 0 to 1. */
function pick(odds, random) {
  let sum = 0;
  const index = odds.findIndex((share) => (sum += share) > random);
  return index < 0 ? argmax(odds) : index;
}
