// The figures above the matrix.

import { valueBothWays } from "./directions.js";
import { shares } from "./gradients.js";
import { gliding } from "./motion.js";
import { isHinge, isPlainSoftmax, positivesOf } from "./pairs.js";
import { number, say } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

/**
 * @param {number} x
 */
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

/**
 * @param {LossViewState} lab
 */
export function drawFigures(lab) {
  const o = lab.out,
    i = lab.anchor,
    hinge = isHinge(lab),
    many = positivesOf(lab).length;
  const told = hinge ? _("Negatives still pushed") : _("Negatives that matter"),
    defined = o && o.weight[i] > 0;
  say(lab.effectiveTitle, _("{told}, mean", { told }));
  say(lab.ownTitle, _("Anchor {anchor}: loss", { anchor: lab.meta.names[i] ?? i }));
  say(lab.ownEffectiveTitle, _("Its {figure}", { figure: told.toLowerCase() }));
  say(lab.pullTitle, many === 1 ? _("Gradient on its positive") : _("Gradient on its positives, sum"));
  const mean = o && meanNegatives(o, lab.n),
    counted = (x) => (hinge ? String(x) : few(x));
  const both = valueBothWays(lab);
  say(lab.both, both === null ? "" : _(" both ways {value}", { value: number(both) }));
  say(
    lab.loss,
    !o
      ? lab.meta.loss == null
        ? "–"
        : number(lab.meta.loss)
      : o.valid
        ? number(gliding(lab, "loss", o.value))
        : "undefined",
  );
  say(
    lab.effective,
    !o
      ? "–"
      : mean
        ? _("{count} of {total}", { count: few(gliding(lab, "effective", mean[0])), total: mean[1].toFixed(0) })
        : _("none"),
  );
  say(
    lab.own,
    !o
      ? "–"
      : defined
        ? number(gliding(lab, "own", o.loss[i]))
        : hinge && many && o.negatives[i]
          ? _("not counted: no active triplet")
          : _("undefined: it lacks a partner"),
  );
  say(
    lab.ownEffective,
    !o
      ? "–"
      : o.negatives[i]
        ? _("{count} of {total}", {
            count: counted(hinge ? o.effective[i] : gliding(lab, "counted", shares(lab).counted)),
            total: o.negatives[i],
          })
        : _("none"),
  );
  say(lab.pull, defined ? number(gliding(lab, "pull", pullOf(o, lab.M, i, lab.w))) : "–");
  const bounded = defined && boundedBy(lab.kernel, many);
  say(
    lab.bound,
    bounded
      ? _(" at most {most}{knob}", { most: number(1 / lab.kernel.temperature), knob: lab.kernel.knob ? " (1/τ)" : "" })
      : "",
  );
}

/** Whether the pull on all positives together can't be more than 1/τ. */
function boundedBy(kernel, positives) {
  if (!kernel || !isPlainSoftmax(kernel) || kernel.scale !== "none") return false;
  return positives === 1 || kernel.denominator === "own_positive" || kernel.aggregate !== "out";
}
