"""Words, names and sentences that the generated history is made of; data only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def _words(text: str) -> list[str]:
    return text.split()


SMALL_WORDS = _words(
    "the a to of in is it that we for on with this be as at by from or an are was not can if but have has you i "
    "so when then there which will our your do does should would"
)
"""About a third of English prose; searches leave them out."""

COMMON_WORDS = _words(
    "page user button file component data error state server change test value request list form table field "
    "function query update response route style code handler token schema migration layout session cache "
    "config module event client account order product cart payment invoice report filter search index message "
    "store theme menu dialog header footer image upload export import build deploy branch commit review log "
    "metric queue worker job retry timeout limit batch sort cursor scroll focus click hover label input select "
    "option modal sidebar toolbar badge avatar profile settings role permission policy email webhook secret key "
    "hash salt stream chunk buffer parser lexer grammar tree node graph edge weight score rank color font margin "
    "padding border shadow grid column row cell chart axis legend tooltip locale currency region country tax"
)
"""The commonest words with a meaning, in order of frequency; the first ones stand in a fifth of all messages each."""

NAME_PIECES = _words(
    "use get set load save fetch make find parse render update remove handle create check build Chat Store "
    "User Order "
    "Cart Invoice Payment Session Token Query Route Table Field Form Button Modal Theme Locale Cache Queue "
    "Worker Batch "
    "Cursor Filter Index Search Report Chart Column Header Footer Profile Role Policy Event Client Server "
    "Stream Chunk"
)
VERBS = tuple(piece for piece in NAME_PIECES if piece.islower())
NOUNS = tuple(piece for piece in NAME_PIECES if not piece.islower())
FOLDERS = _words("src/lib src/components src/hooks app/api server/routes packages/core tests/unit")


@dataclass(frozen=True, slots=True)
class Language:
    """Words to make sentences of; ``spaced`` if its words are written apart."""

    words: Sequence[str]
    spaced: bool = True
    full_stop: str = "."


LANGUAGES: Mapping[str, Language] = {
    "de": Language(
        _words(
            "Seite Nutzer Schaltfläche Datei Fehler Zustand Änderung prüfen Wert Anfrage Liste Formular Tabelle Feld "
            "Abfrage Antwort Gestaltung Schlüssel Sitzung Zwischenspeicher Bestellung Rechnung Bericht suchen "
            "Nachricht "
            "ausliefern Warteschlange Grenze überprüfen größer später wir haben die und das mit für auf nicht"
        )
    ),
    "es": Language(
        _words(
            "página usuario botón archivo error estado cambio probar valor petición lista formulario tabla campo "
            "consulta "
            "respuesta diseño clave sesión memoria pedido factura informe buscar mensaje desplegar cola límite revisar "
            "mañana después hemos el la y con para en no"
        )
    ),
    "ru": Language(
        _words(
            "страница пользователь кнопка файл ошибка состояние изменение проверить значение запрос список форма "
            "таблица "
            "поле ответ стиль ключ сессия заказ счёт отчёт поиск сообщение очередь предел позже потом мы и на для не"
        )
    ),
    "ar": Language(
        _words(
            "صفحة مستخدم زر ملف خطأ حالة تغيير اختبار قيمة طلب قائمة نموذج جدول حقل استعلام استجابة تصميم مفتاح جلسة "
            "فاتورة تقرير بحث رسالة نشر حد مراجعة غدا بعد نحن في على مع"
        ),
        full_stop=".",
    ),
    "zh": Language(
        _words(
            "页面 用户 按钮 文件 错误 状态 修改 测试 数值 请求 列表 表单 表格 字段 查询 响应 样式 密钥 会话 缓存 "
            "订单 发票 报表 "
            "搜索 消息 部署 队列 限制 检查 明天 之后 我们 已经 需要 把 在 的 了"
        ),
        spaced=False,
        full_stop="。",
    ),
    "ja": Language(
        _words(
            "ページ ユーザー ボタン ファイル エラー 状態 変更 テスト 値 リクエスト 一覧 フォーム 表 項目 検索 "
            "応答 デザイン 鍵 "
            "セッション キャッシュ 注文 請求書 報告 メッセージ 配置 待ち行列 制限 確認 明日 その後 私たち は を "
            "に が した"
        ),
        spaced=False,
        full_stop="。",
    ),
    "ko": Language(
        _words(
            "페이지를 사용자가 버튼을 파일은 오류가 상태를 변경했고 시험을 값을 요청이 목록에 양식을 표를 필드가 "
            "질의를 응답이 "
            "디자인을 열쇠를 세션이 캐시를 주문이 청구서를 보고서를 검색을 메시지가 배포했다 대기열에 제한을 "
            "확인했다 내일 그다음 우리는"
        )
    ),
    "th": Language(
        _words(
            "หน้า ผู้ใช้ ปุ่ม ไฟล์ ข้อผิดพลาด สถานะ เปลี่ยน ทดสอบ ค่า คำขอ รายการ แบบฟอร์ม ตาราง ช่อง ค้นหา คำตอบ "
            "รูปแบบ กุญแจ เซสชัน แคช "
            "คำสั่งซื้อ ใบแจ้งหนี้ รายงาน ข้อความ คิว ขีดจำกัด ตรวจสอบ พรุ่งนี้ หลังจากนั้น เรา ได้ ที่"
        ),
        spaced=False,
        full_stop=" ",
    ),
}
"""With English, nine."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A sentence that stands in one message, and what somebody asks who looks for it."""

    kind: str
    query: str
    sentence: str


HAND_PLANTED = (
    # Two in each language but English.
    Planted("de", "Mahnstufe Kulanzfrist", "Die Kulanzfrist vor der zweiten Mahnstufe bleibt bei neun Tagen."),
    Planted("de", "Übergabeprotokoll", "Das Übergabeprotokoll wird beim Umzug des Mandanten neu erzeugt."),
    Planted("es", "reembolso parcial", "Acordamos que el reembolso parcial caduque a los treinta días."),
    Planted("es", "albaranes duplicados", "Los albaranes duplicados venían del segundo disparador."),
    Planted("ru", "возврат предоплаты", "Решили, что возврат предоплаты проходит через бухгалтерию."),
    Planted("ru", "штрихкод накладной", "Печатаем штрихкод накладной в правом верхнем углу."),
    Planted("ar", "ضريبة الشحن", "قررنا أن تحسب ضريبة الشحن قبل الخصم."),
    Planted("ar", "الاسترداد الجزئي", "لا يسمح الاسترداد الجزئي بعد شهرين."),
    Planted("zh", "回滚脚本", "回滚脚本放在仓库根目录。"),
    Planted("zh", "灰度发布", "先灰度发布给百分之五的人。"),
    Planted("ja", "払い戻し", "払い戻しは翌月末に行う。"),
    Planted("ja", "在庫引当", "在庫引当は夜間に計算する。"),
    Planted("ko", "환불 규정", "환불 규정은 십사 일로 정했다."),
    Planted("ko", "재고 실사", "재고 실사는 매월 말에 진행한다."),
    Planted("th", "คืนเงิน", "ตกลงว่าคืนเงินภายในเจ็ดวัน"),
    Planted("th", "ภาษีมูลค่าเพิ่ม", "คิดภาษีมูลค่าเพิ่มหลังหักส่วนลด"),
    # Inside unspaced sentences.
    Planted("inside zh", "双因子登录", "昨天我们已经把双因子登录移到了付款步骤之前因为有人投诉。"),
    Planted("inside zh", "退款窗口", "讨论之后决定将退款窗口延长为四十五天然后通知客服。"),
    Planted("inside zh", "PostgreSQL", "我们最后选择了PostgreSQL作为账本的数据库而不是别的。"),
    Planted("inside ja", "二段階認証", "会議の結果として二段階認証を支払いの前に移すことになりました。"),
    Planted("inside ja", "棚卸し", "来月からは棚卸しを週末にまとめて実施することにしました。"),
    Planted("inside ja", "Redis", "結局のところRedisを使わずに済ませる案を採用しました。"),
    Planted("inside ko", "이중 인증", "회의 끝에 이중 인증을 결제 앞으로 옮기기로 결정했습니다."),
    Planted("inside ko", "쿠폰 만료", "쿠폰 만료일은 월말로 통일하자는 의견이 많았습니다."),
    Planted("inside ko", "Kafka", "결국 Kafka를 쓰지 않고 단순한 방식으로 가기로 했습니다."),
    Planted("inside th", "ยืนยันตัวตนสองชั้น", "ประชุมแล้วให้ย้ายยืนยันตัวตนสองชั้นไปไว้ก่อนชำระเงินทันที"),
    Planted("inside th", "คูปองหมดอายุ", "ทีมอยากให้คูปองหมดอายุตอนสิ้นเดือนเท่านั้นเพื่อไม่ให้สับสน"),
    Planted("inside th", "สต็อกสินค้า", "ต่อไปนี้สต็อกสินค้าจะคำนวณใหม่ทุกคืนวันอาทิตย์"),
    # Asked as a person asks.
    Planted(
        "question",
        "Why did we decide against optimistic locking for the warehouse counts?",
        "Optimistic locking is out for the warehouse counts, two scanners kept overwriting each other.",
    ),
    Planted(
        "question",
        "which carrier did we choose for parcels to Iceland?",
        "Parcels to Iceland go with the blue carrier, theirs was the only one with customs included.",
    ),
    Planted(
        "question",
        "How long do we keep abandoned baskets before they are purged?",
        "Abandoned baskets are kept for seventeen days and purged by the nightly sweep.",
    ),
    Planted(
        "question",
        "What was the reason for rounding half-pennies down?",
        "We round half-pennies down, since the auditors read the statute that way.",
    ),
    Planted(
        "question",
        "who approves refunds above two thousand?",
        "Refunds above two thousand need the approval of somebody from the ledger team.",
    ),
    Planted(
        "question",
        "when does the loyalty multiplier stop applying?",
        "The loyalty multiplier stops applying once the membership lapses, not at midnight.",
    ),
    # With accents on one side only.
    Planted("accents", "cafe Zurich", "The pilot customer is the Café near the lake in Zürich."),
    Planted("accents", "résumé façade", "Keep the resume facade in front of the old scanner."),
    Planted("accents", "Malmo smorgasbord", "In Malmö the smörgåsbord order is split by table."),
    Planted("accents", "naïve São Paulo", "A naive split works for Sao Paulo."),
    Planted("accents", "senor Nunez", "Señor Núñez signs the delivery note himself."),
    Planted("accents", "Dvořák Łódź", "The Dvorak layout was asked for by the office in Lodz."),
)
