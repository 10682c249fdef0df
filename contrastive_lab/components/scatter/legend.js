// The categories with their counts: a click shows one alone, with Shift it is shown or hidden beside others.

import { shapeOf } from "./points.js";
import { schedule } from "./view.js";
import { el } from "../shared/dom.js";
import { _, N_ } from "../shared/locale.js";

const ABOUT = N_("Click to show only this one. Shift-click to show or hide it.");

/** @param {ScatterState} map */
export function drawLegend(map) {
  map.legend.hidden = map.meta.names.length < 2;
  const counts = new Uint32Array(map.meta.names.length);
  for (let i = 0; i < map.rows; i++) counts[map.color[i]]++;
  map.legend.replaceChildren(
    ...map.meta.names.map((name, k) => {
      const dot = el("i", {}),
        shown = !map.hidden.has(k);
      const count = el("span", { class: "count" }, counts[k].toLocaleString("en"));
      const b = el("button", { type: "button", "aria-pressed": String(shown), title: _(ABOUT) }, dot, name, count);
      dot.style.background = map.meta.palette[k];
      dot.style.clipPath = shapeOf(k).clip;
      b.onclick = (e) => {
        const isAlone = shown && map.hidden.size === counts.length - 1;
        if (!e.shiftKey) map.hidden = new Set(isAlone ? [] : [...counts.keys()].filter((other) => other !== k));
        else if (shown) map.hidden.add(k);
        else map.hidden.delete(k);
        drawLegend(map);
        schedule(map, true);
      };
      return b;
    }),
  );
}
