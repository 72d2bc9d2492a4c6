-- name: DatabaseTime :one
SELECT CAST(unixepoch('subsec') * 1000 AS bigint) AS now;
