// What is saved: the view as a picture, every pair as CSV.

import { VIEWS } from "./choices.js";
import { anchorText, candidateText, isHinge } from "./pairs.js";
import { offerCsv, offerPicture } from "../shared/download.js";
import { knobText, symbolOf } from "../shared/knob.js";
import { _ } from "../shared/locale.js";

/** @param {LossViewState} lab */
export function savePng(lab) {
  const curves = ["curves", "grads", "scores"].map((key) => [lab.panels[key].canvas]);
  const { knob, title, names } = lab.meta,
    told = isHinge(lab) ? _("negatives still pushed") : _("negatives that matter");
  const words = [
    title,
    knob ? `${symbolOf(knob)} = ${knobText(lab.value)}` : "",
    _("loss {loss}", { loss: lab.loss.textContent }),
    _("{told} {mean} (mean)", { told, mean: lab.effective.textContent }),
    _(VIEWS[lab.view]).toLowerCase(),
    _("anchor {anchor}", { anchor: names[lab.anchor] }),
  ];
  offerPicture(
    { star: [[lab.scene.canvas, lab.bars]], matrix: [[lab.matrix, lab.bars]], curves }[lab.stage],
    lab.paper,
    "loss-lab.png",
    words.filter(Boolean).join(" · "),
    lab.ink,
  );
}

/** @param {LossViewState} lab */
export function saveCsv(lab) {
  const head = "anchor candidate relation score weight gradient anchor_loss anchor_weight anchor_effective_negatives",
    /** @type {any[][]} */
    rows = [head.split(" ")],
    o = lab.out;
  const second = lab.pinned && lab.two && lab.two.out;
  if (second) rows[0].push("second_weight", "second_gradient", "second_anchor_loss");
  for (let i = 0; i < lab.n; i++)
    for (let j = 0; j < lab.w; j++) {
      const k = i * lab.w + j,
        what = ["not compared", "positive", "negative", "self"][lab.M[k]];
      rows.push([
        anchorText(lab, i),
        candidateText(lab, j),
        what,
        lab.S[k],
        ...(o ? [o.pair[k], o.grad[k], o.loss[i], o.weight[i], o.effective[i]] : ["", "", "", "", ""]),
      ]);
      if (second) rows[rows.length - 1].push(second.pair[k], second.grad[k], second.loss[i]);
    }
  offerCsv(rows, "loss-lab.csv");
}
