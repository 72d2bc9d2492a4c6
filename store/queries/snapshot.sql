-- name: FileChangeInsert :exec
INSERT INTO file_change (session_id, ord, turn_id, message_seq, part_id, path, pre_hash, pre_mode, post_hash, post_mode, size, reason, created)
VALUES (@session_id, (SELECT CAST(COALESCE(MAX(f.ord), 0) + 1 AS bigint) FROM file_change f WHERE f.session_id = @session_id), @turn_id, @message_seq, @part_id,
  @path, @pre_hash, @pre_mode, @post_hash, @post_mode, @size, @reason, @created);

-- name: FileChangeList :many
SELECT * FROM file_change WHERE session_id = @session_id ORDER BY ord;

-- name: FileChangeAll :many
SELECT file_change.pre_hash, file_change.post_hash, file_change.size, file_change.session_id, file_change.ord, session.project_id
FROM file_change JOIN session ON session.id = file_change.session_id ORDER BY file_change.created DESC, file_change.session_id, file_change.ord DESC;

-- name: FileChangeForget :execrows
UPDATE file_change SET reason = 'expired', pre_hash = '', post_hash = '' WHERE session_id = @session_id AND ord = @ord;

-- name: SessionSetSummary :one
UPDATE session SET summary = @summary WHERE id = @id RETURNING *;

-- name: SessionSetRevert :one
UPDATE session SET revert = @revert, updated = @updated WHERE id = @id RETURNING *;
