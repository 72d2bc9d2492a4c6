-- name: PermissionInsert :exec
INSERT INTO permission (id, ord, session_id, root_session_id, project_id, workspace_id, directory, turn_id, part_id, request, state, reply, message, created)
VALUES (@id, @ord, @session_id, @root_session_id, @project_id, @workspace_id, @directory, @turn_id, @part_id, @request, 'pending', '', '', @created);

-- name: PermissionGet :one
SELECT * FROM permission WHERE id = @id;

-- name: PermissionReply :execrows
UPDATE permission SET state = 'replied', reply = @reply, message = @message, replied = CAST(@replied AS bigint) WHERE id = @id AND state = 'pending';

-- name: PermissionCancel :many
UPDATE permission SET state = 'cancelled', replied = CAST(@replied AS bigint) WHERE turn_id = @turn_id AND state = 'pending' RETURNING *;

-- name: PermissionPending :many
SELECT * FROM permission
WHERE state = 'pending'
  AND (CAST(sqlc.narg('directory') AS text) IS NULL OR directory = sqlc.narg('directory'))
  AND (CAST(sqlc.narg('workspace_id') AS text) IS NULL OR workspace_id = sqlc.narg('workspace_id'))
  AND (CAST(sqlc.narg('session_id') AS text) IS NULL OR session_id = sqlc.narg('session_id') OR root_session_id = sqlc.narg('session_id'))
ORDER BY created, ord, id;

-- name: PermissionSave :exec
INSERT INTO permission_saved (id, project_id, permission, pattern, created) VALUES (@id, @project_id, @permission, @pattern, @created)
ON CONFLICT (project_id, permission, pattern) DO NOTHING;

-- name: PermissionSavedList :many
SELECT * FROM permission_saved WHERE project_id = @project_id ORDER BY created, id;

-- name: QuestionInsert :exec
INSERT INTO question (id, ord, session_id, root_session_id, workspace_id, directory, turn_id, part_id, request, state, answers, message, created)
VALUES (@id, @ord, @session_id, @root_session_id, @workspace_id, @directory, @turn_id, @part_id, @request, 'pending', @answers, '', @created);

-- name: QuestionGet :one
SELECT * FROM question WHERE id = @id;

-- name: QuestionSettle :execrows
UPDATE question SET state = @state, answers = @answers, message = @message, replied = CAST(@replied AS bigint) WHERE id = @id AND state = 'pending';

-- name: QuestionCancel :many
UPDATE question SET state = 'cancelled', replied = CAST(@replied AS bigint) WHERE turn_id = @turn_id AND state = 'pending' RETURNING *;

-- name: QuestionPending :many
SELECT * FROM question
WHERE state = 'pending'
  AND (CAST(sqlc.narg('directory') AS text) IS NULL OR directory = sqlc.narg('directory'))
  AND (CAST(sqlc.narg('workspace_id') AS text) IS NULL OR workspace_id = sqlc.narg('workspace_id'))
  AND (CAST(sqlc.narg('session_id') AS text) IS NULL OR session_id = sqlc.narg('session_id') OR root_session_id = sqlc.narg('session_id'))
ORDER BY created, ord, id;

-- name: TodoSet :exec
INSERT INTO todo (session_id, todos) VALUES (@session_id, @todos) ON CONFLICT (session_id) DO UPDATE SET todos = excluded.todos;

-- name: TodoGet :one
SELECT todos FROM todo WHERE session_id = @session_id;
