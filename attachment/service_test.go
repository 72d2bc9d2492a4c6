package attachment_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/switchyard-dev/switchyard/attachment"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
)

func TestTheSameBytesAreOneAttachment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	content := encoded(t, attachment.TypePNG, 5, 5)
	first := b.keep("", content, "one.png")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again := b.keep("", content, "two.png"); again != first {
				t.Errorf("%+v, then %+v", first, again)
			}
		})
	}
	wg.Wait()
	name := filepath.Join(first.Hash[:2], first.Hash)
	if got := b.files(); !slices.Equal(got, []string{name}) {
		t.Fatalf("files %v", got)
	}
	info, err := os.Stat(filepath.Join(b.dir, name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	f, err := b.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestOnlySessionsThatReferToItFindIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine, other := b.session(), b.session()
	a := b.keep(mine, []byte("mine"), "")
	if got, err := b.OfSession(t.Context(), mine, a.ID); err != nil || got != a {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := b.OfSession(t.Context(), other, a.ID); !fault.Is(err, fault.AttachmentNotFound) {
		t.Fatal(err)
	}
	if got, err := b.Find(t.Context(), chat.AttachmentURL(mine, a.ID)); err != nil || got != a {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, url := range []string{"/api/session/x/attachment/y", chat.AttachmentURL(mine, id.New[id.Attachment](b.ids)), "data:,x"} {
		if _, err := b.Find(t.Context(), url); !fault.Is(err, fault.AttachmentNotFound) {
			t.Fatalf("%s: %v", url, err)
		}
	}
}

func TestAFileThatIsDamagedIsNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.keep("", []byte("whole"), "")
	path := filepath.Join(b.dir, a.Hash[:2], a.Hash)
	if err := os.Truncate(path, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(a); err == nil {
		t.Fatal("a cut file was read")
	}
	b.keep("", []byte("whole"), "") // it comes again and mends
	if data, err := b.Read(a); err != nil || string(data) != "whole" {
		t.Fatalf("%q, %v", data, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(a); !fault.Is(err, fault.AttachmentNotFound) {
		t.Fatal(err)
	}
}

func TestAnUploadThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := errors.New("gone")
	if _, err := b.Stage(io.MultiReader(strings.NewReader("begin"), iotest.ErrReader(gone)), ""); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	if left := b.files(); len(left) != 0 {
		t.Fatal(left)
	}
}

func TestDataURLs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	padded := base64.StdEncoding.EncodeToString([]byte("hello"))
	for _, url := range []string{
		"data:image/png;base64," + padded, "data:;base64," + strings.TrimRight(padded, "="),
		"data:text/plain;charset=utf-8;base64," + strings.ReplaceAll(padded, "=", "%3D"), "data:,hello", "data:text/plain,h%65llo",
	} {
		staged, err := b.StageData(url, "")
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if kept, err := b.Keep(t.Context(), "", staged); err != nil || kept[0].Size != 5 || kept[0].Mime != attachment.TypeText {
			t.Errorf("%s: %+v, %v", url, kept, err)
		}
	}
	for _, url := range []string{"data:image/png;base64", "data:;base64,a", "data:;base64,!!!!", "data:,%zz", "data:,"} {
		if _, err := b.StageData(url, ""); !fault.Is(err, fault.ValidationFailed) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTakePutsAReferenceIntoThePart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	part := chat.NewFile(chat.PartHead{}, "image/png", "x.png", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(encoded(t, attachment.TypeGIF, 3, 3)))
	if err := b.Take(t.Context(), ses, part); err != nil {
		t.Fatal(err)
	}
	owner, att, ok := chat.ParseAttachmentURL(part.URL)
	if !ok || owner != ses || part.Mime != attachment.TypeGIF {
		t.Fatalf("%+v", part)
	}
	if _, err := b.OfSession(t.Context(), ses, att); err != nil {
		t.Fatal(err)
	}
	before := *part
	if err := b.Take(t.Context(), ses, part); err != nil || *part != before {
		t.Fatalf("%+v, %v", part, err)
	}
}

func TestTheSweepTakesOnlyWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	used, loose := b.keep(ses, []byte("used"), ""), b.keep("", []byte("loose"), "")
	if n, err := b.Sweep(t.Context()); err != nil || n != 0 {
		t.Fatalf("young ones: %d, %v", n, err)
	}
	old := b.service(time.Nanosecond)
	for { // its first sweep runs beside the test
		if _, err := old.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(t.Context(), loose.ID); fault.Is(err, fault.AttachmentNotFound) {
			break
		}
	}
	if data, err := b.Read(used); err != nil || string(data) != "used" {
		t.Fatalf("%q, %v", data, err)
	}
	if _, err := b.sessions.Delete(t.Context(), ses); err != nil {
		t.Fatal(err)
	}
	if n, err := old.Sweep(t.Context()); err != nil || n != 1 {
		t.Fatalf("after the delete: %d, %v", n, err)
	}
	if left := b.files(); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

func TestTheStartRemovesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.keep(b.session(), []byte("kept"), "")
	known := filepath.Join(a.Hash[:2], a.Hash)
	half, orphan, young := filepath.Join("incoming", "123"), filepath.Join(a.Hash[:2], a.Hash[:2]+"ff"), filepath.Join("incoming", "456")
	for _, name := range []string{half, orphan, young} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.age(known, half, orphan)
	if err := b.service(24 * time.Hour).Close(); err != nil { // the sweep of the start may be cut short
		t.Fatal(err)
	}
	next := b.service(24 * time.Hour)
	deadline := time.Now().Add(20 * time.Second)
	want := []string{known, young}
	slices.Sort(want)
	for {
		got := b.files()
		slices.Sort(got)
		if slices.Equal(got, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left %v, want %v", got, want)
		}
		if _, err := next.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
