// One cell in words.

import { deviationOf, partOfCell } from "../shared/dimensions.js";
import { number } from "../shared/dom.js";
import { knobText } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/**
 * @param {any} lab
 * @param {number} i
 * @param {number} j
 */
export function samplesInWords({ meta, samples }, i, j) {
  return _("{first} and {second}: cosine similarity {value}.", {
    first: meta.names[i],
    second: meta.names[j],
    value: number(samples.values[i * samples.size + j]),
  });
}

/**
 * @param {any} lab
 * @param {number} j
 * @param {number} k
 */
export function dimensionInWords({ found, knobs, which }, j, k) {
  const { form, shown, matrices } = found,
    [a, b] = matrices.map((matrix) => matrix[j * shown.length + k]),
    values = { first: shown[j] + 1, second: shown[k] + 1, part: number(partOfCell(found, knobs, which, j, k)) };
  if (form === "correlation") {
    const told = { ...values, a: number(a) };
    return j === k
      ? _("Dimension {first} with itself in the other view: correlation {a}. It adds {part} to the loss.", told)
      : _(
          "Dimension {first} of view a with dimension {second} of view b: correlation {a}. It adds {part} to the loss.",
          told,
        );
  }
  const of = (f, more = {}) => ({ ...values, a: number(f(a)), b: number(f(b)), ...more });
  if (j === k)
    return _(
      "Dimension {first}: deviation {a} in view a and {b} in view b; γ is {least}. This cell adds {part}.",
      of(deviationOf, { least: knobText(knobs.deviation) }),
    );
  return _(
    "Dimensions {first} and {second}: covariance {a} in view a and {b} in view b. This cell adds {part}.",
    of((value) => value),
  );
}
