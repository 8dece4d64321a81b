package help

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// constants are the constants of a source file whose names begin with a prefix, or that are of a type, by name.
func constants(t *testing.T, file, prefix, typed string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name := spec.Names[0].Name
		kind, _ := spec.Type.(*ast.Ident)
		value, literal := spec.Values[0].(*ast.BasicLit)
		if literal && (prefix != "" && strings.HasPrefix(name, prefix) || typed != "" && kind != nil && kind.Name == typed) {
			found[name] = strings.Trim(value.Value, `"`)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s holds none", file)
	}
	return found
}

// The topic lists what the code has, no more and no less.
func TestAllCodesAreListed(t *testing.T) {
	defined := map[int]string{}
	for _, source := range []map[string]string{constants(t, "../../cli/failure/failure.go", "", "Code"), constants(t, "../../diagnose/answer/verdict.go", "Exit", "")} {
		for name, value := range source {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatalf("%s = %s", name, value)
			}
			defined[n] = name
		}
	}
	listed := map[int]bool{}
	long := newExitCodes().Long
	for _, m := range meanings() {
		listed[m.Code] = true
		if defined[m.Code] == "" {
			t.Errorf("%d is listed, but no code of gangctl", m.Code)
		}
		if !regexp.MustCompile(`(?m)^ +` + strconv.Itoa(m.Code) + `  \S`).MatchString(long) {
			t.Errorf("%d is not in the text:\n%s", m.Code, long)
		}
		for _, line := range m.Lines {
			if !strings.Contains(long, line) {
				t.Errorf("%q is not in the text", line)
			}
		}
	}
	for n, name := range defined {
		if !listed[n] {
			t.Errorf("%s (%d) is not listed", name, n)
		}
	}
}

func TestAllVerdictsAreListed(t *testing.T) {
	for name, verdict := range constants(t, "../../diagnose/answer/verdict.go", "", "Verdict") {
		if !slices.Contains(allVerdicts(), answer.Verdict(verdict)) || !strings.Contains(newExitCodes().Long, verdict) {
			t.Errorf("%s (%s) is not listed", name, verdict)
		}
	}
}

// The reference of answers has the same codes for the same verdicts.
func TestReferenceAgrees(t *testing.T) {
	text, err := os.ReadFile("../../../docs/why-pending/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z_, ]+) \|.*\| (\d) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) != 9 {
		t.Fatalf("%d rows of verdicts, want 9", len(rows))
	}
	for _, row := range rows {
		code, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		for _, verdict := range strings.Split(row[1], ", ") {
			if !slices.Contains(strings.Split(verdicts(code), ", "), verdict) {
				t.Errorf("%s has exit code %d in the reference, not in the code", verdict, code)
			}
		}
	}
}
