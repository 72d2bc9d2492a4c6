package store

import "strings"

// IsPostgres tells a PostgreSQL URL from the path of a SQLite file.
func IsPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}
