"""Image sets as pages read them in their own process, without torch: names, folders, uploads, made images."""

from contrastive_core.data import datasets as datasets
from contrastive_core.data import image_list as image_list
from contrastive_core.data import torchvision_sets as torchvision_sets
from contrastive_core.data.folder_preview import changed as changed
from contrastive_core.data.folder_preview import name_of as name_of
from contrastive_core.data.folder_preview import pictures_in as pictures_in
from contrastive_core.data.folder_preview import subfolders as subfolders
from contrastive_core.data.folder_preview import values_of as values_of
from contrastive_core.data.image_cache import space_of as space_of
from contrastive_core.data.image_decoding import ENDINGS as IMAGE_ENDINGS
from contrastive_core.data.uploaded_images import MOST_BYTES as MOST_BYTES
from contrastive_core.data.uploaded_images import MOST_FILES as MOST_FILES
from contrastive_core.data.uploaded_images import parts_of as parts_of
from contrastive_core.data.uploaded_images import save_uploads as save_uploads
from contrastive_core.training.image_size import size_of as size_of

__all__ = ["IMAGE_ENDINGS"]
