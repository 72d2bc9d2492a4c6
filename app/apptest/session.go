package apptest

import (
	"net/url"
	"strings"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/session"
)

// Query makes "?name=value&…" of names and values in turn.
func Query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}

// Session makes a session in a directory; "" is the default one.
func (s *Server) Session(directory string) session.Session {
	s.t.Helper()
	q := ""
	if directory != "" {
		q = Query("directory", directory)
	}
	return Data[session.Session](s, "POST", "/api/session"+q, map[string]any{})
}

// Prompted is the answer to a prompt.
type Prompted struct {
	MessageID string `json:"messageID"`
	State     string `json:"state"`
	TurnID    string `json:"turnID"`
	Position  int    `json:"position"`
}

// Prompt sends a text.
func (s *Server) Prompt(ses session.Session, text string) Prompted {
	s.t.Helper()
	return Data[Prompted](s, "POST", "/api/session/"+string(ses.ID)+"/prompt", map[string]any{"prompt": map[string]any{"text": text}})
}

// Waited is the answer to a wait.
type Waited struct {
	Outcome string         `json:"outcome"`
	Status  session.Status `json:"status"`
	TurnID  string         `json:"turnID"`
	Error   *chat.Error    `json:"error"`
}

// Wait waits until a session has nothing to do.
func (s *Server) Wait(ses session.Session) Waited {
	s.t.Helper()
	return Data[Waited](s, "POST", "/api/session/"+string(ses.ID)+"/wait", map[string]any{"timeout": 30_000})
}

// Message is a message as clients see it.
type Message struct {
	Info struct {
		ID    string      `json:"id"`
		Role  string      `json:"role"`
		Turn  string      `json:"turnID"`
		Sum   any         `json:"summary"`
		Error *chat.Error `json:"error"`
		Time  struct {
			Created   int64 `json:"created"`
			Completed int64 `json:"completed"`
		} `json:"time"`
	} `json:"info"`
	Parts []Part `json:"parts"`
}

// Part is a part as clients see it.
type Part struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Text  string `json:"text"`
	Tool  string `json:"tool"`
	Mime  string `json:"mime"`
	Name  string `json:"filename"`
	URL   string `json:"url"`
	Tail  string `json:"tail_start_id"`
	Auto  bool   `json:"auto"`
	State struct {
		Attachments []Part `json:"attachments"`

		Status   string         `json:"status"`
		Output   string         `json:"output"`
		Error    string         `json:"error"`
		Metadata map[string]any `json:"metadata"`
	} `json:"state"`
}

// Messages gives all messages of a session, oldest first.
func (s *Server) Messages(ses session.Session) []Message {
	s.t.Helper()
	return Data[[]Message](s, "GET", "/api/session/"+string(ses.ID)+"/context", nil)
}

// Text joins the texts of a session's answers.
func (s *Server) Text(ses session.Session) string {
	s.t.Helper()
	var out []string
	for _, m := range s.Messages(ses) {
		for _, p := range m.Parts {
			if m.Info.Role == "assistant" && p.Type == "text" {
				out = append(out, p.Text)
			}
		}
	}
	return strings.Join(out, "|")
}
