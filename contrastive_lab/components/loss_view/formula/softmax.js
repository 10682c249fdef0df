// A softmax loss with an anchor's numbers.

import { TERMS, bracket, exponential, log, m, mi, mn, mo, note, over, power, row, subscript, sum } from "./mathml.js";
import { ranked } from "../pairs.js";
import { logAddExp } from "../../shared/softmax.js";
import { _ } from "../../shared/locale.js";

/**
 * @param {LossViewState} lab
 */
export function softmaxLines(lab) {
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
      own ? _("All its negatives") : _("All its candidates"),
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
      _("Positive {j}", { j: lab.meta.columnNames[j] }),
      ...(inside
        ? [share, mo("="), mn(value)]
        : [mo("−"), log(), share, mo("="), mo("−"), log(), mn(value), mo("="), mn(below(j) - l(j))]),
    ]);
  }
  lines.push([_("Its loss"), ...softmaxTotal(lab, positives, (j) => below(j) - l(j))]);
  const p = positives[0],
    g = out.grad[at + p];
  lines.push([_("Gradient on {p}", { p: lab.meta.columnNames[p] }), ...softmaxSlope(lab, positives, l, below, g)]);
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
  const letter = kernel.sign === -1 ? "f" : "s",
    slope = over(row(mo("∂"), subscript("L", "i")), row(mo("∂"), subscript(letter, "ip")));
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
    note(
      g < 0 !== meta.scoreName.includes("distance")
        ? _("it is pulled nearer")
        : _("nearer than its share: pushed away"),
    ),
  ];
}
