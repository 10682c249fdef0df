// The chosen anchor's numbers put into its loss, term by term, typeset as MathML. It follows the
// knob at each frame; the loss in letters stands below, from the server.

import { BLUE, GRAY, ORANGE, el, line, number, rgb, say, sizeCanvas } from "../shared/dom.js";
import { ranked } from "./draw.js";
import { logAddExp } from "../shared/kernels.js";
import { tick } from "./panels.js";

const MATH = "http://www.w3.org/1998/Math/MathML";
const TERMS = 3; // shown of each sum; the rest is counted and added up

function m(tag, ...children) {
  const node = document.createElementNS(MATH, tag);
  node.append(...children.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

const mi = (text) => m("mi", text),
  mo = (text) => m("mo", text);
const row = (...children) => m("mrow", ...children);
const over = (a, b) => m("mfrac", a, b);
const space = () => {
  const s = m("mspace");
  s.setAttribute("width", "0.2em");
  return s;
};
const subscript = (a, b) => m("msub", mi(a), mi(b));
const power = (exponent) => m("msup", mi("e"), exponent);
const bracket = (...children) => row(mo("("), ...children, mo(")"));
const log = () => row(mi("log"), space());
const written = (text) => m("mtext", text);
const note = (text) => written(`\u2003(${text})`);

function mn(value) {
  const text = typeof value === "number" ? number(Object.is(value, -0) ? 0 : value).replace("-", "−") : value;
  const [first, ten] = text.split("e");
  return ten ? row(m("mn", first), mo("·"), m("msup", m("mn", "10"), m("mn", ten.replace("-", "−")))) : m("mn", text);
}

/** e^l as a number, by powers of ten where it is large or small: e^(s/τ) overflows nothing here. */
function exponential(l) {
  if (l > -6 && l < 9) return mn(Math.exp(l));
  const ten = Math.floor(l / Math.LN10),
    first = Math.exp(l - ten * Math.LN10);
  return row(mn(first.toFixed(2)), mo("·"), m("msup", mn("10"), mn(String(ten).replace("-", "−"))));
}

/** Terms with a sign between them, and how many more there are. */
function sum(terms, more, rest) {
  const parts = terms.flatMap((t, k) => (k ? [mo("+"), t] : [t]));
  if (more > 0) parts.push(mo("+"), rest ? m("munder", rest, written(`${more} more`)) : written(`${more} more`));
  return row(...parts);
}

export function drawFormula(lab) {
  const i = lab.anchor,
    o = lab.out,
    curve = Boolean(lab.kernel) && lab.kernel.form === "pair";
  lab.extra.hidden = !curve;
  const lines =
    !o || !(o.weight[i] > 0)
      ? []
      : !lab.kernel
        ? libraryLines(lab)
        : lab.kernel.family === "softmax"
          ? softmaxLines(lab)
          : lab.kernel.form === "pair"
            ? pairLines(lab)
            : tripletLines(lab);
  say(
    lab.note,
    lines.length
      ? `The numbers of anchor ${lab.meta.names[i]}, the largest terms of each sum first.`
      : `The loss is undefined for anchor ${lab.meta.names[i]}: it lacks a partner. Choose another row of the matrix.`,
  );
  become(
    lab.worked,
    el(
      "div",
      {},
      ...lines.map(([title, ...math]) => {
        const node = m("math", m("mstyle", ...math));
        node.setAttribute("display", "block");
        return el("div", {}, el("span", {}, title), node);
      }),
    ),
  );
  if (!curve) return;
  const [g, width, height] = sizeCanvas(lab.extra);
  drawDerivative(lab, g, width, height);
  lab.extra.setAttribute(
    "aria-label",
    "Loss of a positive and of a negative pair, and their derivatives, over the distance.",
  );
}

/** Change what differs: while a knob is dragged that is a few numbers, and nothing else moves. */
function become(old, made) {
  if (old.nodeType === Node.TEXT_NODE && made.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
  } else if (old.nodeName !== made.nodeName) old.replaceWith(made);
  else if (old.childNodes.length !== made.childNodes.length) old.replaceChildren(...made.childNodes);
  else [...made.childNodes].forEach((node, k) => become(old.childNodes[k], node));
}

// --- softmax -----------------------------------------------------------------------------------

function softmaxLines(lab) {
  const { kernel, anchor: i, w, S, M, out } = lab,
    at = i * w,
    scale = (kernel.sign || 1) / kernel.temperature;
  const rank = ranked(lab),
    positives = rank.filter((j) => M[at + j] === 1),
    negatives = rank.filter((j) => M[at + j] === 2);
  const far = kernel.sign === -1,
    plain = !kernel.knob && kernel.temperature === 1; // n_pair has no τ
  const own = kernel.denominator === "own_positive",
    summed = own ? negatives : rank;
  const l = (j) => S[at + j] * scale,
    lse = (all) => all.reduce((t, j) => logAddExp(t, l(j)), -Infinity);
  const term = (j) =>
    power(!plain ? row(mn(S[at + j] * (kernel.sign || 1)), mo("/"), mn(kernel.temperature)) : mn(S[at + j]));
  const shownOf = summed.slice(0, TERMS),
    rest = summed.slice(TERMS),
    whole = lse(summed),
    from = own ? "k∈N" : "a∈A";
  const letters = row(
    m("munder", mo("∑"), mi(from)),
    power(
      row(
        ...(far ? [mo("−")] : []),
        subscript(far ? "f" : "s", own ? "ik" : "ia"),
        ...(plain ? [] : [mo("/"), mi("τ")]),
      ),
    ),
  );
  const lines = [
    [
      own ? "All its negatives" : "All its candidates",
      letters,
      mo("="),
      sum(shownOf.map(term), rest.length),
      mo("="),
      sum(
        shownOf.map((j) => exponential(l(j))),
        rest.length,
        rest.length ? exponential(lse(rest)) : null,
      ),
      mo("="),
      exponential(whole),
    ],
  ];
  const below = (j) => (own ? logAddExp(l(j), whole) : whole),
    inside = kernel.aggregate !== "out";
  for (const j of positives.slice(0, TERMS)) {
    const share = over(
      exponential(l(j)),
      own ? row(exponential(l(j)), mo("+"), exponential(whole)) : exponential(whole),
    );
    const value = Math.exp(l(j) - below(j));
    lines.push([
      `Positive ${lab.meta.columnNames[j]}`,
      ...(inside
        ? [share, mo("="), mn(value)]
        : [mo("−"), log(), share, mo("="), mo("−"), log(), mn(value), mo("="), mn(below(j) - l(j))]),
    ]);
  }
  lines.push(["Its loss", ...softmaxTotal(lab, positives, (j) => below(j) - l(j))]);
  const p = positives[0],
    g = out.grad[at + p];
  lines.push([`Gradient on ${lab.meta.columnNames[p]}`, ...softmaxSlope(lab, positives, l, below, g)]);
  return lines;
}

function softmaxTotal({ kernel, anchor, out }, positives, cost) {
  const few = positives.slice(0, TERMS),
    more = positives.length - few.length,
    count = positives.length;
  const factor =
    kernel.scale === "tau_over_base" && kernel.base ? [over(mn(kernel.temperature), mn(kernel.base)), mo("·")] : [];
  const mean = (terms) => (count > 1 ? over(sum(terms, more), mn(String(count))) : terms[0]);
  const value = [mo("="), mn(out.loss[anchor])];
  if (kernel.aggregate === "out")
    return [
      subscript("L", "i"),
      ...(count > 1 || factor.length ? [mo("="), ...factor, mean(few.map((j) => mn(cost(j))))] : []),
      ...value,
    ];
  const shares = few.map((j) => mn(Math.exp(-cost(j))));
  return [
    subscript("L", "i"),
    mo("="),
    ...factor,
    mo("−"),
    log(),
    bracket(kernel.aggregate === "in" ? mean(shares) : sum(shares, more)),
    ...value,
  ];
}

/** ∂L/∂s of the nearest positive: its softmax less its share of the target, over τ. */
function softmaxSlope({ kernel, meta }, positives, l, below, g) {
  const p = positives[0],
    count = positives.length,
    own = kernel.denominator === "own_positive";
  const lse = positives.reduce((t, j) => logAddExp(t, l(j)), -Infinity),
    share = Math.exp(l(p) - below(p));
  const target = own ? 1 : kernel.aggregate === "out" ? 1 / count : Math.exp(l(p) - lse);
  const slope = over(row(mo("∂"), subscript("L", "i")), row(mo("∂"), subscript(kernel.sign === -1 ? "f" : "s", "ip")));
  const top = kernel.sign === -1 ? row(mn(target), mo("−"), mn(share)) : row(mn(share), mo("−"), mn(target));
  const bottom = own && count > 1 ? row(mn(String(count)), mo("·"), mn(kernel.temperature)) : mn(kernel.temperature);
  const factor =
    kernel.scale === "tau_over_base" && kernel.base ? [over(mn(kernel.temperature), mn(kernel.base)), mo("·")] : [];
  return [
    slope,
    mo("="),
    ...factor,
    over(top, bottom),
    mo("="),
    mn(g),
    note(g < 0 !== meta.scoreName.includes("distance") ? "it is pulled nearer" : "nearer than its share: pushed away"),
  ];
}

// --- hinges ------------------------------------------------------------------------------------

function pairLines(lab) {
  const { kernel, anchor: i, w, S, M, out } = lab,
    at = i * w,
    rank = ranked(lab),
    { margin, squared } = kernel;
  const positives = rank.filter((j) => M[at + j] === 1).reverse(),
    negatives = rank.filter((j) => M[at + j] === 2);
  const D = (j) => S[at + j],
    half = squared ? [] : [over(mn("1"), mn("2")), mo("·")],
    square = (x) => m("msup", x, mn("2"));
  const gap = (j) => Math.max(0, margin - (squared ? D(j) ** 2 : D(j)));
  const active = negatives.filter((j) => gap(j) > 0),
    few = [positives.slice(0, TERMS), active.slice(0, TERMS)];
  const pull = (j) => (squared ? 1 : 0.5) * D(j) ** 2,
    push = (j) => (squared ? gap(j) : 0.5 * gap(j) ** 2);
  const total = (all, f) => all.reduce((s, j) => s + f(j), 0),
    a = total(positives, pull),
    b = total(active, push);
  const hinge = (j) =>
      squared ? bracket(mn(margin), mo("−"), square(mn(D(j)))) : square(bracket(mn(margin), mo("−"), mn(D(j)))),
    difference = row(subscript("x", "1"), mo("−"), subscript("x", "2"));
  const slope = (...rest) => [over(row(mo("∂"), mi("L")), row(mo("∂"), subscript("x", "1"))), mo("="), ...rest];
  const lines = [
    [
      `${positives.length} positives`,
      ...(positives.length
        ? [
            sum(
              few[0].map((j) => row(...half.map((n) => n.cloneNode(true)), square(mn(D(j))))),
              positives.length - few[0].length,
            ),
            mo("="),
            mn(a),
          ]
        : [written("none")]),
    ],
    [
      `${active.length} of ${negatives.length} negatives inside the margin`,
      ...(active.length
        ? [
            sum(
              few[1].map((j) => row(...half.map((n) => n.cloneNode(true)), hinge(j))),
              active.length - few[1].length,
            ),
            mo("="),
            mn(b),
          ]
        : [mn("0"), note("no negative is nearer than the margin")]),
    ],
    [
      "Its loss",
      subscript("L", "i"),
      mo("="),
      over(row(mn(a), mo("+"), mn(b)), mn(String(positives.length + negatives.length))),
      mo("="),
      mn(out.loss[i]),
    ],
    ["Derivative, a positive pair", ...slope(...(squared ? [mn("2")] : []), difference.cloneNode(true))],
    [
      "Derivative, a negative inside",
      ...slope(
        mo("−"),
        ...(squared ? [mn("2")] : [over(row(mi("ε"), mo("−"), mi("D")), mi("D"))]),
        squared ? difference.cloneNode(true) : bracket(difference.cloneNode(true)),
      ),
    ],
    ["Derivative, a negative beyond", ...slope(mn("0"))],
  ];
  if (active.length && D(active[0]) > 0 && !squared) {
    lines[4].push(
      mo("="),
      mo("−"),
      over(bracket(mn(margin), mo("−"), mn(D(active[0]))), mn(D(active[0]))),
      bracket(difference),
      note(lab.meta.columnNames[active[0]]),
    );
  }
  return lines;
}

/** Loss and ∂L/∂D over the distance, of a positive and of a negative pair; marks: the anchor's. */
function drawDerivative(lab, g, width, height) {
  const { margin, squared } = lab.kernel,
    at = lab.anchor * lab.w,
    edge = squared ? Math.sqrt(margin) : margin;
  const right = Math.max(1.4 * edge, 0.5),
    steps = Array.from({ length: 121 }, (_, k) => (k / 120) * right),
    half = width / 2 - 14;
  const loss = {
    p: (d) => (squared ? 1 : 0.5) * d * d,
    n: (d) => (squared ? Math.max(0, margin - d * d) : 0.5 * Math.max(0, margin - d) ** 2),
  };
  const slope = { p: (d) => (squared ? 2 : 1) * d, n: (d) => (d >= edge ? 0 : squared ? -2 * d : d - margin) };
  const part = (left, f, title) => {
    const values = steps.flatMap((d) => [f.p(d), f.n(d)]),
      low = Math.min(0, ...values),
      high = Math.max(...values, 1e-9);
    const x = (d) => left + 10 + (d / right) * (half - 20),
      y = (v) => height - 20 - ((v - low) / (high - low)) * (height - 44);
    g.fillStyle = lab.ink;
    g.fillText(title, left + 10, 14);
    line(
      g,
      [
        [x(0), y(0)],
        [x(right), y(0)],
      ],
      rgb(GRAY, 0.6),
      1,
    );
    line(
      g,
      [
        [x(edge), 22],
        [x(edge), height - 18],
      ],
      lab.accent,
      2,
    );
    line(
      g,
      steps.map((d) => [x(d), y(f.p(d))]),
      rgb(BLUE),
    );
    g.setLineDash([7, 4]);
    line(
      g,
      steps.map((d) => [x(d), y(f.n(d))]),
      rgb(ORANGE),
    );
    g.setLineDash([]);
    for (let j = 0; j < lab.w; j++) {
      const kind = lab.M[at + j],
        d = lab.S[at + j];
      if ((kind !== 1 && kind !== 2) || d > right) continue;
      g.fillStyle = rgb(kind === 1 ? BLUE : ORANGE, 0.8);
      g.fillRect(x(d) - 2, y(kind === 1 ? f.p(d) : f.n(d)) - 2, 5, 5);
    }
    g.fillStyle = lab.ink;
    tick(g, "D = 0", x(0), height - 4, left + half);
    tick(g, `${squared ? "√ε" : "ε"} = ${number(edge)}`, x(edge), height - 4, left + half);
  };
  part(0, loss, "loss of a pair: positive (blue), negative (orange, dashed)");
  part(half + 28, slope, "its derivative ∂L/∂D: below 0 pushes apart");
}

function tripletLines(lab) {
  const { kernel, anchor: i, w, S, M, out } = lab,
    at = i * w,
    rank = ranked(lab);
  const positives = rank.filter((j) => M[at + j] === 1).reverse(),
    negatives = rank.filter((j) => M[at + j] === 2),
    lines = [];
  const name = (j) => lab.meta.columnNames[j],
    hinge = (p, k) => S[at + p] - S[at + k] + kernel.margin;
  const nearest = (p) =>
    kernel.mining === "semi_hard" ? negatives.find((k) => S[at + k] > S[at + p] && hinge(p, k) > 0) : negatives[0];
  for (const p of positives.slice(0, kernel.mining === "hard" ? 1 : TERMS)) {
    const k = nearest(p);
    if (k === undefined) {
      lines.push([`${name(p)}: no semi-hard negative`, mn("0")]);
      continue;
    }
    lines.push([
      `${name(p)} against ${name(k)}`,
      mi("max"),
      bracket(mn("0"), mo(","), mn(S[at + p]), mo("−"), mn(S[at + k]), mo("+"), mn(kernel.margin)),
      mo("="),
      mn(Math.max(0, hinge(p, k))),
    ]);
  }
  const counted = out.weight[i],
    what = {
      all: kernel.average === "active" ? "active triplets" : "triplets",
      semi_hard: "semi-hard triplets",
      hard: "triplet, the hardest",
    }[kernel.mining];
  lines.push([
    "Its loss",
    subscript("L", "i"),
    mo("="),
    over(mn(out.loss[i] * counted), mn(String(counted))),
    mo("="),
    mn(out.loss[i]),
    note(`mean of ${counted} ${what}`),
  ]);
  return lines;
}

/** A loss that only the library computes: what it found for each of the largest pairs. */
function libraryLines(lab) {
  const { anchor: i, w, S, M, out } = lab,
    at = i * w,
    rank = ranked(lab);
  const kinds = [rank.filter((j) => M[at + j] === 1), rank.filter((j) => M[at + j] === 2)].flatMap((all) =>
    all.slice(0, TERMS),
  );
  const lines = kinds.map((j) => [
    `${M[at + j] === 1 ? "Positive" : "Negative"} ${lab.meta.columnNames[j]}`,
    subscript("s", "ij"),
    mo("="),
    mn(S[at + j]),
    mo(","),
    over(row(mo("∂"), subscript("L", "i")), row(mo("∂"), subscript("s", "ij"))),
    mo("="),
    mn(out.grad[at + j]),
  ]);
  return [...lines, ["Its loss", subscript("L", "i"), mo("="), mn(out.loss[i])]];
}
