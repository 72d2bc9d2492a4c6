-- name: IdempotencyReserve :execrows
INSERT INTO idempotency (scope, key, operation, target, body_hash, state, owner, object, status, header, answer, created)
VALUES (@scope, @key, @operation, @target, @body_hash, 'reserved', @owner, @object, 0, @header, @answer, @created)
ON CONFLICT (scope, key) DO NOTHING;

-- name: IdempotencyGet :one
SELECT * FROM idempotency WHERE scope = @scope AND key = @key;

-- The next attempt of a request that has no answer: only one gets it.
-- name: IdempotencyTake :execrows
UPDATE idempotency SET state = 'reserved', owner = @owner
WHERE scope = @scope AND key = @key AND state = @from_state AND owner = @from_owner;

-- name: IdempotencySettle :execrows
UPDATE idempotency SET state = @state, status = @status, header = @header, answer = @answer
WHERE scope = @scope AND key = @key AND state = 'reserved' AND owner = @owner;

-- name: IdempotencyOld :many
SELECT scope, key FROM idempotency WHERE created < @before ORDER BY created LIMIT CAST(@max_rows AS bigint);

-- name: IdempotencyDelete :execrows
DELETE FROM idempotency WHERE scope = @scope AND key = @key AND created < @before;
