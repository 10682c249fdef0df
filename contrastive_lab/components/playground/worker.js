// The training in a web worker.

import { session } from "./session.js";

const { port1, port2 } = new MessageChannel(); // a timer waits four milliseconds
const later = (then) => {
  port1.onmessage = then;
  port2.postMessage(null);
};
const take = session((message) => self.postMessage(message), later);
self.onmessage = (event) => take(event.data);
self.postMessage(null); // it is there

export default take;
