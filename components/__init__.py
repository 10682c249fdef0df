"""Browser parts, each with its JavaScript in files of its own: the live loss view, points on a
circle, the scatter and a gallery.

Arrays go over once as bytes; what a person drags is computed in the browser; a value comes back
when it is let go.
"""

from components.address import Address
from components.gallery import gallery
from components.live import live_view, second_setting
from components.panels import panels
from components.ring import circle
from components.scatter import scatter
from components.sprites import sprite

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
