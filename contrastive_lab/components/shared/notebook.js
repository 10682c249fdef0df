// A part as a widget: Jupyter, VS Code, marimo, whatever speaks anywidget.
//
// The part stands in a shadow root, so that neither its styles nor the notebook's reach the other. Its colors are
// those of the page around it: no notebook's own variables are needed.

import { colorsOf, whenColorsChange } from "./surroundings.js";

/** @param {(parent: any, blob: Uint8Array, host: Host) => () => void} mount */
export function inNotebook(mount) {
  /** @param {{ model: any, el: HTMLElement }} widget */
  const render = ({ model, el }) => {
    const shadow = el.shadowRoot || el.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(),
      root = document.createElement("div");
    sheet.replaceSync(model.get("sheet"));
    shadow.adoptedStyleSheets = [sheet];
    shadow.replaceChildren(root);
    const report = (name, value) => {
      model.set("reported", { name, value });
      model.save_changes();
    };
    let stop = () => {};
    const draw = () => {
      for (const [name, color] of Object.entries(colorsOf(el))) root.style.setProperty(name, color);
      stop = mount(root, bytesOf(model.get("data")), { report });
    };
    const ignore = whenColorsChange(el, draw);
    model.on("change:data", draw);
    draw();
    return () => {
      ignore();
      model.off("change:data", draw);
      stop();
    };
  };
  return { render };
}

/** Bytes as the kernel sent them: a DataView, or what else holds a buffer. */
function bytesOf(data) {
  return new Uint8Array(data.buffer || data, data.byteOffset || 0, data.byteLength);
}
