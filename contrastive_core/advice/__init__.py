"""From a first look at images to settings that held-out images support.

`first_look` needs no training, `candidates` plans what is tried, `search` tries it, `answer` says what was shown.
"""
