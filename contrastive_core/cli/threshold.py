"""The command `threshold`: the similarity from which a pair of two towers is a match."""

from argparse import Namespace
from pathlib import Path

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.safe_files import printable, write_bytes
from contrastive_core.cli.output import out_path, print_result
from contrastive_core.cli.pairs import rows_of_towers
from contrastive_core.compare.judged_queries import NOT_TOWERS
from contrastive_core.compare.match_threshold import JudgedPairs, find_threshold
from contrastive_core.spaces.label_files import judgments_file, read_qrels
from contrastive_core.spaces.towers import towers_of


def threshold(args: Namespace) -> None:
    """Print the threshold, its basis and the calibration, and write them with `--out`. Raises ValueError."""
    out = out_path(args.out, ".json") if args.out else None
    if not 0 < args.rate < 100:
        raise ValueError(f"--rate must be between 0 and 100 percent; got {args.rate:g}")
    towers, name = towers_of(rows_of_towers(args)), printable(Path(args.file).name)
    if towers is None:
        raise UnusableEmbedding(NOT_TOWERS, name=name)
    qrels = read_qrels(args.qrels) if args.qrels else None
    found = find_threshold(JudgedPairs.of(towers, qrels, judgments_file(args.qrels).name), args.rate / 100)
    record = found.record(name, args.qrels)
    if out:
        write_bytes(out, json_bytes(record))
    lines = [found.sentence(name), found.basis, "", "similarity  matches  95 % CI"]
    for part in found.calibration:
        low, high = (f"{100 * end:.0f}" for end in part.interval)
        lines.append(f"{part.similarity:10.3f}  {100 * part.share:5.1f} %  {low} to {high}")
    print_result(args, record, "\n".join(lines))
