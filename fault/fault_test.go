package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
)

func TestWrapKeepsCauseOutOfDetail(t *testing.T) {
	t.Parallel()
	err := fault.Wrap(io.ErrUnexpectedEOF, fault.StoreUnavailable, "the store of %s is away", "a")
	e, ok := fault.As(fmt.Errorf("reading: %w", err))
	if !ok {
		t.Fatal("no fault in the chain")
	}
	if e.Detail != "the store of a is away" || strings.Contains(e.Detail, "EOF") {
		t.Fatalf("detail %q", e.Detail)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Fatalf("cause is lost: %v", err)
	}
	if fault.Wrap(nil, fault.Internal, "x") != nil {
		t.Fatal("Wrap(nil) is not nil")
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err    error
		code   fault.Code
		status int
	}{
		{fault.New(fault.SessionNotFound, "gone"), "session_not_found", 404},
		{fmt.Errorf("x: %w", fault.New(fault.QueueFull, "full")), "queue_full", 429},
		{io.EOF, "internal", 500},
		{fault.New("made_up", "unknown to the table"), "made_up", 500},
	}
	for _, tt := range tests {
		if got := fault.CodeOf(tt.err); got != tt.code || fault.HTTPStatus(got) != tt.status {
			t.Errorf("%v: %s, %d", tt.err, got, fault.HTTPStatus(got))
		}
	}
	if fault.CodeOf(nil) != "" || fault.Is(nil, fault.Internal) {
		t.Error("nil has a code")
	}
}

func TestWithAndAt(t *testing.T) {
	t.Parallel()
	e := fault.New(fault.ValidationFailed, "bad").With("path", "a").With("sessionID", "ses_1").At("body.title", "at most %d", 3)
	if e.Fields["path"] != "a" || e.Fields["sessionID"] != "ses_1" || e.Items[0].Message != "at most 3" {
		t.Fatalf("%+v", e)
	}
}
