-- +goose Up
CREATE TABLE meta (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

-- One row: the newest event number, and what the log holds.
CREATE TABLE event_head (
    one bigint NOT NULL PRIMARY KEY CHECK (one = 1),
    seq bigint NOT NULL,
    total_rows bigint NOT NULL,
    total_bytes bigint NOT NULL
);
INSERT INTO event_head (one, seq, total_rows, total_bytes) VALUES (1, 0, 0, 0);

-- Each start of a server skips numbers, so that those lost with power are never used again.
CREATE TABLE boot (
    number bigint NOT NULL PRIMARY KEY,
    gap_from bigint NOT NULL,
    gap_to bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    started bigint NOT NULL
);

CREATE TABLE event (
    seq bigint NOT NULL PRIMARY KEY,
    type text COLLATE "C" NOT NULL,
    time bigint NOT NULL,
    directory text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    root_session_id text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    payload json NOT NULL
);

-- Explicit orders that are not event numbers.
CREATE TABLE counter (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    value bigint NOT NULL
);
INSERT INTO counter (name, value) VALUES ('session', 0);

CREATE TABLE project (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    identity text COLLATE "C" NOT NULL UNIQUE,
    worktree text COLLATE "C" NOT NULL,
    vcs text COLLATE "C" NOT NULL,
    name text COLLATE "C",
    icon text COLLATE "C",
    commands json NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL
);

CREATE TABLE session (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    ord bigint NOT NULL UNIQUE,
    project_id text COLLATE "C" NOT NULL REFERENCES project (id),
    workspace_id text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    parent_id text COLLATE "C",
    root_id text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    title_fold text COLLATE "C" NOT NULL,
    title_source text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    model json NOT NULL,
    permission json NOT NULL,
    metadata json NOT NULL,
    cost double precision NOT NULL,
    tokens json NOT NULL,
    message_count bigint NOT NULL,
    message_seq bigint NOT NULL,
    context_seq bigint NOT NULL,
    inbox_ord bigint NOT NULL,
    inbox_parked bigint NOT NULL,
    generation bigint NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    archived bigint,
    compacting bigint
);
-- The columns behind ord let a list count and filter without touching the rows.
CREATE INDEX session_by_context ON session (directory, workspace_id, ord, archived, parent_id, id);
CREATE INDEX session_by_context_updated ON session (directory, workspace_id, updated, ord, archived, parent_id, id);
CREATE INDEX session_by_project ON session (project_id, ord, archived, parent_id, id);
CREATE INDEX session_by_workspace ON session (workspace_id, ord, archived, parent_id, id);
CREATE INDEX session_by_updated ON session (updated, ord, archived, parent_id, id);
CREATE INDEX session_by_parent ON session (parent_id, ord);
CREATE INDEX session_by_root ON session (root_id, ord);

CREATE TABLE message (
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    info json NOT NULL,
    PRIMARY KEY (session_id, seq),
    UNIQUE (session_id, id)
);
CREATE INDEX message_by_turn ON message (turn_id);

CREATE TABLE part (
    session_id text COLLATE "C" NOT NULL,
    message_seq bigint NOT NULL,
    ord bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    data json NOT NULL,
    PRIMARY KEY (session_id, message_seq, ord),
    FOREIGN KEY (session_id, message_seq) REFERENCES message (session_id, seq) ON DELETE CASCADE
);

CREATE TABLE turn (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    state text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    attempt bigint NOT NULL,
    ord bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    interrupt bigint NOT NULL,
    error json NOT NULL,
    started bigint NOT NULL,
    ended bigint
);
CREATE INDEX turn_by_session ON turn (session_id, ord);
-- One run per session, held by the database itself.
CREATE UNIQUE INDEX turn_open ON turn (session_id) WHERE ended IS NULL;

CREATE TABLE step (
    turn_id text COLLATE "C" NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    ord bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    request_hash text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    PRIMARY KEY (turn_id, ord)
);

CREATE TABLE inbox (
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ord bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    delivery text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    body_hash text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    prompt json NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (session_id, ord),
    UNIQUE (session_id, message_id),
    UNIQUE (session_id, idempotency_key)
);
CREATE INDEX inbox_queued ON inbox (session_id, ord) WHERE state = 'queued';

CREATE TABLE tool_call (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    turn_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    class text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    pre json NOT NULL,
    post json NOT NULL,
    started bigint NOT NULL,
    ended bigint
);
CREATE INDEX tool_call_by_session ON tool_call (session_id);
CREATE INDEX tool_call_by_turn ON tool_call (turn_id);

CREATE TABLE permission (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    ord bigint NOT NULL,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    root_session_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    request json NOT NULL,
    state text COLLATE "C" NOT NULL,
    reply text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    replied bigint
);
CREATE INDEX permission_by_session ON permission (session_id);
CREATE INDEX permission_by_root ON permission (root_session_id);
CREATE INDEX permission_pending ON permission (directory, workspace_id) WHERE state = 'pending';

CREATE TABLE permission_saved (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project (id) ON DELETE CASCADE,
    permission text COLLATE "C" NOT NULL,
    pattern text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    UNIQUE (project_id, permission, pattern)
);

CREATE TABLE question (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    ord bigint NOT NULL,
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    root_session_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    request json NOT NULL,
    state text COLLATE "C" NOT NULL,
    answers json NOT NULL,
    message text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    replied bigint
);
CREATE INDEX question_by_session ON question (session_id);
CREATE INDEX question_by_root ON question (root_session_id);
CREATE INDEX question_pending ON question (directory, workspace_id) WHERE state = 'pending';

CREATE TABLE todo (
    session_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
    todos json NOT NULL
);

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
