// A softmax loss with an anchor's numbers.

import { TERMS, exponential, held, n, note, sum } from "./mathml.js";
import { ranked } from "../pairs.js";
import { logAddExp } from "../../shared/softmax.js";
import { _ } from "../../shared/locale.js";

/**
 * @param {LossViewState} lab
 * @returns {[string, string][]} title and formula of each line
 */
export function softmaxLines(lab) {
  const { kernel, anchor, w, S, M, out, meta } = lab,
    { temperature, denominator, aggregate } = kernel,
    at = anchor * w,
    sign = kernel.sign || 1,
    rank = ranked(lab),
    positives = rank.filter((j) => M[at + j] === 1),
    own = denominator === "own_positive",
    summed = own ? rank.filter((j) => M[at + j] === 2) : rank,
    isPlain = !kernel.knob && temperature === 1, // n_pair has no τ
    l = (j) => (S[at + j] * sign) / temperature,
    together = (all) => all.reduce((t, j) => logAddExp(t, l(j)), -Infinity),
    power = (j) => `e^{${n(S[at + j] * sign)}${isPlain ? "" : ` ∕ ${held(temperature)}`}}`,
    [shown, rest] = [summed.slice(0, TERMS), summed.slice(TERMS)],
    whole = together(summed),
    below = (j) => (own ? logAddExp(l(j), whole) : whole);
  const exponent = `${sign < 0 ? "− f" : "s"}_${own ? "ik" : "ia"} ${isPlain ? "" : "∕ τ"}`,
    letters = `∑⌄{${own ? "k∈N" : "a∈A"}} e^{${exponent}}`,
    values = sum(shown.map(l).map(exponential), rest.length, exponential(together(rest)));
  const total = `${letters} = ${sum(shown.map(power), rest.length)} = ${values} = ${exponential(whole)}`;
  const shares = positives.slice(0, TERMS).map((j) => {
    const [itself, others] = [l(j), whole].map(exponential),
      share = `{${itself}}/{${own ? `${itself} + ${others}` : others}}`,
      value = n(Math.exp(l(j) - below(j))),
      formula = aggregate === "out" ? `− log ${share} = − log ${value} = ${n(below(j) - l(j))}` : `${share} = ${value}`;
    return /** @type {[string, string]} */ ([_("Positive {j}", { j: meta.columnNames[j] }), formula]);
  });
  const costs = positives.map((j) => below(j) - l(j)),
    count = positives.length,
    p = positives[0],
    g = out.grad[at + p],
    target = own ? 1 : aggregate === "out" ? 1 / count : Math.exp(l(p) - together(positives)),
    share = n(Math.exp(-costs[0])),
    top = sign < 0 ? `${n(target)} − ${share}` : `${share} − ${n(target)}`,
    slope = `{${top}}/{${own && count > 1 ? `${count} · ` : ""}${held(temperature)}} = ${n(g)}`,
    isPulled = g < 0 !== meta.scoreName.includes("distance"),
    words = isPulled ? _("it is pulled nearer") : _("above its target share: pushed away");
  return [
    [own ? _("All its negatives") : _("All its candidates"), total],
    ...shares,
    [_("Its loss"), `L_i ${totalOf(kernel, costs)} = ${n(out.loss[anchor])}`],
    [
      _("Gradient on {p}", { p: meta.columnNames[p] }),
      `{∂L_i}/{∂${sign < 0 ? "f" : "s"}_ip} = ${factorOf(kernel)} ${slope} ${note(words)}`,
    ],
  ];
}

/** τ over its base, where a loss is scaled by it. @param {Kernel} kernel */
function factorOf({ scale, base, temperature }) {
  return scale === "tau_over_base" && base ? `${held(temperature)}/${n(base)} ·` : "";
}

/** How the positives' costs become the loss. */
function totalOf(kernel, costs) {
  const factor = factorOf(kernel),
    more = costs.length - TERMS,
    shown = costs.slice(0, TERMS),
    mean = (terms) => (costs.length > 1 ? `{${sum(terms, more)}}/${costs.length}` : terms[0]);
  if (kernel.aggregate === "out") return costs.length > 1 || factor ? `= ${factor} ${mean(shown.map(n))}` : "";
  const shares = shown.map((cost) => n(Math.exp(-cost)));
  return `= ${factor} − log (${kernel.aggregate === "in" ? mean(shares) : sum(shares, more)})`;
}
