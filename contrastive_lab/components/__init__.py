"""Browser parts, each with its JavaScript in files of its own: the live loss view, points on a
circle, the scatter and a gallery.

Arrays go over once as bytes; what a person drags is computed in the browser; a value comes back
when it is let go.
"""

from contrastive_lab.components.circle import circle
from contrastive_lab.components.gallery import gallery
from contrastive_lab.components.loss_view import live_view, second_setting
from contrastive_lab.components.scatter import scatter
from contrastive_lab.components.scatter.panels import panels
from contrastive_lab.components.shared.thumbnails import sprite
from contrastive_lab.query_params import Address

__all__ = [
    "Address",
    "circle",
    "gallery",
    "live_view",
    "panels",
    "scatter",
    "second_setting",
    "sprite",
]
