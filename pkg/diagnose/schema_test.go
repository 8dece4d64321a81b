package diagnose

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// docs is where the reference of answers is kept.
const docs = "../../docs/why-pending/"

// jsonSchema is the part of JSON Schema that the reference uses. Unlike JSON Schema it refuses fields that are not listed: every
// field is to be documented.
type jsonSchema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Enum                 []any
	Required             []string
	Properties           map[string]*jsonSchema
	Items                *jsonSchema
	AdditionalProperties json.RawMessage
	AnyOf                []*jsonSchema
	Definitions          map[string]*jsonSchema
}

type validator struct {
	root   *jsonSchema
	errors []string
}

func (v *validator) fail(path, format string, args ...any) {
	v.errors = append(v.errors, path+": "+fmt.Sprintf(format, args...))
}

func (v *validator) check(s *jsonSchema, path string, value any) {
	if s.Ref != "" {
		s = v.root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
		if s == nil {
			v.fail(path, "unknown reference")
			return
		}
	}
	if len(s.AnyOf) > 0 {
		v.anyOf(s.AnyOf, path, value)
		return
	}
	if value == nil {
		v.kind(s, path, "null")
		return
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		v.fail(path, "%v is not one of %v", value, s.Enum)
	}
	switch x := value.(type) {
	case map[string]any:
		v.object(s, path, x)
	case []any:
		if s.Type != "array" {
			v.fail(path, "is a list, want %s", s.Type)
			return
		}
		for i, item := range x {
			v.check(s.Items, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case string:
		v.kind(s, path, "string")
	case bool:
		v.kind(s, path, "boolean")
	case float64:
		v.kind(s, path, "integer")
		if x != float64(int64(x)) {
			v.fail(path, "%v is no whole number", x)
		}
	}
}

// anyOf keeps what the last alternative complains about, if all do.
func (v *validator) anyOf(alternatives []*jsonSchema, path string, value any) {
	var inner validator
	for _, s := range alternatives {
		inner = validator{root: v.root}
		if inner.check(s, path, value); len(inner.errors) == 0 {
			return
		}
	}
	v.errors = append(v.errors, inner.errors...)
}

func (v *validator) kind(s *jsonSchema, path, got string) {
	if s.Type != got {
		v.fail(path, "is a %s, want %s", got, s.Type)
	}
}

func (v *validator) object(s *jsonSchema, path string, x map[string]any) {
	v.kind(s, path, "object")
	for _, key := range s.Required {
		if _, ok := x[key]; !ok {
			v.fail(path, "lacks %s", key)
		}
	}
	for key, child := range x {
		if p, ok := s.Properties[key]; ok {
			v.check(p, path+"."+key, child)
			continue
		}
		var further jsonSchema
		switch {
		case len(s.AdditionalProperties) == 0:
			v.fail(path, "%s is not in the schema", key)
		case string(s.AdditionalProperties) == "true":
		case json.Unmarshal(s.AdditionalProperties, &further) == nil:
			v.check(&further, path+"."+key, child)
		}
	}
}

func validate(t *testing.T, root *jsonSchema, a *answer.Answer) {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(marshal(t, a)), &value); err != nil {
		t.Fatal(err)
	}
	v := validator{root: root}
	v.check(root, "answer", value)
	for _, e := range v.errors {
		t.Error(e)
	}
}

// Real answers match the schema.
func TestSchema(t *testing.T) {
	raw, err := os.ReadFile(docs + "schema.json")
	if err != nil {
		t.Fatal(err)
	}
	root := &jsonSchema{}
	if err := json.Unmarshal(raw, root); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(requestScenarios(), podScenarios(), groupScenarios(), queueScenarios(), schedulerScenarios(), placeScenarios(), startScenarios(), lifeScenarios()) {
		t.Run(s.name, func(t *testing.T) {
			c := clustertest.New()
			s.build(c)
			a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			validate(t, root, a)
		})
	}
	for seed := range uint64(100) {
		validate(t, root, explainRandom(t, randomCluster(rand.New(rand.NewPCG(seed, 7))).build(), Options{}))
	}
	if a := absentAnswer(t); a != nil {
		validate(t, root, a)
	}
}

// Every code has an entry in the reference, under its stage, in order; and nothing else has.
func TestCodesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(docs + "codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []answer.Code
	for line := range strings.Lines(string(raw)) {
		if code, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			got = append(got, answer.Code(code))
		}
	}
	if want := answer.Codes(); !slices.Equal(got, want) {
		t.Errorf("documented:\n%v\nwant\n%v", got, want)
	}
}

func absentAnswer(t *testing.T) *answer.Answer {
	t.Helper()
	c := clustertest.New()
	c.S.Server.Resources = []string{}
	a, err := Explain(context.Background(), c.Done(), Query{Kind: "tfjob", Namespace: "team", Name: "gang"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
