"""Attachment tags in what a person sent: their absolute paths name folders that are nobody else's business."""

import re

_OPENING = re.compile(
    r"<dyad-attachment(?=[\s/>])(?P<rest>(?:[^\"'<>]++|\"[^\"\n]*+\"?|'[^'\n]*+'?)*+)(?P<body>>\s*[^<\n]*+)?"
)
_VALUE = re.compile(r"(=\s*)(?:(\")([^\"\n]*)|(')([^'\n]*)|([^\s\"']+))")
_ABSOLUTE = re.compile(r"\s*(?:[/\\]|~[/\\]|[A-Za-z]:[\\/]|file:|(?!https?:)[A-Za-z][A-Za-z0-9+.-]*://)", re.IGNORECASE)
_SEPARATOR = re.compile(r"[/\\]|%2f|%5c", re.IGNORECASE)


def file_name_only(path: str) -> str:
    """The file name of an absolute path (Unix, home, Windows, UNC, ``file:``, app-private), else ``path``."""
    if not _ABSOLUTE.match(path):
        return path
    parts = [part for part in _SEPARATOR.split(path.strip()) if part]
    return parts[-1] if parts else ""


def reduce_attachment_paths(text: str) -> str:
    """A person's text with the absolute paths in ``<dyad-attachment …>`` tags cut to file names; all else as it is."""
    return _OPENING.sub(_reduce_tag, text) if "<dyad-attachment" in text else text


def _reduce_tag(found: re.Match[str]) -> str:
    body = found.group("body") or ""
    path = body[1:].strip()
    if path and _ABSOLUTE.match(path):
        body = body.replace(path, file_name_only(path))
    return "<dyad-attachment" + _VALUE.sub(_reduce_value, found.group("rest")) + body


def _reduce_value(found: re.Match[str]) -> str:
    equals, double, in_double, single, in_single, bare = found.groups()
    return equals + (double or single or "") + file_name_only(in_double or in_single or bare or "")
