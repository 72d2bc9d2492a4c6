package event_test

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/event"
)

func randomPosition(r *rand.Rand) event.Position {
	p := event.Position{Epoch: r.Uint32() >> 1, Seq: r.Int64N(1 << 56), Sub: r.Int64N(1 << 40)}
	if r.IntN(3) == 0 {
		p.Sub = 0
	}
	return p
}

func TestPositionKeepsOrderAndValue(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^evt_[0-3][0-9A-HJKMNP-TV-Z]{25}$`)
	r := rand.New(rand.NewPCG(1, 2))
	before := event.Position{}
	for range 20_000 {
		p := randomPosition(r)
		if r.IntN(2) == 0 { // close neighbours
			p = before
			p.Sub = r.Int64N(1 << 40)
		}
		s := p.String()
		if !form.MatchString(s) {
			t.Fatalf("%v is written %q", p, s)
		}
		if back, ok := event.ParsePosition(s); !ok || back != p {
			t.Fatalf("%v is written %q and read %v, %v", p, s, back, ok)
		}
		if got, want := strings.Compare(s, before.String()), p.Compare(before); got != want {
			t.Fatalf("%v and %v: texts compare %d, positions %d", p, before, got, want)
		}
		before = p
	}
}

func TestPositionExtremes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    event.Position
		want string
	}{
		{event.Position{}, "evt_" + strings.Repeat("0", 26)},
		{event.Position{Epoch: 1<<31 - 1, Seq: 1<<56 - 1, Sub: 1<<40 - 1}, "evt_3" + strings.Repeat("Z", 25)},
		{event.Position{Sub: 1}, "evt_" + strings.Repeat("0", 25) + "1"},
		{event.Position{Seq: 1}, "evt_" + strings.Repeat("0", 17) + "1" + strings.Repeat("0", 8)},
	} {
		if got := c.p.String(); got != c.want {
			t.Errorf("%v is %s, want %s", c.p, got, c.want)
		}
	}
}

func TestParsePositionIsStrict(t *testing.T) {
	t.Parallel()
	good := event.Position{Epoch: 77, Seq: 123456789, Sub: 42}.String()
	for name, s := range map[string]string{
		"empty": "", "prefix only": "evt_", "no prefix": good[4:], "other prefix": "msg_" + good[4:],
		"short": good[:29], "long": good + "0", "lower case": "evt_" + strings.ToLower(good[4:]),
		"first bit set": "evt_4" + good[5:], "over 128 bits": "evt_8" + good[5:],
		"I for 1": good[:29] + "I", "U": good[:29] + "U", "space": good[:29] + " ", "not ASCII": good[:28] + "é",
	} {
		if p, ok := event.ParsePosition(s); ok {
			t.Errorf("%s: %q is read as %v", name, s, p)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add("evt_" + strings.Repeat("0", 26))
	f.Add("evt_3" + strings.Repeat("Z", 25))
	f.Add("zzz")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := event.ParsePosition(s)
		if ok && p.String() != s {
			t.Fatalf("%q is read as %v, which is written %q", s, p, p)
		}
		if ok && cmp.Compare(p.Seq, 0) < 0 {
			t.Fatalf("negative number in %v", p)
		}
	})
}
