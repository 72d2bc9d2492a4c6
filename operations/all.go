// Package operations declares every operation of the server: what it is called,
// what it takes and gives, and a thin handler over the services of its context
// (design §4). Each is one value; the routes, the document, the command line and
// the SDKs come from it.
package operations

import "github.com/switchyard-dev/switchyard/op"

// All lists every operation. Adding one is its variable and its line here.
func All() []op.Any {
	return []op.Any{
		AgentList,
		AttachmentCreate, SessionAttachmentGet,
		CatalogModelList, CatalogModelGet,
		ConfigGet,
		EventSubscribe,
		FSFile, FSTree, FSSearch, FSGrep, FSWrite, FSMkdir, FSDelete, FSRename,
		HealthGet, LocationGet,
		PermissionList, PermissionReply,
		ProjectList, ProjectGet, ProjectUpdate, ProjectDirectories,
		ProviderList,
		QuestionList, QuestionReply, QuestionReject,
		SessionActive, SessionCreate, SessionList, SessionGet, SessionUpdate, SessionDelete, SessionChildren,
		SessionInboxList, SessionInboxUpdate, SessionInboxDelete,
		SessionPrompt, SessionShell, SessionWait, SessionInterrupt, SessionCompact, SessionContext, SessionTodo, SessionMessageList, SessionMessageGet,
		SessionDiff, SessionRevert, SessionUnrevert,
		WorkspaceCreate, WorkspaceGet, WorkspaceList, WorkspaceUpdate, WorkspaceDelete, WorkspaceStatus, WorkspaceSync, WorkspaceWarp,
		VCSGet, VCSStatus, VCSDiff, VCSPatch,
		SessionFork, SessionExport, SessionImport,
	}
}
