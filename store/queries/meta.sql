-- name: MetaGet :one
SELECT value FROM meta WHERE name = @name;

-- name: MetaInsert :exec
INSERT INTO meta (name, value) VALUES (@name, @value) ON CONFLICT (name) DO NOTHING;

-- name: BootInsert :exec
INSERT INTO boot (number, gap_from, gap_to, owner, started) VALUES (@number, @gap_from, @gap_to, @owner, @started);

-- name: BootLast :one
SELECT CAST(COALESCE(MAX(number), 0) AS bigint) AS number FROM boot;

-- name: BootList :many
SELECT * FROM boot ORDER BY gap_from;

-- name: CounterNext :one
UPDATE counter SET value = value + 1 WHERE name = @name RETURNING value;
