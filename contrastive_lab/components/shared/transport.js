// The inverse of transport.py: meta data, and each array as bytes of its own.

import { setMessages } from "./locale.js";

/**
 * @param {Uint8Array} blob
 */
export function unpack(blob) {
  const { length, meta, places } = headerOf(blob);
  setMessages(meta.messages);
  const found = { meta };
  for (const [name, [at, size]] of Object.entries(places))
    found[name] = blob.slice(8 + length + at, 8 + length + at + size);
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

/**
 * @param {Uint8Array} blob
 */
function headerOf(blob) {
  const length = new DataView(blob.buffer, blob.byteOffset, 8).getUint32(0, true);
  return { length, ...JSON.parse(new TextDecoder().decode(blob.subarray(8, 8 + length))) };
}
