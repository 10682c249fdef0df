// The playground as a file of its own, in two languages: nothing is fetched, and its address holds the setting.

import { mount } from "./main.js";
import { choices, el } from "../shared/dom.js";

const NAMES = { en: "English", zh: "中文" };

/** @type {string} */
let language = navigator.language.startsWith("zh") ? "zh" : "en",
  stop = () => {};
const root = /** @type {any} */ (document.getElementById("playground"));

/** The messages differ by language; the images stand once in the file, behind them. */
const bytes = (...ids) =>
  Uint8Array.from(ids.map((id) => atob(document.getElementById(id).textContent)).join(""), (c) => c.charCodeAt(0));

function draw() {
  document.documentElement.lang = language;
  stop();
  stop = mount(root, bytes(`data-${language}`, "images"), {
    settings: new URLSearchParams(location.hash.slice(1)).get("set"),
    report: (_name, text) => history.replaceState(null, "", `#${new URLSearchParams({ set: String(text) })}`),
  });
}

function turn(to) {
  language = to;
  draw();
}

document.querySelector("header").append(el("div", { class: "segment" }, ...choices(NAMES, language, turn)));
draw();

export default draw;
