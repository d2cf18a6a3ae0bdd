"""A word that is still being typed, asked of an index that knows only Porter's stems (contracts §4a).

``authentica`` must find “authentication”, whose stem is ``authent``. So beside the prefix itself the index is asked for
the stems of everything the typed word may become by an English suffix; what that finds too much is looked at in the
text (``person_queries.confirms_prefix``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from recall_app.domain.text import fold
from recall_app.retrieval.terms import Term, any_of, quoted
from recall_app.store.person_queries import PrefixCheck

_SUFFIX_LIST = (
    "s es ed ing ings er ers ly y ies ied ier iest able ably ability abilities ible ibly ibility al ally alism alist "
    "ality alities ance ances ancy ant antly ate ates ated ating ation ations ational ationally ative atively ator "
    "ators e en ence ences ency ent ently ful fully fulness ic ical ically icate icates icated icity iciti ication "
    "ications ion ions ional ionally ism isms ist ists ity ities ive ively iveness ivity ize izes ized izing izer "
    "izers ization izations ise ised ising isation less ment ments ness nesses ous ously ousness tion tional"
)
_SUFFIXES = frozenset(_SUFFIX_LIST.split())
_UNFINISHED = frozenset(suffix[:cut] for suffix in _SUFFIXES for cut in range(1, len(suffix) + 1))
_LONGEST_SUFFIX = max(map(len, _SUFFIXES))
_STEM_ENDINGS = ("", "e", "y", "al", "ate", "ble", "ize", "ic", "ous", "ive", "ful", "ent", "ence", "ance")
"""What Porter may leave on a stem, or put back, when it takes suffixes off."""
_SHORTEST_STEMMED = 3
"""Porter leaves shorter words alone."""
_LONGEST_COMPLETED = 40
"""No English word is longer; what is has no suffixes."""

Stemmer = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class TypedWord:
    """``match`` finds all that the typed word may be; ``check`` is None when it finds nothing more than that.

    ``unsure_stems`` are the stems of words that may be something else.
    """

    match: str
    check: PrefixCheck | None
    unsure_stems: frozenset[str] = frozenset()


def typed_word(term: Term, stems: Stemmer, first_phrase: int) -> TypedWord:
    """``first_phrase`` is the place of the expression's first phrase in the whole MATCH."""
    sure = list(term.phrases)
    unsure: list[str] = []
    completions: list[str] = []
    if term.joined is not None:
        sure.append(quoted(term.joined) + "*")
    last = term.pieces[-1].lower()
    stable = _stable_prefix(last, stems)
    lead = term.pieces[:-1]
    whole_word = len(term.pieces) == 1
    starred = quoted(" ".join((*lead, stable))) + "*"
    if stable == last:
        sure.append(starred)
    else:
        unsure.append(starred)
    if whole_word and last.isascii() and last.isalpha() and _SHORTEST_STEMMED <= len(last) <= _LONGEST_COMPLETED:
        completions = _completions(last, stable, stems)
        unsure += [quoted(word) for word in completions]
    match = any_of((*sure, *unsure))
    if not unsure:
        return TypedWord(match, None)
    check = PrefixCheck(first_phrase, len(sure), fold(term.written))
    return TypedWord(match, check, frozenset(stems(completions)))


def _stable_prefix(word: str, stems: Stemmer) -> str:
    """The longest head of the word that is its own stem: FTS5 stems prefixes too."""
    heads = [word[:length] for length in range(len(word), 0, -1)]
    return next((head for head, stem in zip(heads, stems(heads), strict=True) if head == stem), word)


def _completions(word: str, stable: str, stems: Stemmer) -> list[str]:
    """One word for each further stem that a word beginning with ``word`` may have."""
    possible = {word + suffix for suffix in _SUFFIXES}
    for suffix in _SUFFIXES:
        possible.update(word + suffix[cut:] for cut in range(1, len(suffix)) if word.endswith(suffix[:cut]))
    for head in _heads(word):
        possible.update(head + ending for ending in _STEM_ENDINGS)
    words = sorted(possible)
    found: dict[str, str] = {}
    for each, stem in zip(words, stems(words), strict=True):
        if not stem.startswith(stable):
            found.setdefault(stem, each)
    return list(found.values())


def _heads(word: str) -> Iterator[str]:
    """What is left of the word when suffixes, the last one perhaps unfinished, are taken off its end."""
    is_chain = [False] * len(word)
    for start in range(len(word) - 1, _SHORTEST_STEMMED - 1, -1):
        rest = word[start : start + _LONGEST_SUFFIX]
        is_chain[start] = (rest in _UNFINISHED and start + len(rest) == len(word)) or any(
            rest[:cut] in _SUFFIXES and is_chain[start + cut] for cut in range(1, min(len(rest), len(word) - start))
        )
        if is_chain[start]:
            head = word[:start]
            yield head
            if head[-1] == head[-2]:
                yield head[:-1]  # hopp|ing
