// The training in a web worker.

import { session } from "./session.js";

const take = session((message) => self.postMessage(message));
self.onmessage = (event) => take(event.data);

export default take;
