// What can be chosen in the live loss view.

import { N_ } from "../shared/locale.js";

export const STAGES = { star: N_("Star"), matrix: N_("Matrix"), curves: N_("Curves") };

export const VIEWS = {
  weight: N_("Weight"),
  score: N_("Similarity"),
  grad: N_("Gradient"),
  mask: N_("Positive or negative?"),
};

export const ORDERS = { group: N_("by group"), cluster: N_("by cluster") };
