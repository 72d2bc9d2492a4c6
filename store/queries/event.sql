-- name: EventHead :one
SELECT seq, total_rows, total_bytes FROM event_head WHERE one = 1;

-- name: EventHeadAdvance :one
UPDATE event_head
SET seq = seq + CAST(@numbers AS bigint), total_rows = total_rows + CAST(@added_rows AS bigint), total_bytes = total_bytes + CAST(@added_bytes AS bigint)
WHERE one = 1
RETURNING seq;

-- name: EventAfter :many
SELECT * FROM event WHERE seq > @after AND seq <= @up_to ORDER BY seq LIMIT CAST(@max_rows AS bigint);

-- name: EventOldest :one
SELECT CAST(COALESCE(MIN(seq), 0) AS bigint) AS seq FROM event;

-- name: EventOldestRows :many
SELECT seq, time, size FROM event ORDER BY seq LIMIT CAST(@max_rows AS bigint);

-- name: EventDeleteUpTo :execrows
DELETE FROM event WHERE seq <= @seq;
