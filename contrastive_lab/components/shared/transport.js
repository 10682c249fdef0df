// The inverse of packing.py: meta data, and each array as bytes of its own.

import { setWords } from "./words.js";

/**
 * @param {Uint8Array} blob
 */
export function unpack(blob) {
  const length = new DataView(blob.buffer, blob.byteOffset, 8).getUint32(0, true);
  const { meta, places } = JSON.parse(new TextDecoder().decode(blob.subarray(8, 8 + length)));
  setWords(meta.words);
  const found = { meta };
  for (const [name, [at, size]] of Object.entries(places))
    found[name] = blob.slice(8 + length + at, 8 + length + at + size);
  return found;
}
