-- A session that was copied is whole from the start: its counters come last.
-- name: SessionSeal :one
UPDATE session SET cost = CAST(@cost AS double precision), tokens = @tokens, message_count = CAST(@messages AS bigint),
    message_seq = CAST(@messages AS bigint), context_seq = @context_seq, inbox_ord = @inbox_ord, archived = sqlc.narg('archived'), updated = @updated
WHERE id = @id
RETURNING *;

-- name: SessionTitles :many
SELECT title FROM session
WHERE directory = @directory AND workspace_id = @workspace_id AND substr(title, 1, length(CAST(@beginning AS text))) = CAST(@beginning AS text);

-- name: TurnInsertEnded :exec
INSERT INTO turn (id, session_id, state, owner, generation, attempt, ord, message_id, interrupt, error, started, ended)
VALUES (@id, @session_id, @state, '', 0, 1, @ord, @message_id, 0, @error, @started, CAST(@ended AS bigint));

-- name: AttachmentByHash :one
SELECT * FROM attachment WHERE hash = @hash;
