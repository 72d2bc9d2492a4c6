// Package config reads the configuration that applies to a directory: global
// files, then project files from the work tree's top down to the directory,
// then what the environment names. Later files win, value by value.
//
// Files are switchyard.json(c) and opencode.json(c), with the same keys
// (opencode contract §14). They are JSON with comments and trailing commas, and
// their strings may hold {env:NAME} and {file:path}.
//
// Two kinds of files are trusted differently. Global files and those named by
// the environment are the owner's. Project files come with a repository and may
// be anybody's work: keys that concern the whole server are ignored in them,
// they cannot send the owner's keys to an address of theirs, and they cannot
// bring the server's environment or files outside the project into prompts.
//
// Everything here only reads.
package config

import (
	"time"

	"github.com/switchyard-dev/switchyard/rule"
)

// Config is the merged configuration. Zero values mean "not set", so that the
// packages concerned choose the default. It is shared: treat it as read-only.
type Config struct {
	Model string `json:"model" form:"model"` // "provider/model"
	// SubagentDepth is how many levels of sessions tasks may make below a root.
	SubagentDepth int    `json:"subagent_depth" min:"1"`
	SmallModel    string `json:"small_model" form:"model"` // for titles and the like
	DefaultAgent  string `json:"default_agent"`

	// Agents by name, built-in ones to change and new ones.
	Agents map[string]Agent `json:"agent"`

	// Providers by id.
	Providers         map[string]Provider `json:"provider"`
	DisabledProviders []string            `json:"disabled_providers"`
	// EnabledProviders, when not nil, are the only ones.
	EnabledProviders []string `json:"enabled_providers"`

	// Permission are the rules in the order in which they decide: those of
	// nearer files later, so that they win. The legacy "tools" is folded in.
	Permission Rules `json:"permission"`
	// Instructions are files to read into the system context, in order.
	Instructions []Instruction `json:"instructions"`

	Shell      string     `json:"shell"`
	ToolOutput ToolOutput `json:"tool_output"`
	Compaction Compaction `json:"compaction"`
	Snapshot   *bool      `json:"snapshot"`
	Username   string     `json:"username"`

	MCP       map[string]Raw `json:"mcp"`
	Commands  map[string]Raw `json:"command"`
	LSP       Raw            `json:"lsp"`
	Formatter Raw            `json:"formatter"`
	Skills    Raw            `json:"skills"`

	// What follows concerns the whole server and is read from global files
	// only; Loader.Global gives it.
	Server       Server   `json:"server"`
	Access       Raw      `json:"access"`
	Limits       Limits   `json:"limits"`
	AllowedRoots []string `json:"allowedRoots" form:"path"` // absolute
	// Durability is "power" (the default: what is acknowledged survives a power
	// cut) or "process" (it survives the process only).
	Durability string `json:"durability" enum:"power,process"`
	// Recover is what happens to turns that a crash cut off: "settle" (the
	// default: they end as interrupted) or "resume" (they go on, at most three
	// times). Turns that wait for a person go on either way.
	Recover string `json:"recover" enum:"settle,resume"`
}

// Rules are permission rules in deciding order.
type Rules []rule.Rule

// Agent changes or adds an agent (contract §12).
type Agent struct {
	Model       string   `json:"model" form:"model"`
	Variant     string   `json:"variant"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	Prompt      string   `json:"prompt"`
	Description string   `json:"description"`
	Mode        string   `json:"mode" enum:"primary,subagent,all"` // "" is all, for new agents
	Disable     bool     `json:"disable"`
	Hidden      *bool    `json:"hidden"`
	Color       string   `json:"color"`
	Steps       *int     `json:"steps" min:"1"` // model calls per turn
	Permission  Rules    `json:"permission"`
	// Options go to the provider as they are; unknown keys of the agent too.
	Options map[string]Raw `json:"options" rest:"true"`
}

// Provider changes or adds a provider (contract §14.2).
type Provider struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	NPM       string          `json:"npm"` // names the wire format, e.g. @ai-sdk/openai-compatible
	API       string          `json:"api"` // base URL when Options.BaseURL is empty
	Env       []string        `json:"env"` // variables that may hold the key
	Whitelist []string        `json:"whitelist"`
	Blacklist []string        `json:"blacklist"`
	Options   ProviderOptions `json:"options"`
	// Models by id, built-in ones to change and new ones.
	Models map[string]Model `json:"models"`
}

// ProviderOptions say how a provider is reached.
type ProviderOptions struct {
	// APIKey goes before any stored account or variable. Where a project file
	// chose BaseURL, APIKey is from the same file and no other key may be used.
	APIKey        Secret            `json:"apiKey"`
	BaseURL       string            `json:"baseURL" form:"url"`
	EnterpriseURL string            `json:"enterpriseUrl" form:"url"`
	Headers       map[string]Secret `json:"headers"`
	// Timeout is for a whole call, HeaderTimeout until the answer begins and
	// ChunkTimeout between two pieces of it.
	Timeout       Timeout `json:"timeout"`
	HeaderTimeout Timeout `json:"headerTimeout"`
	ChunkTimeout  Timeout `json:"chunkTimeout"`
	// Extra are all other keys.
	Extra map[string]Raw `json:"-" rest:"true"`
}

// Timeout is written as milliseconds, or false for none at all.
type Timeout struct {
	Set   bool
	Off   bool
	After time.Duration
}

// Model changes or adds a model; the fields are those of the models.dev
// catalogue.
type Model struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Family      string            `json:"family"`
	Status      string            `json:"status"`
	ReleaseDate string            `json:"release_date"`
	Attachment  *bool             `json:"attachment"`
	Reasoning   *bool             `json:"reasoning"`
	Temperature *bool             `json:"temperature"`
	ToolCall    *bool             `json:"tool_call"`
	Modalities  Modalities        `json:"modalities"`
	Limit       ModelLimit        `json:"limit"`
	Cost        ModelCost         `json:"cost"`
	Headers     map[string]Secret `json:"headers"`
	Options     map[string]Raw    `json:"options"`
	Variants    map[string]Raw    `json:"variants"`
	Provider    ModelProvider     `json:"provider"`
	Extra       map[string]Raw    `json:"-" rest:"true"`
}

// Modalities are what goes in and comes out: text, image, pdf, audio, video.
type Modalities struct {
	Input  []string `json:"input"`
	Output []string `json:"output"`
}

// ModelLimit counts tokens; 0 is not set.
type ModelLimit struct {
	Context int `json:"context" min:"0"`
	Input   int `json:"input" min:"0"`
	Output  int `json:"output" min:"0"`
}

// ModelCost is in US dollars for a million tokens; nil is not set.
type ModelCost struct {
	Input      *float64       `json:"input"`
	Output     *float64       `json:"output"`
	CacheRead  *float64       `json:"cache_read"`
	CacheWrite *float64       `json:"cache_write"`
	Extra      map[string]Raw `json:"-" rest:"true"`
}

// ModelProvider overrides a provider's wire format and base URL for one model.
type ModelProvider struct {
	NPM string `json:"npm"`
	API string `json:"api" form:"url"`
}

// ToolOutput bounds what a tool gives to the model; 0 is not set.
type ToolOutput struct {
	MaxLines int `json:"max_lines" min:"1"`
	MaxBytes int `json:"max_bytes" min:"1"`
}

// Compaction says when and how a long conversation is shortened.
type Compaction struct {
	Auto                 *bool `json:"auto"`
	Prune                *bool `json:"prune"`
	TailTurns            *int  `json:"tail_turns" min:"0"`
	PreserveRecentTokens *int  `json:"preserve_recent_tokens" min:"0"`
	Reserved             *int  `json:"reserved" min:"0"` // tokens
}

// Instruction is one entry of "instructions": a path or a glob.
type Instruction struct {
	Pattern string
	// Project means that a project file names it, so it must stay in the project.
	Project bool
	At      Position
}

// Server says how the server listens.
type Server struct {
	Hostname string   `json:"hostname"`
	Port     *int     `json:"port" min:"0" max:"65535"`
	CORS     []string `json:"cors"`  // allowed origins
	Hosts    []string `json:"hosts"` // allowed Host headers
	// BehindProxy and TrustedProxies: see access.ParseProxies.
	BehindProxy    bool     `json:"behindProxy"`
	TrustedProxies []string `json:"trustedProxies"`
	TLS            TLS      `json:"tls"`
}

// TLS names PEM files.
type TLS struct {
	Cert string `json:"cert" form:"path"`
	Key  string `json:"key" form:"path"`
}

// Limits bound what callers may use; 0 is the default.
type Limits struct {
	BodyBytes      int64 `json:"bodyBytes" min:"1"`
	LargeBodyBytes int64 `json:"largeBodyBytes" min:"1"` // prompts and patches
	HeaderBytes    int64 `json:"headerBytes" min:"1"`
	Queue          int   `json:"queue" min:"1"`        // waiting prompts per session
	Instances      int   `json:"instances" min:"1"`    // directories held in memory
	InstanceIdle   int64 `json:"instanceIdle" min:"1"` // milliseconds until one is let go
}

// ignoredKeys are keys of opencode that mean nothing to this server; files that
// both programs read hold them, so they are no reason to warn.
func (Config) ignoredKeys() []string {
	return []string{
		"$schema", "logLevel", "references", "reference", "watcher", "share", "autoshare", "autoupdate",
		"layout", "attachment", "enterprise", "experimental", "theme", "keybinds", "tui",
	}
}
