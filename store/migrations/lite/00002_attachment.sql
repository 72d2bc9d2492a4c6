-- +goose Up
CREATE TABLE attachment (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    name TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX attachment_by_created ON attachment (created);

-- A row that is referred to cannot go: there is no cascade from attachment.
CREATE TABLE attachment_ref (
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    attachment_id TEXT NOT NULL REFERENCES attachment (id),
    PRIMARY KEY (session_id, attachment_id)
) STRICT;
CREATE INDEX attachment_ref_by_attachment ON attachment_ref (attachment_id);

-- +goose Down
DROP TABLE attachment_ref;
DROP TABLE attachment;
