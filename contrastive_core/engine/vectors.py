"""Vectors as pages read them in their own process, without torch: files, rows, nearest rows, quick maps."""

from contrastive_core.embeddings import file_formats, label_files, nearest
from contrastive_core.embeddings.nearest import EXACT_UP_TO, nearest_of, nearest_of_label, ranks_of
from contrastive_core.embeddings.open_vectors import open_upload, open_vectors, uploaded
from contrastive_core.embeddings.other_tower import OtherTower, other_tower
from contrastive_core.embeddings.pca import pca
from contrastive_core.embeddings.reading import images_of_towers, read_images, read_rows
from contrastive_core.evaluation.representation_similarity import overlap, procrustes_align
from contrastive_core.evaluation.towers import Partner, partners_of
