package dbtype_test

import (
	"database/sql"
	"encoding/json"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/switchyard-dev/switchyard/store/dbtype"
)

func TestValueIsTextOrNull(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   dbtype.JSON
		want any
	}{
		"document": {dbtype.JSON(`{"b": 1,  "a":2}`), `{"b": 1,  "a":2}`},
		"nil":      {nil, nil},
		"empty":    {dbtype.JSON{}, nil},
	} {
		got, err := test.in.Value()
		if err != nil || got != test.want {
			t.Errorf("%s: got %#v, %v; want %#v", name, got, err, test.want)
		}
	}
}

func TestScanCopiesWhatTheDriverOwns(t *testing.T) {
	t.Parallel()
	src := []byte(`[1]`)
	var j dbtype.JSON
	if err := j.Scan(src); err != nil {
		t.Fatal(err)
	}
	src[1] = '2'
	if string(j) != `[1]` {
		t.Errorf("the driver's buffer shows through: %s", j)
	}
	if err := j.Scan(`"text"`); err != nil || string(j) != `"text"` {
		t.Errorf("string: got %s, %v", j, err)
	}
	if err := j.Scan(nil); err != nil || j != nil {
		t.Errorf("NULL: got %v, %v", j, err)
	}
	if err := j.Scan(int64(1)); err == nil {
		t.Error("a number was taken for a document")
	}
}

func TestEncodesAsItself(t *testing.T) {
	t.Parallel()
	type row struct {
		Data  dbtype.JSON `json:"data"`
		Extra dbtype.JSON `json:"extra"`
	}
	b, err := json.Marshal(row{Data: dbtype.JSON(`{"z":1,"a":[]}`)})
	if err != nil || string(b) != `{"data":{"z":1,"a":[]},"extra":null}` {
		t.Fatalf("got %s, %v", b, err)
	}
	var back row
	if err := json.Unmarshal([]byte(`{"data": {"z": 1}, "extra": [2]}`), &back); err != nil {
		t.Fatal(err)
	}
	if string(back.Data) != `{"z": 1}` || string(back.Extra) != `[2]` {
		t.Errorf("got %s and %s", back.Data, back.Extra)
	}
	if err := json.Unmarshal([]byte(`{"extra": null}`), &back); err != nil || back.Extra != nil {
		t.Errorf("null: got %q, %v", back.Extra, err)
	}
}

func TestStrictTextColumnKeepsTheBytes(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+t.TempDir()+"/json.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE doc (id INTEGER PRIMARY KEY, data TEXT /*json*/) STRICT`); err != nil {
		t.Fatal(err)
	}
	doc := dbtype.JSON("{\"b\":1,\n \"a\": \"\\u0000\"}")
	if _, err := db.Exec(`INSERT INTO doc VALUES (1, ?), (2, ?)`, doc, dbtype.JSON(nil)); err != nil {
		t.Fatal(err)
	}
	var got, null dbtype.JSON
	var kind string
	err = db.QueryRow(`SELECT data, typeof(data), (SELECT data FROM doc WHERE id = 2) FROM doc WHERE id = 1`).Scan(&got, &kind, &null)
	if err != nil || string(got) != string(doc) || kind != "text" || null != nil {
		t.Errorf("got %q as %s and %q, %v", got, kind, null, err)
	}
}
