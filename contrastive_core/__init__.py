"""Contrastive losses and methods, how they are trained, and what they make of every sample."""

import os

# How often a waiting thread of GNU OpenMP looks before it sleeps, if torch is not loaded yet. Its
# own choice, 300,000 times, is right for one process alone: beside another one it waits for threads
# that are not running, and a linear probe next to a training took 9 times as long, the training 2.6
# times (benchmarks/beside.py).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
