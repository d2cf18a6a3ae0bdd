"""Who gets what the tools retrieve: as the ledger records it, and in the words of consent (contracts §7)."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from recall_app.domain.records import Destination

OFFLINE_PROVIDER = "offline"
PERSON_PROVIDER = "cli"

_COMPANIES = {"anthropic": "Anthropic", "openai": "OpenAI", "google": "Google"}


@dataclass(frozen=True, slots=True)
class Recipient:
    """A provider and its model. ``base_url`` is the server, where it isn't the provider's own."""

    provider: str
    model: str | None
    base_url: str | None = None

    @property
    def name(self) -> str:
        """What a chat or message records as its model."""
        return self.model or self.provider

    @property
    def destination(self) -> Destination:
        """Local is only what never leaves Recall: a server on this computer may pass on what it gets."""
        return Destination(self.provider, self.model, self.provider in (OFFLINE_PROVIDER, PERSON_PROVIDER))

    @property
    def words(self) -> str:
        """For a sentence that begins with "It goes …"."""
        if self.destination.is_local:
            return "stays on this computer"
        if self.base_url is not None:
            server = urlsplit(self.base_url)
            if _is_loopback(server.hostname or ""):
                return f"to a server on this computer ({_address(self.base_url)}), which may pass it on"
            return f"to {_address(self.base_url)}{self._model_words()}"
        return f"to {_COMPANIES.get(self.provider, self.provider)}{self._model_words()}"

    def _model_words(self) -> str:
        return f" · {self.model}" if self.model else ""


BUILT_IN = Recipient(OFFLINE_PROVIDER, None)
PERSON = Recipient(PERSON_PROVIDER, None)


def _address(url: str) -> str:
    """Host and port alone: a URL may hold a key."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
