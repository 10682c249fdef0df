// The inverse of mount.py: meta data, and each array as bytes of its own, below its path.

import { setMessages } from "./locale.js";

/** @param {Uint8Array} blob */
export function unpack(blob) {
  const { length, meta, places } = headerOf(blob);
  setMessages(meta.messages);
  const found = { meta };
  for (const [path, [at, size]] of Object.entries(places)) {
    const names = path.split("."),
      last = names.pop();
    const holder = names.reduce((/** @type {any} */ above, name) => (above[name] ??= {}), found);
    holder[last] = blob.slice(8 + length + at, 8 + length + at + size);
  }
  return found;
}

/**
 * The language in which a part is drawn; undefined for English.
 *
 * @param {Uint8Array} blob
 */
export function languageOf(blob) {
  return headerOf(blob).meta.language;
}

/** @param {Uint8Array} blob */
function headerOf(blob) {
  const length = new DataView(blob.buffer, blob.byteOffset, 8).getUint32(0, true);
  return { length, ...JSON.parse(new TextDecoder().decode(blob.subarray(8, 8 + length))) };
}
