-- +goose Up
ALTER TABLE session ADD COLUMN summary json NOT NULL DEFAULT 'null';
ALTER TABLE session ADD COLUMN revert json NOT NULL DEFAULT 'null';

-- What calls changed in files. An absent file has an empty hash.
CREATE TABLE file_change (
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    ord bigint NOT NULL,
    turn_id text COLLATE "C" NOT NULL,
    message_seq bigint NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    pre_hash text COLLATE "C" NOT NULL,
    pre_mode bigint NOT NULL,
    post_hash text COLLATE "C" NOT NULL,
    post_mode bigint NOT NULL,
    size bigint NOT NULL,
    reason text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (session_id, ord)
);
CREATE INDEX file_change_by_age ON file_change (created);

-- +goose Down
DROP TABLE file_change;
ALTER TABLE session DROP COLUMN revert;
ALTER TABLE session DROP COLUMN summary;
