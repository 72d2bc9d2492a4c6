package fault

import "net/http"

// Code is a stable snake_case word that programs may switch on.
type Code string

// The codes of the API (api.md 23). NotFound makes the "<noun>_not_found" ones.
const (
	MalformedJSON             Code = "malformed_json"
	ContextNotAccepted        Code = "context_not_accepted"
	ContextAmbiguous          Code = "context_ambiguous"
	DirectoryInvalid          Code = "directory_invalid"
	DirectoryOutsideWorkspace Code = "directory_outside_workspace"
	PathOutside               Code = "path_outside"
	NotAFile                  Code = "not_a_file"
	NotADirectory             Code = "not_a_directory"
	PatternInvalid            Code = "pattern_invalid"
	CursorInvalid             Code = "cursor_invalid"

	Unauthorized       Code = "unauthorized"
	Forbidden          Code = "forbidden"
	HostNotAllowed     Code = "host_not_allowed"
	OriginNotAllowed   Code = "origin_not_allowed"
	DirectoryUntrusted Code = "directory_untrusted"

	RouteNotFound      Code = "route_not_found"
	DirectoryNotFound  Code = "directory_not_found"
	FileNotFound       Code = "file_not_found"
	SessionNotFound    Code = "session_not_found"
	MessageNotFound    Code = "message_not_found"
	PermissionNotFound Code = "permission_not_found"
	QuestionNotFound   Code = "question_not_found"
	ModelNotFound      Code = "model_not_found"
	TurnNotFound       Code = "turn_not_found"
	ProjectNotFound    Code = "project_not_found"
	WorkspaceNotFound  Code = "workspace_not_found"
	AttachmentNotFound Code = "attachment_not_found"

	MethodNotAllowed Code = "method_not_allowed"

	DirectoryMissing    Code = "directory_missing"
	SessionBusy         Code = "session_busy"
	AlreadyReplied      Code = "already_replied"
	AlreadyDelivered    Code = "already_delivered"
	IdempotencyConflict Code = "idempotency_conflict"
	ModelUnavailable    Code = "model_unavailable"
	AgentUnknown        Code = "agent_unknown"
	ConfigInvalid       Code = "config_invalid"
	VCSLocked           Code = "vcs_locked"
	PatchConflict       Code = "patch_conflict"
	ImportConflict      Code = "import_conflict"
	EntryExists         Code = "entry_exists"
	WorkspaceNotReady   Code = "workspace_not_ready"
	WorkspaceDirty      Code = "workspace_dirty"
	WorkspaceExists     Code = "workspace_exists"
	WarpConflict        Code = "warp_conflict"
	DirectoryNotEmpty   Code = "directory_not_empty"

	ETagMismatch         Code = "etag_mismatch"
	BodyTooLarge         Code = "body_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	RangeInvalid         Code = "range_invalid"
	ValidationFailed     Code = "validation_failed"
	UnknownParameter     Code = "unknown_parameter"
	QueueFull            Code = "queue_full"
	RateLimited          Code = "rate_limited"

	Internal         Code = "internal"
	StoreUnavailable Code = "store_unavailable"
	Stopping         Code = "stopping"
	StoreFull        Code = "store_full"
)

// statusOf is the one table from code to HTTP status.
var statusOf = map[Code]int{
	MalformedJSON: 400, ContextNotAccepted: 400, ContextAmbiguous: 400, DirectoryInvalid: 400,
	DirectoryOutsideWorkspace: 400, PathOutside: 400, NotAFile: 400, NotADirectory: 400,
	PatternInvalid: 400, CursorInvalid: 400,

	Unauthorized: 401,

	Forbidden: 403, HostNotAllowed: 403, OriginNotAllowed: 403, DirectoryUntrusted: 403,

	RouteNotFound: 404, DirectoryNotFound: 404, FileNotFound: 404, SessionNotFound: 404,
	MessageNotFound: 404, PermissionNotFound: 404, QuestionNotFound: 404, ModelNotFound: 404, TurnNotFound: 404,
	ProjectNotFound: 404, WorkspaceNotFound: 404, AttachmentNotFound: 404,

	MethodNotAllowed: 405,

	DirectoryMissing: 409, SessionBusy: 409, AlreadyReplied: 409, AlreadyDelivered: 409,
	IdempotencyConflict: 409, ModelUnavailable: 409, AgentUnknown: 409, ConfigInvalid: 409,
	VCSLocked: 409, PatchConflict: 409, ImportConflict: 409,
	EntryExists: 409, DirectoryNotEmpty: 409,
	WorkspaceNotReady: 409, WorkspaceDirty: 409, WorkspaceExists: 409, WarpConflict: 409,

	ETagMismatch: 412, BodyTooLarge: 413, UnsupportedMediaType: 415, RangeInvalid: 416,
	ValidationFailed: 422, UnknownParameter: 422,
	QueueFull: 429, RateLimited: 429,

	Internal: 500, StoreUnavailable: 503, Stopping: 503, StoreFull: 507,
}

// HTTPStatus gives the status for a code: 500 for one that is not in the table.
func HTTPStatus(c Code) int {
	if s, ok := statusOf[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}
