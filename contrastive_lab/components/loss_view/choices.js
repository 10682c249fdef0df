// What can be chosen in the live loss view.

import { N_ } from "../shared/locale.js";

export const VIEWS = {
  weight: N_("Weight on each pair"),
  score: N_("Similarity"),
  grad: N_("Gradient"),
  mask: N_("Positive or negative?"),
};

export const PANELS = {
  none: N_("No panel"),
  scores: N_("Margin"),
  grads: N_("Gradients"),
  curves: N_("Sweep"),
  formula: N_("Formula"),
  two: N_("Two settings"),
  pushes: N_("What each loss pushes"),
};

export const ORDERS = { group: N_("by group"), cluster: N_("by cluster") };
