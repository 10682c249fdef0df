// The messages of the browser parts, by gettext: the server sends the catalog of the session's language with the data.

/** @type {Record<string, string>} */
let messages = {};

/** @param {Record<string, string> | undefined} catalog undefined for English */
export function setMessages(catalog) {
  messages = catalog || {};
}

/**
 * A message in the session's language, with its values.
 *
 * @param {string} message
 * @param {Record<string, any>} [values]
 */
export function _(message, values) {
  const said = messages[message] ?? message;
  return values ? said.replace(/\{(\w+)\}/g, (hole, name) => (name in values ? String(values[name]) : hole)) : said;
}

/**
 * Mark a constant, which is translated where it is drawn.
 *
 * @param {string} message
 */
export function N_(message) {
  return message;
}

/**
 * Mount a part for the host's page; one that was built in another language is built anew. Streamlit stops a mount not
 * only with its place on the page, but also when a newer answer comes while it loads: then the part stays.
 *
 * @param {(parent: any, blob: Uint8Array, host: any) => any} mount
 * @param {any} parent
 * @param {Uint8Array} blob
 * @param {string} language
 * @param {any} host
 */
export function mountIn(mount, parent, blob, language, host) {
  if (parent._language !== undefined && parent._language !== language) parent._stop?.();
  parent._language = language;
  parent._stop = mount(parent, blob, host);
  return () => {
    if (!parent.isConnected) parent._stop?.();
  };
}
