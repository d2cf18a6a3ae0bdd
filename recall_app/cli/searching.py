"""``recall search``: the person's search, over one app or all."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.text import Text

from recall_app.cli.options import AnyApp, AsJson, DataDir, encodable, opened
from recall_app.cli.output import iso, print_json, print_text, when
from recall_app.domain.person_search import ChatHits, Filters, MessageHit, SearchPage, SearchRequest, Sort
from recall_app.domain.records import Role
from recall_app.domain.text import BIDI_CONTROLS, one_line
from recall_app.retrieval.person_query import end_of, start_of

MARK = "bold"
QUIET = "dim"
_STEERING = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{BIDI_CONTROLS}]")


def add_to(commands: typer.Typer) -> None:
    commands.command("search")(search)


def search(
    query: Annotated[
        str,
        typer.Argument(
            help='All words count; also "phrases", -without, app: role: source: after: before: in:title.',
            callback=encodable,
        ),
    ],
    *,
    app: AnyApp = None,
    role: Annotated[Role | None, typer.Option("--role", help="Only what this side said.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="DATE", help="From this day on, as in 2026-07-12 or 2026-07.", show_default=False
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DATE", help="Until this day, the day included.", show_default=False),
    ] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="The best or the newest chats first.")] = Sort.RELEVANCE,
    limit: Annotated[int, typer.Option("--limit", help="So many chats at most (1 to 100).")] = 20,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", help="Go on after a page, with the cursor that it ended with.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Search your history."""
    with opened(data_dir) as store:
        filters = Filters(
            app_id=None if app is None else store.service.app(app).id,
            role=role,
            after=None if since is None else start_of(since),
            before=None if until is None else end_of(until),
        )
        page = store.service.search_history(SearchRequest(query, filters, sort, limit, cursor))
        if as_json:
            print_json(_page_json(page))
        else:
            print_page(page)


def print_page(page: SearchPage) -> None:
    """Chats with their hits, then what else there is to know about the page."""
    if page.is_partial:
        print_text("No message has all of these words; these have some of them.\n")
    for chat in page.chats:
        print_text(_head(chat))
        for hit in chat.hits:
            print_text(_line(hit))
        if not chat.hits:
            print_text("    only the title matches", style=QUIET)
        if chat.more:
            print_text(f"    and {chat.more:,} more in this chat", style=QUIET)
    if not page.chats:
        print_text("Nothing was found.")
    else:
        print_text(f"\n{page.total_messages:,} messages in {page.total_chats:,} chats", style=QUIET)
    if page.coverage.pending:
        print_text(f"The index is behind by {page.coverage.pending:,} messages: run “recall index”.")
    if page.next_cursor is not None:
        print_text(f"Go on with --cursor {page.next_cursor}", style=QUIET)


def _head(chat: ChatHits) -> Text:
    head = _marked(chat.title or "untitled", chat.title_ranges)
    head.append(f"   {one_line(chat.app_name)} · chat #{chat.chat_id} · {when(chat.last_message_at)} UTC", style=QUIET)
    return head


def _line(hit: MessageHit) -> Text:
    line = Text(f"    #{hit.message_id} {hit.role} {when(hit.created_at)[:10]}  ", style=QUIET)
    return Text.assemble(line, _marked(hit.excerpt, hit.ranges))


def _marked(text: str, ranges: Iterable[tuple[int, int]]) -> Text:
    """``text`` on one line with its ranges marked; what could steer a terminal becomes a space, so that they hold."""
    shown = Text(_STEERING.sub(" ", text))
    for start, end in ranges:
        shown.stylize(MARK, start, end)
    return shown


def _page_json(page: SearchPage) -> dict[str, Any]:
    return {
        "chats": [
            {
                "chat_id": chat.chat_id,
                "title": chat.title,
                "title_ranges": chat.title_ranges,
                "title_matches": chat.title_matches,
                "app_id": chat.app_id,
                "app_name": chat.app_name,
                "source": chat.source,
                "last_message_at": iso(chat.last_message_at),
                "hits": [_hit_json(hit) for hit in chat.hits],
                "more": chat.more,
            }
            for chat in page.chats
        ],
        "total_chats": page.total_chats,
        "total_messages": page.total_messages,
        "is_partial": page.is_partial,
        "index_status": page.coverage.status.value,
        "pending_messages": page.coverage.pending,
        "next_cursor": page.next_cursor,
    }


def _hit_json(hit: MessageHit) -> dict[str, Any]:
    return {
        "message_id": hit.message_id,
        "role": hit.role,
        "created_at": iso(hit.created_at),
        "excerpt": hit.excerpt,
        "ranges": hit.ranges,
        "is_compaction_summary": hit.is_compaction_summary,
    }
