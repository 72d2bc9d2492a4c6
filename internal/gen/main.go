// Command gen generates the store's Go code from its SQL: it checks that the SQL
// is in the subset that both engines understand, runs sqlc for each of them, and
// makes both share one set of types. Run it at the top of the repository, as
// `make gen` does; it changes files only where their content changes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/switchyard-dev/switchyard/internal/gen/sqlgen"
)

func main() {
	root := flag.String("root", ".", "top of the repository")
	sqlc := flag.String("sqlc", "", "sqlc `command` (default: the one of the tools module)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	changed, err := sqlgen.Generate(ctx, sqlgen.Options{Root: *root, SQLC: strings.Fields(*sqlc)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	for _, name := range changed {
		fmt.Println("gen: wrote", name)
	}
}
