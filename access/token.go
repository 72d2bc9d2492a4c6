package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
)

const (
	// tokenPrefix makes a leaked token recognisable to people and scanners.
	tokenPrefix = "swy_"
	tokenBytes  = 32 // 256 bits
	tokenName   = "token"

	// A token that a person chose is at least this long: guesses by the same
	// host are answered as fast as they come (see failures).
	minTokenLength = 16
	maxTokenLength = 512
)

// Verifier knows the tokens of this server.
type Verifier interface {
	// Verify gives the caller that a secret belongs to. For an unknown secret
	// the error is an unauthorized fault; any other error means that it could
	// not be found out.
	Verify(ctx context.Context, secret string) (Principal, error)
}

// Token is the server's own secret. It prints as ***; only Reveal shows it. The
// zero value verifies nothing.
type Token struct {
	// The secret is behind a function so that fmt, which looks into unexported
	// fields, finds none.
	reveal func() string
	sum    [sha256.Size]byte
	id     id.Token
}

// ParseToken makes a Token of a given secret: 16 to 512 visible ASCII
// characters; white space around it is dropped.
func ParseToken(secret string) (Token, error) {
	secret = strings.TrimSpace(secret)
	if len(secret) < minTokenLength || len(secret) > maxTokenLength {
		return Token{}, fmt.Errorf("an access token has %d to %d characters, this one has %d", minTokenLength, maxTokenLength, len(secret))
	}
	for _, c := range []byte(secret) {
		if c <= ' ' || c > '~' {
			return Token{}, errors.New("an access token has visible ASCII characters only, no spaces")
		}
	}
	sum := sha256.Sum256([]byte(secret))
	return Token{
		reveal: func() string { return secret },
		sum:    sum,
		id:     id.Token("tok_" + ulid.ULID(sum[:16]).String()),
	}, nil
}

// newToken makes a fresh random Token.
func newToken() (Token, error) {
	var raw [tokenBytes]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return Token{}, fmt.Errorf("reading randomness: %w", err)
	}
	return ParseToken(tokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// Reveal gives the secret itself.
func (t Token) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// ID names the token without telling it. Equal secrets have equal ids.
func (t Token) ID() id.Token { return t.id }

// Verify implements Verifier in constant time: hashes are compared, so that
// neither content nor length of the secret shows in the time taken.
func (t Token) Verify(_ context.Context, secret string) (Principal, error) {
	sum := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(sum[:], t.sum[:]) != 1 || t.reveal == nil {
		return Principal{}, fault.New(fault.Unauthorized, "the access token is not valid")
	}
	return Principal{TokenID: t.id, Name: "owner"}, nil
}

// Format keeps the secret, like MarshalText and LogValue, out of output of any kind.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "***") }

// MarshalText gives "***".
func (t Token) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue gives "***".
func (t Token) LogValue() slog.Value { return slog.StringValue("***") }

// TokenSource says where the server's token comes from: the first that is set
// of File, Env, and the file "token" in StateDir.
type TokenSource struct {
	// File is the path given by --token-file. Its mode is not looked at, since
	// mounted secrets are often readable by all in their container.
	File string
	// Env is the value of SWITCHYARD_TOKEN.
	Env string
	// StateDir holds the token that the server makes for itself at first start.
	StateDir string
}

// LoadToken reads the server's token. Where only StateDir applies and holds
// none, a new one is made there with mode 0600; of several processes that start
// at once, one makes it and all read the same. A token in StateDir that others
// could read is closed to them again.
func LoadToken(src TokenSource) (Token, error) {
	if src.File != "" {
		return readToken(src.File)
	}
	if src.Env != "" {
		t, err := ParseToken(src.Env)
		if err != nil {
			return Token{}, fmt.Errorf("SWITCHYARD_TOKEN: %w", err)
		}
		return t, nil
	}
	if src.StateDir == "" {
		return Token{}, errors.New("no place for the access token: no state directory")
	}
	path := filepath.Join(src.StateDir, tokenName)
	info, err := os.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		if err := createToken(path); err != nil {
			return Token{}, fmt.Errorf("making the access token: %w", err)
		}
		return readToken(path)
	}
	if err != nil {
		return Token{}, fmt.Errorf("reading the access token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return Token{}, fmt.Errorf("closing the access token to others: %w", err)
		}
	}
	return readToken(path)
}

func readToken(path string) (Token, error) {
	f, err := os.Open(path)
	if err != nil {
		return Token{}, fmt.Errorf("reading the access token: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 2*maxTokenLength))
	if err != nil {
		return Token{}, fmt.Errorf("reading the access token: %w", err)
	}
	t, err := ParseToken(string(data))
	if err != nil {
		return Token{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// createToken puts a whole new token at path, or leaves the one that another
// process put there meanwhile.
func createToken(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t, err := newToken()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".token-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(t.Reveal() + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	// A link fails where a file is, which a rename does not: the first wins.
	err = os.Link(tmp.Name(), path)
	if err != nil && !errors.Is(err, iofs.ErrExist) {
		return exclusive(path, t) // a file system without links
	}
	return nil
}

func exclusive(path string, t Token) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, iofs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(t.Reveal() + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}
