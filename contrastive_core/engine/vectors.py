"""Vectors as pages read them in their own process, without torch: files, rows, nearest rows, quick maps."""

from contrastive_core.embeddings import file_formats as file_formats
from contrastive_core.embeddings import label_files as label_files
from contrastive_core.embeddings import nearest as nearest
from contrastive_core.embeddings.nearest import EXACT_UP_TO as EXACT_UP_TO
from contrastive_core.embeddings.nearest import nearest_of as nearest_of
from contrastive_core.embeddings.nearest import nearest_of_label as nearest_of_label
from contrastive_core.embeddings.nearest import ranks_of as ranks_of
from contrastive_core.embeddings.open_vectors import open_upload as open_upload
from contrastive_core.embeddings.open_vectors import open_vectors as open_vectors
from contrastive_core.embeddings.open_vectors import uploaded as uploaded
from contrastive_core.embeddings.pca import pca as pca
from contrastive_core.embeddings.reading import read_images as read_images
from contrastive_core.embeddings.reading import read_rows as read_rows
from contrastive_core.evaluation.representation_similarity import overlap as overlap
from contrastive_core.evaluation.representation_similarity import procrustes_align as procrustes_align
