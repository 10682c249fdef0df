"""Browser parts, a folder each, with its ES modules beside its Python: the live loss view, points on a circle, the
scatter, a gallery, one sample's loss, a bench to review samples at, a cut-off.

Arrays go over once as bytes; what a person drags is computed in the browser; a value comes back when it is let go."""
