"""The command `contrastive-lab`: one server of this user, a window of it, and what it opens."""
