// A hinge loss with an anchor's numbers: on pairs, and on triplets.

import { TERMS, bracket, m, mi, mn, mo, note, over, row, subscript, sum, written } from "./mathml.js";
import { ranked } from "../pairs.js";
import { _ } from "../../shared/locale.js";

/**
 * @param {LossViewState} lab
 */
export function pairLines(lab) {
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
      _("{length} positives", { length: positives.length }),
      ...(positives.length
        ? [
            sum(
              few[0].map((j) => row(...half.map((n) => n.cloneNode(true)), square(mn(D(j))))),
              positives.length - few[0].length,
            ),
            mo("="),
            mn(a),
          ]
        : [written(_("none"))]),
    ],
    [
      _("{length} of {length2} negatives inside the margin", { length: active.length, length2: negatives.length }),
      ...(active.length
        ? [
            sum(
              few[1].map((j) => row(...half.map((n) => n.cloneNode(true)), hinge(j))),
              active.length - few[1].length,
            ),
            mo("="),
            mn(b),
          ]
        : [mn("0"), note(_("no negative is nearer than the margin"))]),
    ],
    [
      _("Its loss"),
      subscript("L", "i"),
      mo("="),
      over(row(mn(a), mo("+"), mn(b)), mn(String(positives.length + negatives.length))),
      mo("="),
      mn(out.loss[i]),
    ],
    [_("Derivative, a positive pair"), ...slope(...(squared ? [mn("2")] : []), difference.cloneNode(true))],
    [
      _("Derivative, a negative inside"),
      ...slope(
        mo("−"),
        ...(squared ? [mn("2")] : [over(row(mi("ε"), mo("−"), mi("D")), mi("D"))]),
        squared ? difference.cloneNode(true) : bracket(difference.cloneNode(true)),
      ),
    ],
    [_("Derivative, a negative beyond"), ...slope(mn("0"))],
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

/**
 * @param {LossViewState} lab
 */
export function tripletLines(lab) {
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
      lines.push([_("{p}: no semi-hard negative", { p: name(p) }), mn("0")]);
      continue;
    }
    lines.push([
      _("{p} against {k}", { p: name(p), k: name(k) }),
      mi("max"),
      bracket(mn("0"), mo(","), mn(S[at + p]), mo("−"), mn(S[at + k]), mo("+"), mn(kernel.margin)),
      mo("="),
      mn(Math.max(0, hinge(p, k))),
    ]);
  }
  const counted = out.weight[i],
    what = {
      all: kernel.average === "active" ? _("active triplets") : _("triplets"),
      semi_hard: _("semi-hard triplets"),
      hard: _("triplet, the hardest"),
    }[kernel.mining];
  lines.push([
    _("Its loss"),
    subscript("L", "i"),
    mo("="),
    over(mn(out.loss[i] * counted), mn(String(counted))),
    mo("="),
    mn(out.loss[i]),
    note(_("mean of {counted} {what}", { counted, what })),
  ]);
  return lines;
}
