-- name: ProjectUpsert :one
INSERT INTO project (id, identity, worktree, vcs, name, icon, commands, created, updated, used)
VALUES (@id, @identity, @worktree, @vcs, NULL, NULL, @commands, @created, @updated, @used)
ON CONFLICT (identity) DO UPDATE SET updated = excluded.updated, worktree = excluded.worktree, vcs = excluded.vcs, used = excluded.used
RETURNING *;

-- name: ProjectGet :one
SELECT * FROM project WHERE id = @id;

-- name: ProjectByIdentity :one
SELECT * FROM project WHERE identity = @identity;

-- name: ProjectList :many
SELECT * FROM project ORDER BY used DESC, id;

-- name: ProjectUse :execrows
UPDATE project SET used = @used WHERE id = @id;

-- name: ProjectUpdate :one
UPDATE project SET name = sqlc.narg('name'), icon = sqlc.narg('icon'), commands = @commands, updated = @updated
WHERE id = @id RETURNING *;

-- name: ProjectLock :one
UPDATE project SET id = id WHERE id = @id RETURNING *;

-- name: ProjectDirectories :many
SELECT DISTINCT directory FROM session WHERE project_id = @project_id AND workspace_id = '' ORDER BY directory;
