// The figures above the matrix.

import { valueBothWays } from "./directions.js";
import { gliding } from "./motion.js";
import { isHinge, isPlainSoftmax, positivesOf } from "./pairs.js";
import { number, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

/** @param {number} x */
export function few(x) {
  return x > 0 && x < 0.05 ? "< 0.1" : x < 9.95 ? x.toFixed(1) : x.toFixed(0);
}

/**
 * The mean over anchors of effective negatives, and of all negatives; null without any.
 *
 * @param {KernelOutput} o
 * @param {number} n
 */
export function meanNegatives(o, n) {
  let sum = 0,
    all = 0,
    count = 0;
  for (let i = 0; i < n; i++)
    if (o.negatives[i] > 0) {
      sum += o.effective[i];
      all += o.negatives[i];
      count++;
    }
  return count ? [sum / count, all / count] : null;
}

/**
 * How hard an anchor's positives are pulled: Σ_p |∂L_i/∂s_ip|.
 *
 * @param {KernelOutput} o
 * @param {Uint8Array} M
 * @param {number} i
 * @param {number} w
 */
export function pullOf(o, M, i, w) {
  let pull = 0;
  for (let k = i * w; k < (i + 1) * w; k++) if (M[k] === 1) pull += Math.abs(o.grad[k]);
  return pull;
}

/** @param {LossViewState} lab */
export function drawFigures(lab) {
  const { out: o, anchor: i, meta } = lab,
    many = positivesOf(lab).length,
    told = isHinge(lab) ? _("Negatives still pushed") : _("Negatives that matter"),
    isDefined = o && o.weight[i] > 0,
    both = valueBothWays(lab),
    bounds = { most: number(1 / lab.kernel?.temperature), knob: lab.kernel?.knob ? " (1/τ)" : "" };
  const texts = {
    effectiveTitle: _("{told}, mean", { told }),
    ownTitle: _("Anchor {anchor}: loss", { anchor: meta.names[i] ?? i }),
    pullTitle: many === 1 ? _("Gradient on its positive") : _("Gradient on its positives, sum"),
    both: both === null ? "" : _(" both ways {value}", { value: number(both) }),
    bound: isDefined && boundedBy(lab.kernel, many) ? _(" at most {most}{knob}", bounds) : "",
    loss: meta.loss == null ? "–" : number(meta.loss),
    ...Object.fromEntries(["effective", "own", "pull"].map((name) => [name, "–"])),
    ...(o && valuesOf(lab, o, i, isDefined, many)),
  };
  for (const [name, text] of Object.entries(texts)) say(lab[name], text);
}

function valuesOf(lab, o, i, isDefined, many) {
  const glide = (name, value) => gliding(lab, name, value),
    of = (count, total) => _("{count} of {total}", { count, total }),
    mean = meanNegatives(o, lab.n),
    hasNoTriplet = isHinge(lab) && many && o.negatives[i];
  const lack = hasNoTriplet ? _("not counted: no active triplet") : _("undefined: no positive or no negative");
  return {
    loss: o.valid ? number(glide("loss", o.value)) : "undefined",
    effective: mean ? of(few(glide("effective", mean[0])), mean[1].toFixed(0)) : _("none"),
    own: isDefined ? number(glide("own", o.loss[i])) : lack,
    pull: isDefined ? number(glide("pull", pullOf(o, lab.M, i, lab.w))) : "–",
  };
}

/** Whether the pull on all positives together can't be more than 1/τ. */
function boundedBy(kernel, positives) {
  if (!kernel || !isPlainSoftmax(kernel) || kernel.scale !== "none") return false;
  return positives === 1 || kernel.denominator === "own_positive" || kernel.aggregate !== "out";
}
