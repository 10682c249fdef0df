// The categories: shown or hidden.

import { shapeOf } from "./points.js";
import { schedule } from "./view.js";
import { el } from "../shared/dom.js";
import { _ } from "../shared/locale.js";

/**
 * @param {ScatterState} map
 */
export function drawLegend(map) {
  map.legend.hidden = map.meta.names.length < 2;
  map.legend.replaceChildren(
    ...map.meta.names.map((name, k) => {
      const dot = el("i", {}),
        shown = !map.hidden.has(k);
      const b = el("button", { type: "button", "aria-pressed": String(shown), title: _("show or hide") }, dot, name);
      dot.style.background = map.meta.palette[k];
      dot.style.clipPath = shapeOf(k).clip;
      b.onclick = () => {
        if (shown) map.hidden.add(k);
        else map.hidden.delete(k);
        drawLegend(map);
        schedule(map, true);
      };
      return b;
    }),
  );
}
