"""Parts of pages that are too large for the page's own file: layout only, no torch."""
