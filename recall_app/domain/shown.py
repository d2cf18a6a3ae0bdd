"""What a conversation shows of a message, as plain text: prose, and each card's head and (folded) body.

In-chat find counts its ranges in this text, so whoever lays a message out shows the same pieces in the same order.
"""

from recall_app.domain.cards import HISTORY_TAGS, history_card
from recall_app.domain.markup import StrayClose, TagBlock, TextBlock, parse_blocks
from recall_app.domain.records import Message
from recall_app.domain.tags import rule_for
from recall_app.domain.text import normalise


def shown_pieces(message: Message) -> list[str]:
    """The pieces in order, one for each block; a user's message is a single piece."""
    if message.role == "user":
        return [normalise(message.content)]
    pieces = []
    for block in parse_blocks(message.content):
        match block:
            case TextBlock(text):
                pieces.append(normalise(text))
            case TagBlock():
                pieces.append(normalise(_card_text(block)))
            case StrayClose():
                continue
    return pieces


def shown_text(message: Message) -> str:
    """``shown_pieces`` with a line end between them."""
    return "\n".join(shown_pieces(message))


def _card_text(block: TagBlock) -> str:
    head = " ".join((rule_for(block.name).label, *block.attributes.values()))
    if block.name not in HISTORY_TAGS:
        return f"{head}\n{block.body}"
    card = history_card(block)
    entries = card.entries if card is not None else ()
    return "\n".join((head, *(f"{entry.title or ''}\n{entry.text}" for entry in entries)))
