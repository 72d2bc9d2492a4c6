package env_test

import (
	"os"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
)

func BenchmarkWalkBig(b *testing.B) {
	e, err := env.Local(os.Getenv("BIG"))
	if err != nil {
		b.Fatal(err)
	}
	for _, ordered := range []bool{false, true} {
		b.Run(map[bool]string{true: "ordered", false: "parallel"}[ordered], func(b *testing.B) {
			for range b.N {
				if err := e.Files().Walk(b.Context(), env.WalkOptions{Ordered: ordered}, func(*env.Entry) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
