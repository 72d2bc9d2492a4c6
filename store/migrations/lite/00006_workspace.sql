-- +goose Up
ALTER TABLE project ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE project SET used = updated;

CREATE TABLE workspace (
    id TEXT NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES project (id),
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    directory TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    metadata TEXT /*json*/ NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    owned INTEGER NOT NULL,
    owner TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    used INTEGER,
    archived INTEGER
) STRICT;
CREATE INDEX workspace_by_project ON workspace (project_id, created, id);

-- +goose Down
DROP TABLE workspace;
ALTER TABLE project DROP COLUMN used;
