package llm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// ProviderKind names the family of a provider's API.
type ProviderKind string

// The kinds. An openai-compatible provider needs a base URL and may have no key.
const (
	ProviderOpenAI           ProviderKind = "openai"
	ProviderAnthropic        ProviderKind = "anthropic"
	ProviderOpenAICompatible ProviderKind = "openai-compatible"
)

// API chooses between the two dialects of the OpenAI family.
type API string

// The dialects. Auto takes responses for the models of OpenAI that know it, and
// chat for all others and for compatible providers.
const (
	APIAuto      API = ""
	APIChat      API = "chat"
	APIResponses API = "responses"
)

// ProviderConfig is what it takes to reach a provider. Nothing is read from the
// environment.
type ProviderConfig struct {
	// ID is the provider's id in the catalog; errors carry it.
	ID   string
	Kind ProviderKind
	API  API
	// BaseURL is up to and including the version, such as
	// https://api.openai.com/v1; for Anthropic a trailing /v1 is optional. ""
	// is the vendor's own address.
	BaseURL string
	APIKey  Secret
	// Headers are added to every request and win over what is sent otherwise.
	Headers map[string]string
	// HTTPClient makes the requests; nil is a client with Go's defaults. It is
	// copied; redirects are not followed.
	HTTPClient *http.Client
	// UserAgent is sent as such; "" is "switchyard".
	UserAgent string
	// IdleTimeout is how long the provider may be silent, before and within an
	// answer; 0 is 5 minutes, negative without limit.
	IdleTimeout time.Duration
}

// dialect is one of the wire formats.
type dialect int

const (
	dialectChat dialect = iota
	dialectCompatible
	dialectResponses
	dialectAnthropic
)

// remote is a provider that is reached over HTTP.
type remote struct {
	id      string
	kind    ProviderKind
	api     API
	baseURL string
	hasKey  bool
	wire    wire.Config
	redact  redactor
}

const defaultIdle = 5 * time.Minute

// New makes a provider. It fails for an unknown kind and for a base URL that is
// missing or none; a missing key is told by Stream.
func New(cfg ProviderConfig) (Provider, error) {
	address, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	return &remote{
		id: cfg.ID, kind: cfg.Kind, api: cfg.API, baseURL: address,
		hasKey: !cfg.APIKey.IsZero(),
		wire: wire.Config{
			Client:    client(cfg.HTTPClient),
			UserAgent: cmp.Or(cfg.UserAgent, "switchyard"),
			Authorize: authorize(cfg.Kind, cfg.APIKey),
			Headers:   maps.Clone(cfg.Headers),
			Idle:      max(cmp.Or(cfg.IdleTimeout, defaultIdle), 0),
		},
		redact: newRedactor(cfg.APIKey, cfg.Headers),
	}, nil
}

func client(given *http.Client) *http.Client {
	c := http.Client{}
	if given != nil {
		c = *given
	}
	// A redirect would take the credential and the conversation to an address
	// that nobody configured.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// authorize gives what puts the key into a request.
func authorize(kind ProviderKind, key Secret) func(http.Header) {
	switch {
	case key.IsZero():
		return nil
	case kind == ProviderAnthropic:
		return func(h http.Header) { h.Set("X-Api-Key", key.Reveal()) }
	}
	return func(h http.Header) { h.Set("Authorization", "Bearer "+key.Reveal()) }
}

// baseURL gives the address as the library wants it.
func baseURL(cfg ProviderConfig) (string, error) {
	address := strings.TrimRight(cfg.BaseURL, "/")
	switch cfg.Kind {
	case ProviderOpenAI:
		if address == "" {
			address = openai.DefaultURL
		}
	case ProviderAnthropic:
		if address == "" {
			address = anthropic.DefaultURL
		}
		address = strings.TrimSuffix(address, "/v1")
	case ProviderOpenAICompatible:
		if address == "" {
			return "", fmt.Errorf("provider %s: a base URL is needed", cfg.ID)
		}
	default:
		return "", fmt.Errorf("provider %s: unknown kind %q", cfg.ID, cfg.Kind)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The parser's error repeats the address, which may hold a credential.
		return "", fmt.Errorf("provider %s: the base URL is not an http address", cfg.ID)
	}
	return address, nil
}

// ID is the provider's id in the catalog.
func (p *remote) ID() string { return p.id }

// Model gives a model of the provider.
func (p *remote) Model(ctx context.Context, modelID string) (Model, error) {
	d := p.dialect(modelID)
	maker, err := p.library(d)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.id, err)
	}
	lm, err := maker.LanguageModel(ctx, modelID)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.id, err)
	}
	return &remoteModel{p: p, id: modelID, dialect: d, lm: lm}, nil
}

func (p *remote) dialect(modelID string) dialect {
	switch {
	case p.kind == ProviderAnthropic:
		return dialectAnthropic
	case p.api == APIResponses:
		return dialectResponses
	case p.kind == ProviderOpenAICompatible:
		return dialectCompatible
	case p.api == APIAuto && openai.IsResponsesModel(modelID):
		return dialectResponses
	}
	return dialectChat
}

// placeholder stands for the key towards the library, which would look for one
// in the environment otherwise. The wire puts the real one in.
const placeholder = "-"

// library configures the wire library for a dialect.
func (p *remote) library(d dialect) (fantasy.Provider, error) {
	usage := openai.WithLanguageModelStreamUsageFunc(keepLast(openai.DefaultStreamUsageFunc))
	switch d {
	case dialectAnthropic:
		return anthropic.New(anthropic.WithBaseURL(p.baseURL), anthropic.WithAPIKey(placeholder),
			anthropic.WithHTTPClient(wire.Doer{}))
	case dialectCompatible:
		return openaicompat.New(openaicompat.WithBaseURL(p.baseURL), openaicompat.WithAPIKey(placeholder),
			openaicompat.WithHTTPClient(wire.Doer{}), openaicompat.WithLanguageModelOptions(usage))
	}
	options := []openai.Option{
		openai.WithBaseURL(p.baseURL), openai.WithAPIKey(placeholder),
		openai.WithHTTPClient(wire.Doer{}), openai.WithLanguageModelOptions(usage),
	}
	if d == dialectResponses {
		options = append(options, openai.WithUseResponsesAPI(),
			openai.WithResponsesAPIFunc(func(string) bool { return true }))
	}
	return openai.New(options...)
}

// keepLast remembers the usage of an answer when later chunks have none; the
// library takes that of the last chunk, whatever it says.
func keepLast[C any](next func(C, map[string]any, fantasy.ProviderMetadata) (fantasy.Usage, fantasy.ProviderMetadata),
) func(C, map[string]any, fantasy.ProviderMetadata) (fantasy.Usage, fantasy.ProviderMetadata) {
	const key = "switchyard.usage"
	return func(chunk C, state map[string]any, meta fantasy.ProviderMetadata) (fantasy.Usage, fantasy.ProviderMetadata) {
		usage, meta := next(chunk, state, meta)
		if usage != (fantasy.Usage{}) {
			state[key] = usage
		} else if last, ok := state[key].(fantasy.Usage); ok {
			usage = last
		}
		return usage, meta
	}
}
