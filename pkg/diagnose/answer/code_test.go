package answer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// declared are the values of the constants of a type in a file of this package.
func declared(t *testing.T, file, kind string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, ok := spec.Type.(*ast.Ident)
		if !ok || name.Name != kind {
			return true
		}
		switch v := spec.Values[0].(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		case *ast.BinaryExpr: // the prefix and a resource
			text, err := strconv.Unquote(v.Y.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, string(Insufficient(text)))
		}
		return true
	})
	return values
}

// Codes lists every code that there is, once.
func TestCodes(t *testing.T) {
	var listed []string
	for _, code := range Codes() {
		listed = append(listed, string(code))
	}
	want := declared(t, "code.go", "Code")
	slices.Sort(want)
	slices.Sort(listed)
	if !slices.Equal(listed, want) {
		t.Errorf("listed %q\ndeclared %q", listed, want)
	}
	form := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$|^INSUFFICIENT_[a-z-]+$`)
	for _, code := range listed {
		if !form.MatchString(code) {
			t.Errorf("%s does not look like a code", code)
		}
	}
}

// Every entry has all that findings and the reference need.
func TestEntries(t *testing.T) {
	last := 0
	for _, e := range entries {
		if e.Meaning == "" || e.Remedy == "" || len(e.Stages) == 0 || len(e.Outcomes) == 0 {
			t.Errorf("%s lacks something: %+v", e.Code, e)
			continue
		}
		at := slices.Index(Stages(), e.Stages[0])
		if at < last {
			t.Errorf("%s is listed after codes of later stages", e.Code)
		}
		last = at
		for i, o := range e.Outcomes {
			if (i == 0) != (o.When == "") || o.Verdict == "" || o.Who == "" || o.Never && o.Verdict != Blocked {
				t.Errorf("%s: outcome %+v", e.Code, o)
			}
		}
	}
}

// A code without an entry claims nothing.
func TestLookup(t *testing.T) {
	if e := Lookup(TooBig); e.Code != TooBig || e.Outcomes[0].Exit() != ExitNever {
		t.Errorf("got %+v", e)
	}
	if e := Lookup("NO_CODE"); e.Code != "NO_CODE" || e.Outcomes[0].Verdict != Uncertain {
		t.Errorf("got %+v", e)
	}
}

func TestInsufficient(t *testing.T) {
	for resource, want := range map[string]Code{"cpu": InsufficientCPU, "memory": InsufficientMemory, "ephemeral-storage": InsufficientStorage, "pods": InsufficientPods} {
		if got := Insufficient(resource); got != want {
			t.Errorf("%s: got %s", resource, got)
		}
	}
}

func TestStages(t *testing.T) {
	var listed []string
	for _, stage := range Stages() {
		listed = append(listed, string(stage))
	}
	if want := declared(t, "code.go", "Stage"); !slices.Equal(listed, want) {
		t.Errorf("listed %q\ndeclared %q", listed, want)
	}
}
