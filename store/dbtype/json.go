// Package dbtype holds the column types that both database engines share.
package dbtype

import (
	"database/sql/driver"
	"fmt"
	"slices"
)

// JSON is one JSON document as it is stored: a json column in PostgreSQL, a TEXT
// column in SQLite. The bytes are kept as they are, so that an answer can be
// joined from stored documents without encoding them again. A nil or empty JSON
// is NULL. It does not check its content; PostgreSQL refuses what is not JSON.
type JSON []byte

// Value gives the document as text. A plain []byte would become a BLOB, which a
// STRICT TEXT column refuses and which SQLite's JSON functions read as binary JSON.
func (j JSON) Value() (driver.Value, error) {
	if len(j) == 0 {
		return nil, nil //nolint:nilnil // NULL is a value here, and the driver's way to say it
	}
	return string(j), nil
}

// Scan takes a column's text. NULL becomes a nil JSON. It copies src, which
// belongs to the driver.
func (j *JSON) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*j = nil
	case string:
		*j = JSON(v)
	case []byte:
		*j = slices.Clone(v)
	default:
		return fmt.Errorf("scanning %T into JSON: only text holds a document", src)
	}
	return nil
}

// MarshalJSON gives the document itself, null where there is none.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps a copy of the document b, byte by byte; null becomes nil.
func (j *JSON) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*j = nil
		return nil
	}
	*j = slices.Clone(b)
	return nil
}
