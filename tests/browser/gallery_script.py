"""A page with one gallery, of which the second picture is chosen."""

import numpy as np
import streamlit as st

from contrastive_lab.components.gallery import draw_gallery

images = np.arange(6, dtype=np.uint8)[:, None, None, None].repeat(4, 2).repeat(4, 3) * 40
chosen = draw_gallery(images, [f"<b>{i}</b>" for i in range(6)], selected=[1], key="pictures")
st.text(f"chosen {sorted(chosen)}")
