-- name: SessionGetMany :many
SELECT * FROM session WHERE id IN (sqlc.slice('ids'));
