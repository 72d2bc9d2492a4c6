-- +goose Up
CREATE TABLE attachment (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    hash text COLLATE "C" NOT NULL UNIQUE,
    mime text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    width bigint NOT NULL,
    height bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    created bigint NOT NULL
);
CREATE INDEX attachment_by_created ON attachment (created);

-- A row that is referred to cannot go: there is no cascade from attachment.
CREATE TABLE attachment_ref (
    session_id text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    attachment_id text COLLATE "C" NOT NULL REFERENCES attachment (id),
    PRIMARY KEY (session_id, attachment_id)
);
CREATE INDEX attachment_ref_by_attachment ON attachment_ref (attachment_id);

-- +goose Down
DROP TABLE attachment_ref;
DROP TABLE attachment;
