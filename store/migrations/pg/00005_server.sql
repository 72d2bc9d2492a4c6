-- +goose Up
-- The servers that use this store, and until when each may run turns. A SQLite
-- file has one server, which needs no row.
CREATE TABLE server (
    owner text COLLATE "C" NOT NULL PRIMARY KEY,
    boot bigint NOT NULL,
    renewed bigint NOT NULL,
    expires bigint NOT NULL
);

-- +goose Down
DROP TABLE server;
