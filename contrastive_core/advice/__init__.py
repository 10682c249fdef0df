"""From a first look at images to settings that held-out images support. `first_look` needs no training; `plan` says
what will be tried and how long it takes; `search` tries it, a run after the other; `answer` says what was shown, and
what these data cannot show."""
