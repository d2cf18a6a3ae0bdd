"""Words that say how a question is asked, not what it is about: they leave a query if other words remain."""

_ENGLISH = """
a about above after again all also am an and any are as at be because been before being below between both but by can
could d did do does doing down during each few for from further get got had has have having he her here hers him his how
i if in into is it its itself just ll m may me might more most my myself no nor not of off on once only or other our
ours out over own re s same shall she should so some such t than that the their theirs them then there these they this
those through to too under until up upon us ve very was we were what when where whether which while who whom whose why
will with would you your yours
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis da das dass dem den der des die doch du ein eine einem einen einer eines er es
für hat haben ich ihr im in ist ja kann mit nach nicht noch nur ob oder sein sich sie sind so um und uns unser von vor
war waren warum was wie wir wird wo wurde zu zum zur über
"""
_SPANISH = """
al algo como con cuál cuando de del dónde el ella en era es esta está este esto fue ha hay la las le lo los me mi muy no
nos o para pero por porque qué que se ser si sin sobre son su sus te tu un una y ya
"""
_FRENCH = """
au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur mais ne nous on ou par pas pour pourquoi
qu que qui sa se ses son sont sur un une vous était
"""
_PORTUGUESE_ITALIAN = """
ao as com da das do dos ele em foi isso mais na nas não nem os ou pela pelo quando seu sua também uma che di gli il nel
non per più sono
"""
_CHINESE_JAPANESE_KOREAN = """
的 了 是 在 我 你 他 她 它 们 我们 你们 他们 什么 怎么 为什 为什么 哪个 哪里 这个 那个 吗 呢 吧 和 与 或 都 也 就
不 没有 何 です ます した する こと もの これ それ あれ どれ どこ なに なぜ どう から まで
ので のは には では とは という ました ですか ますか 무엇 어떻게 왜 그 이 저 은 는 을 를 에 의 가
"""
_ARABIC_RUSSIAN_HINDI = """
في من على إلى عن ما ماذا كيف لماذا هل هذا هذه ذلك التي الذي كان أن لا و أو مع
в и не на что как это по но из у за от так же для о почему где когда мы вы они он она было быть
क्या है हैं का की के को में से पर और यह वह नहीं था थे थी क्यों कैसे हम
"""

STOPWORDS = frozenset(
    " ".join(
        (
            _ENGLISH,
            _GERMAN,
            _SPANISH,
            _FRENCH,
            _PORTUGUESE_ITALIAN,
            _CHINESE_JAPANESE_KOREAN,
            _ARABIC_RUSSIAN_HINDI,
        )
    ).split()
)
"""Lower-case, as written."""
