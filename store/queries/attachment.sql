-- name: AttachmentPut :one
INSERT INTO attachment (id, hash, mime, size, width, height, name, created)
VALUES (@id, @hash, @mime, @size, @width, @height, @name, @created)
ON CONFLICT (hash) DO UPDATE SET created = excluded.created
RETURNING *;

-- name: AttachmentGet :one
SELECT * FROM attachment WHERE id = @id;

-- name: AttachmentOfSession :one
SELECT attachment.* FROM attachment
JOIN attachment_ref ON attachment_ref.attachment_id = attachment.id
WHERE attachment_ref.session_id = @session_id AND attachment.id = @id;

-- name: AttachmentRefer :exec
INSERT INTO attachment_ref (session_id, attachment_id) VALUES (@session_id, @attachment_id)
ON CONFLICT (session_id, attachment_id) DO NOTHING;

-- name: AttachmentUnused :many
SELECT * FROM attachment
WHERE created < @before AND NOT EXISTS (SELECT 1 FROM attachment_ref WHERE attachment_ref.attachment_id = attachment.id)
ORDER BY created, id LIMIT CAST(@max_rows AS bigint);

-- name: AttachmentDeleteUnused :execrows
DELETE FROM attachment
WHERE id = @id AND created < @before
  AND NOT EXISTS (SELECT 1 FROM attachment_ref WHERE attachment_ref.attachment_id = attachment.id);

-- name: AttachmentHashes :many
SELECT hash FROM attachment WHERE hash >= @low AND hash <= @high ORDER BY hash;
