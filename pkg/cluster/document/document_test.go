package document

import (
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string // line: JSON
	}{
		"yaml":                {"# head\n---\na: 1\n--- # next\n# only a comment\n---\n\nb: [2]\n...\n", []string{`3: {"a":1}`, `7: {"b":[2]}`}},
		"no separator":        {"a: 1", []string{`1: {"a":1}`}},
		"dashes in text":      {"a: |\n  ---x\nb: '---'\n", []string{`1: {"a":"---x\n","b":"---"}`}},
		"json":                {"{\"a\": 1}\n\n{\"b\": 2}", []string{`1: {"a": 1}`, `3: {"b": 2}`}},
		"json between dashes": {"{\"a\": 1}\n---\n{\"b\": 2} {\"c\": 3}\n---\nd: 4\n", []string{`1: {"a": 1}`, `3: {"b": 2}`, `3: {"c": 3}`, `5: {"d":4}`}},
		"yaml in braces":      {"{a: 1}\n---\n{b: 2}\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"windows":             {"a: 1\r\n---\r\nb: 2\r\n", []string{`1: {"a":1}`, `3: {"b":2}`}},
		"nothing":             {"# nothing\n---\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			docs, err := Split([]byte(tt.text))
			if err != nil || len(docs) != len(tt.want) {
				t.Fatalf("got %d documents, %v, want %d", len(docs), err, len(tt.want))
			}
			for i, d := range docs {
				line, want, _ := strings.Cut(tt.want[i], ": ")
				if got := d.Errorf(0, "%s", d.JSON).Error(); !strings.Contains(got, ", line "+line+": ") || string(d.JSON) != want || d.Number != i+1 {
					t.Errorf("got %s, want %s", got, tt.want[i])
				}
				if !strings.Contains(tt.text, string(d.Text)) {
					t.Errorf("the text is not that of the stream: %q", d.Text)
				}
			}
		})
	}
}

func TestSplitErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\nb: 2\n  c: [\n":   "document 2, line 4: invalid YAML",
		"{\"a\": 1}\n{\"b\": }":       "document 2, line 2: invalid JSON",
		"{\"a\": 1,\n\"b\": 2,\n":     "document 1, line 2: invalid JSON: unexpected EOF",
		"a: 1\n---\nkey: 'x\n\n\ny: ": "document 2, line",
	} {
		if _, err := Split([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
