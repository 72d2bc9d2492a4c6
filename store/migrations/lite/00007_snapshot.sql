-- +goose Up
ALTER TABLE session ADD COLUMN summary TEXT /*json*/ NOT NULL DEFAULT 'null';
ALTER TABLE session ADD COLUMN revert TEXT /*json*/ NOT NULL DEFAULT 'null';

-- What calls changed in files. An absent file has an empty hash.
CREATE TABLE file_change (
    session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ord INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    message_seq INTEGER NOT NULL,
    part_id TEXT NOT NULL,
    path TEXT NOT NULL,
    pre_hash TEXT NOT NULL,
    pre_mode INTEGER NOT NULL,
    post_hash TEXT NOT NULL,
    post_mode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (session_id, ord)
) STRICT;
CREATE INDEX file_change_by_age ON file_change (created);

-- +goose Down
DROP TABLE file_change;
ALTER TABLE session DROP COLUMN revert;
ALTER TABLE session DROP COLUMN summary;
