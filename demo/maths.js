// The mathematics of the page: the same equations as in the repository's scripts, in double precision.
// Matrices are {rows, columns, values}, row after row; vectors are Float64Arrays. Nothing here touches the page.
"use strict";

// ---- what export.py wrote -------------------------------------------------------------------------------------------

/** The bytes of a base64 text as numbers of a kind, such as Float64Array. */
function unpack(text, Kind) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Kind(bytes.buffer);
}

/** A model's weights by name: whole numbers times the unit of their row. */
function unpackWeights(model) {
  const weights = {};
  for (const [name, { shape, unit, values }] of Object.entries(model.weights)) {
    const units = unpack(unit, Float32Array);
    const whole = unpack(values, Int8Array);
    const columns = whole.length / units.length;
    const matrix = { rows: shape.length > 1 ? shape[0] : 1, columns, values: new Float64Array(whole.length) };
    whole.forEach((value, i) => (matrix.values[i] = value * units[Math.floor(i / columns)]));
    weights[name] = shape.length > 1 ? matrix : matrix.values;
  }
  return weights;
}

// ---- vectors and matrices -------------------------------------------------------------------------------------------

const zeros = (n) => new Float64Array(n);
const row = (M, i) => M.values.subarray(i * M.columns, (i + 1) * M.columns);
const norm = (v) => Math.hypot(...v);
const sigmoid = (a) => 1 / (1 + Math.exp(-a));

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** W x, plus b if there is one. */
function product(W, x, b) {
  const out = b ? Float64Array.from(b) : zeros(W.rows);
  for (let i = 0; i < W.rows; i++) out[i] += dot(row(W, i), x);
  return out;
}

/** Wᵀ x. */
function transposedProduct(W, x) {
  const out = zeros(W.columns);
  for (let i = 0; i < W.rows; i++) {
    const w = row(W, i);
    for (let j = 0; j < out.length; j++) out[j] += w[j] * x[i];
  }
  return out;
}

function softmax(z) {
  const largest = Math.max(...z);
  const powers = z.map((value) => Math.exp(value - largest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/** The index of the largest entry, the first of equals. */
const argmax = (v) => v.reduce((best, value, i) => (value > v[best] ? i : best), 0);

function join(...parts) {
  const out = zeros(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// ---- random numbers as torch draws them on a CPU --------------------------------------------------------------------

/** The Mersenne Twister (Matsumoto and Nishimura, 1998), and torch's way from its 32 bits to float32 numbers. */
class TorchRandom {
  constructor(seed) {
    this.words = new Uint32Array(624);
    this.words[0] = seed;
    for (let i = 1; i < 624; i++) {
      const last = this.words[i - 1] ^ (this.words[i - 1] >>> 30);
      this.words[i] = Math.imul(1812433253, last) + i;
    }
    this.next = 624;
  }

  word() {
    const w = this.words;
    if (this.next === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (w[i] & 0x80000000) | (w[(i + 1) % 624] & 0x7fffffff);
        w[i] = w[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.next = 0;
    }
    let y = w[this.next++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  uniform(from, to) {
    return Math.fround(((this.word() & 0xffffff) / 2 ** 24) * (to - from) + from);
  }

  /** ``count`` uniform numbers, as nn.Module's parameters are drawn. */
  uniforms(count, from, to) {
    return Float64Array.from({ length: count }, () => this.uniform(from, to));
  }

  /** ``count`` standard normal numbers, a multiple of 16: eight pairs at a time, by Box and Muller. */
  normals(count) {
    const out = this.uniforms(count, 0, 1);
    for (let i = 0; i < count; i += 16) {
      for (let j = i; j < i + 8; j++) {
        const radius = Math.sqrt(-2 * Math.log(1 - out[j]));
        const angle = 2 * Math.PI * out[j + 8];
        out[j] = Math.fround(radius * Math.cos(angle));
        out[j + 8] = Math.fround(radius * Math.sin(angle));
      }
    }
    return out;
  }
}

// ---- recurrent cells ------------------------------------------------------------------------------------------------
// step(before, x) gives the next state; back(d, after, before) turns the gradient d = {h, c} at a state into that at the
// state before, and adds the gradient at the cell's arguments: {h, c, a}. A state remembers its gates. Gates can be held
// at 1 (open) or 0 (shut), by name: then they are numbers, and since back has their slope as v (1 - v), which is 0 at
// both, no gradient goes through them.

/** vanishing.py's network: z_t = h_{t-1} W + inputs x_t with W = radius Q, and h_t = tanh(z_t), or z_t if linear. */
function plainNetwork(Q, radius, linear, inputs) {
  return {
    step(before, x) {
      const z = transposedProduct(Q, before.h);
      return { h: z.map((value, i) => (linear ? (v) => v : Math.tanh)(radius * value + inputs * x[i])) };
    },
    back(d, after) {
      const a = d.h.map((value, i) => (linear ? value : value * (1 - after.h[i] ** 2)));
      return { h: product(Q, a).map((value) => radius * value), a };
    },
  };
}

/** Elman's cell with torch's parameters: h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh). */
function elmanCell({ W_ih, W_hh, b_ih, b_hh }) {
  return {
    W_ih,
    step(before, x) {
      const z = product(W_ih, x, b_ih);
      const recurrent = product(W_hh, before.h, b_hh);
      return { h: z.map((value, i) => Math.tanh(value + recurrent[i])) };
    },
    back(d, after) {
      const a = d.h.map((value, i) => value * (1 - after.h[i] ** 2));
      return { h: transposedProduct(W_hh, a), a };
    },
  };
}

/** torch's GRU: the gate u keeps the old state, and the reset r comes after the recurrent product q. */
function gruCell({ W_ih, W_hh, b_ih, b_hh }, held = {}) {
  const H = W_hh.columns;
  return {
    W_ih,
    step(before, x) {
      const z = product(W_ih, x, b_ih);
      const recurrent = product(W_hh, before.h, b_hh);
      const state = { h: zeros(H), r: zeros(H), u: zeros(H), n: zeros(H), q: recurrent.subarray(2 * H) };
      for (let i = 0; i < H; i++) {
        state.r[i] = held.r ?? sigmoid(z[i] + recurrent[i]);
        state.u[i] = held.u ?? sigmoid(z[H + i] + recurrent[H + i]);
        state.n[i] = Math.tanh(z[2 * H + i] + state.r[i] * state.q[i]);
        state.h[i] = (1 - state.u[i]) * state.n[i] + state.u[i] * before.h[i];
      }
      return state;
    },
    back(d, { r, u, n, q }, before) {
      const a = zeros(3 * H); // the gradient at the arguments of r, u and n on the input side
      const recurrent = zeros(3 * H); // and on the side of W_hh
      for (let i = 0; i < H; i++) {
        const dn = d.h[i] * (1 - u[i]) * (1 - n[i] ** 2);
        a[i] = recurrent[i] = dn * q[i] * r[i] * (1 - r[i]);
        a[H + i] = recurrent[H + i] = d.h[i] * (before.h[i] - n[i]) * u[i] * (1 - u[i]);
        a[2 * H + i] = dn;
        recurrent[2 * H + i] = dn * r[i];
      }
      const h = transposedProduct(W_hh, recurrent);
      return { h: h.map((value, i) => value + d.h[i] * u[i]), a };
    },
  };
}

/** The LSTM: c_t = f c_{t-1} + i g and h_t = o tanh(c_t). Its state is the pair. */
function lstmCell({ W_ih, W_hh, b_ih, b_hh }, held = {}) {
  const H = W_hh.columns;
  return {
    W_ih,
    step(before, x) {
      const z = product(W_ih, x, b_ih);
      const recurrent = product(W_hh, before.h, b_hh);
      const state = { h: zeros(H), c: zeros(H), i: zeros(H), f: zeros(H), g: zeros(H), o: zeros(H) };
      for (let k = 0; k < H; k++) {
        const argument = (gate) => z[gate * H + k] + recurrent[gate * H + k];
        state.i[k] = held.i ?? sigmoid(argument(0));
        state.f[k] = held.f ?? sigmoid(argument(1));
        state.g[k] = Math.tanh(argument(2));
        state.o[k] = held.o ?? sigmoid(argument(3));
        state.c[k] = state.f[k] * before.c[k] + state.i[k] * state.g[k];
        state.h[k] = state.o[k] * Math.tanh(state.c[k]);
      }
      return state;
    },
    back(d, { c, i, f, g, o }, before) {
      const a = zeros(4 * H);
      const dc_before = zeros(H);
      for (let k = 0; k < H; k++) {
        const tanh_c = Math.tanh(c[k]);
        const dc = d.c[k] + d.h[k] * o[k] * (1 - tanh_c ** 2);
        a[k] = dc * g[k] * i[k] * (1 - i[k]);
        a[H + k] = dc * before.c[k] * f[k] * (1 - f[k]);
        a[2 * H + k] = dc * i[k] * (1 - g[k] ** 2);
        a[3 * H + k] = d.h[k] * tanh_c * o[k] * (1 - o[k]);
        dc_before[k] = dc * f[k];
      }
      return { h: transposedProduct(W_hh, a), c: dc_before, a };
    },
  };
}

const CELLS = {
  RNN: { make: elmanCell, gates: 1 },
  GRU: { make: gruCell, gates: 3 },
  LSTM: { make: lstmCell, gates: 4 },
};

/** An untrained cell with the weights that torch draws for a seed, and gates.py's 50 inputs, drawn after them. */
function untrainedCell(name, width, seed, bias, held) {
  const random = new TorchRandom(seed);
  const bound = 1 / Math.sqrt(width);
  const { make, gates } = CELLS[name];
  const matrix = () => ({
    rows: gates * width,
    columns: width,
    values: random.uniforms(gates * width * width, -bound, bound),
  });
  const W_ih = matrix();
  const W_hh = matrix();
  const [b_ih, b_hh] = [0, 1].map(() => random.uniforms(gates * width, -bound, bound));
  if (bias !== null) {
    b_ih.fill(bias, width, 2 * width); // the gate that keeps comes second in both
    b_hh.fill(0, width, 2 * width);
  }
  const values = random.normals(50 * width);
  const inputs = Array.from({ length: 50 }, (_, t) => values.subarray(t * width, (t + 1) * width));
  return { cell: make({ W_ih, W_hh, b_ih, b_hh }, held), inputs };
}

// ---- forward and backward through time ------------------------------------------------------------------------------

/** The states from the first on: one more than there are inputs. */
function forward(network, first, inputs) {
  const states = [first];
  for (const x of inputs) states.push(network.step(states.at(-1), x));
  return states;
}

/** The gradients at h_T, h_{T-1}, … h_0 (and c) of a sum of h_T with these weights. */
function backward(network, states, weights) {
  const gradients = [{ h: weights, c: zeros(weights.length) }];
  for (let t = states.length - 1; t > 0; t--) gradients.push(network.back(gradients.at(-1), states[t], states[t - 1]));
  return gradients;
}

/** How long the gradient is that reaches the state 0, 1, … T steps back; an LSTM's state is h and c together. */
function sizesAtStates(network, states) {
  const width = states[0].h.length;
  const everyDirection = new Float64Array(width).fill(1 / Math.sqrt(width));
  return backward(network, states, everyDirection).map(({ h, c }) => norm(states[0].c ? join(h, c) : h));
}

/** gates.py's measure: the gradient at the input 1, 2, … T steps back, of the sum of the last state. */
function sizesAtInputs(cell, states) {
  const ones = new Float64Array(states[0].h.length).fill(1);
  return backward(cell, states, ones)
    .slice(1)
    .map(({ a }) => norm(transposedProduct(cell.W_ih, a)));
}

// ---- the trained models ---------------------------------------------------------------------------------------------

/** torch's names of a layer's parameters, as a cell takes them. */
function parametersOf(weights, layer, suffix = "") {
  const [W_ih, W_hh, b_ih, b_hh] = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(
    (name) => weights[`${layer}.${name}${suffix}`],
  );
  return { W_ih, W_hh, b_ih, b_hh };
}

/** charlm.py's models: each reads characters, and guesses at the next one from what it then knows. */
class CharacterModel {
  constructor(exported) {
    this.weights = unpackWeights(exported);
    this.characters = [...exported.alphabet];
    this.ids = new Map(this.characters.map((character, id) => [character, id]));
    this.embedding = this.weights["embedding.weight"];
    this.output = { W: this.weights["linear.weight"], b: this.weights["linear.bias"] };
  }

  knows(character) {
    return this.ids.has(character);
  }

  /** A character's number; all that training never showed share the last one. */
  id(character) {
    return this.ids.get(character) ?? this.characters.length;
  }

  logits(state) {
    return product(this.output.W, state.h, this.output.b);
  }

  /** The odds of every character that can be written, at a temperature; at 0 the likeliest is certain. */
  odds(state, temperature = 1) {
    const z = this.logits(state).slice(0, this.characters.length);
    const best = Math.max(...z);
    return softmax(z.map((value) => (temperature ? (value - best) / temperature : value === best ? 0 : -Infinity)));
  }

  /** Bits of a character after a state: what its surprise costs. */
  bits(state, character) {
    return -Math.log2(softmax(this.logits(state))[this.id(character)]);
  }
}

/** All that it keeps of a text is h. */
class GruReader extends CharacterModel {
  constructor(exported) {
    super(exported);
    this.cell = gruCell(parametersOf(this.weights, "rnn", "_l0"));
    this.first = { h: zeros(exported.hidden) };
  }

  read(state, character) {
    return this.cell.step(state, row(this.embedding, this.id(character)));
  }
}

/** layers/char_gpt.py's model. It keeps the text of its window, and of each block the keys and values of that text.
 *
 * ``h`` is the last character's vector, and ``looked`` how much of each kept character every head of every block read.
 */
class GptReader extends CharacterModel {
  constructor(exported) {
    super(exported);
    const { window, heads, blocks } = exported;
    Object.assign(this, { window, heads, first: { ids: [], kept: Array(blocks).fill({ keys: [], values: [] }) } });
    const part = (name) => ({ W: this.weights[`${name}.weight`], b: this.weights[`${name}.bias`] });
    this.norm = part("norm");
    this.blocks = Array.from({ length: blocks }, (_, i) => ({
      before_attention: part(`blocks.${i}.before_attention`),
      qkv: part(`blocks.${i}.attention.qkv`),
      output: part(`blocks.${i}.attention.output`),
      before_feed_forward: part(`blocks.${i}.before_feed_forward`),
      widen: part(`blocks.${i}.widen`),
      narrow: part(`blocks.${i}.narrow`),
    }));
  }

  read({ ids, kept }, character) {
    const id = this.id(character);
    if (ids.length < this.window) return this.append(kept, ids, id);
    // The window is full: its second half is read anew, since its keys and values know of the half that is dropped.
    const half = ids.slice(this.window / 2);
    return [...half, id].reduce((state, next) => this.append(state.kept, state.ids, next), this.first);
  }

  append(kept, ids, id) {
    let x = row(this.embedding, id);
    const looked = [];
    const now = this.blocks.map((block, i) => {
      const [q, k, v] = this.thirds(product(block.qkv.W, normalised(x, block.before_attention)));
      const turn = (heads) => heads.map((vector) => turned(vector, ids.length));
      const keys = [...kept[i].keys, turn(k)];
      const values = [...kept[i].values, v];
      const weights = turn(q).map((query, head) =>
        softmax(keys.map((key) => dot(query, key[head]) / Math.sqrt(query.length))),
      );
      looked.push(weights);
      const heads = weights.map((shares, head) => mixed(shares, values, head));
      x = added(x, product(block.output.W, join(...heads)));
      const wide = product(block.widen.W, normalised(x, block.before_feed_forward), block.widen.b);
      x = added(x, product(block.narrow.W, wide.map(gelu), block.narrow.b));
      return { keys, values };
    });
    return { ids: [...ids, id], kept: now, looked, h: normalised(x, this.norm) };
  }

  /** Queries, keys and values, each cut into heads. */
  thirds(qkv) {
    const size = qkv.length / 3 / this.heads;
    const heads = Array.from({ length: 3 * this.heads }, (_, i) => qkv.subarray(i * size, (i + 1) * size));
    return [0, 1, 2].map((i) => heads.slice(i * this.heads, (i + 1) * this.heads));
  }
}

/** Layer normalisation, as torch has it. */
function normalised(x, { W, b }) {
  const mean = x.reduce((a, c) => a + c) / x.length;
  const variance = x.reduce((a, c) => a + (c - mean) ** 2, 0) / x.length;
  return x.map((value, i) => ((value - mean) / Math.sqrt(variance + 1e-5)) * W[i] + b[i]);
}

/** Rotary positions: the pairs (i, i + half) of a head's vector turned by its place times their rate. */
function turned(vector, place) {
  const half = vector.length / 2;
  return vector.map((value, j) => {
    const i = j % half;
    const angle = place * 10_000 ** (-i / half);
    const across = j < half ? -vector[i + half] : vector[i];
    return value * Math.cos(angle) + across * Math.sin(angle);
  });
}

/** The values of one head, each by its share. */
function mixed(shares, values, head) {
  const out = zeros(values[0][head].length);
  shares.forEach((share, t) => values[t][head].forEach((value, j) => (out[j] += share * value)));
  return out;
}

const added = (a, b) => a.map((value, i) => value + b[i]);

/** x Φ(x), with Φ by the series of the normal distribution, all of whose terms have one sign. */
function gelu(x) {
  if (Math.abs(x) > 8) return x > 0 ? x : 0;
  let term = x;
  let sum = x;
  for (let n = 3; Math.abs(term) > 1e-17 * Math.abs(sum); n += 2) sum += term *= (x * x) / n;
  return x * (0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI));
}

/** seq2seq.py's models: an encoder, and a decoder that attends to its states, or doesn't. */
class Reverser {
  constructor(exported) {
    const weights = unpackWeights(exported);
    this.embedding = weights["embed.weight"];
    this.encoder = gruCell(parametersOf(weights, "encoder", "_l0"));
    this.decoder = gruCell(parametersOf(weights, "decoder"));
    this.output = { W: weights["output.weight"], b: weights["output.bias"] };
    this.attends = exported.attention;
    this.W_enc = { W: weights["W_enc.weight"], b: weights["W_enc.bias"] };
    this.W_dec = { W: weights["W_dec.weight"], b: weights["W_dec.bias"] };
    this.v = weights["v.weight"]?.values;
  }

  encode(digits) {
    const first = { h: zeros(this.output.W.columns) };
    return forward(
      this.encoder,
      first,
      digits.map((digit) => row(this.embedding, digit)),
    ).slice(1);
  }

  /** As many digits as it read: each with the logits it was chosen by and the weights on the digits read. */
  write(digits) {
    const memory = this.encode(digits);
    const keys = this.attends && memory.map(({ h }) => product(this.W_enc.W, h, this.W_enc.b));
    let state = memory.at(-1);
    let digit = 10; // what the decoder reads before its first digit
    return digits.map(() => {
      let x = row(this.embedding, digit);
      let weights = null;
      if (this.attends) {
        const query = product(this.W_dec.W, state.h, this.W_dec.b);
        const scores = keys.map((key) =>
          dot(
            this.v,
            key.map((value, i) => Math.tanh(value + query[i])),
          ),
        );
        weights = softmax(scores);
        const context = zeros(state.h.length);
        memory.forEach(({ h }, j) => h.forEach((value, i) => (context[i] += weights[j] * value)));
        x = join(x, context);
      }
      state = this.decoder.step(state, x);
      const logits = product(this.output.W, state.h, this.output.b);
      digit = argmax(logits);
      return { digit, logits, weights };
    });
  }
}

// ---- counting, as parallel.py counts --------------------------------------------------------------------------------

const gruOperations = (length, width) => 2 * 2 * 3 * length * width ** 2;
const attentionOperations = (length, width) => 3 * 2 * length * width ** 2 + 2 * 2 * length ** 2 * width;

// ---- CTC, as layers/ctc.py has it -----------------------------------------------------------------------------------

const BLANK = "-"; // in a path, which has a digit or a blank for each frame

/** The runs of equal labels in a path: [label, how many frames]. */
function runsOf(path) {
  const runs = [];
  for (const label of path) {
    if (runs.length && runs.at(-1)[0] === label) runs.at(-1)[1] += 1;
    else runs.push([label, 1]);
  }
  return runs;
}

/** The string that a path stands for: repeats merged, then blanks dropped. */
const collapse = (path) =>
  runsOf(path)
    .map(([label]) => label)
    .filter((label) => label !== BLANK)
    .join("");

/** How many paths of so many frames collapse to a string: CTC's forward recursion, with 1 for each probability. */
function countPaths(string, frames) {
  const states = [BLANK, ...[...string].flatMap((label) => [label, BLANK])];
  // Before the first frame a path stands in the first blank: one step on it is still there, or in the first label.
  let ways = states.map((_, s) => (s ? 0n : 1n));
  for (let t = 0; t < frames; t++) {
    ways = states.map((label, s) => {
      const jumps = s > 1 && label !== BLANK && label !== states[s - 2];
      return ways[s] + (s ? ways[s - 1] : 0n) + (jumps ? ways[s - 2] : 0n);
    });
  }
  return ways.slice(-2).reduce((a, b) => a + b); // it ends in the last label or the blank after it
}
