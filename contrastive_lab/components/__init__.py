"""Browser components, one folder each, with ES modules and Python: the live loss view, points on a circle, the scatter,
a gallery, one sample's loss, a bench for reviewing samples, a cut-off.

Arrays are sent once as bytes. The browser computes everything during a drag and reports a value on release."""
