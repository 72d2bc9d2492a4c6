package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresEnv names the environment variable with the URL of a PostgreSQL server
// whose user may create databases. `make test` starts such a server and sets it.
const PostgresEnv = "SWITCHYARD_TEST_POSTGRES"

// adminLimit bounds making and dropping a database.
const adminLimit = 30 * time.Second

// Postgres makes an empty database for this test alone and gives its URL; it is
// dropped when the test ends, with what still holds it open. Without a server the
// test is skipped, so a test that serves both engines asks for it in a subtest.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(PostgresEnv)
	if server == "" {
		t.Skip("PostgreSQL not available: run make test")
	}
	at, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", PostgresEnv, err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := admin(t.Context(), server, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := admin(context.Background(), server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	at.Path = "/" + name
	return at.String()
}

// admin runs one statement on a connection of its own.
func admin(ctx context.Context, server, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, adminLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connecting to the test's PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("running %q: %w", statement, err)
	}
	return nil
}
