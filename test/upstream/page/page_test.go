package page

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	for _, c := range []struct{ name, old, want string }{
		{
			"between the lines", "# Title\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nlast\n",
			"# Title\n<!-- speed: begin -->\nnew\n\n<!-- speed: end -->\nlast\n",
		},
		{"another section", "<!-- size: begin -->\n<!-- size: end -->\n", ""},
		{"not ended", "<!-- speed: begin -->\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(c.old), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Section("speed").Write(file, "new\n")
			if c.want == "" {
				if err == nil {
					t.Error("a page without the lines was written")
				}
				c.want = c.old
			} else if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != c.want {
				t.Errorf("the page is\n%s\nnot\n%s (%v)", text, c.want, err)
			}
		})
	}
}
