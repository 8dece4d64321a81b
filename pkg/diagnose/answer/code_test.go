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
