// The live loss view as a widget of a notebook.

import { mount } from "./main.js";
import { inNotebook } from "../shared/notebook.js";

export default inNotebook(mount);
