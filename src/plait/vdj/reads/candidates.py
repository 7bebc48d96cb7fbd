"""Which alleles are worth aligning with which reads, on which strand: those with the most words in common.

Texts are reads as sets of bases, references alleles; the mirror of a text is its reverse complement.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER, COMPLEMENT_MASK, IUPAC_MASK
from plait.formats.fastq import ReadBlock
from plait.lang.compile import kernel, kernel_optimised_twice, shared
from plait.lang.lanes import lowest_bit, population
from plait.vdj.reads.allele_alignment import Parts, SegmentIndex
from plait.vdj.reads.columns import edges_of

#: How much lower than the best its score may be: without a mate, and with one, which may count for more.
_SCORE_BELOW, _SCORE_BELOW_WITH_MATE = 4, 16
#: Least score of a V without gaps.
_LEAST: Final = 16
#: Least score of a J without gaps.
LEAST_J: Final = 14
#: Longer reads are aligned in windows: so many bases more than the allele on both sides of the diagonal.
_LONG: Final = 1024
_MARGIN: Final = 256
#: Base changes that may cost a candidate words that the best one has.
_CHANGES: Final = 3
#: Longer words occur by chance so rarely that two are asked for.
_SHORT_WORD: Final = 9
#: Diagonals on either side that are looked at for what gaps may gain; words tell of others.
_NEARBY: Final = 12
#: Candidates of a call, at least.
_ROOM: Final = 1 << 16
_SETS = IUPAC_MASK.tobytes()
_COMPLEMENT = COMPLEMENT_LETTER.copy()
_SAME = np.arange(256, dtype=np.uint8)
_MIRROR = COMPLEMENT_MASK.copy()


class VoteLimits(NamedTuple):
    """What makes a candidate.

    A frame needs `least_votes`, and may have `votes_below` fewer than the best, to be looked at; a candidate
    may have a score `score_below` less than the best; a text whose best score is below `least_score` has
    none. `gap` and `gap_extend` are costs of gaps, `mismatch` the score of two letters, negative. With
    `settle`, 0 or 1, what gaps cannot make the best one is no candidate.
    """

    least_votes: Any
    votes_below: Any
    score_below: Any
    least_score: Any
    gap: Any
    gap_extend: Any
    mismatch: Any
    settle: Any


class VoteScratch(NamedTuple):
    """Memory of one thread, from the caller; int64 each.

    Of frames: `votes` are zero between texts; `diagonals` lead by `leads`; `touched` are those with votes,
    and `best` their best scores, 0 where they are not looked at. `scores` are those of the references of the
    others, -1 for low ones. `planes`, (enough, 3), is the text as a `WordIndex` has its references, and which
    letters differ. `words`, (2, enough), are of the text and its mirror: words that may occur, and behind
    their 32 bits their places.
    """

    votes: Any
    diagonals: Any
    leads: Any
    touched: Any
    best: Any
    scores: Any
    planes: Any
    words: Any


class Strand(NamedTuple):
    """A text, ``letters[first:last]``, or its mirror if `mirrored` is 1; `plain`: all letters are single."""

    letters: Any
    first: Any
    last: Any
    mirrored: Any
    plain: Any


class Settled(NamedTuple):
    """References of texts that are the best ones by whatever alignment, and need no other to be tried.

    `scores` and `diagonals` (of the first of them) are int64, (texts,), `ties`, bool (texts, references),
    says which they are; the score is 0 where there are others.
    """

    scores: Any
    diagonals: Any
    ties: Any


class Candidates(NamedTuple):
    """Candidates of all texts, changed in place: int64, shape (enough,) each.

    `mirrored` is 1 if the text is read as its mirror; a diagonal is the position in the reference less that
    in the text as it is read; `scores` are those of the best segments without gaps on these diagonals; `open`
    is 1 where gaps may be better.
    """

    texts: Any
    mirrored: Any
    references: Any
    diagonals: Any
    scores: Any
    open: Any


@shared
def oriented(index: Any, text: Any, position: int) -> int:
    """The set at a position of a text, or of its mirror."""
    if text.mirrored:
        return int(index.mirror[text.letters[text.last - 1 - position]])
    return int(text.letters[text.first + position])


@shared
def find_word(index: Any, word: int) -> int:
    """Number of a word among those that occur, -1 for others."""
    bits = int(index.table[word >> 5, 0])
    bit = word & 31
    if ((bits >> bit) & 1) == 0:
        return -1
    return int(index.words[int(index.table[word >> 5, 1]) + population(bits & ((1 << bit) - 1)), 1])


@shared
def _count(index: Any, mirrored: int, words: int, scratch: Any) -> int:
    """Votes of so many words of `scratch`, by their numbers; returns the number of frames with votes."""
    low = (1 << 32) - 1
    touched = 0
    for step in range(words):
        word = scratch.words[mirrored, words - 1 - step if mirrored else step]
        number = word & low
        for k in range(index.starts[number], index.starts[number + 1]):
            frame = index.entries[k, 0]
            own = index.entries[k, 1] - (word >> 32)
            votes = scratch.votes[frame]
            lead = scratch.leads[frame]
            if votes == 0:
                scratch.touched[touched] = frame
                touched += 1
                lead = 0
            scratch.votes[frame] = votes + 1
            if lead == 0:
                scratch.diagonals[frame] = own
                scratch.leads[frame] = 1
            elif scratch.diagonals[frame] == own:
                scratch.leads[frame] = lead + 1
            else:
                scratch.leads[frame] = lead - 1
    return touched


@shared
def _scan(index: Any, letters: Any, first: int, last: int, scratch: Any, both: bool) -> Any:
    """Look through the words of a text, and of its mirror if `both`, for those that may occur.

    Returns how many there are, and whether each letter is a single one.
    """
    size = index.size
    mask = (1 << (2 * size)) - 1
    ends = (32 * index.ends.size - 1) & mask
    own, words, mirrors = letters[first:last], scratch.words[0], scratch.words[1]
    word = mirror = 0
    found = mirrored = 0
    unknown = -1
    for position in range(own.size):
        number = int(index.numbers[own[position]])
        # The partner of number k is 3 - k.
        word = ((word << 2) | (number & 3)) & mask
        mirror = ((mirror >> 2) | ((~number & 3) << (2 * size - 2))) & mask
        if number < 0:
            unknown = position
        if position - unknown >= size:
            words[found] = word | ((position - size + 1) << 32)
            found += (int(index.ends[(word & ends) >> 5]) >> (word & 31)) & 1
            if both:
                mirrors[mirrored] = mirror | ((own.size - 1 - position) << 32)
                mirrored += (int(index.ends[(mirror & ends) >> 5]) >> (mirror & 31)) & 1
    return found, mirrored, unknown < 0


@shared
def _count_words(index: Any, text: Any, found: int, scratch: Any) -> int:
    """Votes of `found` words of a text or its mirror; if there are votes, its planes, too.

    Returns the number of frames with votes.
    """
    low = (1 << 32) - 1
    real = last = place = 0
    for k in range(found):
        word, position = scratch.words[text.mirrored, k] & low, scratch.words[text.mirrored, k] >> 32
        # Where the text goes on like a reference, so do the numbers.
        number = last + position - place
        if number < 0 or number >= index.words.shape[0] or index.words[number, 0] != word:
            number = find_word(index, word)
        scratch.words[text.mirrored, real] = (position << 32) | (number & low)
        if number >= 0:
            real += 1
            last, place = number, position
    touched = _count(index, text.mirrored, real, scratch)
    if touched > 0:
        put_planes(index, text, scratch)
    return touched


@shared
def put_planes(index: Any, text: Any, scratch: Any) -> None:
    """Make the planes of a text or its mirror."""
    start, step, flip = (text.last - 1, -1, 3) if text.mirrored else (text.first, 1, 0)
    size = text.last - text.first
    for word in range((size + 31) // 32):
        high = low = 0
        for bit in range(min(32, size - 32 * word)):
            number = int(index.numbers[text.letters[start + step * (32 * word + bit)]]) ^ flip
            high |= ((number >> 1) & 1) << bit
            low |= (number & 1) << bit
        scratch.planes[word, 0] = high
        scratch.planes[word, 1] = low


@shared
def segment_score(index: Any, text: Any, reference: int, diagonal: int) -> int:
    """Best score of a segment without gaps on a diagonal; 0 if none is positive."""
    start = index.bounds[reference]
    length = index.bounds[reference + 1] - start
    best = 0
    score = 0
    for position in range(max(0, -diagonal), min(text.last - text.first, length - diagonal)):
        own = oriented(index, text, position)
        score += index.scores[own, index.letters[start + position + diagonal]]
        score = max(score, 0)
        best = max(best, score)
    return best


@shared
def _unlike(index: Any, planes: Any, word: int, reference: int, diagonal: int, low: int, high: int) -> int:
    """Bits of the letters of a word of a text that differ, of those from `low` to before `high`."""
    # The references have a word of nothing before the first one.
    at = 32 * (index.plane_starts[reference] + word) + diagonal
    k = at >> 5
    first = ((index.planes[k, 0] | (index.planes[k + 1, 0] << 32)) >> (at & 31)) ^ planes[word, 0]
    second = ((index.planes[k, 1] | (index.planes[k + 1, 1] << 32)) >> (at & 31)) ^ planes[word, 1]
    return int((first | second) & _bits(word, low, high))


@shared
def _bits(word: int, low: int, high: int) -> int:
    """Bits of the letters of a word from `low` to before `high`."""
    begin = min(max(low - 32 * word, 0), 32)
    end = max(min(high - 32 * word, 32), begin)
    return (1 << end) - (1 << begin)


@shared
def plain_bound(index: Any, planes: Any, size: int, reference: int, diagonal: int, mismatch: int) -> int:
    """What `plain_score` gives at most."""
    low = max(0, -diagonal)
    high = min(size, index.bounds[reference + 1] - index.bounds[reference] - diagonal)
    # What ends with a word, and the best so far, if the words at their ends were free to be cut anywhere.
    ending = bound = 0
    for word in range(low >> 5, ((high - 1) >> 5) + 1):
        unlike = population(_unlike(index, planes, word, reference, diagonal, low, high))
        alike = min(high, 32 * word + 32) - max(low, 32 * word) - unlike
        bound = max(bound, ending + alike)
        ending = max(ending + alike + mismatch * unlike, alike)
    return bound


@shared
def plain_score(
    index: Any, planes: Any, size: int, reference: int, diagonal: int, mismatch: int, floor: int
) -> Any:
    """As `segment_score` of a text of single letters, which match for 1; -1 if that is below `floor`.

    Also where the segment begins and ends.
    """
    low = max(0, -diagonal)
    high = min(size, index.bounds[reference + 1] - index.bounds[reference] - diagonal)
    if floor > 0 and plain_bound(index, planes, size, reference, diagonal, mismatch) < floor:
        return -1, 0, 0
    best = begin = end = score = 0
    start = after = low
    for word in range(low >> 5, ((high - 1) >> 5) + 1):
        rest = _unlike(index, planes, word, reference, diagonal, low, high)
        while rest != 0:
            place = 32 * word + lowest_bit(rest)
            rest = rest & (rest - 1)
            score += place - after
            if score > best:
                best, begin, end = score, start, place
            score += mismatch
            after = place + 1
            if score <= 0:
                score = 0
                start = after
    if score + high - after > best:
        best, begin, end = score + high - after, start, high
    return best, begin, end


@shared
def gaps_may_pay(
    index: Any, planes: Any, size: int, reference: int, diagonal: int, limits: Any, below: int, own: Any
) -> bool:
    """Whether some letters of a text score so much better on a diagonal nearby that a gap may pay for it.

    It has to gain `below` as well. `own` is what `plain_score` gives for the diagonal.
    """
    for word in range((size + 31) >> 5):
        inside = own[1] < 32 * word + 32 and own[2] > 32 * word
        here = _unlike(index, planes, word, reference, diagonal, own[1], own[2]) if inside else 0
        planes[word, 2] = here
    length = index.bounds[reference + 1] - index.bounds[reference]
    for k in range(2 * _NEARBY):
        step = k // 2 + 1
        other = diagonal + (step if k % 2 == 0 else -step)
        span = max(0, -other), min(size, length - other)
        gap = limits.gap + (step - 1) * limits.gap_extend + below
        if _most_gain(index, planes, reference, other, span, limits.mismatch, own) > gap and (
            _gain(index, planes, reference, other, span, limits.mismatch, own, gap)
        ):
            return True
    return False


@shared
def _changes(index: Any, planes: Any, word: int, reference: int, other: int, span: Any, own: Any) -> Any:
    """Letters of a word of a text that score better on another diagonal, worse, and those within `own`."""
    every = _bits(word, span[0], span[1])
    within = every & _bits(word, own[1], own[2])
    there = _unlike(index, planes, word, reference, other, span[0], span[1])
    here = planes[word, 2]
    # Where both differ nothing changes.
    return every & ~there & (here | ~within), there & ~here, within


@shared
def _most_gain(
    index: Any, planes: Any, reference: int, other: int, span: Any, mismatch: int, own: Any
) -> int:
    """What `_gain` may find, if the words at the ends of a stretch were free to be cut anywhere."""
    ending = bound = 0
    for word in range(span[0] >> 5, ((span[1] - 1) >> 5) + 1):
        if ending == 0 and planes[word, 2] == 0 and own[1] <= 32 * word and 32 * word + 32 <= own[2]:
            # Nothing to gain.
            continue
        better, worse, within = _changes(index, planes, word, reference, other, span, own)
        gain = population(better) - mismatch * population(better & within)
        bound = max(bound, ending + gain)
        loss = population(worse & within) - mismatch * population(worse)
        ending = max(ending + gain - loss, gain)
    return bound


@shared
def _gain(
    index: Any, planes: Any, reference: int, other: int, span: Any, mismatch: int, own: Any, most: int
) -> bool:
    """Whether a stretch of a span gains more than `most` on another diagonal."""
    inside = 1 - mismatch
    gain = 0
    for word in range(span[0] >> 5, ((span[1] - 1) >> 5) + 1):
        better, worse, within = _changes(index, planes, word, reference, other, span, own)
        while better != 0:
            bit = better & -better
            before = worse & (bit - 1)
            worse = worse ^ before
            better = better ^ bit
            gain -= inside * population(before & within) - mismatch * population(before & ~within)
            gain = max(gain, 0) + (inside if bit & within != 0 else 1)
            if gain > most:
                return True
        gain -= inside * population(worse & within) - mismatch * population(worse & ~within)
        gain = max(gain, 0)
    return False


@shared
def _reach(index: Any, size: int, frame: int, best: int, limits: Any, scratch: Any) -> int:
    """How much below `best` a frame may be without gaps where votes for other diagonals hint at some."""
    off = scratch.votes[frame] - scratch.leads[frame]
    # Each vote may be a letter more, words over an edge some more; no more letters than there are.
    more = min(off + 2 * index.size, min(size, index.longest[frame]) - best) - limits.gap
    return int(max(more, 0) if off > 0 else 0)


@shared
def _score_frames(index: Any, text: Any, touched: int, limits: Any, scratch: Any) -> int:
    """Scores of the references in all frames with votes; returns the best one."""
    size = text.last - text.first
    mismatch = limits.mismatch
    lead = 0
    for k in range(touched):
        if scratch.votes[scratch.touched[k]] > scratch.votes[scratch.touched[lead]]:
            lead = k
    best = 0
    for step in range(touched):
        # The leading frame first: few others then have to be looked at closely.
        frame = scratch.touched[lead if step == 0 else step - (1 if step <= lead else 0)]
        reach = _reach(index, size, frame, best, limits, scratch)
        own = 0
        scratch.best[frame] = 0
        votes = scratch.votes[frame]
        if votes < limits.least_votes or votes + limits.votes_below < scratch.votes[scratch.touched[lead]]:
            continue
        begin, end = index.frame_starts[frame], index.frame_starts[frame + 1]
        first = begin
        if text.plain:
            # The one that may be best is scored first: few others then have to be.
            for m in range(begin, end):
                reference = index.members[m]
                diagonal = scratch.diagonals[frame] - index.shifts[reference]
                bound = plain_bound(index, scratch.planes, size, reference, diagonal, mismatch)
                scratch.scores[reference] = bound
                if bound > scratch.scores[index.members[first]]:
                    first = m
        for k in range(end - begin):
            m = first if k == 0 else begin + k - (1 if begin + k <= first else 0)
            reference = index.members[m]
            diagonal = scratch.diagonals[frame] - index.shifts[reference]
            floor = max(max(best, own) - reach, own) - limits.score_below
            score = -1
            if not (text.plain and index.plain[reference]):
                score = segment_score(index, text, reference, diagonal)
            elif scratch.scores[reference] >= floor:
                score = plain_score(index, scratch.planes, size, reference, diagonal, mismatch, 0)[0]
            scratch.scores[reference] = score
            own = max(own, score)
        scratch.best[frame] = own
        best = max(best, own)
    return best


@shared
def _is_open(index: Any, size: int, frame: int, best: int, limits: Any, scratch: Any) -> bool:
    """Whether gaps may make the best reference of a frame better than one of score `best`."""
    below = best - scratch.best[frame]
    # A vote off the leading diagonal takes one from its lead, too.
    off = (scratch.votes[frame] - scratch.leads[frame]) // 2
    if off + index.size > limits.gap + _NEARBY * limits.gap_extend + below:
        return True
    for m in range(index.frame_starts[frame], index.frame_starts[frame + 1]):
        reference = index.members[m]
        if not index.plain[reference]:
            return True
        if scratch.scores[reference] == scratch.best[frame]:
            diagonal = scratch.diagonals[frame] - index.shifts[reference]
            own = plain_score(index, scratch.planes, size, reference, diagonal, limits.mismatch, 0)
            return bool(gaps_may_pay(index, scratch.planes, size, reference, diagonal, limits, below, own))
    return True


@shared
def vote_text(
    index: Any, letters: Any, first: int, last: int, text: int, limits: Any, scratch: Any, out: Any, at: int
) -> int:
    """Find the candidates of a text and of its mirror; returns where the next one goes.

    The text is ``letters[first:last]``. `scratch` and `out` are changed in place; from `at` on, `out` has
    room for all references twice.
    """
    found, turned, plain = _scan(index, letters, first, last, scratch, True)
    for mirrored in range(2):
        strand = Strand(letters, first, last, mirrored, plain)
        at = _vote(index, strand, text, turned if mirrored else found, limits, scratch, out, at)
    return at


@shared
def _vote(
    index: Any, strand: Any, text: int, words: int, limits: Any, scratch: Any, out: Any, at: int
) -> int:
    """Find the candidates of one strand of a text, by so many words."""
    size = strand.last - strand.first
    touched = _count_words(index, strand, words, scratch)
    best = _score_frames(index, strand, touched, limits, scratch)
    for k in range(touched):
        frame = scratch.touched[k]
        own = scratch.best[frame]
        reach = max(_reach(index, size, frame, best, limits, scratch), limits.score_below)
        if best >= limits.least_score and own > 0 and own + reach >= best:
            settled = (
                limits.settle and strand.plain and not _is_open(index, size, frame, best, limits, scratch)
            )
            # Where gaps cannot pay, no other reference of the frame comes up to the best one.
            least = best if settled else max(own - limits.score_below, 1)
            for m in range(index.frame_starts[frame], index.frame_starts[frame + 1]):
                reference = index.members[m]
                if scratch.scores[reference] >= least:
                    out.texts[at] = text
                    out.mirrored[at] = strand.mirrored
                    out.references[at] = reference
                    out.diagonals[at] = scratch.diagonals[frame] - index.shifts[reference]
                    out.scores[at] = scratch.scores[reference]
                    out.open[at] = 0 if settled else 1
                    at += 1
        scratch.votes[frame] = 0
    return at


@shared
def _least_votes(index: Any, best: int, longest: int, limits: Any) -> int:
    """Words, at least, that an alignment of score `best` shares with a reference of so many letters."""
    # Each mismatch takes words away; what it costs must be made up for by letters, and these are limited.
    mismatches = max(longest - best, 0) // (1 - limits.mismatch)
    return int(best - (index.size - 1) - (index.size - 1 + limits.mismatch) * mismatches)


@shared
def _may_reach(
    index: Any, size: int, frame: int, low: int, high: int, best: int, limits: Any, scratch: Any
) -> bool:
    """Whether some alignment of a frame may come up to `best`, but for those on the leading diagonal.

    It may have gaps. References are those from `low` to before `high`.
    """
    least = _least_votes(index, best, min(size, index.longest[frame]), limits)
    if scratch.votes[frame] < least:
        return False
    # No more votes than these are for other diagonals.
    if scratch.votes[frame] - scratch.leads[frame] >= least:
        return True
    opening = limits.gap - limits.gap_extend
    for m in range(index.frame_starts[frame], index.frame_starts[frame + 1]):
        reference = index.members[m]
        if reference < low or reference >= high:
            continue
        diagonal = scratch.diagonals[frame] - index.shifts[reference]
        length = index.bounds[reference + 1] - index.bounds[reference]
        # Letters of a gap: each lets the alignment be one letter longer than the diagonal, and costs more.
        room = min(size, length - diagonal) - max(0, -diagonal) - best - opening
        if room < 1:
            continue
        if room >= opening + 2:
            # There may be two gaps.
            return True
        own = plain_score(index, scratch.planes, size, reference, diagonal, limits.mismatch, 0)[0]
        for k in range(2 * room):
            step = k // 2 + 1
            other = diagonal + (step if k % 2 == 0 else -step)
            least = best - own + limits.gap + (step - 1) * limits.gap_extend + (1 if own == best else 0)
            if plain_score(index, scratch.planes, size, reference, other, limits.mismatch, least)[0] >= least:
                return True
    return False


@shared
def settle_text(
    index: Any,
    letters: Any,
    first: int,
    last: int,
    group: Any,
    limits: Any,
    scratch: Any,
    out: Any,
    text: int,
) -> None:
    """Find the best references of a text without gaps, if no alignment of another kind comes up to them.

    The text is ``letters[first:last]``; `group`, `low`, `high` and the most letters of one, are references
    without ambiguous letters. `limits` are such that a letter of a gap costs more than one alike gains. In
    `out`, the `Settled`, the row `text` stays zero else.
    """
    size = last - first
    low, high, longest = group
    words, _, plain = _scan(index, letters, first, last, scratch, False)
    touched = _count_words(index, Strand(letters, first, last, 0, plain), words, scratch)
    best = lead = 0
    for k in range(touched):
        if scratch.votes[scratch.touched[k]] > scratch.votes[scratch.touched[lead]]:
            lead = k
    for step in range(touched):
        # The leading frame first: most others then cannot come up to it.
        frame = scratch.touched[lead if step == 0 else step - (1 if step <= lead else 0)]
        few = scratch.votes[frame] < _least_votes(index, best, min(size, index.longest[frame]), limits)
        for m in range(index.frame_starts[frame], index.frame_starts[frame + 1]):
            reference = index.members[m]
            scratch.scores[reference] = 0
            if plain and low <= reference < high and not few:
                diagonal = scratch.diagonals[frame] - index.shifts[reference]
                own = plain_score(index, scratch.planes, size, reference, diagonal, limits.mismatch, best)[0]
                scratch.scores[reference] = own
                best = max(best, own)
    settled = best > 0 and _least_votes(index, best, min(size, longest), limits) > 0
    for k in range(touched):
        frame = scratch.touched[k]
        settled = settled and not _may_reach(index, size, frame, low, high, best, limits, scratch)
        scratch.votes[frame] = 0
    if settled:
        out.scores[text] = best
        lowest = high
        for k in range(touched):
            frame = scratch.touched[k]
            for m in range(index.frame_starts[frame], index.frame_starts[frame + 1]):
                reference = index.members[m]
                if low <= reference < high and scratch.scores[reference] == best:
                    out.ties[text, reference - low] = True
                    if reference < lowest:
                        lowest = reference
                        out.diagonals[text] = scratch.diagonals[frame] - index.shifts[reference]


@kernel
def settle_kernel(
    index: Any, letters: Any, firsts: Any, lasts: Any, group: Any, limits: Any, scratch: Any, out: Any
) -> None:
    """Settled texts, see `settle_text`."""
    for text in range(firsts.size):
        settle_text(index, letters, firsts[text], lasts[text], group, limits, scratch, out, text)


@shared
def copy_text(mirror: Any, letters: Any, first: int, last: int, mirrored: int, out: Any, at: int) -> None:
    """Copy ``letters[first:last]``, or its mirror where `mirrored` is 1, to `out` from `at` on."""
    if mirrored:
        for k in range(last - first):
            out[at + k] = mirror[letters[last - 1 - k]]
    else:
        for k in range(last - first):
            out[at + k] = letters[first + k]


@kernel_optimised_twice
def votes_kernel(
    index: Any, letters: Any, starts: Any, text: int, limits: Any, scratch: Any, out: Any
) -> Any:
    """Candidates of texts in both orientations, see `vote_text`.

    Begins with `text` and ends where `out` is full; returns the next text and the number of candidates.
    """
    at = 0
    references = scratch.scores.size
    while text < starts.size - 1 and at + 2 * references <= out.texts.size:
        first, last = starts[text], starts[text + 1]
        at = vote_text(index, letters, first, last, text, limits, scratch, out, at)
        text += 1
    return text, at


@kernel
def copy_kernel(
    mirror: Any, letters: Any, starts: Any, texts: Any, mirrored: Any, out: Any, out_starts: Any
) -> None:
    """Copies of texts or their mirrors, see `copy_text`."""
    for k in range(texts.size):
        text = texts[k]
        copy_text(mirror, letters, starts[text], starts[text + 1], mirrored[k], out, out_starts[k])


class Texts(NamedTuple):
    """Sequences as sets of bases: `codes`, uint8, with int64 (n + 1,) offsets `starts`."""

    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each."""
        return np.diff(self.starts)

    def take(self, which: NDArray[np.int64], mirrored: NDArray[np.int64] | None = None) -> Texts:
        """Some of them, as their reverse complement where `mirrored` is 1."""
        turned = np.zeros(which.size, np.int64) if mirrored is None else mirrored
        return Texts(*_copies(_MIRROR, self.codes, self.starts, which, turned))


def texts_of(reads: ReadBlock) -> Texts:
    """Reads as sets of bases."""
    # NumPy would move each letter by itself.
    codes = bytearray(reads.letters).translate(_SETS)
    return Texts(np.frombuffer(codes, np.uint8), np.array(reads.starts, np.int64))


def join_texts(first: Texts, second: Texts) -> Texts:
    """Sequences and others behind them."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return Texts(np.concatenate([first.codes, second.codes]), starts)


def _copies(
    mirror: NDArray[np.uint8],
    letters: NDArray[np.uint8],
    starts: NDArray[np.int64],
    which: NDArray[np.int64],
    mirrored: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    out_starts = edges_of(np.diff(starts)[which])
    out = np.empty(int(out_starts[-1]), np.uint8)
    copy_kernel(mirror, letters, starts, which, mirrored, out, out_starts)
    return out, out_starts


def merged_reads(
    reads: ReadBlock,
    backwards: NDArray[np.bool_],
    others: ReadBlock | None = None,
    swapped: NDArray[np.bool_] | None = None,
) -> ReadBlock:
    """The reads, reverse-complemented where `backwards`; where `swapped`, their mates from `others`."""
    swap = others is not None and swapped is not None and bool(swapped.any())
    if not swap and not backwards.any():
        return reads
    count = len(reads)
    which, starts = np.arange(count), np.array(reads.starts, np.int64)
    blocks = [reads]
    if swap:
        assert others is not None and swapped is not None
        blocks.append(others)
        which = which + count * swapped
        starts = np.concatenate([starts, starts[-1] + np.array(others.starts[1:], np.int64)])
    mirrored = backwards.astype(np.int64)
    letters = np.concatenate([block.letters for block in blocks])
    turned, edges = _copies(_COMPLEMENT, letters, starts, which, mirrored)
    qualities = None
    scores = [block.qualities for block in blocks if block.qualities is not None]
    if len(scores) == len(blocks):
        qualities, _ = _copies(_SAME, np.concatenate(scores), starts, which, mirrored)
    return ReadBlock(reads.names, turned, edges, qualities)


class Items(NamedTuple):
    """Reads on a strand on which they have candidates, by number (int64, not falling).

    `mirrored` is 1 where the read is turned, int64; `own` and `mates` are the reads and their mates as
    turned.
    """

    reads: NDArray[np.int64]
    mirrored: NDArray[np.int64]
    own: Texts
    mates: Texts | None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each item and its mate."""
        return self.own.sizes if self.mates is None else self.own.sizes + self.mates.sizes

    def mate_parts(self, items: NDArray[np.int64]) -> Parts:
        """The mates of some items; what lies far behind the start of long ones is left out."""
        assert self.mates is not None
        firsts = self.mates.starts[items]
        return Parts(self.mates.codes, firsts, np.minimum(self.mates.starts[items + 1], firsts + _LONG))


class Pairs(NamedTuple):
    """Items and alleles to be aligned, ordered by item and then by allele; int64 each.

    `diagonals`: position in the allele less that in the part of the item, where most words agree. `firsts`
    and `lasts` bound the part of the item's bases in which to align. `scores` are those without gaps on the
    diagonal, 0 where it is that of the mate, or there is none.
    """

    items: NDArray[np.int64]
    alleles: NDArray[np.int64]
    diagonals: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    scores: NDArray[np.int64]
    open: NDArray[np.bool_]


def vote_scratch(index: SegmentIndex, sizes: NDArray[np.int64]) -> VoteScratch:
    """Memory for votes of texts of such sizes."""
    longest = int(sizes.max(initial=0))
    votes, diagonals, leads, touched, best = np.zeros((5, index.words.frame_starts.size - 1), np.int64)
    scores, planes = np.zeros(len(index.queries), np.int64), np.zeros((-(-longest // 32), 3), np.int64)
    words = np.zeros((2, longest + 1), np.int64)
    return VoteScratch(votes, diagonals, leads, touched, best, scores, planes, words)


def _limits(index: SegmentIndex, below: int, least: int, settle: int) -> VoteLimits:
    own, votes = index.scoring, 2 if index.words.size > _SHORT_WORD else 1
    changed = _CHANGES * index.words.size
    return VoteLimits(votes, changed, below, least, own.gap_open, own.gap_extend, own.mismatch, settle)


def settled_texts(index: SegmentIndex, number: int, parts: Parts) -> Settled:
    """What is settled of parts by the words that they share with the alleles of a germline set."""
    own, count = index.of_set(number), parts.firsts.size
    lengths = np.diff(index.words.bounds)[own]
    scores, diagonals = np.zeros((2, count), np.int64)
    found = Settled(scores, diagonals, np.zeros((count, lengths.size), np.bool_))
    # A gap takes words away, one less than they have letters: it must cost as much as a mismatch takes.
    gaps_cost = index.scoring.gap_open >= index.near.size - 1 and index.scoring.gap_extend > 1
    if index.words.plain[own].all() and gaps_cost:
        scratch, limits = vote_scratch(index, parts.sizes), _limits(index, 0, 0, 0)
        group = own.start, own.stop, int(lengths.max(initial=0))
        settle_kernel(index.near, *parts, group, limits, scratch, found)
    return found


def _votes(
    index: SegmentIndex, texts: Texts, below: int, least: int, settle: int = 0
) -> list[NDArray[np.int64]]:
    """All candidates, as the columns of `Candidates`."""
    alleles = len(index.queries)
    limits, scratch = _limits(index, below, least, settle), vote_scratch(index, texts.sizes)
    room = Candidates(*np.empty((6, max(_ROOM, 2 * alleles)), np.int64))
    found: list[NDArray[np.int64]] = [np.zeros((6, 0), np.int64)]
    text = 0
    while text < texts.starts.size - 1:
        text, used = votes_kernel(index.words, texts.codes, texts.starts, text, limits, scratch, room)
        found.append(np.stack([column[:used] for column in room]))
    return list(np.concatenate(found, axis=1))


def shares_words(index: SegmentIndex, texts: Texts, least: int) -> NDArray[np.bool_]:
    """Whether each sequence has a candidate on either strand that scores `least` or more without gaps."""
    found = np.zeros(texts.sizes.size, np.bool_)
    found[_votes(index, texts, 0, least)[0]] = True
    return found


def find_candidates(
    index: SegmentIndex, texts: Texts, mates: Texts | None = None, *, least: int = _LEAST
) -> tuple[Items, Pairs]:
    """Find the alleles that share words with reads or their mates (one for each, on the same strand).

    `least` is the least score without gaps of the best candidate.
    """
    below = _SCORE_BELOW if mates is None else _SCORE_BELOW_WITH_MATE
    found = _votes(index, texts, below, least, int(mates is None))
    own = np.ones(found[0].size, np.bool_)
    if mates is not None:
        more = _votes(index, mates, below, least)
        # The scores are of the mate.
        more[4][:] = 0
        own = np.concatenate([own, np.zeros(more[0].size, np.bool_)])
        found = [np.concatenate(both) for both in zip(found, more, strict=True)]
    reads, mirrored, alleles, diagonals, scores, is_open = found
    keys = reads * 2 + mirrored
    # The first of equal pairs is that of the read, if it has one.
    order = np.lexsort((~own, alleles, keys))
    new = np.diff(alleles[order], prepend=-1) != 0
    order = order[new | (np.diff(keys[order], prepend=-1) != 0)]
    strands, numbers = np.unique(keys[order], return_inverse=True)
    which, turned = strands // 2, strands % 2
    items = Items(
        which, turned, texts.take(which, turned), None if mates is None else mates.take(which, turned)
    )
    chosen = (column[order] for column in (alleles, diagonals, own, scores, is_open == 1))
    return items, _windows(index, items, numbers, *chosen)


def _windows(
    index: SegmentIndex,
    items: Items,
    numbers: NDArray[np.int64],
    alleles: NDArray[np.int64],
    diagonals: NDArray[np.int64],
    own: NDArray[np.bool_],
    scores: NDArray[np.int64],
    is_open: NDArray[np.bool_],
) -> Pairs:
    """Pairs with the parts in which to align them: long reads only near the diagonal."""
    firsts, lasts = items.own.starts[numbers], items.own.starts[numbers + 1]
    sizes = lasts - firsts
    lengths = np.diff(index.words.bounds)[alleles]
    long = sizes > _LONG
    low = np.where(long & own, np.maximum(-diagonals - _MARGIN, 0), 0)
    high = np.where(long, np.where(own, lengths - diagonals + _MARGIN, _LONG), sizes)
    return Pairs(
        numbers, alleles, diagonals + low, firsts + low, np.minimum(firsts + high, lasts), scores, is_open
    )
