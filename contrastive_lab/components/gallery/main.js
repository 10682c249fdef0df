// Pictures with captions, of which some are chosen; the chosen rows go to the server.

import { drawGallery, pictureOf } from "./grid.js";
import { el } from "../shared/dom.js";
import { pointAt } from "../shared/pointed_at.js";
import { _ } from "../shared/locale.js";
import { inApp } from "../shared/part.js";
import { unpack } from "../shared/transport.js";

function mount(parent, blob, host) {
  const data = unpack(blob),
    meta = data.meta;
  const box = parent._gallery || (parent._gallery = el("div", { role: "group" }));
  if (!box.isConnected) parent.append(el("div", { class: "map" }, box));
  const lit = new Set(meta.selected);
  const show = (sheet) =>
    drawGallery(
      box,
      meta.captions.map((caption, i) => i),
      {
        make: (i) => pictureOf(sheet, meta.thumbnails, i, meta.size, meta.labels[i]),
        name: (i) => meta.labels[i],
        caption: (i) => meta.captions[i],
        isOn: (i) => lit.has(i),
        point: (i) => meta.points && pointAt(meta.points.map, meta.points.rows[i]),
        click: (i) => {
          const was = lit.has(i);
          if (meta.single) lit.clear();
          if (was) lit.delete(i);
          else lit.add(i);
          [...box.children].forEach(
            (b, k) => b.hasAttribute("aria-pressed") && b.setAttribute("aria-pressed", String(lit.has(k))),
          );
          host.report("selected", [...lit]);
        },
      },
    );
  box.setAttribute("aria-label", meta.title);
  box.parentElement.classList.toggle("line", Boolean(meta.points));
  box.onpointerleave = () => meta.points && pointAt(meta.points.map, -1);
  box.style.maxHeight = meta.height ? `${meta.height}px` : "";
  if (!data.thumbnails.length) {
    box.textContent = _("No image to show.");
    return;
  }
  createImageBitmap(new Blob([data.thumbnails], { type: "image/png" })).then(show);
}

export default inApp(mount);
