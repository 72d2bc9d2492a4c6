package op_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

type listInput struct {
	Limit   *int         `json:"limit,omitempty" minimum:"1" maximum:"200"`
	Order   string       `json:"order,omitempty" enum:"asc,desc"`
	Roots   bool         `json:"roots,omitempty"`
	Ratio   float64      `json:"ratio,omitempty"`
	Parent  id.Session   `json:"parentID,omitempty"`
	Tag     []string     `json:"tag,omitempty"`
	Types   []string     `json:"types,omitempty" list:"comma" enum:"a,b,c"`
	Seqs    []int64      `json:"seqs,omitempty"`
	Size    int          `json:"size,omitempty" default:"50"`
	Tiny    int8         `json:"tiny,omitempty"`
	Count   uint         `json:"count,omitempty"`
	IfMatch string       `json:"If-Match,omitempty" in:"header"`
	Filter  embeddedPart `json:"-"`
	embeddedPart
}

type embeddedPart struct {
	Cursor string `json:"cursor,omitempty" maxLength:"10"`
}

func TestQueryIsBoundByType(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[listInput](op.Spec{Method: "GET", Path: "/api/thing"}))
	for query, want := range map[string]string{
		"":                           `{"size":50}`,
		"limit=5&order=asc":          `{"limit":5,"order":"asc","size":50}`,
		"roots=true&size=1":          `{"roots":true,"size":1}`,
		"roots=1&size=1":             `{"roots":true,"size":1}`,
		"ratio=0.5&size=1":           `{"ratio":0.5,"size":1}`,
		"tag=a&tag=b,c&size=1":       `{"size":1,"tag":["a","b,c"]}`,
		"types=a,b&types=c&size=1":   `{"size":1,"types":["a","b","c"]}`,
		"seqs=1&seqs=2&size=1":       `{"seqs":[1,2],"size":1}`,
		"cursor=abc&size=1":          `{"cursor":"abc","size":1}`,
		"parentID=ses_x&size=1":      `{"parentID":"ses_x","size":1}`,
		"cursor=&size=1":             `{"size":1}`,
		"cursor=%C3%A4%2B+b&size=1":  `{"cursor":"ä+ b","size":1}`,
		"count=18446744073709551615": `{"count":18446744073709552000,"size":50}`,
	} {
		b.send("GET", "/api/thing?"+query, "").wantData(t, want)
	}
	b.send("GET", "/api/thing", "", "If-Match", `"x"`).wantData(t, `{"If-Match":"\"x\"","size":50}`)
}

func TestBadQueryNamesEveryPlace(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[listInput](op.Spec{Method: "GET", Path: "/api/thing"}))
	for query, locations := range map[string]string{
		"limit=0":               "query.limit",
		"limit=x":               "query.limit",
		"limit=":                "query.limit",
		"limit=5.5":             "query.limit",
		"limit=1&limit=2":       "query.limit",
		"order=up&roots=maybe":  "query.order query.roots",
		"ratio=NaN&tiny=200":    "query.ratio query.tiny",
		"types=a,z":             "query.types[1]",
		"seqs=1&seqs=x":         "query.seqs[1]",
		"cursor=%FF":            "query.cursor",
		"cursor=12345678901":    "query.cursor",
		"count=-1&limit=999":    "query.count query.limit",
		"tiny=9999999999999999": "query.tiny",
	} {
		b.send("GET", "/api/thing?"+query, "").wantProblem(t, fault.ValidationFailed, strings.Fields(locations)...)
	}
	b.send("GET", "/api/thing?limit=%zz", "").wantProblem(t, fault.ValidationFailed, "query")
}

func TestUnknownQueryParameterNamesTheNearest(t *testing.T) {
	t.Parallel()
	b := setup(t,
		echo[listInput](op.Spec{Method: "GET", Path: "/api/thing"}),
		echo[struct{}](op.Spec{Name: "thing.none", Method: "POST", Path: "/api/none"}),
		echo[patchInput](op.Spec{Name: "thing.patch", Method: "PATCH", Path: "/api/thing/{thingID}"}),
	)
	got := b.send("GET", "/api/thing?limti=5&limit=x", "")
	got.wantProblem(t, fault.UnknownParameter, "query.limit", "query.limti")
	if !strings.Contains(got.text, `the nearest known one is \"limit\"`) {
		t.Error(got.text)
	}
	got = b.send("POST", "/api/none?directry=/a", "")
	got.wantProblem(t, fault.UnknownParameter, "query.directry")
	if !strings.Contains(got.text, `\"directory\"`) {
		t.Error(got.text)
	}
	got = b.send("PATCH", "/api/thing/1?title=x", "")
	got.wantProblem(t, fault.UnknownParameter, "query.title")
	if !strings.Contains(got.text, "stands in the JSON body") {
		t.Error(got.text)
	}
}

type patchInput struct {
	ThingID string `json:"thingID"`
	Force   bool   `json:"force,omitempty" in:"query"`
	Title   string `json:"title,omitempty" minLength:"1" maxLength:"5"`
	Big     int64  `json:"big,omitempty"`
	Size    *struct {
		Columns int `json:"columns" minimum:"1"`
		Rows    int `json:"rows" minimum:"1"`
	} `json:"size,omitempty"`
	Tags  []string           `json:"tags,omitempty"`
	Extra map[string]any     `json:"extra,omitempty"`
	Note  op.Opt[string]     `json:"note,omitzero" maxLength:"3"`
	List  op.Opt[[]string]   `json:"list,omitzero"`
	Point op.Opt[pointInput] `json:"point,omitzero"`
}

type pointInput struct {
	X int `json:"x"`
}

func TestBodyIsBound(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}))
	for body, want := range map[string]string{
		`{}`:                                `{"thingID":"a/b"}`,
		``:                                  `{"thingID":"a/b"}`,
		"  \n ":                             `{"thingID":"a/b"}`,
		`{"title":"ok"}`:                    `{"thingID":"a/b","title":"ok"}`,
		`{"title":null}`:                    `{"thingID":"a/b"}`,
		`{"size":{"columns":80,"rows":24}}`: `{"size":{"columns":80,"rows":24},"thingID":"a/b"}`,
		`{"note":null}`:                     `{"note":null,"thingID":"a/b"}`,
		`{"note":"x","list":["a"]}`:         `{"list":["a"],"note":"x","thingID":"a/b"}`,
		`{"list":null,"point":{"x":1}}`:     `{"list":null,"point":{"x":1},"thingID":"a/b"}`,
		`{"point":null}`:                    `{"point":null,"thingID":"a/b"}`,
		`{"extra":{"a":[1,{"b":null}]}}`:    `{"extra":{"a":[1,{"b":null}]},"thingID":"a/b"}`,
	} {
		b.send("PATCH", "/api/thing/a%2Fb", body).wantData(t, want)
	}
	b.send("PATCH", "/api/thing/a?force=true", `{}`).wantData(t, `{"force":true,"thingID":"a"}`)
	if got := b.send("PATCH", "/api/thing/a", `{"big":9007199254740993}`); !strings.Contains(got.text, `"big":9007199254740993`) {
		t.Error("a large integer lost digits:", got.text)
	}
}

func TestBadBodyNamesEveryPlace(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}))
	for body, locations := range map[string]string{
		`{"title":5}`:                           "body.title",
		`{"title":"","tags":[1]}`:               "body.tags[0] body.title",
		`{"titel":"x"}`:                         "body.titel",
		`{"Title":"x"}`:                         "body.Title",
		`{"thingID":"b"}`:                       "body.thingID",
		`{"size":{"columns":0}}`:                "body.size.columns body.size.rows",
		`{"size":{"columns":1,"rows":1,"z":1}}`: "body.size.z",
		`{"size":[]}`:                           "body.size",
		`{"note":"long"}`:                       "body.note",
		`{"point":{"y":1}}`:                     "body.point",
		`{"big":1e30}`:                          "body.big",
		`{"force":true}`:                        "body.force",
		`[]`:                                    "body",
		`null`:                                  "body",
		`"x"`:                                   "body",
		`{"directory":"/x"}`:                    "body.directory",
	} {
		b.send("PATCH", "/api/thing/1", body).wantProblem(t, fault.ValidationFailed, strings.Fields(locations)...)
	}
	got := b.send("PATCH", "/api/thing/1?force=maybe", `{"titel":1}`)
	got.wantProblem(t, fault.ValidationFailed, "body.titel", "query.force")
	if !strings.Contains(got.text, `the nearest known one is \"title\"`) || !strings.Contains(got.json["detail"].(string), "(and 1 more)") {
		t.Error(got.text)
	}
	if got := b.send("PATCH", "/api/thing/1", `{"force":true}`); !strings.Contains(got.text, "query parameter") {
		t.Error(got.text)
	}
}

func TestValuesAreNotRepeatedInProblems(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}))
	got := b.send("PATCH", "/api/thing/1", `{"title":"secret-key","size":{"columns":"secret-key"}}`)
	if strings.Contains(got.text, "secret-key") {
		t.Error(got.text)
	}
}

func TestManyMistakesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}))
	got := b.send("PATCH", "/api/thing/1", `{"tags":[`+strings.Repeat("1,", 5000)+`1]}`)
	if items := got.json["errors"].([]any); got.status != 422 || len(items) != 50 {
		t.Errorf("%d, %d items", got.status, len(items))
	}
}

func TestBodyThatIsNoJSON(t *testing.T) {
	t.Parallel()
	b := setup(t,
		echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}),
		echo[struct{}](op.Spec{Name: "thing.none", Method: "POST", Path: "/api/none"}),
	)
	for _, body := range []string{`{`, `{"a":1}x`, `{'a':1}`, "{\"title\":\"\xff\"}", `{"title":"x",}`} {
		b.send("PATCH", "/api/thing/1", body).wantProblem(t, fault.MalformedJSON)
		b.send("POST", "/api/none", body).wantProblem(t, fault.MalformedJSON)
	}
	if got := b.send("PATCH", "/api/thing/1", `{"title" 1}`); got.json["offset"] != 10.0 {
		t.Error(got.text)
	}
	b.send("POST", "/api/none", `{"a":1}`).wantProblem(t, fault.ValidationFailed, "body.a")
	b.send("POST", "/api/none", ``).wantData(t, `{}`)
}

func TestContentType(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}"}))
	for _, good := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"} {
		b.send("PATCH", "/api/thing/1", `{"title":"a"}`, "Content-Type", "", "Content-Type", good).wantData(t, `{"thingID":"1","title":"a"}`)
	}
	for _, bad := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ";"} {
		headers := []string{"Content-Type", ""}
		if bad != "" {
			headers = append(headers, "Content-Type", bad)
		}
		got := b.send("PATCH", "/api/thing/1", `{"title":"a"}`, headers...)
		got.wantProblem(t, fault.UnsupportedMediaType)
		if !strings.Contains(got.text, "curl --json") {
			t.Error(got.text)
		}
	}
	// curl -d ” sends a form type without a form.
	b.send("PATCH", "/api/thing/1", "", "Content-Type", "application/x-www-form-urlencoded").wantData(t, `{"thingID":"1"}`)
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	small := echo[patchInput](op.Spec{Method: "PATCH", Path: "/api/thing/{thingID}", BodyLimit: 20})
	usual := echo[patchInput](op.Spec{Name: "thing.usual", Method: "PATCH", Path: "/api/usual/{thingID}"})
	b := setup(t, small, usual)
	b.send("PATCH", "/api/thing/1", `{"title":"12345"}   `).wantData(t, `{"thingID":"1","title":"12345"}`)
	got := b.send("PATCH", "/api/thing/1", `{"title":"12345"}    `)
	got.wantProblem(t, fault.BodyTooLarge)
	if got.json["limit"] != 20.0 {
		t.Error(got.text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "PATCH", b.url+"/api/thing/1", strings.NewReader(strings.Repeat(" ", 21)))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = -1 // Sent in chunks, so that the limit is met while reading.
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(res.Status)
	}
	b.send("PATCH", "/api/usual/1", `{"extra":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`).wantProblem(t, fault.BodyTooLarge)
}

type modelInput struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

func TestPathParameters(t *testing.T) {
	t.Parallel()
	b := setup(t,
		echo[modelInput](op.Spec{Method: "GET", Path: "/api/model/{providerID}/{modelID}", Tail: true}),
		op.New(op.Spec{Name: "num.get", Method: "GET", Path: "/api/num/{n}", Summary: "A number."},
			func(_ context.Context, _ *runtime.Server, in struct {
				N int `json:"n" minimum:"3"`
			},
			) (int, error) {
				return in.N, nil
			}),
	)
	for path, want := range map[string]string{
		"/api/model/p/m":             `{"modelID":"m","providerID":"p"}`,
		"/api/model/p/a/b/c":         `{"modelID":"a/b/c","providerID":"p"}`,
		"/api/model/p/a%2Fb":         `{"modelID":"a/b","providerID":"p"}`,
		"/api/model/p%2Fq/m%20x":     `{"modelID":"m x","providerID":"p/q"}`,
		"/api/model/p/%FF":           `{"modelID":"` + "\uFFFD" + `","providerID":"p"}`,
		"/api/model/p/100%25":        `{"modelID":"100%","providerID":"p"}`,
		"/api/model/p/" + "a%2Fb%25": `{"modelID":"a/b%","providerID":"p"}`,
	} {
		b.send("GET", path, "").wantData(t, want)
	}
	b.send("GET", "/api/num/7", "").wantData(t, `7`)
	b.send("GET", "/api/num/x", "").wantProblem(t, fault.ValidationFailed, "path.n")
	b.send("GET", "/api/num/2", "").wantProblem(t, fault.ValidationFailed, "path.n")
}

type aliasInput struct {
	Prompt struct {
		Text  string   `json:"text"`
		Files []string `json:"files,omitempty"`
	} `json:"prompt"`
	MessageID string `json:"messageID,omitempty"`
	Delivery  string `json:"delivery,omitempty" enum:"immediate,deferred"`
	Big       int64  `json:"big,omitempty"`
	Size      *struct {
		Columns int `json:"columns"`
	} `json:"size,omitempty"`
}

func TestBodyAliases(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[aliasInput](op.Spec{
		Method: "POST", Path: "/api/thing",
		Aliases: map[string]string{"text": "prompt.text", "files": "prompt.files", "id": "messageID", "size.cols": "size.columns", "wide": "big"},
		Values:  map[string]map[string]string{"delivery": {"steer": "immediate", "queue": "deferred"}},
	}))
	for body, want := range map[string]string{
		`{"prompt":{"text":"a"}}`:                       `{"prompt":{"text":"a"}}`,
		`{"text":"a"}`:                                  `{"prompt":{"text":"a"}}`,
		`{"text":"a","prompt":{"files":["f"]}}`:         `{"prompt":{"files":["f"],"text":"a"}}`,
		`{"text":"a","id":"msg_1","delivery":"steer"}`:  `{"delivery":"immediate","messageID":"msg_1","prompt":{"text":"a"}}`,
		`{"prompt":{"text":"a"},"delivery":"queue"}`:    `{"delivery":"deferred","prompt":{"text":"a"}}`,
		`{"prompt":{"text":"a"},"size":{"cols":80}}`:    `{"prompt":{"text":"a"},"size":{"columns":80}}`,
		`{"prompt":{"text":"a"},"size":{"columns":80}}`: `{"prompt":{"text":"a"},"size":{"columns":80}}`,
	} {
		b.send("POST", "/api/thing", body).wantData(t, want)
	}
	if got := b.send("POST", "/api/thing", `{"text":"a","wide":9007199254740993}`); !strings.Contains(got.text, `"big":9007199254740993`) {
		t.Error("a large integer lost digits:", got.text)
	}
	for body, location := range map[string]string{
		`{"text":"a","prompt":{"text":"b"}}`:                       "body.text",
		`{"text":"a","prompt":"b"}`:                                "body.text",
		`{"prompt":{"text":"a"},"id":"msg_1","messageID":"msg_1"}`: "body.id",
		`{"prompt":{"text":"a"},"delivery":"later"}`:               "body.delivery",
	} {
		b.send("POST", "/api/thing", body).wantProblem(t, fault.ValidationFailed, location)
	}
}

type bareInput struct {
	Config map[string]any `json:"config"`
	Target string         `json:"target,omitempty" enum:"project,global"`
}

func TestBareBodyAlias(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[bareInput](op.Spec{Method: "PATCH", Path: "/api/config", Aliases: map[string]string{op.EverythingElse: "config"}}))
	b.send("PATCH", "/api/config", `{"config":{"a":1}}`).wantData(t, `{"config":{"a":1}}`)
	b.send("PATCH", "/api/config", `{"a":1,"b":{"c":2},"target":"global"}`).wantData(t, `{"config":{"a":1,"b":{"c":2}},"target":"global"}`)
	b.send("PATCH", "/api/config", `{"a":1,"config":{"b":1}}`).wantProblem(t, fault.ValidationFailed, "body.a")
	b.send("PATCH", "/api/config", `{}`).wantProblem(t, fault.ValidationFailed, "body.config")
}

func TestQueryAliases(t *testing.T) {
	t.Parallel()
	b := setup(t, echo[listInput](op.Spec{
		Method: "GET", Path: "/api/thing",
		Aliases: map[string]string{"max": "size"}, Values: map[string]map[string]string{"order": {"up": "asc"}},
	}))
	b.send("GET", "/api/thing?max=3&order=up", "").wantData(t, `{"order":"asc","size":3}`)
	b.send("GET", "/api/thing?max=3&size=4", "").wantProblem(t, fault.ValidationFailed, "query.max")
	b.send("GET", "/api/thing?maxx=3", "").wantProblem(t, fault.UnknownParameter, "query.maxx")
}

func TestHugeIntegersInQueryKeepTheirDigits(t *testing.T) {
	t.Parallel()
	o := op.New(op.Spec{Name: "n.get", Method: "GET", Path: "/api/n", Summary: "A number."},
		func(_ context.Context, _ *runtime.Server, in struct {
			N int64 `json:"n"`
		},
		) (int64, error) {
			return in.N, nil
		})
	b := setup(t, o)
	got := b.send("GET", "/api/n?"+url.Values{"n": {"9007199254740993"}}.Encode(), "")
	if !strings.Contains(got.text, `"data":9007199254740993`) {
		t.Error(got.text)
	}
	b.send("GET", "/api/n", "").wantProblem(t, fault.ValidationFailed, "query.n")
}
