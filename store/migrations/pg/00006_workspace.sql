-- +goose Up
ALTER TABLE project ADD COLUMN used bigint NOT NULL DEFAULT 0;
UPDATE project SET used = updated;

CREATE TABLE workspace (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project (id),
    type text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    directory text COLLATE "C" NOT NULL UNIQUE,
    branch text COLLATE "C" NOT NULL,
    metadata json NOT NULL,
    status text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    owned bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    used bigint,
    archived bigint
);
CREATE INDEX workspace_by_project ON workspace (project_id, created, id);

-- +goose Down
DROP TABLE workspace;
ALTER TABLE project DROP COLUMN used;
