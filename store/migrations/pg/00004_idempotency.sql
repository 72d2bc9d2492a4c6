-- +goose Up
-- What was answered to requests with an Idempotency-Key.
CREATE TABLE idempotency (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    target text COLLATE "C" NOT NULL,
    body_hash text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    status bigint NOT NULL,
    header json NOT NULL,
    answer bytea NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_by_created ON idempotency (created);

-- +goose Down
DROP TABLE idempotency;
