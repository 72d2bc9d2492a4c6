package llm

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redactor takes credentials out of what providers and the network say.
type redactor struct{ secrets []string }

// minSecret is the length below which a header value is too common a word to
// be searched for.
const minSecret = 8

func newRedactor(key Secret, headers map[string]string) redactor {
	var r redactor
	if !key.IsZero() {
		r.secrets = append(r.secrets, key.Reveal())
	}
	for _, v := range headers {
		_, token, ok := strings.Cut(v, " ")
		if !ok {
			token = v
		}
		if len(token) >= minSecret {
			r.secrets = append(r.secrets, token)
		}
	}
	return r
}

// keyShape finds what looks like a credential, ours or not, whole or masked.
var keyShape = regexp.MustCompile(`(?i)\b(?:sk|pk|rk|gsk|xai|key|hf|nvapi|AIza)[-_][-_A-Za-z0-9*.]{6,}|\bAIza[-_A-Za-z0-9]{10,}|\b(?:bearer|basic)\s+[-_.~+/=A-Za-z0-9]{6,}`)

// maxDetail bounds what is passed on of a provider's sentence, in bytes.
const maxDetail = 300

// clean makes one short line without credentials. Bodies that were not parsed
// (JSON, HTML) give nothing.
func (r redactor) clean(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "<") || strings.HasPrefix(s, "[") {
		return ""
	}
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	s = keyShape.ReplaceAllString(s, hidden)
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}), " ")
	return cut(strings.ToValidUTF8(s, "\uFFFD"), maxDetail)
}

// cut gives at most n bytes of s and ends on a rune boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
