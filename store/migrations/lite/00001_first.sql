-- +goose Up
CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- One row: the newest event number, and what the log holds.
CREATE TABLE event_head (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    total_rows INTEGER NOT NULL,
    total_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO event_head (one, seq, total_rows, total_bytes) VALUES (1, 0, 0, 0);

-- Each start of a server skips numbers, so that those lost with power are never used again.
CREATE TABLE boot (
    number INTEGER NOT NULL PRIMARY KEY,
    gap_from INTEGER NOT NULL,
    gap_to INTEGER NOT NULL,
    owner TEXT NOT NULL,
    started INTEGER NOT NULL
) STRICT;

CREATE TABLE event (
    seq INTEGER NOT NULL PRIMARY KEY,
    type TEXT NOT NULL,
    time INTEGER NOT NULL,
    directory TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    root_session_id TEXT NOT NULL,
    size INTEGER NOT NULL,
    payload TEXT /*json*/ NOT NULL
) STRICT;

-- Explicit orders that are not event numbers.
CREATE TABLE counter (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO counter (name, value) VALUES ('session', 0);

CREATE TABLE project (
    id TEXT NOT NULL PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    worktree TEXT NOT NULL,
    vcs TEXT NOT NULL,
    name TEXT,
    icon TEXT,
    commands TEXT /*json*/ NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
    id TEXT NOT NULL PRIMARY KEY,
    ord INTEGER NOT NULL UNIQUE,
    project_id TEXT NOT NULL REFERENCES project (id),
    workspace_id TEXT NOT NULL,
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    parent_id TEXT,
    root_id TEXT NOT NULL,
    title TEXT NOT NULL,
    title_fold TEXT NOT NULL,
    title_source TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT /*json*/ NOT NULL,
    permission TEXT /*json*/ NOT NULL,
    metadata TEXT /*json*/ NOT NULL,
    cost REAL NOT NULL,
    tokens TEXT /*json*/ NOT NULL,
    message_count INTEGER NOT NULL,
    message_seq INTEGER NOT NULL,
    context_seq INTEGER NOT NULL,
    inbox_ord INTEGER NOT NULL,
    inbox_parked INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    archived INTEGER,
    compacting INTEGER
) STRICT;
-- The columns behind ord let a list count and filter without touching the rows.
CREATE INDEX session_by_context ON session (directory, workspace_id, ord, archived, parent_id, id);
CREATE INDEX session_by_context_updated ON session (directory, workspace_id, updated, ord, archived, parent_id, id);
CREATE INDEX session_by_project ON session (project_id, ord, archived, parent_id, id);
CREATE INDEX session_by_workspace ON session (workspace_id, ord, archived, parent_id, id);
CREATE INDEX session_by_updated ON session (updated, ord, archived, parent_id, id);
CREATE INDEX session_by_parent ON session (parent_id, ord);
CREATE INDEX session_by_root ON session (root_id, ord);

CREATE TABLE message (
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    info TEXT /*json*/ NOT NULL,
    PRIMARY KEY (session_id, seq),
    UNIQUE (session_id, id)
) STRICT;
CREATE INDEX message_by_turn ON message (turn_id);

CREATE TABLE part (
    session_id TEXT NOT NULL,
    message_seq INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    data TEXT /*json*/ NOT NULL,
    PRIMARY KEY (session_id, message_seq, ord),
    FOREIGN KEY (session_id, message_seq) REFERENCES message (session_id, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    interrupt INTEGER NOT NULL,
    error TEXT /*json*/ NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER
) STRICT;
CREATE INDEX turn_by_session ON turn (session_id, ord);
-- One run per session, held by the database itself.
CREATE UNIQUE INDEX turn_open ON turn (session_id) WHERE ended IS NULL;

CREATE TABLE step (
    turn_id TEXT NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    ord INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    started INTEGER NOT NULL,
    PRIMARY KEY (turn_id, ord)
) STRICT;

CREATE TABLE inbox (
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ord INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    delivery TEXT NOT NULL,
    state TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    idempotency_key TEXT,
    prompt TEXT /*json*/ NOT NULL,
    turn_id TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (session_id, ord),
    UNIQUE (session_id, message_id),
    UNIQUE (session_id, idempotency_key)
) STRICT;
CREATE INDEX inbox_queued ON inbox (session_id, ord) WHERE state = 'queued';

CREATE TABLE tool_call (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    class TEXT NOT NULL,
    state TEXT NOT NULL,
    pre TEXT /*json*/ NOT NULL,
    post TEXT /*json*/ NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER
) STRICT;
CREATE INDEX tool_call_by_session ON tool_call (session_id);
CREATE INDEX tool_call_by_turn ON tool_call (turn_id);

CREATE TABLE permission (
    id TEXT NOT NULL PRIMARY KEY,
    ord INTEGER NOT NULL,
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    root_session_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    directory TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    request TEXT /*json*/ NOT NULL,
    state TEXT NOT NULL,
    reply TEXT NOT NULL,
    message TEXT NOT NULL,
    created INTEGER NOT NULL,
    replied INTEGER
) STRICT;
CREATE INDEX permission_by_session ON permission (session_id);
CREATE INDEX permission_by_root ON permission (root_session_id);
CREATE INDEX permission_pending ON permission (directory, workspace_id) WHERE state = 'pending';

CREATE TABLE permission_saved (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    permission TEXT NOT NULL,
    pattern TEXT NOT NULL,
    created INTEGER NOT NULL,
    UNIQUE (project_id, permission, pattern)
) STRICT;

CREATE TABLE question (
    id TEXT NOT NULL PRIMARY KEY,
    ord INTEGER NOT NULL,
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    root_session_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    directory TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    part_id TEXT NOT NULL,
    request TEXT /*json*/ NOT NULL,
    state TEXT NOT NULL,
    answers TEXT /*json*/ NOT NULL,
    message TEXT NOT NULL,
    created INTEGER NOT NULL,
    replied INTEGER
) STRICT;
CREATE INDEX question_by_session ON question (session_id);
CREATE INDEX question_by_root ON question (root_session_id);
CREATE INDEX question_pending ON question (directory, workspace_id) WHERE state = 'pending';

CREATE TABLE todo (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
    todos TEXT /*json*/ NOT NULL
) STRICT;

-- +goose Down
DROP TABLE todo;
DROP TABLE question;
DROP TABLE permission_saved;
DROP TABLE permission;
DROP TABLE tool_call;
DROP TABLE inbox;
DROP TABLE step;
DROP TABLE turn;
DROP TABLE part;
DROP TABLE message;
DROP TABLE session;
DROP TABLE project;
DROP TABLE counter;
DROP TABLE event;
DROP TABLE boot;
DROP TABLE event_head;
DROP TABLE meta;
