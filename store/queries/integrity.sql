-- name: IntegrityCallsOpen :many
SELECT tool_call.id, tool_call.session_id, tool_call.turn_id, tool_call.class FROM tool_call
LEFT JOIN turn ON turn.id = tool_call.turn_id
WHERE tool_call.ended IS NULL AND (turn.id IS NULL OR turn.ended IS NOT NULL)
ORDER BY tool_call.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityCallsLost :many
SELECT tool_call.id, tool_call.session_id, tool_call.turn_id, tool_call.part_id FROM tool_call
WHERE NOT EXISTS (
    SELECT 1 FROM message JOIN part ON part.session_id = message.session_id AND part.message_seq = message.seq
    WHERE message.session_id = tool_call.session_id AND message.id = tool_call.message_id AND part.id = tool_call.part_id AND part.type = 'tool')
ORDER BY tool_call.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityCallsTwice :many
SELECT session_id, turn_id, part_id, CAST(COUNT(*) AS bigint) AS results FROM tool_call
WHERE state = 'completed' GROUP BY session_id, turn_id, part_id HAVING COUNT(*) > 1
ORDER BY session_id, part_id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityCallsUnlike :many
SELECT tool_call.id, tool_call.session_id, tool_call.turn_id, tool_call.state, part.id AS part_id, part.state AS part_state FROM tool_call
JOIN message ON message.session_id = tool_call.session_id AND message.id = tool_call.message_id
JOIN part ON part.session_id = message.session_id AND part.message_seq = message.seq AND part.id = tool_call.part_id
WHERE tool_call.ended IS NOT NULL
  AND (tool_call.state NOT IN ('completed', 'error') OR tool_call.state = 'completed' AND part.state <> 'completed')
ORDER BY tool_call.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityPartsOpen :many
SELECT part.session_id, part.message_seq, part.ord, part.id, part.data, message.turn_id,
    CAST((SELECT COUNT(*) FROM tool_call WHERE tool_call.session_id = part.session_id AND tool_call.part_id = part.id AND tool_call.class <> 'read') AS bigint) AS effects
FROM part
JOIN message ON message.session_id = part.session_id AND message.seq = part.message_seq
JOIN turn ON turn.id = message.turn_id
WHERE part.type = 'tool' AND part.state NOT IN ('completed', 'error') AND turn.ended IS NOT NULL
ORDER BY part.session_id, part.message_seq, part.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityPartsTwice :many
SELECT session_id, id, CAST(COUNT(*) AS bigint) AS copies FROM part
GROUP BY session_id, id HAVING COUNT(*) > 1 ORDER BY session_id, id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityParts :many
SELECT part.session_id, part.message_seq, part.ord, part.id, part.type, part.state, part.data, message.id AS message_id, message.turn_id FROM part
JOIN message ON message.session_id = part.session_id AND message.seq = part.message_seq
WHERE (part.session_id, part.message_seq, part.ord) > (CAST(@after_session AS text), CAST(@after_seq AS bigint), CAST(@after_ord AS bigint))
ORDER BY part.session_id, part.message_seq, part.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityMessages :many
SELECT message.session_id, message.seq, message.id, message.role, message.turn_id, message.info, turn.ended AS turn_ended FROM message
LEFT JOIN turn ON turn.id = message.turn_id
WHERE (message.session_id, message.seq) > (CAST(@after_session AS text), CAST(@after_seq AS bigint))
ORDER BY message.session_id, message.seq LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityMessageCounts :many
SELECT session.id, session.message_seq, session.message_count, CAST(COUNT(message.seq) AS bigint) AS found,
    CAST(COALESCE(MIN(message.seq), 1) AS bigint) AS lowest, CAST(COALESCE(MAX(message.seq), 0) AS bigint) AS highest
FROM session LEFT JOIN message ON message.session_id = session.id
GROUP BY session.id, session.message_seq, session.message_count
HAVING COUNT(message.seq) <> session.message_count OR COUNT(message.seq) <> session.message_seq
    OR CAST(COALESCE(MIN(message.seq), 1) AS bigint) <> 1 OR CAST(COALESCE(MAX(message.seq), 0) AS bigint) <> session.message_seq
ORDER BY session.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityTurnsOpen :many
SELECT turn.id, turn.session_id, turn.state, turn.owner FROM turn
WHERE turn.ended IS NULL AND turn.id > CAST(@after AS text) ORDER BY turn.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityTurnsLost :many
SELECT turn.id, turn.session_id FROM turn
WHERE NOT EXISTS (SELECT 1 FROM session WHERE session.id = turn.session_id)
ORDER BY turn.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityTurnsTwice :many
SELECT turn.id, turn.session_id FROM turn
WHERE turn.ended IS NULL AND EXISTS (
    SELECT 1 FROM turn AS later WHERE later.session_id = turn.session_id AND later.ended IS NULL
      AND (later.ord > turn.ord OR later.ord = turn.ord AND later.id > turn.id))
ORDER BY turn.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityTurnStates :many
SELECT turn.id, turn.session_id, turn.state, turn.started, turn.ended FROM turn
WHERE turn.ended IS NULL AND turn.state NOT IN ('running', 'awaiting_permission', 'awaiting_question')
   OR turn.ended IS NOT NULL AND turn.state NOT IN ('completed', 'failed', 'cancelled', 'interrupted')
ORDER BY turn.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityTurns :many
SELECT turn.id, turn.session_id, turn.state, turn.error, turn.ended FROM turn
WHERE turn.ended IS NOT NULL AND turn.id > CAST(@after AS text) ORDER BY turn.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxLost :many
SELECT inbox.session_id, inbox.ord, inbox.message_id, inbox.turn_id FROM inbox
WHERE inbox.state = 'delivered' AND inbox.kind = 'prompt'
  AND NOT EXISTS (SELECT 1 FROM message WHERE message.session_id = inbox.session_id AND message.id = inbox.message_id)
ORDER BY inbox.session_id, inbox.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxAbsent :many
SELECT turn.session_id, turn.id AS turn_id, turn.message_id, turn.started, message.seq FROM turn
JOIN message ON message.session_id = turn.session_id AND message.id = turn.message_id
WHERE message.role = 'user'
  AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.session_id = turn.session_id AND inbox.message_id = turn.message_id)
ORDER BY turn.session_id, message.seq LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxStates :many
SELECT inbox.session_id, inbox.ord, inbox.message_id, inbox.state,
    CAST((SELECT COUNT(*) FROM message WHERE message.session_id = inbox.session_id AND message.id = inbox.message_id) AS bigint) AS messages
FROM inbox
WHERE inbox.state NOT IN ('queued', 'delivered', 'cancelled')
   OR inbox.state <> 'delivered' AND EXISTS (SELECT 1 FROM message WHERE message.session_id = inbox.session_id AND message.id = inbox.message_id)
ORDER BY inbox.session_id, inbox.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxTwice :many
SELECT inbox.session_id, inbox.ord, inbox.message_id, inbox.idempotency_key FROM inbox
WHERE inbox.idempotency_key IS NOT NULL AND EXISTS (
    SELECT 1 FROM inbox AS earlier WHERE earlier.session_id = inbox.session_id AND earlier.ord < inbox.ord
      AND earlier.idempotency_key = inbox.idempotency_key)
ORDER BY inbox.session_id, inbox.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxFull :many
SELECT session_id, CAST(COUNT(*) AS bigint) AS queued FROM inbox WHERE state = 'queued'
GROUP BY session_id HAVING COUNT(*) > CAST(@max_queued AS bigint) ORDER BY session_id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityInboxStuck :many
SELECT session.id, CAST(COUNT(*) AS bigint) AS queued FROM session
JOIN inbox ON inbox.session_id = session.id AND inbox.state = 'queued'
WHERE session.inbox_parked = 0 AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session_id = session.id AND turn.ended IS NULL)
GROUP BY session.id ORDER BY session.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityRoots :many
SELECT session.id, session.parent_id, session.root_id, CAST(COALESCE(parent.root_id, '') AS text) AS parent_root FROM session
LEFT JOIN session AS parent ON parent.id = session.parent_id
WHERE session.parent_id IS NULL AND session.root_id <> session.id
   OR session.parent_id IS NOT NULL AND (parent.id IS NULL OR parent.root_id <> session.root_id)
ORDER BY session.ord LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityChildren :many
SELECT session.id, session.parent_id FROM session
WHERE session.parent_id IS NOT NULL AND session.id > CAST(@after AS text) ORDER BY session.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityPermissions :many
SELECT permission.id, permission.session_id, permission.turn_id FROM permission
WHERE permission.state = 'pending'
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.id = permission.turn_id AND turn.ended IS NULL)
ORDER BY permission.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityQuestions :many
SELECT question.id, question.session_id, question.turn_id FROM question
WHERE question.state = 'pending'
  AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.id = question.turn_id AND turn.ended IS NULL)
ORDER BY question.id LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityEventTotals :one
SELECT CAST(COUNT(*) AS bigint) AS total_rows, CAST(COALESCE(SUM(size), 0) AS bigint) AS total_bytes, CAST(COALESCE(MAX(seq), 0) AS bigint) AS newest FROM event;

-- name: IntegrityEventsSkipped :many
SELECT event.seq, event.session_id, event.type FROM event
JOIN boot ON event.seq >= boot.gap_from AND event.seq <= boot.gap_to
ORDER BY event.seq LIMIT CAST(@max_rows AS bigint);

-- name: IntegrityEventsOfTurns :many
SELECT seq, type, session_id, size, payload FROM event
WHERE seq > @after AND type IN ('session.idle', 'session.status') ORDER BY seq LIMIT CAST(@max_rows AS bigint);

-- name: MendTurn :execrows
UPDATE turn SET state = @state, ended = CAST(@ended AS bigint) WHERE id = @id;

-- name: MendTurnDelete :execrows
DELETE FROM turn WHERE id = @id;

-- name: MendCall :execrows
UPDATE tool_call SET state = @state, ended = COALESCE(ended, CAST(@ended AS bigint)) WHERE id = @id;

-- name: MendPart :execrows
UPDATE part SET type = @type, state = @state, data = @data WHERE session_id = @session_id AND message_seq = @message_seq AND ord = @ord;

-- name: MendInboxState :execrows
UPDATE inbox SET state = @state WHERE session_id = @session_id AND ord = @ord;

-- name: MendInboxKey :execrows
UPDATE inbox SET idempotency_key = NULL WHERE session_id = @session_id AND ord = @ord;

-- name: MendCounts :execrows
UPDATE session SET message_seq = @message_seq, message_count = @message_count WHERE id = @id;

-- name: MendTree :execrows
UPDATE session SET parent_id = sqlc.narg('parent_id'), root_id = @root_id WHERE id = @id;

-- name: MendPermission :execrows
UPDATE permission SET state = 'cancelled', replied = CAST(@replied AS bigint) WHERE id = @id AND state = 'pending';

-- name: MendQuestion :execrows
UPDATE question SET state = 'cancelled', replied = CAST(@replied AS bigint) WHERE id = @id AND state = 'pending';

-- name: MendEventHead :execrows
UPDATE event_head SET seq = @seq, total_rows = @total_rows, total_bytes = @total_bytes WHERE one = 1;

-- name: MendEventDelete :execrows
DELETE FROM event WHERE seq = @seq;
