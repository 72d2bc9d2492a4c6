-- name: DatabaseTime :one
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS now;
