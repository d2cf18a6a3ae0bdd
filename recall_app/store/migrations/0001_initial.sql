-- Source tables. Ids are AUTOINCREMENT: a reused id would lead a card or a permission to a stranger's chat.
CREATE TABLE apps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    path TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);

-- `created_at` is the app's time at the source: some sources count ids, and another history's app 3 is another app.
CREATE TABLE app_sources (
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    source TEXT NOT NULL,
    source_key TEXT NOT NULL,
    created_at INTEGER,
    PRIMARY KEY (source, source_key)
) WITHOUT ROWID;
CREATE INDEX app_sources_by_app ON app_sources (app_id);

-- `source_title` is the title as last imported: where `title` differs, the person changed it here.
CREATE TABLE chats (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    title TEXT,
    source_title TEXT,
    created_at INTEGER NOT NULL,
    source TEXT,
    source_key TEXT,
    parent_chat_id INTEGER REFERENCES chats (id) ON DELETE SET NULL,
    mode TEXT,
    model TEXT,
    is_private INTEGER NOT NULL DEFAULT 0 CHECK (is_private IN (0, 1)),
    is_favorite INTEGER NOT NULL DEFAULT 0 CHECK (is_favorite IN (0, 1)),
    placed_by_hand INTEGER NOT NULL DEFAULT 0 CHECK (placed_by_hand IN (0, 1)),
    last_read_at INTEGER,
    deleted_at INTEGER
);
CREATE INDEX chats_by_app ON chats (app_id, created_at, id);
CREATE INDEX chats_by_parent ON chats (parent_chat_id) WHERE parent_chat_id IS NOT NULL;
CREATE UNIQUE INDEX chats_by_source ON chats (source, source_key) WHERE source_key IS NOT NULL;
CREATE INDEX chats_deleted ON chats (deleted_at) WHERE deleted_at IS NOT NULL;

-- The two long columns come last: SQLite walks a row's overflow pages only for what lies behind them.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    is_compaction_summary INTEGER NOT NULL DEFAULT 0 CHECK (is_compaction_summary IN (0, 1)),
    created_at INTEGER NOT NULL,
    source_key TEXT,
    model TEXT,
    branch TEXT,
    content TEXT NOT NULL,
    ai_messages_json TEXT
);
CREATE INDEX messages_in_order ON messages (chat_id, created_at, id);
CREATE UNIQUE INDEX messages_by_source ON messages (chat_id, source_key) WHERE source_key IS NOT NULL;

-- `created_at` is the deleted chat's: with counted ids, another history's chat of the same key is another chat.
CREATE TABLE tombstones (
    source TEXT NOT NULL,
    source_key TEXT NOT NULL,
    created_at INTEGER,
    deleted_at INTEGER NOT NULL,
    PRIMARY KEY (source, source_key)
) WITHOUT ROWID;

CREATE TABLE import_state (
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    offset INTEGER NOT NULL DEFAULT 0,
    detail_json TEXT NOT NULL DEFAULT '{}',
    imported_at INTEGER NOT NULL,
    PRIMARY KEY (source, path)
) WITHOUT ROWID;

-- The derived index. One document a message, rowid = message id; the projection is computed in Python, so
-- triggers only note what is out of date.
CREATE VIRTUAL TABLE chat_search_fts USING fts5 (
    title, body, forms, scope,
    app_id UNINDEXED, chat_id UNINDEXED, message_id UNINDEXED, role UNINDEXED,
    message_created_at UNINDEXED, is_compaction_summary UNINDEXED, projection_truncated UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co So' tokenchars '+#'"
);
INSERT INTO chat_search_fts (chat_search_fts, rank) VALUES ('secure-delete', 1);
-- The order of `ORDER BY rank`: title 3, body 1, forms 1, scope 0 (contracts, search_chats).
INSERT INTO chat_search_fts (chat_search_fts, rank) VALUES ('rank', 'bm25(3.0, 1.0, 1.0, 0.0)');

-- `mark` is a new random number at each marking: a document written from an older reading clears only the mark it
-- saw. (A count would begin anew, and could be taken for an old one, after another process has cleared the mark.)
-- `marked_at` lets a message that is still being streamed settle first.
CREATE TABLE chat_search_dirty_messages (
    message_id INTEGER PRIMARY KEY,
    chat_id INTEGER,
    mark INTEGER NOT NULL DEFAULT (random()),
    marked_at INTEGER NOT NULL DEFAULT 0
);
-- `expanded_to` is the last message id of the chat whose mark is already in the queue above.
CREATE TABLE chat_search_dirty_chats (
    chat_id INTEGER PRIMARY KEY,
    expanded_to INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE chat_search_failures (
    message_id INTEGER PRIMARY KEY,
    error_class TEXT NOT NULL,
    failed_at INTEGER NOT NULL
);
-- What is marked again is tried again.
CREATE TRIGGER dirty_messages_retry AFTER INSERT ON chat_search_dirty_messages BEGIN
    DELETE FROM chat_search_failures WHERE message_id = new.message_id;
END;
-- `generation` moves with every change of the documents: what was counted in one generation holds only there.
CREATE TABLE chat_search_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO chat_search_meta (key, value) VALUES ('projection_version', 0), ('generation', 0);

CREATE TRIGGER messages_mark_insert AFTER INSERT ON messages BEGIN
    INSERT INTO chat_search_dirty_messages (message_id, chat_id, marked_at)
    VALUES (new.id, new.chat_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
    ON CONFLICT (message_id) DO UPDATE SET
        chat_id = excluded.chat_id, mark = excluded.mark, marked_at = excluded.marked_at;
END;

CREATE TRIGGER messages_mark_update
AFTER UPDATE OF content, role, is_compaction_summary, chat_id, created_at ON messages BEGIN
    INSERT INTO chat_search_dirty_messages (message_id, chat_id, marked_at)
    VALUES (new.id, new.chat_id, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
    ON CONFLICT (message_id) DO UPDATE SET
        chat_id = excluded.chat_id, mark = excluded.mark, marked_at = excluded.marked_at;
END;

CREATE TRIGGER messages_forget AFTER DELETE ON messages BEGIN
    DELETE FROM chat_search_fts WHERE rowid = old.id;
    DELETE FROM chat_search_dirty_messages WHERE message_id = old.id;
    DELETE FROM chat_search_failures WHERE message_id = old.id;
    UPDATE chat_search_meta SET value = value + 1 WHERE key = 'generation';
END;

CREATE TRIGGER chats_mark_update AFTER UPDATE OF title, app_id ON chats
WHEN old.title IS NOT new.title OR old.app_id <> new.app_id BEGIN
    INSERT INTO chat_search_dirty_chats (chat_id) VALUES (new.id)
    ON CONFLICT (chat_id) DO UPDATE SET expanded_to = 0;
END;

CREATE TRIGGER chats_forget AFTER DELETE ON chats BEGIN
    DELETE FROM chat_search_dirty_chats WHERE chat_id = old.id;
END;

-- The ledger: every consultation, committed before its result reaches a model.
CREATE TABLE consultations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    chat_id INTEGER REFERENCES chats (id) ON DELETE CASCADE,
    message_id INTEGER REFERENCES messages (id) ON DELETE SET NULL,
    tool TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    decision TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT,
    is_local INTEGER NOT NULL CHECK (is_local IN (0, 1)),
    index_status TEXT,
    result_count INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    truncated INTEGER NOT NULL CHECK (truncated IN (0, 1)),
    duration_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX consultations_by_chat ON consultations (chat_id, id);
CREATE INDEX consultations_by_message ON consultations (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX consultations_by_app ON consultations (app_id, id);

-- No foreign key to the source: a source that is gone stays listed by its number, without its excerpt.
CREATE TABLE consulted_messages (
    consultation_id INTEGER NOT NULL REFERENCES consultations (id) ON DELETE CASCADE,
    chat_id INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    excerpt TEXT,
    PRIMARY KEY (consultation_id, message_id)
) WITHOUT ROWID;
CREATE INDEX consulted_messages_by_chat ON consulted_messages (chat_id);
CREATE INDEX consulted_messages_by_message ON consulted_messages (message_id);

-- What existed before this migration (nothing in a new file) is indexed in the background.
INSERT INTO chat_search_dirty_messages (message_id, chat_id) SELECT id, chat_id FROM messages WHERE true
    ON CONFLICT DO NOTHING;
