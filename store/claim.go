package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/switchyard-dev/switchyard/fault"
)

const (
	// claimKey is the advisory lock that a server holds on its database.
	claimKey = 0x5357_5954
	// claimRelease bounds giving it back; it ends with the connection anyway.
	claimRelease = 2 * time.Second
)

// claimPostgres makes this process the only server of a database for as long as
// a connection of its own lives.
func claimPostgres(ctx context.Context, config *pgx.ConnConfig) (release func(), err error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, fmt.Errorf("claiming the database: %w", err)
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimRelease)
		defer cancel()
		_ = conn.Close(ctx) // the lock ends with it, however it ends
	}
	var mine bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(claimKey)).Scan(&mine); err != nil {
		release()
		return nil, fmt.Errorf("claiming the database: %w", err)
	}
	if !mine {
		release()
		return nil, fault.New(fault.StoreUnavailable, "the database is in use by another server")
	}
	return release, nil
}
