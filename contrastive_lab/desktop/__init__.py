"""The command `contrastive-lab`: a server for this user, a window, and the targets that it opens."""
