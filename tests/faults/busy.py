"""A process that does everything to a store, until it is killed: ``python -m tests.faults.busy FILE SEED``.

It says on stdout what it is about to do and what is done, one line each, so that the one who kills it knows what must
be there: ``+ MESSAGE CHAT TEXT`` once a message is committed, ``~ MESSAGE`` before one is changed or deleted,
``- CHAT`` before a chat is deleted.
"""

import random
import sys
from pathlib import Path

from recall_app.service import LocalStore, open_store


def say(*words: object) -> None:
    print(*words, flush=True)


def main(path: Path, seed: int) -> None:
    with open_store(path) as store:
        store.indexer.start()
        random_ = random.Random(seed)
        if not store.service.apps():
            for name in ("Shop", "Other"):
                store.service.create_app(name)
        say("started")
        number = 0
        while True:
            number += 1
            act(store, random_, f"q{seed}x{number}zq")


def act(store: LocalStore, random_: random.Random, token: str) -> None:
    """One thing that changes the store."""
    service = store.service
    chats = [chat.id for app in (1, 2) for chat in service.chats(app)]
    kind = random_.random()
    if kind < 0.2 or len(chats) < 3:
        chats.append(service.create_chat(random_.choice((1, 2)), f"title t{token}").id)
    chat_id = random_.choice(chats)
    messages = [message.id for message in service.messages(chat_id)]
    if kind < 0.5 or not messages:
        for _ in range(random_.choice((1, 1, 20))):
            message = service.add_message(chat_id, "assistant", f"{token} said in useChatStore")
            say("+", message.id, chat_id, token)
    elif kind < 0.6:
        say("~", messages[0])
        service.update_message(messages[0], f"c{token} changed")
    elif kind < 0.65:
        say("~", messages[0])
        store.writer.run(lambda connection: connection.execute("DELETE FROM messages WHERE id = ?", (messages[0],)))
    elif kind < 0.7:
        service.rename_chat(chat_id, f"renamed t{token}")
    elif kind < 0.75:
        service.move_chat(chat_id, random_.choice((1, 2)))
    elif kind < 0.8:
        say("-", chat_id)
        service.delete_chat(chat_id)
        service.purge_deleted(at_exit=True)
    elif kind < 0.82:
        store.indexer.rebuild()
    else:
        store.indexer.run_batch(settled=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
