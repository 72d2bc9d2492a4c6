-- +goose Up
-- The servers that use this store, and until when each may run turns. A SQLite
-- file has one server, which needs no row.
CREATE TABLE server (
    owner TEXT NOT NULL PRIMARY KEY,
    boot INTEGER NOT NULL,
    renewed INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE server;
