// What the panels are made of: elements, a row of tokens, a strip of units, a chart, animation, and a quiet voice.
"use strict";

const byId = (id) => document.getElementById(id);

/** An element with attributes (functions listen to events) and children. */
function element(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// ---- words and numbers ----------------------------------------------------------------------------------------------

const visible = (character) => ({ " ": "␣", "\n": "⏎", "\t": "⇥" })[character] ?? character;
const spoken = (character) => ({ " ": "space", "\n": "new line", "\t": "tab" })[character] ?? character;
const superscript = (n) => String(n).replace(/./g, (sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻");
const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
const counted = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** A size to two digits: 0.0052, 120, 1.6 × 10⁻⁸. */
function sized(x) {
  if (x === 0) return "0";
  if (x >= 1e-3 && x < 9.95e3) return Number(x.toPrecision(2)).toLocaleString("en", { maximumFractionDigits: 6 });
  const [mantissa, exponent] = x.toExponential(1).split("e");
  return `${mantissa} × 10${superscript(Number(exponent))}`;
}

// ---- a voice for screen readers: only what was said last, once things have come to rest ------------------------------

let waiting = null;

function say(text) {
  clearTimeout(waiting);
  waiting = setTimeout(() => (byId("said").textContent = text), 600);
}

// ---- motion ---------------------------------------------------------------------------------------------------------

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Calls frame with a share of the way, 0 to 1, until it is 1, then done; only 1 where motion isn't wanted. */
function animate(milliseconds, frame, done = () => {}) {
  let handle = null;
  let began = null;
  const tick = (now) => {
    began ??= now;
    const share = still.matches ? 1 : Math.min(1, (now - began) / milliseconds);
    frame(share);
    if (share < 1) handle = requestAnimationFrame(tick);
    else done();
  };
  handle = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(handle);
}

// ---- choosing one of many -------------------------------------------------------------------------------------------

/** Makes an element a slider over ``count()`` places: arrow keys, Home and End, Page Up and Down. */
function slider(target, { label, count, place, move, describe }) {
  furnish(target, { role: "slider", tabindex: 0, "aria-label": label }, []);
  target.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    const to = { Home: 0, End: count() - 1 }[event.key] ?? place() + steps[event.key];
    if (Number.isNaN(to) || !count()) return;
    event.preventDefault();
    move(Math.max(0, Math.min(count() - 1, to)));
  });
  return () => {
    furnish(
      target,
      { "aria-valuemin": Math.min(1, count()), "aria-valuemax": count(), "aria-valuenow": place() + 1 },
      [],
    );
    target.setAttribute("aria-valuetext", count() ? describe(place()) : "empty");
  };
}

/** A row of tokens, one of them chosen. Each can have a level, from 0 to 1, shown as a bar. */
class TokenRow {
  constructor(parent, { label, describe, choose, hover = () => {} }) {
    this.spans = [];
    this.chosen = -1;
    this.element = element("div", { class: "tokens" });
    this.tell = slider(this.element, {
      label,
      describe,
      count: () => this.spans.length,
      place: () => this.chosen,
      move: (place) => this.choose(place),
    });
    this.onChoose = choose;
    this.element.addEventListener("click", (event) => {
      const place = this.spans.indexOf(event.target);
      if (place >= 0) this.choose(place);
    });
    this.element.addEventListener("pointerover", (event) => hover(this.spans.indexOf(event.target)));
    this.element.addEventListener("pointerleave", () => hover(-1));
    parent.append(this.element);
  }

  /** Show these tokens, each [text, class], and choose one of them. */
  set(tokens, chosen) {
    this.spans = tokens.map(([text, kind = ""]) => element("span", { class: `token ${kind}` }, text));
    this.element.replaceChildren(...this.spans);
    this.mark(chosen);
  }

  mark(place) {
    this.spans[this.chosen]?.classList.remove("chosen");
    this.spans[place]?.classList.add("chosen");
    this.chosen = place;
    this.tell();
  }

  choose(place) {
    this.mark(place);
    this.onChoose(place);
  }

  level(place, value) {
    this.spans[place]?.style.setProperty("--level", value.toFixed(3));
  }
}

// ---- pictures -------------------------------------------------------------------------------------------------------

/** The units of a state side by side, a cell each: filled upwards where positive, downwards where negative. */
class Strip {
  constructor(parent, units) {
    const cell = (i, attributes) => svg("rect", { x: i + 0.1, width: 0.8, ...attributes });
    const cells = Array.from({ length: units }, (_, i) => cell(i, { y: -1, height: 2, class: "cell" }));
    this.bars = cells.map((_, i) => cell(i));
    const zero = svg("line", { x1: 0, x2: units, y1: 0, y2: 0, class: "zero" });
    this.element = svg(
      "svg",
      { viewBox: `0 -1 ${units} 2`, preserveAspectRatio: "none", class: "strip", role: "img" },
      ...cells,
      ...this.bars,
      zero,
    );
    parent.append(this.element);
  }

  /** Values beyond 1 shrink the whole strip; with ``fill`` the largest always fills it. */
  show(values, label, fill = false) {
    const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), fill ? Number.MIN_VALUE : 1);
    this.bars.forEach((bar, i) => {
      const height = Math.abs(values[i]) / largest;
      bar.setAttribute("y", values[i] > 0 ? -height : 0);
      bar.setAttribute("height", height);
      bar.setAttribute("class", values[i] > 0 ? "above" : "below");
    });
    this.element.setAttribute("aria-label", label);
  }
}

/** Curves on a logarithmic scale, drawn at the width that there is. */
class Chart {
  constructor(parent, { height = 270, xLabel, yLabel, xTicks, xLog = false, point = () => {} }) {
    Object.assign(this, { parent, height, xLabel, yLabel, xTicks, xLog, curves: [], cursor: null });
    this.element = svg("svg", { class: "chart", height });
    parent.append(this.element);
    const locate = (event) => {
      const { left } = this.element.getBoundingClientRect();
      point(this.invert?.(event.clientX - left));
    };
    this.element.addEventListener("pointermove", locate);
    this.element.addEventListener("pointerdown", locate);
    new ResizeObserver(() => this.draw()).observe(parent);
  }

  /** ``curves``: {points: [[x, y], …], kind}; kind is a class of the line, or "saved" for points of their own. */
  set(curves, cursor) {
    Object.assign(this, { curves, cursor });
    this.draw();
  }

  draw() {
    const width = this.parent.clientWidth;
    const [left, right, top, bottom] = [58, 24, 22, 40];
    const all = this.curves.flatMap(({ points }) => points);
    const above = all.filter(([, y]) => y > 0); // what is exactly 0 has no place on the scale
    if (!width || !above.length) return;
    const scale = this.xLog ? Math.log2 : (x) => x;
    const xs = all.map(([x]) => scale(x));
    const [x0, x1] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
    const decades = above.map(([, y]) => Math.max(-20, Math.log10(y)));
    const low = Math.floor(Math.min(...decades, -1) + 1e-9);
    const high = Math.ceil(Math.max(...decades, 1) - 1e-9);
    const X = (x) => left + ((scale(x) - x0) / (x1 - x0)) * (width - left - right);
    const Y = (y) => top + ((high - Math.max(low, Math.log10(y))) / (high - low)) * (this.height - top - bottom);
    this.invert = (pixels) => x0 + ((pixels - left) / (width - left - right)) * (x1 - x0);

    const parts = [svg("text", { x: 0, y: 10 }, this.yLabel)];
    const every = Math.ceil((high - low) / 6);
    for (let decade = Math.ceil(low / every) * every; decade <= high; decade += every) {
      const y = Y(10 ** decade);
      parts.push(svg("line", { class: decade ? "axis" : "unit", x1: left, x2: width - right, y1: y, y2: y }));
      parts.push(
        svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, decade ? `10${superscript(decade)}` : "1"),
      );
    }
    for (const x of this.xTicks.filter((tick) => scale(tick) >= x0 && scale(tick) <= x1)) {
      parts.push(
        svg("text", { x: X(x), y: this.height - bottom + 18, "text-anchor": "middle" }, x.toLocaleString("en")),
      );
    }
    parts.push(svg("text", { x: width - right, y: this.height - 4, "text-anchor": "end" }, this.xLabel));
    for (const { points, kind } of this.curves) {
      const drawn = points.filter(([, y]) => y > 0).map(([x, y]) => [X(x), Y(y)]);
      if (kind === "saved") parts.push(...drawn.map(([cx, cy]) => svg("circle", { class: kind, cx, cy, r: 2.6 })));
      else
        parts.push(
          svg("path", { class: `curve ${kind}`, d: drawn.map((at, i) => (i ? "L" : "M") + at.join()).join("") }),
        );
    }
    if (this.cursor) {
      const x = X(this.cursor.x);
      parts.push(svg("line", { class: "cursor", x1: x, x2: x, y1: top, y2: this.height - bottom }));
      parts.push(
        ...this.cursor.ys.filter((y) => y > 0).map((y) => svg("circle", { class: "point", cx: x, cy: Y(y), r: 4 })),
      );
    }
    this.element.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.element.replaceChildren(...parts);
  }
}

/** A line of a chart's key. */
function keyLine(kind, text) {
  const sign =
    kind === "saved"
      ? svg("circle", { class: kind, cx: 15, cy: 5, r: 3 })
      : svg("path", { class: `curve ${kind}`, d: "M0,5L30,5" });
  return element("li", {}, svg("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, sign), text);
}
