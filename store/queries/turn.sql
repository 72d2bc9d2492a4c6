-- name: TurnInsert :exec
INSERT INTO turn (id, session_id, state, owner, generation, attempt, ord, message_id, interrupt, error, started)
VALUES (@id, @session_id, @state, @owner, @generation, @attempt, @ord, @message_id, 0, @error, @started);

-- name: TurnGet :one
SELECT * FROM turn WHERE id = @id;

-- name: TurnOpen :one
SELECT * FROM turn WHERE session_id = @session_id AND ended IS NULL;

-- name: TurnOpenAll :many
SELECT * FROM turn WHERE ended IS NULL ORDER BY started, id;

-- name: TurnLast :one
SELECT * FROM turn WHERE session_id = @session_id ORDER BY ord DESC LIMIT 1;

-- The owner's writes: no row means that the run was taken away and must stop.
-- name: TurnHold :execrows
UPDATE turn SET attempt = attempt WHERE id = @id AND owner = @owner AND generation = @generation AND ended IS NULL;

-- name: TurnSetState :execrows
UPDATE turn SET state = @state WHERE id = @id AND owner = @owner AND generation = @generation AND ended IS NULL;

-- name: TurnEnd :execrows
UPDATE turn SET state = @state, error = @error, ended = CAST(@ended AS bigint)
WHERE id = @id AND owner = @owner AND generation = @generation AND ended IS NULL;

-- name: TurnAskInterrupt :execrows
UPDATE turn SET interrupt = 1 WHERE session_id = @session_id AND ended IS NULL AND interrupt = 0;

-- name: TurnForceEnd :execrows
UPDATE turn SET state = @state, error = @error, ended = CAST(@ended AS bigint), generation = generation + 1 WHERE id = @id AND ended IS NULL;

-- name: StepInsert :exec
INSERT INTO step (turn_id, ord, message_id, request_hash, started) VALUES (@turn_id, @ord, @message_id, @request_hash, @started);

-- name: StepList :many
SELECT * FROM step WHERE turn_id = @turn_id ORDER BY ord;

-- name: ToolCallInsert :exec
INSERT INTO tool_call (id, session_id, turn_id, message_id, part_id, tool, class, state, pre, post, started)
VALUES (@id, @session_id, @turn_id, @message_id, @part_id, @tool, @class, @state, @pre, @post, @started);

-- name: ToolCallEnd :execrows
UPDATE tool_call SET state = @state, post = @post, ended = CAST(@ended AS bigint) WHERE id = @id AND ended IS NULL;

-- name: ToolCallList :many
SELECT * FROM tool_call WHERE turn_id = @turn_id ORDER BY started, id;

-- name: InboxInsert :exec
INSERT INTO inbox (session_id, ord, message_id, kind, delivery, state, body_hash, idempotency_key, prompt, turn_id, created)
VALUES (@session_id, @ord, @message_id, @kind, @delivery, @state, @body_hash, sqlc.narg('idempotency_key'), @prompt, @turn_id, @created);

-- name: InboxByMessage :one
SELECT * FROM inbox WHERE session_id = @session_id AND message_id = @message_id;

-- name: InboxByKey :one
SELECT * FROM inbox WHERE session_id = @session_id AND idempotency_key = CAST(@idempotency_key AS text);

-- name: InboxQueued :many
SELECT * FROM inbox WHERE session_id = @session_id AND state = 'queued' ORDER BY ord;

-- name: InboxQueuedCount :one
SELECT CAST(COUNT(*) AS bigint) AS total FROM inbox WHERE session_id = @session_id AND state = 'queued';

-- name: InboxSettle :execrows
UPDATE inbox SET state = @state, turn_id = @turn_id WHERE session_id = @session_id AND ord = @ord AND state = 'queued';

-- name: PermissionOfTurn :many
SELECT * FROM permission WHERE session_id = @session_id AND turn_id = @turn_id ORDER BY created, ord, id;

-- name: QuestionOfTurn :many
SELECT * FROM question WHERE session_id = @session_id AND turn_id = @turn_id ORDER BY created, id;

-- name: TurnClaim :one
UPDATE turn SET owner = @owner, generation = @generation, attempt = attempt + CAST(@counted AS bigint)
WHERE turn.id = @id AND turn.owner = @old_owner AND turn.generation = @old_generation AND turn.ended IS NULL
  AND (turn.owner = @owner OR NOT EXISTS (SELECT 1 FROM server WHERE server.owner = turn.owner AND server.expires > @now))
RETURNING *;

-- Open turns with the sessions above theirs, of one tree or of all.
-- name: TurnOpenTree :many
SELECT turn.id, turn.session_id, turn.state, CAST(COALESCE(session.parent_id, '') AS text) AS parent_id
FROM turn JOIN session ON session.id = turn.session_id
WHERE turn.ended IS NULL AND (CAST(sqlc.narg('root_id') AS text) IS NULL OR session.root_id = sqlc.narg('root_id'))
ORDER BY session.ord;

-- Changes from outside of the turn: no row means that the prompt does not wait any more.
-- name: InboxSetDelivery :execrows
UPDATE inbox SET delivery = @delivery WHERE session_id = @session_id AND message_id = @message_id AND state = 'queued';

-- name: InboxCancel :execrows
UPDATE inbox SET state = 'cancelled' WHERE session_id = @session_id AND message_id = @message_id AND state = 'queued';

-- Sessions with a prompt that nothing will start: idle, and not parked.
-- name: InboxStranded :many
SELECT DISTINCT inbox.session_id FROM inbox JOIN session ON session.id = inbox.session_id
WHERE inbox.state = 'queued' AND session.inbox_parked = 0
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session_id = inbox.session_id AND turn.ended IS NULL)
ORDER BY inbox.session_id;
