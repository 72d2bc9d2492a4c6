-- name: MessageInsert :exec
INSERT INTO message (session_id, seq, id, role, turn_id, info) VALUES (@session_id, @seq, @id, @role, @turn_id, @info);

-- name: MessageUpdate :execrows
UPDATE message SET info = @info WHERE session_id = @session_id AND seq = @seq;

-- name: MessageByID :one
SELECT * FROM message WHERE session_id = @session_id AND id = @id;

-- name: MessagePageDesc :many
SELECT * FROM message WHERE session_id = @session_id AND seq < @before_seq ORDER BY seq DESC LIMIT CAST(@max_rows AS bigint);

-- name: MessagePageAsc :many
SELECT * FROM message WHERE session_id = @session_id AND seq > @after_seq ORDER BY seq LIMIT CAST(@max_rows AS bigint);

-- name: MessageCountBefore :one
SELECT CAST(COUNT(*) AS bigint) AS total FROM message WHERE session_id = @session_id AND seq < @seq;

-- name: MessageAtIndex :one
SELECT seq FROM message WHERE session_id = @session_id ORDER BY seq LIMIT 1 OFFSET CAST(@skip AS bigint);

-- name: PartUpsert :exec
INSERT INTO part (session_id, message_seq, ord, id, type, state, data)
VALUES (@session_id, @message_seq, @ord, @id, @type, @state, @data)
ON CONFLICT (session_id, message_seq, ord) DO UPDATE SET state = excluded.state, data = excluded.data;

-- name: PartRange :many
SELECT message_seq, ord, id, data FROM part
WHERE session_id = @session_id AND message_seq >= @from_seq AND message_seq <= @to_seq
ORDER BY message_seq, ord;

-- name: MessageByTurn :many
SELECT * FROM message WHERE session_id = @session_id AND turn_id = @turn_id ORDER BY seq;
