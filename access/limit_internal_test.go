package access

import (
	"net/netip"
	"testing"
	"time"
)

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := newFailures(func() time.Time { return now })
	source := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	for i := range 3 * maxSources {
		f.add(source(i))
	}
	if len(f.sources) > maxSources+1 {
		t.Fatalf("%d sources are remembered", len(f.sources))
	}
	if f.add(source(3*maxSources+1)) == 0 {
		t.Error("a flood of sources is not limited")
	}
	now = now.Add(failureWindow)
	if f.add(source(0)) != 0 || f.add(source(4*maxSources)) != 0 {
		t.Error("the flood is not forgotten after its minute")
	}
	if len(f.sources) > maxSources+1 {
		t.Errorf("%d sources are remembered", len(f.sources))
	}
	now = now.Add(-time.Hour)
	if f.add(source(0)) != 0 {
		t.Error("a clock that steps back locks a source")
	}
}
