-- name: SessionInsert :one
INSERT INTO session (id, ord, project_id, workspace_id, directory, path, parent_id, root_id, title, title_fold, title_source,
    agent, model, permission, metadata, cost, tokens, message_count, message_seq, context_seq, inbox_ord, inbox_parked, generation, created, updated)
VALUES (@id, @ord, @project_id, @workspace_id, @directory, @path, sqlc.narg('parent_id'), @root_id, @title, @title_fold, @title_source,
    @agent, @model, @permission, @metadata, 0, @tokens, 0, 0, 0, 0, 0, 0, @created, @updated)
RETURNING *;

-- name: SessionGet :one
SELECT * FROM session WHERE id = @id;

-- name: SessionChildren :many
SELECT * FROM session WHERE parent_id = CAST(@parent_id AS text) ORDER BY ord;

-- name: SessionDelete :execrows
DELETE FROM session WHERE id = @id;

-- name: SessionUpdate :one
UPDATE session SET title = @title, title_fold = @title_fold, title_source = @title_source, agent = @agent, model = @model,
    permission = @permission, metadata = @metadata, archived = sqlc.narg('archived'), updated = @updated
WHERE id = @id
RETURNING *;

-- name: SessionTouch :one
UPDATE session SET updated = @updated WHERE id = @id RETURNING *;

-- name: SessionPark :execrows
UPDATE session SET inbox_parked = @inbox_parked WHERE id = @id;

-- name: SessionAddUsage :one
UPDATE session SET cost = cost + CAST(@cost AS double precision), tokens = @tokens, updated = @updated WHERE id = @id RETURNING *;

-- name: SessionNextMessage :one
UPDATE session SET message_seq = message_seq + 1, message_count = message_count + 1, updated = @updated WHERE id = @id RETURNING message_seq;

-- name: SessionNextInbox :one
UPDATE session SET inbox_ord = inbox_ord + 1 WHERE id = @id RETURNING inbox_ord;

-- name: SessionSetCompacting :one
UPDATE session SET compacting = sqlc.narg('compacting') WHERE id = @id RETURNING *;

-- The model sees the conversation from here on.
-- name: SessionSetContext :one
UPDATE session SET context_seq = @context_seq, compacting = NULL, updated = @updated WHERE id = @id RETURNING *;

-- Locks the row, so that admissions, ends of turns and changes of the inbox take turns.
-- name: SessionHold :one
UPDATE session SET inbox_ord = inbox_ord WHERE id = @id RETURNING *;
