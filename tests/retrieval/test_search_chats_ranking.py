"""What comes first: rare words, titles, phrases, words as written, originals before summaries (contracts §4)."""

from itertools import pairwise

import pytest

from recall_app.domain.consulting import Viewer
from tests.building import Builder, Said
from tests.scale import scaled

COMMON = "the login page shows an error after the deploy to production"


def test_an_old_rare_hit_is_not_starved_by_newer_common_ones(history: Builder) -> None:
    old = history.add_chat("Old", f"{COMMON}, and the xylophone was out of tune")
    size = 100
    history.add_chats([(f"Day {n}", [COMMON] * size) for n in range(scaled(2_000, 20_000) // size)])
    history.index()
    assert history.found("login page error xylophone")[0] == old.id
    assert history.found("deploy to production xylophone", 1) == [old.id]


def test_an_old_message_with_all_common_words_beats_newer_ones_with_some(history: Builder) -> None:
    """Also when each word is so common that ``bm25()`` has to cut the candidates."""
    old = history.add_chat("Old", "alpha beta gamma together")
    count = scaled(1_800, 6_000)
    for words in ("alpha beta filler", "beta gamma filler", "gamma alpha filler"):
        history.add_chats([(None, [f"{words} {n}" for n in range(100)]) for _ in range(count // 100)])
    history.index()
    assert history.found("alpha beta gamma")[0] == old.id


def test_a_title_weighs_more_than_a_passing_mention(history: Builder) -> None:
    mention = history.add_chat("Monday", "among other things the migration came up here for a moment", "fine")
    titled = history.add_chat("Migration", "we start with the tables and go on with the rest of it", "fine")
    history.index()
    assert history.found("migration") == [titled.id, mention.id]


def test_a_long_chat_with_the_words_in_its_title_leaves_room_for_others(history: Builder) -> None:
    long = history.add_chat("Login page", *[f"step {n} of the work" for n in range(300)])
    others = [history.add_chat(f"Day {n}", "the login page is slow", "why?").id for n in range(6)]
    history.index()
    found = history.search("login page")
    assert sorted(chat.chat_id for chat in found.results) == sorted([long.id, *others])
    (of_long,) = [chat for chat in found.results if chat.chat_id == long.id]
    assert len(of_long.matches) == 1, "a second message that matches by title alone says nothing new"


def test_a_chat_of_thousands_that_all_match_leaves_room_for_others(history: Builder) -> None:
    """Where ``bm25()`` cuts: its best are all of the one chat."""
    long = history.add_chat("Login page", *["the login page"] * scaled(2_000, 20_000))
    others = [history.add_chat(f"Day {n}", "the login page is slow today", "why?").id for n in range(6)]
    history.index()
    for query in ("login page", "login"):
        assert sorted(history.found(query)) == sorted([long.id, *others])


def test_many_long_chats_with_the_words_in_their_titles_leave_room_too(history: Builder) -> None:
    history.add_chats([(f"Login page {n}", [f"step {m}" for m in range(100)]) for n in range(scaled(20, 60))])
    other = history.add_chat("Friday", "The login page uses a xylophone now, see the login page.")
    history.index()
    assert other.id in history.found("login page xylophone", 3)
    assert other.id in history.found("login page", 20) or len(history.found("login page", 20)) == 20


@pytest.mark.parametrize("query", ["state of the art", "to be or not to be", "Berliner Mauer", "useState hook"])
def test_a_phrase_with_its_stopwords_stands_above_scattered_words(history: Builder, query: str) -> None:
    words = query.split()
    scattered = history.add_chat(None, " and then ".join(reversed(words)), "ok")
    shuffled = history.add_chat(None, " ".join(reversed(words)), "ok")
    phrase = history.add_chat(None, f"It was called {query.upper()}, which is a longer text than the others are.", "ok")
    history.index()
    found = history.found(query)
    assert found[0] == phrase.id
    assert {scattered.id, shuffled.id} <= set(found)


def test_a_phrase_is_found_among_thousands_of_messages_with_its_words(history: Builder) -> None:
    phrase = history.add_chat(None, "It was a rather long message in which the state of the art came up, among others.")
    history.add_chats([(None, [f"art and state and state and art {n}"]) for n in range(scaled(1_700, 6_000))])
    history.index()
    assert history.found("state of the art")[0] == phrase.id


def test_a_phrase_is_found_across_line_ends_and_punctuation(history: Builder) -> None:
    history.add_chat(None, "art of a state", "the state, and some art")
    phrase = history.add_chat(None, "this is the state\nof the “art” of 1999 or so")
    history.index()
    assert history.found("state of the art")[0] == phrase.id


EXACT = [
    ("university", "universe"),
    ("useChatStore", "use chat stores"),
    ("useChatStore", "use chat store"),
    ("organization", "organs"),
    ("news", "new"),
    ("TypeScript", "type scripts"),
    ("policy", "police"),
    ("C++", "C + +"),
]


@pytest.mark.parametrize(("written", "mate"), EXACT)
@pytest.mark.parametrize("mates", [1, 600])
def test_the_form_as_written_stands_above_stem_mates_and_pieces(
    history: Builder, written: str, mate: str, mates: int
) -> None:
    exact = history.add_chat(
        None, f"It was about the {written} in the end, which took us a good while to see, with many other words."
    )
    history.add_chats([(None, [f"{mate} {n}"]) for n in range(mates)])
    history.index()
    assert history.found(written)[0] == exact.id


@pytest.mark.parametrize(("written", "mate"), [("university", "universe"), ("useChatStore", "use chat stores")])
def test_a_rare_form_is_found_among_thousands_of_stem_mates(history: Builder, written: str, mate: str) -> None:
    """Here ``bm25()`` cuts, which knows stems only."""
    exact = history.add_chat(None, f"It was about the {written} in the end, which took us a good while to see.")
    history.add_chats([(None, [f"{mate} {n}"]) for n in range(scaled(1_700, 5_000))])
    history.index()
    assert history.found(written)[0] == exact.id


def test_a_plain_inflection_counts_as_the_word_where_nothing_else_is_asked(history: Builder) -> None:
    """So that the chat about it stays first, and “news” is no “new”, nor “policy” the “police”."""
    titled = history.add_chat("Migration", "we start with the tables", "fine")
    mention = history.add_chat("Monday", "among other things, migrations came up here for a moment", "fine")
    history.index()
    assert history.found("migrations") == [titled.id, mention.id]


def test_a_reply_stands_with_the_question_that_it_answers(history: Builder) -> None:
    """The question has the words, the reply has what is looked for."""
    filler = "nothing to do with it"
    chat = history.add_chat(
        None, "palette", filler, "Which palette for the front page?", "Tangerine for that page, it is warm.", filler
    )
    history.index()
    (found,) = history.search("palette front page").results
    assert found.matches[0].message_id == chat.messages[3]


def test_the_form_as_written_counts_in_a_title_too(history: Builder) -> None:
    exact = history.add_chat("The university", "hello there", "and hello to you, with a good many words more than that")
    history.add_chats([("The universe", ["hello", "and hello"]) for _ in range(100)])
    history.index()
    assert history.found("university")[0] == exact.id


def test_a_message_among_messages_that_match_too_stands_above_a_lone_one(history: Builder) -> None:
    filler = "nothing to do with it at all"
    talk = history.add_chat(None, filler, "a palette for it", "the tangerine palette", "tangerine is nice", filler)
    lone = history.add_chat(None, filler, filler, "the tangerine palette", filler, filler)
    history.index()
    assert history.found("tangerine palette") == [talk.id, lone.id]
    assert history.search("tangerine palette").results[0].matches[0].message_id == talk.messages[2]


# --- compaction summaries ---------------------------------------------------------------------------------------------


def test_a_summary_that_repeats_an_original_goes_and_the_original_stays(history: Builder) -> None:
    said = "We chose the tangerine palette because it is warm and easy on the eyes."
    chat = history.add_chat(
        None,
        "Which one?",
        Said(said, "assistant"),
        Said(f"## Summary\n{said}", "assistant", is_compaction_summary=True),
    )
    history.index()
    (found,) = history.search("tangerine palette").results
    assert [match.message_id for match in found.matches] == [chat.messages[1]]
    assert not found.matches[0].is_compaction_summary


def test_a_summary_with_words_of_its_own_surfaces(history: Builder) -> None:
    chat = history.add_chat(
        None,
        "Which one?",
        Said("We chose the tangerine palette.", "assistant"),
        Said("Key fact: the brand colour is xylophone orange.", "assistant", is_compaction_summary=True),
    )
    history.index()
    (found,) = history.search("xylophone").results
    assert [(match.message_id, match.is_compaction_summary) for match in found.matches] == [(chat.messages[2], True)]


def test_a_summary_stands_below_an_original_that_says_the_same(history: Builder) -> None:
    said = "The tangerine palette it is."
    summary = history.add_chat(None, Said(said, "assistant", is_compaction_summary=True))
    original = history.add_chat(None, Said(said, "assistant", at=1_000))
    history.index()
    assert history.found("tangerine palette") == [original.id, summary.id]


# --- grouping ---------------------------------------------------------------------------------------------------------


def test_a_chat_gives_at_most_two_different_matches(history: Builder) -> None:
    history.add_chat(
        "Colours",
        "The tangerine palette was first proposed by Ann.",
        "The tangerine palette was first proposed by Ann.",
        "Bob wants the tangerine palette for the shop's front page only.",
        "In the end the tangerine palette went live on Friday with all of its shades.",
    )
    history.index()
    (found,) = history.search("tangerine palette").results
    excerpts = [match.excerpt for match in found.matches]
    assert len(excerpts) == len(set(excerpts)) == 2


def test_chats_come_by_best_match_then_newest_then_message_id(history: Builder) -> None:
    at = [3_000, 1_000, 2_000, 2_000]
    chats = [history.add_chat(None, Said("the tangerine palette", at=time)).id for time in at]
    history.index()
    first, last, older, newer = chats
    for _ in range(3):
        assert history.found("tangerine palette") == [first, newer, older, last]
    assert history.found("tangerine palette", 2) == [first, newer]


def test_the_order_of_a_query_s_words_changes_only_phrases(history: Builder) -> None:
    history.add_chats([(None, [f"tangerine {'palette ' * (n % 3)} number {n}"]) for n in range(12)])
    history.index()
    assert history.found("tangerine xylophone palette") == history.found("palette xylophone tangerine")


# --- other apps -------------------------------------------------------------------------------------------------------


def test_another_app_s_text_does_not_change_the_order(history: Builder) -> None:
    """Counts are of one app: in the other one the app's rare words are common and its common ones rare."""
    words = ["tangerine", "palette", "login", "deploy", "error", "colour"]
    history.add_chats(
        [
            (None, [" ".join(words[: 1 + (n * 7) % 5] + [f"filler{n}"] * (n % 4)) for n in range(m, m + 4)])
            for m in range(60)
        ]
    )
    history.index()
    queries = [f"{a} {b}" for a, b in pairwise(words)] + ["tangerine palette login deploy error colour", "login page"]
    before = [history.search(query, 20) for query in queries]
    other = history.add_app("Other")
    text = "colour error " + "deploy " * 30
    history.add_chats([("error", [text] * 100) for _ in range(scaled(3_000, 50_000) // 100)], app=other)
    history.index()
    assert [history.search(query, 20) for query in queries] == before


def test_another_app_s_text_does_not_change_the_order_of_common_words(history: Builder) -> None:
    """Where ``bm25()``, whose counts are of the whole table, has to cut: the first chats are still the same."""
    talk = ["tangerine palette colour here", "nothing to do with it", "and so on"]
    history.add_chats([(None, talk * 45) for _ in range(scaled(1_800, 5_000) // 45)])
    best = [history.add_chat(None, f"tangerine palette colour, {'tangerine ' * n}").id for n in range(1, 4)]
    history.index()
    before = history.search("tangerine palette colour")
    assert [chat.chat_id for chat in before.results[:3]] == best[::-1]
    other = history.add_app("Other")
    text = "colour colour " * 20
    history.add_chats([("colour", [text] * 100) for _ in range(scaled(3_000, 50_000) // 100)], app=other)
    history.index()
    assert history.search("tangerine palette colour") == before


def test_a_rare_word_of_the_asking_chat_alone_does_not_hide_the_others(history: Builder) -> None:
    chats = history.add_chats([(None, [f"tangerine palette {number}"] * 4) for number in range(500)])
    asking = history.add_chat(None, "what about the tangerine quagga?")
    history.index()
    found = history.search("tangerine quagga", viewer=Viewer(history.app, asking.id))
    assert len(found.results) == 8
    assert {chat.chat_id for chat in found.results} <= {chat.id for chat in chats}


def test_a_question_asked_in_many_chats_does_not_keep_its_answer_out(history: Builder) -> None:
    answer = history.add_chat("Storage", "which one?", "We chose the quagga database because it is small.")
    history.add_chats([("Which quagga database?", ["Which quagga database did we choose?"]) for _ in range(30)])
    history.index()
    assert answer.id in history.found("quagga database")[:2]


def test_copies_alone_keep_their_order(history: Builder) -> None:
    chats = history.add_chats([(None, ["the same tangerine"]) for _ in range(6)])
    history.index()
    assert history.found("tangerine") == [chat.id for chat in reversed(chats)]
