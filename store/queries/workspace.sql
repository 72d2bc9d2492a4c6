-- name: WorkspaceInsert :one
INSERT INTO workspace (id, project_id, type, name, directory, branch, metadata, status, reason, owned, owner, created, updated)
VALUES (@id, @project_id, @type, @name, @directory, @branch, @metadata, @status, '', @owned, @owner, @created, @updated)
RETURNING *;

-- name: WorkspaceGet :one
SELECT * FROM workspace WHERE id = @id;

-- name: WorkspaceByDirectory :one
SELECT * FROM workspace WHERE directory = @directory;

-- name: WorkspaceList :many
SELECT * FROM workspace ORDER BY created, id;

-- name: WorkspaceSet :one
UPDATE workspace SET name = @name, metadata = @metadata, archived = sqlc.narg('archived'), updated = @updated
WHERE id = @id RETURNING *;

-- name: WorkspaceLock :one
UPDATE workspace SET id = id WHERE id = @id RETURNING *;

-- name: WorkspaceSetStatus :one
UPDATE workspace SET status = @status, reason = @reason, branch = @branch, updated = @updated
WHERE id = @id AND status = @expected RETURNING *;

-- name: WorkspaceUse :execrows
UPDATE workspace SET used = CAST(@used AS bigint) WHERE id = @id;

-- name: WorkspaceDelete :execrows
DELETE FROM workspace WHERE id = @id;

-- name: WorkspaceSessions :many
SELECT workspace_id, CAST(COUNT(*) AS bigint) AS total FROM session WHERE workspace_id <> '' GROUP BY workspace_id;

-- name: WorkspaceBusy :one
SELECT CAST(COUNT(*) AS bigint) AS total FROM turn JOIN session ON session.id = turn.session_id
WHERE session.workspace_id = @workspace_id AND turn.ended IS NULL;

-- A session moves alone, or with all below it that stand where it stands.
-- name: SessionMove :many
UPDATE session SET project_id = @project_id, workspace_id = @workspace_id, directory = @directory, path = @path, updated = @updated
WHERE (id = @id OR root_id = @id) AND directory = @from_directory AND workspace_id = @from_workspace
RETURNING *;

-- name: SessionTreeBusy :one
SELECT CAST(COUNT(*) AS bigint) AS total FROM turn JOIN session ON session.id = turn.session_id
WHERE (session.id = @id OR session.root_id = @id) AND turn.ended IS NULL;
