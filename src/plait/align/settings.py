"""Settings of searches, and the words of those of alignments, as callers give them; loads nothing else."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from plait.align.scoring import SubstitutionMatrix

#: What sequences are made of.
Kind = Literal["protein", "dna"]
#: How much of the sequences has to be aligned.
Mode = Literal["global", "local", "semiglobal", "overlap", "extension"]
#: Those of searches.
SearchMode = Literal["local", "global", "semiglobal", "overlap"]
#: An end of a sequence.
FreeEnd = Literal["query_start", "query_end", "target_start", "target_end"]
#: How the choices of a pair are kept for walking back.
Traceback = Literal["auto", "full", "linear"]
#: The queries as they are, or their reverse complements too.
Strand = Literal["given", "both"]
#: The first query with the first target and so on; every query with every target; one query with all.
Pairing = Literal["order", "all", "one"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralBest:
    """Which local alignments of a pair are asked for, where it is not the best alone.

    `most` alignments, that score `min_score` or more. Of two that end less than `apart` rows and less than
    `apart` columns from each other only the better counts; with `apart` 0, none aligns two residues that a
    better one has aligned with each other.
    """

    most: int
    apart: int = 5
    min_score: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichAlignments:
    """Which alignments of a pair are written, true if not just the best.

    `several` are asked for, or None for the best; those of a lower score than `min_score` or a larger E-value
    than `evalue` are left out. `strand` ``"both"``: of the query and of its reverse complement.
    """

    several: SeveralBest | None = None
    min_score: int | None = None
    evalue: float | None = None
    strand: Strand = "given"

    def __bool__(self) -> bool:
        return self != THE_BEST

    def takes(self, score: int, evalue: float | None) -> bool:
        """Whether an alignment is good enough."""
        if self.min_score is not None and score < self.min_score:
            return False
        return self.evalue is None or (evalue is not None and evalue <= self.evalue)


#: The best alignment of each pair.
THE_BEST = WhichAlignments()


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """All settings of a search; commands take their options and the texts of their help from here.

    Attributes
    ----------
    top
        Hits of each query at the most: the best of all by score, no heuristics.
    evalue
        Leave out hits with a larger E-value. They are BLAST's, without --composition those without
        composition-based statistics.
    min_score
        Leave out hits with a lower score.
    matrix
        Name of a bundled matrix (BLOSUM62, PAM30, NUC.4.4, ...) or a file in NCBI's format; otherwise
        BLOSUM62 for proteins, and 2 for a match and -3 for a mismatch of nucleotides.
    gap_open
        Cost of the first residue of a gap, as a positive number: BLAST's existence and extension together,
        so that BLAST's 11/1 is 12 and 1. Otherwise what BLAST takes for the matrix.
    gap_extend
        Cost of each further residue of a gap, as a positive number.
    kind
        protein or dna (RNA too); otherwise what the database is or its first letters look like; needed where
        they leave it open.
    hits_per_target
        Alignments of a query with one sequence at the most, best first, of which no two align the same two
        residues.
    strand
        both: of nucleotides, the reverse complements of the queries too.
    mode
        What has to be aligned. local: the best stretch of each; global: both sequences from end to end;
        semiglobal: all but the free ends; overlap: all four ends are free. Only local scores have E-values.
    free_ends
        For semiglobal: query_start, query_end, target_start and target_end, with commas between; otherwise
        both of the target.
    translate
        Search with the translations of nucleotide queries in all six frames.
    composition
        Adjust E-values of proteins for the composition of each pair.
    mask_lower_case
        Take lower-case letters of queries and FASTA databases as X, those of nucleotides as N.
    score_only
        Leave out the alignments.
    allow_duplicate_names
        Take files in which several sequences have one name.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    """

    top: int = 500
    evalue: float | None = 10.0
    min_score: int | None = None
    matrix: "str | os.PathLike[str] | SubstitutionMatrix | None" = None
    gap_open: int | None = None
    gap_extend: int | None = None
    kind: Kind | None = None
    hits_per_target: int = 1
    strand: Strand = "given"
    mode: SearchMode = "local"
    free_ends: str | tuple[FreeEnd, ...] | None = None
    translate: bool = False
    composition: bool = False
    mask_lower_case: bool = False
    score_only: bool = False
    allow_duplicate_names: bool = False
    threads: int | None = None
    device: str = "auto"
