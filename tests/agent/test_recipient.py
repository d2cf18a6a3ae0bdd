import pytest

from recall_app.agent.recipient import BUILT_IN, PERSON, Recipient


@pytest.mark.parametrize(
    ("recipient", "words"),
    [
        (Recipient("anthropic", "claude-opus-9"), "to Anthropic · claude-opus-9"),
        (Recipient("openai", "gpt-9", "https://openai.example/v1"), "to openai.example · gpt-9"),
        (
            Recipient("ollama", "llama9", "http://127.0.0.1:11434/v1"),
            "to a server on this computer (127.0.0.1:11434), which may pass it on",
        ),
        (
            Recipient("custom", "m", "http://localhost:8080"),
            "to a server on this computer (localhost:8080), which may pass it on",
        ),
        (Recipient("custom", "m", "http://[::1]:80"), "to a server on this computer ([::1]:80), which may pass it on"),
        (Recipient("custom", "m", "http://192.168.1.7:80"), "to 192.168.1.7:80 · m"),
        (Recipient("custom", "m", "http://127.0.0.1.example.com"), "to 127.0.0.1.example.com · m"),
        (Recipient("custom", None, "https://user:key@host.example"), "to host.example"),
        (BUILT_IN, "stays on this computer"),
    ],
)
def test_words_say_where_text_goes(recipient: Recipient, words: str) -> None:
    assert recipient.words == words


def test_only_what_stays_in_recall_is_local() -> None:
    assert BUILT_IN.destination.is_local
    assert PERSON.destination.is_local
    assert not Recipient("ollama", "llama9", "http://127.0.0.1:11434").destination.is_local
    assert not Recipient("anthropic", "claude").destination.is_local
