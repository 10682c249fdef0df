// A part in its host: built once, shown anew with each answer, taken away at the end; and what it tells.

import { watchSizes } from "./canvas.js";
import { doneOf } from "./lesson.js";
import { mountIn } from "./locale.js";
import { languageOf, unpack } from "./transport.js";

/**
 * What mounts a part in an element, from a blob of pack (mount.py); another one may follow. It returns what takes
 * the part away.
 *
 * @param {string} field of the element, where the part is kept; its `root` and `frame` end with it
 * @param {(data: any, host: any) => any} build
 * @param {(part: any, data: any) => void} show
 * @param {(part: any) => void} redraw after it, or a canvas in it, has got another size
 * @param {(part: any) => void} [end]
 * @returns {(parent: any, blob: Uint8Array, host: Host) => () => void}
 */
export function partOf(field, build, show, redraw, end) {
  const begin = (parent, data, host) => {
    const part = build(data, host);
    parent.append(part.root);
    part.observer = watchSizes(part.root, () => redraw(part));
    return part;
  };
  return (parent, blob, host) => {
    const data = unpack(blob),
      part = (parent[field] ||= begin(parent, data, host));
    part.send = host?.report;
    show(part, data);
    return () => {
      cancelAnimationFrame(part.frame);
      part.observer.disconnect();
      end?.(part);
      part.root.remove();
      parent[field] = null;
    };
  };
}

/**
 * The part for Streamlit.
 *
 * @param {(parent: any, blob: Uint8Array, host: Host) => (() => void) | void} mount
 */
export function inApp(mount) {
  /** @param {PartArguments} component */
  return ({ parentElement, data, setStateValue }) =>
    mountIn(mount, parentElement, data, languageOf(data), { report: setStateValue });
}

/**
 * Whether an answer is older than what is in the hand, or was told since: then it moves nothing.
 *
 * @param {any} part
 * @param {{ heard?: number }} meta
 */
export function isOlder(part, { heard }) {
  part.reports ??= heard ?? 0;
  return part.dragging || part.reports > (heard ?? part.reports);
}

/**
 * Tell the server what is chosen; nothing is in the hand then.
 *
 * @param {any} part
 * @param {Record<string, any>} chosen
 */
export function tellChosen(part, chosen) {
  part.dragging = false;
  const count = (part.reports = (part.reports ?? 0) + 1);
  part.send("chosen", { more: part.further.values, report: count, done: doneOf(part.lesson), ...chosen });
}

/**
 * Save what the host's menu asked for since the last time.
 *
 * @param {any} part
 * @param {[string, number] | null} asked without a menu null
 * @param {Record<string, (part: any) => void>} saves by name
 */
export function saveAsked(part, asked, saves) {
  const [what, count] = asked ?? ["", 0],
    isNew = count > (part.exported ?? count);
  part.exported = count;
  if (isNew) saves[what](part);
}
