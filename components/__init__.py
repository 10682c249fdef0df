"""Browser parts: the live loss view and the scatter, each with its JavaScript in files of its own.

Arrays go over once as bytes; what a person drags is computed in the browser; a value comes back
when it is let go.
"""

from components.gallery import gallery
from components.live import live_view
from components.scatter import scatter
from components.sprites import sprite

__all__ = ["gallery", "live_view", "scatter", "sprite"]
