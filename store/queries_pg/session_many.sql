-- name: SessionGetMany :many
SELECT * FROM session WHERE id = ANY(@ids::text[]);
