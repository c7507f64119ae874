// CTC: from a path, a label or a blank for each frame, to the string that it collapses to, and back by counting.
"use strict";

const MOST_SPOKEN = 8; // digits
const CTC_LABELS = 11; // ten digits and the blank

function ctcPanel() {
  const { ctc_digits } = EXPORTED.figures;
  const digits = byId("ctc-digits");
  const path = byId("ctc-path");
  const ranges = ["held", "blanks"].map((name) => byId(`ctc-${name}`));
  const named = (label) => (label === BLANK ? "blank" : label);
  const shownString = (string) => string || "the empty string";

  /** Only what belongs into a field stays there, and what went is named. */
  function clean(field, foreign, only) {
    const dropped = [...new Set(field.value.match(foreign) ?? [])];
    if (dropped.length) field.value = field.value.replace(foreign, "");
    const names = dropped.map((character) => `“${spoken(character)}”`).join(", ");
    byId("ctc-note").textContent = dropped.length ? `Only ${only}: ${names} left out.` : "";
  }

  /** The string spoken evenly: so many frames for each digit, so many blanks between them. */
  function speak() {
    const [held, blanks] = ranges.map((range) => Number(range.value));
    path.value = [...digits.value].map((digit) => digit.repeat(held)).join(BLANK.repeat(blanks));
    show();
  }

  function show() {
    for (const range of ranges) byId(`${range.id}-shown`).textContent = range.value;
    const wanted = digits.value;
    const string = collapse(path.value);
    drawRuns();
    byId("ctc-readout").replaceChildren(
      element("strong", {}, shownString(string)),
      string === wanted ? ": what was spoken." : `, not ${shownString(wanted)}.${why(string, wanted)}`,
    );
    const frames = path.value.length;
    byId("ctc-frames").textContent = counted(frames, "frame");
    byId("ctc-table").replaceChildren(...[...new Set([string, wanted])].map((one) => tableRow(one, frames)));
  }

  /** Why a path collapses to something else, where the rule is the reason. */
  function why(string, wanted) {
    return string === collapse(wanted)
      ? " Equal digits need a blank between them: without it they are one digit that lasts."
      : "";
  }

  /** Each run of equal labels is a column: its frames, what merging leaves of them, and what is left without blanks. */
  function drawRuns() {
    const heads = ["frames", "repeats merged", "blanks dropped"].map((name) => element("span", {}, name));
    const columns = runsOf(path.value).map(([label, frames]) => {
      const cells = [label.repeat(frames), label, label === BLANK ? "" : label].map((text) => element("span", {}, text));
      return element("div", { class: label === BLANK ? "run blank" : "run" }, ...cells);
    });
    const told = runsOf(path.value).map(([label, frames]) => `${named(label)} for ${counted(frames, "frame")}`);
    furnish(byId("ctc-runs"), { "aria-label": `${told.join(", ")}: ${shownString(collapse(path.value))}` }, []);
    byId("ctc-runs").replaceChildren(element("div", { class: "run heads" }, ...heads), ...columns);
  }

  /** How many paths collapse to a string, and its loss where every label is as likely as any other at every frame. */
  function tableRow(string, frames) {
    const paths = countPaths(string, frames);
    const share = Number(paths) / CTC_LABELS ** frames;
    const needed = string.length + [...string].filter((digit, i) => digit === string[i - 1]).length;
    const cells = [
      paths < 10n ** 9n ? paths.toLocaleString("en") : sized(Number(paths)),
      paths ? sized(share) : `0: it needs ${counted(needed, "frame")}`,
      paths ? Math.abs(Math.log(share)).toFixed(3) : "∞",
    ];
    const name = element("th", { scope: "row" }, shownString(string));
    return element("tr", {}, name, ...cells.map((cell) => element("td", {}, cell)));
  }

  const sumUp = () => say(`The path collapses to ${byId("ctc-readout").textContent}`);

  digits.addEventListener("input", () => {
    clean(digits, /\D/g, "digits");
    digits.value = digits.value.slice(0, MOST_SPOKEN);
    speak();
    sumUp();
  });
  path.addEventListener("input", () => {
    path.value = path.value.replace(/[–_ ]/g, BLANK); // other ways to type it
    clean(path, /[^\d-]/g, "digits and -");
    show();
    sumUp();
  });
  for (const field of [digits, path]) field.addEventListener("change", () => (byId("ctc-note").textContent = ""));
  for (const range of ranges) {
    range.addEventListener("input", speak);
    range.addEventListener("change", sumUp);
  }
  const trained = byId("ctc-trained");
  trained.hidden = !ctc_digits;
  trained.addEventListener("click", () => {
    digits.value = ctc_digits.example;
    path.value = ctc_digits.path;
    show();
    sumUp();
  });
  byId("ctc-about").textContent =
    "Paths are counted as layers/ctc.py adds up probabilities; the share is that of all paths of this length. The " +
    `loss is −log of it: what CTC would have to pay if each of the ${CTC_LABELS} labels were as likely as any other at ` +
    "every frame." +
    (ctc_digits ? aboutTrained(ctc_digits) : "");
  speak();
}

/** Whose path it is, and how well such models do. */
function aboutTrained({ error, digits_tested, example, path, frames_labelled, frames_of_a_digit }) {
  return (
    " The trained model is the first CTC model of beyond/ctc_digits.py, and what it said is its likeliest label at " +
    `each of the ${path.length} frames of ${example}, as saved in outputs/. On strings of ${digits_tested} digits it and ` +
    `its like get ${percent(error["CTC, forwards"])} of the digits wrong, and label ${frames_labelled.toFixed(1)} of the ` +
    `${frames_of_a_digit} frames of a digit.`
  );
}
