package printer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

func TestValidate(t *testing.T) {
	tests := []struct{ output, want string }{
		{"", ""}, {"wide", ""}, {"json", ""}, {"name", ""}, {"jsonpath={.metadata.name}", ""}, {"custom-columns=N:.metadata.name", ""},
		{"xml", `--output "xml": must be one of json, yaml, wide, name, jsonpath=, jsonpath-as-json=, go-template=, custom-columns=`},
		{"json=x", `--output "json=x": must be one of json, yaml, wide, name, jsonpath=, jsonpath-as-json=, go-template=, custom-columns=`},
		{"jsonpath", "--output jsonpath needs a template: jsonpath=TEMPLATE"},
		{"jsonpath={", "--output jsonpath={: error parsing jsonpath {, unclosed action"},
		{"custom-columns=N", `--output custom-columns=N: column "N": want HEADER:JSONPATH`},
	}
	for _, tt := range tests {
		t.Run(tt.output, func(t *testing.T) {
			f := Flags{}
			f.AddTableFlags(&cobra.Command{})
			f.Output = tt.output
			got := ""
			if err := f.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPrinter(t *testing.T) {
	obj := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
			"metadata": map[string]any{"name": "llama", "managedFields": []any{map[string]any{"manager": "x"}}}}}
	}
	tests := []struct{ output, want string }{
		{"name", "tfjob.kubeflow.org/llama\n"},
		{"yaml", "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: llama\n"},
		{"jsonpath={.metadata.name}", "llama"},
		{"go-template={{.kind}}", "TFJob"},
		{"custom-columns=N:.metadata.name", "N\nllama\n"},
		{"custom-columns=N:{.metadata.name},KIND:kind,X:.spec.x", "N       KIND    X\nllama   TFJob   <none>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.output, func(t *testing.T) {
			p, err := (&Flags{Output: tt.output}).Printer()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := p.PrintObj(obj(), &out); err != nil || out.String() != tt.want {
				t.Errorf("got %q, %v; want %q", out.String(), err, tt.want)
			}
		})
	}
}

// Whoever may write an annotation may write any character into it: YAML has it, as JSON has.
func TestCharacters(t *testing.T) {
	for _, text := range []string{"a\u009bb", "a\u007f", "\u0085", "\ufeffa", "a\ufffe", "a\x1b[31m\x00", "日本 😀"} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a", "annotations": map[string]any{text: text}}}}
		p, err := (&Flags{Output: YAML}).Printer()
		if err != nil {
			t.Fatal(err)
		}
		var printed, encoded bytes.Buffer
		if err := p.PrintObj(obj, &printed); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := (&Flags{Output: YAML}).Encode(&encoded, obj.Object); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, out := range []string{printed.String(), encoded.String()} {
			read := map[string]any{}
			if err := yaml.Unmarshal([]byte(out), &read); err != nil {
				t.Fatalf("%q: %v: %s", text, err, out)
			}
			if got := (&unstructured.Unstructured{Object: read}).GetAnnotations()[text]; got != text || strings.ContainsAny(out, "\x1b\u009b\u007f") {
				t.Errorf("%q is %q in %q", text, got, out)
			}
		}
	}
}

// Several objects are several documents.
func TestDocuments(t *testing.T) {
	p, err := (&Flags{Output: YAML}).Printer()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, name := range []string{"a", "b"} {
		if err := p.PrintObj(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": name}}}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if want := "apiVersion: v1\nkind: X\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: X\nmetadata:\n  name: b\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestPrintTable(t *testing.T) {
	columns := []Column{{Name: "Name"}, {Name: "Node", Wide: true, Spare: 1}, {Name: "Reason"}}
	long := strings.Repeat("0123456789", 6)
	rows := [][]string{{"llama", "node-1", long}, {"a-longer-name", "n", "two\nlines"}}
	tests := []struct {
		name  string
		flags Flags
		width int
		want  string
	}{
		{"piped", Flags{}, 0, "NAME            REASON\nllama           " + long + "\na-longer-name   two lines\n"},
		{"terminal", Flags{}, 50, "NAME            REASON\nllama           " + long[:33] + "…\na-longer-name   two lines\n"},
		{"narrow terminal", Flags{}, 10, "NAME     …\nllama    …\na-longer-…\n"},
		{"a column is spared", Flags{Output: Wide}, 40, "NAME            REASON\nllama           " + long[:23] + "…\na-longer-name   two lines\n"},
		{"wide, no headers", Flags{Output: Wide, NoHeaders: true}, 0, "llama           node-1   " + long + "\na-longer-name   n        two lines\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := PrintTable(&out, tt.flags, tt.width, columns, rows); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), tt.want)
			}
		})
	}
}

// The width of a table is that of what is seen: bytes and characters are more or fewer.
func TestTableOfWideText(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, name := range []string{"ü-ü-ü-ü", "日本-日本"} {
		var out bytes.Buffer
		if err := PrintTable(&out, Flags{NoHeaders: true}, 40, []Column{{Name: "A"}, {Name: "B"}}, [][]string{{name, long}}); err != nil {
			t.Fatal(err)
		}
		if got := wrap.Columns(strings.TrimSuffix(out.String(), "\n")); got > 40 || got < 39 {
			t.Errorf("%q: a line of %d columns: %s", name, got, out.String())
		}
	}
}

func TestPrintFields(t *testing.T) {
	var out strings.Builder
	if err := PrintFields(&out, "  ", 0, Field{"Name", "llama"}, Field{"Scheduler", "gang"}, Field{"Reason", "no room\n\tAge: 7d"}, Field{"A longer one", ""}); err != nil {
		t.Fatal(err)
	}
	var folded strings.Builder
	if err := PrintFields(&folded, "", 20, Field{"Name", "llama"}, Field{"Reason", "no room for any of 4 workers"}); err != nil {
		t.Fatal(err)
	}
	if want := "Name:   llama\nReason: no room for\n        any of 4\n        workers\n"; folded.String() != want {
		t.Errorf("got %q, want %q", folded.String(), want)
	}
	if want := "  Name:         llama\n  Scheduler:    gang\n  Reason:       no room Age: 7d\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A program takes parts of an answer by a template. Whole numbers stay whole.
func TestEncode(t *testing.T) {
	value := map[string]any{"apiVersion": "gangctl.why/v1", "exit": 3, "bytes": 68719476736, "items": []string{"a", "b"}}
	for output, want := range map[string]string{
		"json":                                  "{\n  \"apiVersion\": \"gangctl.why/v1\",\n  \"bytes\": 68719476736,\n  \"exit\": 3,\n  \"items\": [\n    \"a\",\n    \"b\"\n  ]\n}\n",
		"yaml":                                  "apiVersion: gangctl.why/v1\nbytes: 68719476736\nexit: 3\nitems:\n- a\n- b\n",
		"jsonpath={.exit} {.bytes} {.items[1]}": "3 68719476736 b",
		"go-template={{.exit}}{{index .items 0}}": "3a",
	} {
		var out strings.Builder
		f := &Flags{Output: output}
		if err := f.Encode(&out, value); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v", output, out.String(), err)
		}
	}
}
