-- +goose Up
-- What was answered to requests with an Idempotency-Key.
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    target TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    object TEXT NOT NULL,
    status INTEGER NOT NULL,
    header TEXT /*json*/ NOT NULL,
    answer BLOB NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;
CREATE INDEX idempotency_by_created ON idempotency (created);

-- +goose Down
DROP TABLE idempotency;
