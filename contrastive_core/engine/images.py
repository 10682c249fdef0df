"""Image sets as pages read them in their own process, without torch: names, folders, uploads, made images."""

from contrastive_core.data import datasets, image_list, torchvision_sets
from contrastive_core.data.folder_preview import changed, name_of, pictures_in, subfolders, values_of
from contrastive_core.data.image_cache import space_of
from contrastive_core.data.image_decoding import ENDINGS as IMAGE_ENDINGS
from contrastive_core.data.streamed_images import allowed_space
from contrastive_core.data.uploaded_images import MOST_BYTES, MOST_FILES, parts_of, save_uploads
from contrastive_core.training.image_size import size_of
