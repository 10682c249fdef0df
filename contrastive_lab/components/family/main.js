// The family tree of the methods: each under its year, a line to each that took from it, and what they are filtered by.

import { el } from "../shared/dom.js";
import { shape } from "../shared/figure_file.js";
import { unpack } from "../shared/transport.js";

/** @param {PartArguments} component */
export default function ({ parentElement, data, setStateValue }) {
  const { meta } = unpack(data),
    focused = parentElement.querySelector("a:focus")?.dataset.name,
    wanted = (parentElement._wanted ||= new Set(meta.has));
  const links = meta.methods.map((method) =>
    el(
      "a",
      {
        href: `?method=${method.name}`,
        title: method.hint,
        class: method.state,
        style: `--x: ${method.x}; --y: ${method.y}`,
        "data-name": method.name,
        "aria-current": String(method.state === "chosen"),
      },
      method.title,
    ),
  );
  const years = meta.years.map(({ year, x }) =>
    el("div", {}, el("b", { style: `--x: ${x}` }, year), ...links.filter((_, i) => meta.methods[i].year === year)),
  );
  const lines = meta.lines.map(({ d, ends, state }) => shape("path", { d, class: state, "data-ends": ends.join(" ") }));
  const dim = () =>
    links.forEach((one, i) =>
      one.classList.toggle("dim", ![...wanted].every((use) => meta.methods[i].has.includes(use))),
    );
  const chips = Object.entries(meta.filters).map(([use, text]) => {
    const toggle = () => {
      if (!wanted.delete(use)) wanted.add(use);
      chip.setAttribute("aria-pressed", String(wanted.has(use)));
      dim();
    };
    const chip = el("button", { type: "button", "aria-pressed": String(wanted.has(use)), onclick: toggle }, text);
    return chip;
  });
  const light = ({ target }) => {
    for (const line of lines) line.classList.toggle("lit", line.dataset.ends.split(" ").includes(target.dataset.name));
  };
  const onclick = (event) => {
    const { name } = event.target.dataset;
    if (!name || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    setStateValue("chosen", { name, isBeside: event.shiftKey, at: Date.now() });
  };
  const sheet = shape("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": true }, ...lines);
  const tree = el("nav", { "aria-label": meta.title, onclick, onpointerover: light }, sheet, ...years);
  tree.addEventListener("focusin", light);
  const filters = el("div", { class: "filters", role: "group", "aria-label": meta.filterTitle }, ...chips);
  parentElement.querySelector(".family")?.remove();
  parentElement.append(
    el("div", { class: "family" }, el("h2", {}, meta.title), tree, filters, el("small", {}, meta.hint)),
  );
  dim();
  links.find((one) => one.dataset.name === focused)?.focus();
}
