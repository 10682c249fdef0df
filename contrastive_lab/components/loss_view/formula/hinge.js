// A hinge loss with an anchor's numbers: on pairs, and on triplets.

import { TERMS, held, n, note, sum } from "./mathml.js";
import { ranked } from "../pairs.js";
import { _, N_ } from "../../shared/locale.js";

/**
 * @param {LossViewState} lab
 * @returns {[string, string][]} title and formula of each line
 */
export function pairLines(lab) {
  const { kernel, anchor, w, S, M, out } = lab,
    { margin, squared } = kernel,
    of = (kind) => ranked(lab).filter((j) => M[anchor * w + j] === kind),
    D = (j) => S[anchor * w + j],
    gap = (j) => Math.max(0, margin - (squared ? D(j) ** 2 : D(j)));
  const positives = of(1).reverse(),
    negatives = of(2),
    active = negatives.filter((j) => gap(j) > 0),
    total = (all, f) => all.reduce((s, j) => s + f(j), 0),
    a = total(positives, (j) => (squared ? 1 : 0.5) * D(j) ** 2),
    b = total(active, (j) => (squared ? gap(j) : 0.5 * gap(j) ** 2));
  const half = squared ? "" : "1/2 · ",
    pull = (j) => `${half}${n(D(j))}^2`,
    push = (j) => (squared ? `(${held(margin)} − ${n(D(j))}^2)` : `${half}(${held(margin)} − ${n(D(j))})^2`),
    summed = (all, term) => sum(all.slice(0, TERMS).map(term), all.length - TERMS),
    slope = "{∂L}/{∂x_1} =",
    between = "(x_1 − x_2)",
    nearest = active[0],
    none = _("none"),
    beyond = _("no negative is nearer than the margin"),
    example =
      active.length && D(nearest) > 0 && !squared
        ? `= − {${held(margin)} − ${n(D(nearest))}}/${n(D(nearest))} ${between} ${note(lab.meta.columnNames[nearest])}`
        : "";
  return [
    [
      _("{length} positives", { length: positives.length }),
      positives.length ? `${summed(positives, pull)} = ${n(a)}` : `"${none}"`,
    ],
    [
      _("{length} of {length2} negatives inside the margin", { length: active.length, length2: negatives.length }),
      active.length ? `${summed(active, push)} = ${n(b)}` : `0 ${note(beyond)}`,
    ],
    [_("Its loss"), `L_i = {${n(a)} + ${n(b)}}/${positives.length + negatives.length} = ${n(out.loss[anchor])}`],
    [_("Derivative, a positive pair"), `${slope} ${squared ? "2" : ""} ${between}`],
    [_("Derivative, a negative inside"), `${slope} − ${squared ? "2" : "{ε − D}/D"} ${between} ${example}`],
    [_("Derivative, a negative beyond"), `${slope} 0`],
  ];
}

/**
 * @param {LossViewState} lab
 * @returns {[string, string][]}
 */
export function tripletLines(lab) {
  const { kernel, anchor, w, S, M, out } = lab,
    of = (kind) => ranked(lab).filter((j) => M[anchor * w + j] === kind),
    D = (j) => S[anchor * w + j],
    name = (j) => lab.meta.columnNames[j],
    negatives = of(2),
    hinge = (p, k) => D(p) - D(k) + kernel.margin;
  const nearest = (p) =>
    kernel.mining === "semi_hard" ? negatives.find((k) => D(k) > D(p) && hinge(p, k) > 0) : negatives[0];
  const lines = of(1)
    .reverse()
    .slice(0, kernel.mining === "hard" ? 1 : TERMS)
    .map((p) => {
      const k = nearest(p);
      if (k === undefined) return [_("{p}: no semi-hard negative", { p: name(p) }), "0"];
      const value = n(Math.max(0, hinge(p, k)));
      return [
        _("{p} against {k}", { p: name(p), k: name(k) }),
        `max (0, ${n(D(p))} − ${n(D(k))} + ${held(kernel.margin)}) = ${value}`,
      ];
    });
  const counted = out.weight[anchor],
    all = kernel.average === "active" ? N_("mean of {counted} active triplets") : N_("mean of {counted} triplets"),
    how = { all, semi_hard: N_("mean of {counted} semi-hard triplets"), hard: N_("loss of the hardest triplet") },
    loss = out.loss[anchor],
    told = note(_(how[kernel.mining], { counted }));
  return /** @type {any} */ ([...lines, [_("Its loss"), `L_i = ${n(loss * counted)}/${counted} = ${n(loss)} ${told}`]]);
}
