// An unseen part beside a map: asks the server for the images that the map lacks, and hands them over, or says which
// samples are nearest to the selected one.

import { BROUGHT, WANTED } from "../scatter/more.js";
import { tellNear } from "../scatter/near.js";
import { unpack } from "../shared/transport.js";

let turn = 0;

/** @param {PartArguments} component */
export default function ({ data, setStateValue }) {
  const { meta, thumbnails } = unpack(data);
  if (meta.similarity) {
    tellNear(meta);
    return;
  }
  if (meta.rows.length)
    createImageBitmap(new Blob([thumbnails], { type: "image/png" })).then((picture) => {
      const places = new Map(meta.rows.map((row, place) => [row, place]));
      window.dispatchEvent(
        new CustomEvent(BROUGHT, { detail: { ...meta, ...meta.thumbnails, sheet: picture, places } }),
      );
    });
  const ask = (/** @type {any} */ { detail }) => {
    if (detail.key === meta.key) setStateValue("wanted", { rows: detail.rows, turn: ++turn });
  };
  window.addEventListener(WANTED, ask);
  return () => window.removeEventListener(WANTED, ask);
}
