// One token at a time: a trained GRU and a trained GPT read a text character by character, and one goes on with it.
"use strict";

const LIKELIEST = 5;
const WRITTEN = 120; // characters that it writes at a time
const LONGEST = 600; // characters, as the field's maxlength
const WRITE_MS = 45; // for each character

function readPanel() {
  const exported = { GRU: EXPORTED.gru, GPT: EXPORTED.gpt };
  const readers = { GRU: new GruReader(exported.GRU), GPT: new GptReader(exported.GPT) };
  const names = Object.keys(readers);
  const field = byId("read-text");
  const temperature = byId("read-temperature");
  const chosen = () => document.querySelector("#read-model :checked").value;
  let steps = []; // for each character: the state of each model after it, and its bits
  let own = Infinity; // how many characters the reader typed; a model wrote the rest
  let stop = null;

  const strip = new Strip(byId("read-state"), exported.GRU.hidden);
  const tokens = new TokenRow(byId("read-tokens"), {
    label: "Characters read; choose one with the arrow keys",
    choose: show,
    describe: (i) =>
      `${spoken(steps[i].character)}, character ${i + 1}` +
      (i ? names.map((name) => `, ${name} ${steps[i][name].bits.toFixed(1)} bits`).join("") : ""),
  });
  const odds = Object.fromEntries(names.map((name) => [name, new Odds(byId(`read-next-${name}`), readers[name])]));
  const looks = headChoice();

  /** The choice of a head, or of all of them; how much of each character it looks at, given a state. */
  function headChoice() {
    const { blocks, heads } = exported.GPT;
    const all = Array.from({ length: blocks * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
    const option = (value, text) => element("option", { value }, text);
    byId("read-head").append(
      option("", "all heads, on average"),
      ...all.map(([block, head], i) => option(i, `block ${block + 1}, head ${head + 1}`)),
    );
    return ({ looked }) => {
      const value = byId("read-head").value;
      const some = value === "" ? all : [all[value]];
      const of = (place) => some.reduce((sum, [block, head]) => sum + looked[block][head][place], 0) / some.length;
      return Array.from(looked[0][0], (_, place) => of(place));
    };
  }

  /** One more step: what each model knows after a character, and what the character cost it. */
  function step(last, character) {
    const of = (name) => {
      const before = last?.[name].state ?? readers[name].first;
      const bits = last ? readers[name].bits(before, character) : 0; // there is nothing to guess the first one from
      return { bits, state: readers[name].read(before, character) };
    };
    return { character, ...Object.fromEntries(names.map((name) => [name, of(name)])) };
  }

  /** Read what is new in the text: what comes before that has been read already. */
  function read() {
    const characters = [...field.value];
    let same = 0;
    while (same < characters.length && steps[same]?.character === characters[same]) same++;
    steps = steps.slice(0, same);
    for (const character of characters.slice(same)) steps.push(step(steps.at(-1), character));
    tokens.set(
      steps.map(({ character }, i) => [visible(character), kindOf(character, i)]),
      steps.length - 1,
    );
    showSurprise();
    tellUnknown(characters);
    show(tokens.chosen);
  }

  const kindOf = (character, i) => `${i >= own ? "written" : ""} ${visible(character) === character ? "" : "blank"}`;

  function showSurprise() {
    steps.forEach((one, i) => tokens.level(i, Math.min(1, one[chosen()].bits / 8)));
  }

  function tellUnknown(characters) {
    const unknown = [...new Set(characters.filter((character) => !readers.GRU.knows(character)))];
    byId("read-unknown").textContent = unknown.length
      ? `${unknown.join(" ")}: never seen in training, so both read the sign that stands for all such characters.`
      : "";
  }

  function show(place) {
    const at = steps[place];
    const name = at ? `“${spoken(at.character)}”` : "nothing";
    byId("read-state-name").textContent = `The GRU’s state after ${name}: ${exported.GRU.hidden} numbers from −1 to 1`;
    const { h } = at?.GRU.state ?? readers.GRU.first;
    const above = h.filter((value) => value > 0).length;
    strip.show(h, `State after ${name}: ${above} of ${exported.GRU.hidden} units above zero`);
    showLooks(place);
    for (const reader of names) {
      odds[reader].show(at?.[reader].state);
      byId(`read-bits-${reader}`).replaceChildren(...(place > 0 ? costs(reader, place) : []));
    }
    byId("read-given").textContent = !at
      ? "Type something: the first character is what they start from."
      : place
        ? ""
        : "The first character is given; from the second on they pay for each in bits.";
  }

  function costs(reader, place) {
    const scored = steps.slice(1, place + 1).map((one) => one[reader].bits);
    const mean = scored.reduce((a, b) => a + b) / scored.length;
    const last = `, ${scored.at(-1).toFixed(2)} for “${spoken(steps[place].character)}”`;
    return [`${reader} `, element("strong", {}, mean.toFixed(2)), ` bits per character so far${last}`];
  }

  /** The characters that the GPT still sees, each with its share of what a head looks at. */
  function showLooks(place) {
    const at = steps[place];
    byId("read-looks").replaceChildren();
    byId("read-looked").textContent = "";
    if (!at) return;
    const shares = looks(at.GPT.state);
    const seen = steps.slice(place + 1 - shares.length, place + 1).map(({ character }) => character);
    const most = argmax(shares);
    byId("read-looks").append(
      ...seen.map((character, i) =>
        element(
          "span",
          { class: "token", style: `--level: ${shares[i].toFixed(3)}`, title: percent(shares[i]) },
          visible(character),
        ),
      ),
    );
    const back = seen.length - 1 - most;
    const where = back ? counted(back, "character") + " before" : "which it has just read";
    byId("read-looked").textContent = `Most at “${spoken(seen[most])}”, ${where}: ${percent(shares[most])}`;
  }

  function goOn() {
    if (stop) return finish();
    if (!steps.length) return field.focus();
    const count = Math.min(WRITTEN, LONGEST - steps.length);
    if (!count) {
      byId("read-unknown").textContent = `${LONGEST} characters are the most: shorten the text, or clear it.`;
      return;
    }
    own = Math.min(own, steps.length);
    byId("read-go").textContent = "Stop";
    const writer = chosen();
    let written = 0;
    stop = animate(
      count * WRITE_MS,
      (share) => {
        const due = Math.round(share * count);
        if (written === due) return;
        for (; written < due; written++) {
          const odds = readers[writer].odds(steps.at(-1)[writer].state, Number(temperature.value));
          steps.push(step(steps.at(-1), readers[writer].characters[pick(odds, Math.random())]));
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
  byId("read-model").addEventListener("change", () => {
    if (stop) finish();
    showSurprise();
  });
  byId("read-head").addEventListener("change", () => showLooks(tokens.chosen));
  temperature.addEventListener("input", tellTemperature);
  function tellTemperature() {
    const value = Number(temperature.value);
    byId("read-temperature-shown").textContent = value ? value.toFixed(1) : "0 (likeliest)";
  }

  byId("read-hidden").textContent = exported.GRU.hidden;
  byId("read-window").textContent = exported.GPT.window;
  const about = names.map((name) => {
    const { parameters, seed, step, validation_bits_per_char: bits } = exported[name];
    const size = `${parameters.toLocaleString("en")} parameters`;
    return `${name}, ${size}, seed ${seed}, step ${step.toLocaleString("en")}: ${bits.toFixed(3)} bits per character`;
  });
  byId("read-about").textContent =
    `Trained by charlm.py on the text of 28 posts, ${readers.GRU.characters.length} characters, and measured on two ` +
    `posts held out. ${about.join("; ")}.`;
  tellTemperature();
  read();
}

/** What a model holds to be likeliest next, the best few. */
class Odds {
  constructor(parent, reader) {
    this.reader = reader;
    this.rows = Array.from({ length: LIKELIEST }, () => {
      const parts = ["character", "bar", "share"].map((kind) => element("span", { class: kind }));
      parent.append(element("li", {}, ...parts));
      return parts;
    });
  }

  show(state) {
    const odds = state ? this.reader.odds(state) : [];
    const best = [...odds.keys()].sort((a, b) => odds[b] - odds[a]);
    this.rows.forEach(([character, bar, share], i) => {
      const id = best[i];
      const shown = this.reader.characters[id];
      character.textContent = state ? visible(shown) : "";
      character.title = state ? spoken(shown) : "";
      bar.style.transform = `scaleX(${odds[id] ?? 0})`;
      share.textContent = state ? percent(odds[id]) : "";
    });
  }
}

/** The index at which the odds, added up, pass a random number from 0 to 1. */
function pick(odds, random) {
  let sum = 0;
  const index = odds.findIndex((share) => (sum += share) > random);
  return index < 0 ? argmax(odds) : index;
}
