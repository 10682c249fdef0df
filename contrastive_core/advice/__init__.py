"""The adviser: finds settings for a data set and supports them with scores on held-out images.

`first_look` inspects the images without training, `candidates` plans, `search` trains, `answer` states the result."""
