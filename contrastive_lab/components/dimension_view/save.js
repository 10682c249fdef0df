// What is saved: both matrices as a picture, every pair of dimensions as CSV.

import { TERMS, totalOf } from "./terms.js";
import { partOfCell } from "../shared/dimensions.js";
import { number } from "../shared/dom.js";
import { offerCsv, offerPicture } from "../shared/download.js";
import { knobText } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/** @param {any} lab */
export function savePng(lab) {
  const terms = lab.terms.map(({ key, part }) => `${_(TERMS[key].name)} ${number(part)}`),
    knobs = lab.meta.knobs.map(({ label, name }) => `${label} = ${knobText(lab.knobs[name])}`),
    loss = _("loss {loss}", { loss: number(totalOf(lab.terms)) });
  offerPicture(
    [[lab.samples.canvas, lab.dimensions.canvas]],
    lab.paper,
    "dimensions.png",
    [lab.meta.title, ...knobs, loss, ...terms].join(" · "),
    lab.ink,
  );
}

/** @param {any} lab */
export function saveCsv(lab) {
  if (lab.found.form === "gaussian") return saveProjections(lab);
  const { form, shown, matrices } = lab.found,
    s = shown.length,
    rows = [["view", "dimension", "other_dimension", form, "part_of_loss"]];
  matrices.forEach((matrix, which) => {
    for (let j = 0; j < s; j++)
      for (let k = 0; k < s; k++)
        rows.push([
          form === "correlation" ? "a with b" : "ab"[which],
          shown[j] + 1,
          shown[k] + 1,
          matrix[j * s + k],
          partOfCell(lab.found, lab.knobs, which, j, k),
        ]);
  });
  offerCsv(rows, "dimensions.csv");
}

/** Every row on the direction that is shown. */
function saveProjections({ meta, shown, which }) {
  const rows = [...shown.x].map((x, i) => [meta.names[2 * i + which], shown.direction + 1, x]);
  offerCsv([["row", "direction", "projection"], ...rows], "projections.csv");
}
