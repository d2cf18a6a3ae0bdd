"""The languages of the built-in assistant: telling which one a question is in, which of its words to look for, and the
sentences that the assistant answers with. English stands in for every language that isn't here."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import regex

QUERY_CHARACTERS = 500
QUERY_WORDS = 12


class Language(StrEnum):
    ENGLISH = "en"
    GERMAN = "de"
    SPANISH = "es"
    CHINESE = "zh"
    JAPANESE = "ja"
    ARABIC = "ar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """What the assistant says itself. Each ``quoting`` and ``nothing`` starts with ``who``, by which it knows its own
    earlier answers again."""

    who: str
    quoting: str
    unsure: str
    excerpts_only: str
    nothing: str
    """Takes the words that were looked for."""
    indexing: str
    """Takes the number of messages that are missing."""
    no_tools: str
    declined: str
    newest: str
    """Takes a date; so does ``earlier``."""
    earlier: str
    message: str
    """Takes a message number."""
    untitled: str


PHRASES = {
    Language.ENGLISH: Phrases(
        who="I am not a language model: I only look things up.",
        quoting="This is what earlier chats of this app say:",
        unsure="I found nothing that clearly answers this. The nearest passages in earlier chats of this app are:",
        excerpts_only="I could not open the chats themselves, so these are excerpts.",
        nothing="I found nothing about this in the earlier chats of this app (looked for: {0}).",
        indexing="The index is still being built: {0} messages are missing from it, so there may be more.",
        no_tools="Searching the chat history is not permitted to me here, so I looked nothing up.",
        declined="The look into the chat history was not allowed, so I looked nothing up.",
        newest="Newest, {0}:",
        earlier="Earlier, {0}:",
        message="message {0}",
        untitled="Untitled chat",
    ),
    Language.GERMAN: Phrases(
        who="Ich bin kein Sprachmodell: Ich schlage nur nach.",
        quoting="Das steht in früheren Chats dieser App:",
        unsure="Eine klare Antwort habe ich nicht gefunden. Am nächsten kommt dies aus früheren Chats dieser App:",
        excerpts_only="Die Chats selbst konnte ich nicht öffnen, daher sind dies Auszüge.",
        nothing="In den früheren Chats dieser App habe ich dazu nichts gefunden (gesucht: {0}).",
        indexing="Der Index wird noch aufgebaut: Es fehlen {0} Nachrichten, es kann also mehr geben.",
        no_tools="Die Suche im Chatverlauf ist mir hier nicht erlaubt, daher habe ich nichts nachgeschlagen.",
        declined="Der Blick in den Chatverlauf wurde nicht erlaubt, daher habe ich nichts nachgeschlagen.",
        newest="Am neuesten, {0}:",
        earlier="Früher, {0}:",
        message="Nachricht {0}",
        untitled="Chat ohne Titel",
    ),
    Language.SPANISH: Phrases(
        who="No soy un modelo de lenguaje: solo busco.",
        quoting="Esto dicen los chats anteriores de esta aplicación:",
        unsure="No encontré nada que responda claramente. Lo más cercano en los chats anteriores de esta aplicación:",
        excerpts_only="No pude abrir los chats, así que estos son fragmentos.",
        nothing="No encontré nada sobre esto en los chats anteriores de esta aplicación (busqué: {0}).",
        indexing="El índice aún se está creando: le faltan {0} mensajes, así que puede haber más.",
        no_tools="Aquí no se me permite buscar en el historial de chats, así que no busqué nada.",
        declined="No se permitió consultar el historial de chats, así que no busqué nada.",
        newest="Lo más reciente, {0}:",
        earlier="Antes, {0}:",
        message="mensaje {0}",
        untitled="Chat sin título",
    ),
    Language.CHINESE: Phrases(
        who="我不是语言模型，只负责查找。",
        quoting="本应用以前的对话中是这样写的：",
        unsure="没有找到明确的答案。本应用以前的对话中最接近的内容是：",
        excerpts_only="我无法打开这些对话，以下只是摘录。",
        nothing="在本应用以前的对话中没有找到相关内容（查找：{0}）。",
        indexing="索引仍在建立：还缺 {0} 条消息，因此可能还有更多内容。",
        no_tools="这里不允许我搜索对话记录，所以我什么都没有查。",
        declined="查看对话记录未获允许，所以我什么都没有查。",
        newest="最新，{0}：",
        earlier="更早，{0}：",
        message="消息 {0}",
        untitled="无标题对话",
    ),
    Language.JAPANESE: Phrases(
        who="私は言語モデルではなく、検索するだけです。",
        quoting="このアプリの過去のチャットには次のように書かれています。",
        unsure="はっきりした答えは見つかりませんでした。このアプリの過去のチャットで最も近い箇所は次のとおりです。",
        excerpts_only="チャット自体は開けなかったため、以下は抜粋です。",
        nothing="このアプリの過去のチャットには、これについて何も見つかりませんでした（検索：{0}）。",
        indexing="インデックスは作成中です。まだ {0} 件のメッセージが含まれていないため、ほかにもあるかもしれません。",
        no_tools="ここではチャット履歴の検索が許可されていないため、何も調べていません。",
        declined="チャット履歴の参照が許可されなかったため、何も調べていません。",
        newest="最新、{0}：",
        earlier="以前、{0}：",
        message="メッセージ {0}",
        untitled="無題のチャット",
    ),
    Language.ARABIC: Phrases(
        who="لستُ نموذجًا لغويًا، بل أبحث فقط.",
        quoting="هذا ما ورد في المحادثات السابقة لهذا التطبيق:",
        unsure="لم أجد ما يجيب عن هذا بوضوح. أقرب ما في المحادثات السابقة لهذا التطبيق:",
        excerpts_only="لم أتمكن من فتح المحادثات نفسها، لذا هذه مقتطفات.",
        nothing="لم أجد شيئًا عن هذا في المحادثات السابقة لهذا التطبيق (بحثت عن: {0}).",
        indexing="الفهرس ما زال قيد الإنشاء: تنقصه {0} رسالة، فقد يكون هناك المزيد.",
        no_tools="لا يُسمح لي هنا بالبحث في سجل المحادثات، لذا لم أبحث عن شيء.",
        declined="لم يُسمح بالاطلاع على سجل المحادثات، لذا لم أبحث عن شيء.",
        newest="الأحدث، {0}:",
        earlier="أقدم، {0}:",
        message="الرسالة {0}",
        untitled="محادثة بلا عنوان",
    ),
}

# Words that make a question and not its subject.
_FUNCTION_WORDS = {
    Language.ENGLISH: (
        "a about after again all am an and any anything are as at be been before but by can could did do does "
        "done earlier ever find for from had has have how i if in into is it its keep last many me much my not "
        "now of on or our please previous remember remind said say shall should show so some tell than that the "
        "their them then there these they this those time to us use used using was we were what when where which "
        "who why will with would you your"
    ),
    Language.GERMAN: (
        "aber als am an auch auf aus bei bitte da damals das dass dem den denn der des die doch du durch ein eine "
        "einem einen einer eines er es für gab gibt haben hat hatte hatten ich ihr im in ins ist kann mal man mit "
        "nach nicht noch nun nur oder schon sie sind so um und uns unser unsere viel viele vom von vor wann war waren "
        "warum was welche welchem welchen welcher welches wem wen wenn wer werden wie wieso wir wird wo worüber "
        "wurde wurden zu zuletzt zum zur über"
    ),
    Language.SPANISH: (
        "a al algo como con cual cuando cuál cuáles cuándo de del desde dijimos donde dónde e el ella en entre "
        "era es esa ese eso esta este esto está fue ha había habíamos han hasta hay he hemos la las le les lo los "
        "me mi nos nosotros nuestra nuestro o para pero por porque que quien quién qué se ser si sobre son su sus "
        "también te tu un una uno y ya yo él"
    ),
    Language.ARABIC: (
        "أن أو أي أين إلى التي الذي الى ان او تم ثم حول على عن عند فى في قد كان كانت كم كيف لا لم لماذا لن لنا ما "
        "ماذا متى مع من نحن هذا هذه هل هو هي و يا"
    ),
}
_STOP = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_ALL_STOP = frozenset[str]().union(*_STOP.values())

_CHINESE_GLUE = regex.compile(
    "为什么|什么时候|什么|怎么样|怎么|怎样|如何|哪一个|哪个|哪些|哪里|哪种|多少|是否|有没有|我们|你们|他们|咱们|之前|以前|上次|最后|"
    "关于|还是|应该|可以|请问|告诉|记得|到底|曾经|已经|谁|哪|的|了|吗|呢|吧|是|在|把|被|和|与|或|我|你|他|她|它|这|那|过|请|来|去|就|都|也|要|"
    "(?<![应使作费引采利])用(?![户途法例])"
)
_JAPANESE_GLUE = regex.compile(r"\p{Hiragana}+|何故|何時|何処|何|誰|私達|私|我々|以前|前回")
_KOREAN_PARTICLE = regex.compile(r"(?<=\p{Hangul}{2})(?:에서|으로|부터|까지|에게|을|를|이|가|은|는|에|의|로|와|과|도)$")
_PIECES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー々〆]+|[\p{L}\p{M}\p{N}_@][\p{L}\p{M}\p{N}_@./:+#'’-]*")
_EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー々〆]+")
_SPACELESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆]+")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_HAN = regex.compile(r"\p{Han}")
_ARABIC = regex.compile(r"\p{Arabic}")
_ARABIC_ARTICLE = regex.compile(r"^(?:و|ب|ف|ك)?ال(?=\p{Arabic}{3})")
_WORD = regex.compile(r"[\p{L}\p{M}]+")


def language_of(question: str) -> Language:
    """By script, and among the Latin ones by their small words; English when nothing tells."""
    letters = len(regex.findall(r"\p{L}", question))
    if _KANA.search(question):
        return Language.JAPANESE
    # A name in another script doesn't make a question one of that language.
    if len(_HAN.findall(question)) * 3 > letters:
        return Language.CHINESE
    if len(_ARABIC.findall(question)) * 2 > letters:
        return Language.ARABIC
    words = [word.casefold() for word in _WORD.findall(question)]
    hints = {
        Language.ENGLISH: 0,
        Language.GERMAN: len(regex.findall("[äöüß]", question.casefold())),
        Language.SPANISH: len(regex.findall("[¿¡ñáéíóú]", question.casefold())),
    }
    scores = {language: hint + sum(word in _STOP[language] for word in words) for language, hint in hints.items()}
    return max(scores, key=lambda language: scores[language])


def subject_words(question: str) -> tuple[str, ...]:
    """The words of ``question`` that say what it is about, as written, each once; empty when there are none.

    Scripts without spaces are cut at their particles and question words, since a run of them is looked for whole.
    """
    language = language_of(question)
    words: dict[str, str] = {}
    for piece in _PIECES.findall(question):
        for word in _subjects(piece, language):
            words.setdefault(word.casefold(), word)
    return tuple(words.values())


def query_of(words: tuple[str, ...]) -> str:
    """``words`` as a query within the tool's bounds."""
    query = " ".join(words[:QUERY_WORDS])
    return query[:QUERY_CHARACTERS].strip()


def fewer_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """What to look for when ``words`` found nothing: shorter pieces where a script has no spaces or glues its article,
    else the longer half of the words."""
    pieces: dict[str, None] = {}
    for word in words:
        pieces.update(dict.fromkeys(_shorter(word)))
    if pieces:
        return tuple(pieces)
    return tuple(sorted(words, key=len, reverse=True)[: (len(words) + 1) // 2])


def _subjects(piece: str, language: Language) -> Iterator[str]:
    if _EAST_ASIAN.fullmatch(piece):
        glue = _JAPANESE_GLUE if language is Language.JAPANESE else _CHINESE_GLUE
        yield from (part for part in glue.split(piece) if part)
        return
    word = _KOREAN_PARTICLE.sub("", piece.strip("./:'’-"))
    if word and word.casefold() not in _ALL_STOP:
        yield word


def _shorter(word: str) -> Iterator[str]:
    if len(word) > 2 and _SPACELESS.fullmatch(word):
        yield from (word[start : start + 2] for start in range(len(word) - 1))
    elif _ARABIC_ARTICLE.search(word):
        yield _ARABIC_ARTICLE.sub("", word)
