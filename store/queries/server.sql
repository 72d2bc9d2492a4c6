-- name: ServerInsert :exec
INSERT INTO server (owner, boot, renewed, expires) VALUES (@owner, @boot, @renewed, @expires)
ON CONFLICT (owner) DO UPDATE SET renewed = excluded.renewed, expires = excluded.expires;

-- No row means that the term is over: others may have taken the turns.
-- name: ServerRenew :execrows
UPDATE server SET renewed = @now, expires = @expires WHERE owner = @owner AND expires > @now;

-- name: ServerDelete :exec
DELETE FROM server WHERE owner = @owner;

-- name: ServerTrim :exec
DELETE FROM server WHERE expires < @before;

-- name: ServerLive :many
SELECT * FROM server WHERE expires > @now ORDER BY boot;

-- Open turns whose server is gone, and those of this one's earlier terms;
-- sessions below others first.
-- name: TurnOrphans :many
SELECT turn.* FROM turn JOIN session ON session.id = turn.session_id
WHERE turn.ended IS NULL
  AND ((turn.owner = @owner AND turn.generation < @generation)
    OR (turn.owner <> @owner AND NOT EXISTS (SELECT 1 FROM server WHERE server.owner = turn.owner AND server.expires > @now)))
ORDER BY CASE WHEN session.parent_id IS NULL THEN 1 ELSE 0 END, session.ord DESC;
