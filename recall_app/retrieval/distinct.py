"""Do two messages say materially the same? A copy, or a compaction summary of the other."""

import re

from recall_app.domain.word_breaks import BREAK

_WORDS = re.compile(rf"[^\W_]+|{BREAK}")
_COMPARED_CHARACTERS = 4_000
_SHINGLE = 3
_REPEATED = 0.7
"""The share of the shorter text's runs of three words that stand in the other one too."""


def is_repetition(one: str, other: str) -> bool:
    """True when most of the shorter text stands in the longer one; both are indexed bodies."""
    if one == other:
        return True
    first, second = _shingles(one), _shingles(other)
    shorter = min(len(first), len(second))
    return shorter > 0 and len(first & second) / shorter >= _REPEATED


def _shingles(body: str) -> set[tuple[str, ...]]:
    words = [word.lower() for word in _WORDS.findall(body[:_COMPARED_CHARACTERS]) if word != BREAK]
    if len(words) < _SHINGLE:
        return {tuple(words)} if words else set()
    return {tuple(words[index : index + _SHINGLE]) for index in range(len(words) - _SHINGLE + 1)}
