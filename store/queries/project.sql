-- name: ProjectUpsert :one
INSERT INTO project (id, identity, worktree, vcs, name, icon, commands, created, updated)
VALUES (@id, @identity, @worktree, @vcs, NULL, NULL, @commands, @created, @updated)
ON CONFLICT (identity) DO UPDATE SET updated = excluded.updated, worktree = excluded.worktree, vcs = excluded.vcs
RETURNING *;

-- name: ProjectGet :one
SELECT * FROM project WHERE id = @id;

-- name: ProjectByIdentity :one
SELECT * FROM project WHERE identity = @identity;
