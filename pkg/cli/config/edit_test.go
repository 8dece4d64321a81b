package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// edited writes a file, changes it, and returns what it holds then.
func edited(t *testing.T, content string, change func(*Edit) error) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gangctl", "config.yaml")
	if content != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(path)
	if err == nil {
		err = change(e)
	}
	if err == nil {
		err = e.Save()
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), path, "FILE"), err
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(now), nil
}

func setOf(profile, key string, plain bool, values ...string) func(*Edit) error {
	return func(e *Edit) error { return e.Set(profile, key, values, plain) }
}

func unsetOf(profile, key string) func(*Edit) error {
	return func(e *Edit) error { return e.Unset(profile, key) }
}

func TestEdit(t *testing.T) {
	const file = "# mine\nimage: old # why\nQueue: a\nprofiles:\n  # many\n  big:\n    gpus: 8\n"
	use := func(name string) func(*Edit) error { return func(e *Edit) error { return e.UseProfile(name) } }
	tests := []struct {
		name, file string
		change     func(*Edit) error
		want       string
	}{
		{"no file", "", setOf("", "image", false, "i"), "image: i\n"},
		{"nothing but comments", "# mine\n\n# and mine\n", setOf("", "image", false, "i"), "# mine\n# and mine\n\nimage: i\n"},
		{"empty mapping", "{}\n", setOf("", "image", false, "i"), "image: i\n"},
		{"text that looks like a number", "", setOf("", "image", false, "2.10"), "image: \"2.10\"\n"},
		{"number", "", setOf("", "workers", true, "4"), "workers: 4\n"},
		{"list", "", setOf("", "env", false, "A=b c", "B=#1"), "env:\n  - A=b c\n  - B=#1\n"},
		{"replaced", file, setOf("", "image", false, "new"), strings.Replace(file, "old", "new", 1)},
		{"key in another case", file, setOf("", "queue", false, "b"), strings.Replace(file, "Queue: a", "Queue: b", 1)},
		{"in a profile", file, setOf("big", "image", false, "i"), file + "    image: i\n"},
		{"in a new profile", file, setOf("small", "gpus", true, "1"), file + "  small:\n    gpus: 1\n"},
		{"in an empty profile", "profiles:\n  big:\n", setOf("big", "gpus", true, "1"), "profiles:\n  big:\n    gpus: 1\n"},
		{"unset", file, unsetOf("", "image"), "Queue: a\nprofiles:\n  # many\n  big:\n    gpus: 8\n"},
		{"unset in a profile", file, unsetOf("big", "gpus"), strings.Replace(file, "big:\n    gpus: 8", "big: {}", 1)},
		{"profile chosen", file, use("Big"), file + "profile: big\n"},
		{"no such profile", file, use("small"), `profile "small" is not in FILE`},
		{"unset what is not there", file, unsetOf("big", "gpu"), "settings FILE: profile big: gpu is not set"},
		{"unset in no profile", "", unsetOf("big", "gpu"), "settings FILE: profile big: gpu is not set"},
		{"broken", "image: i\n workers: 3\n", setOf("", "image", false, "i"), "settings FILE: line 2: mapping values are not allowed in this context"},
		{"twice", "image: i\nimage: j\n", unsetOf("", "image"), `settings FILE: line 2: mapping key "image" already defined at line 1`},
		{"two documents", "image: i\n---\nimage: j\n", unsetOf("", "image"), "settings FILE: holds more than one document"},
		{"alias", "x: &a {gpus: 1}\nprofiles:\n  big: *a\n", setOf("big", "gpus", true, "2"), "settings FILE: line 3: big is no plain mapping"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := edited(t, tt.file, tt.change); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A near miss is reported.
func TestUnsetHints(t *testing.T) {
	_, err := edited(t, "imgae: i\n", unsetOf("", "image"))
	if got := failure.From(err); got == nil || got.Hint != `did you mean "imgae"?` {
		t.Errorf("got %+v", got)
	}
}

// What a link points to changes, and the link stays.
func TestSaveKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles.yaml"), filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(target, []byte("image: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	e, err := Open(link)
	if err == nil {
		err = e.Set("", "image", []string{"b"}, false)
	}
	if err == nil {
		err = e.Save()
	}
	content, readErr := os.ReadFile(target)
	if info, statErr := os.Lstat(link); err != nil || readErr != nil || statErr != nil || info.Mode()&os.ModeSymlink == 0 || string(content) != "image: b\n" {
		t.Errorf("got %q, %v, %v, %v", content, err, readErr, statErr)
	}
}

// A file that cannot be written stays, and nothing is left next to it.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gangctl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Edit{path: filepath.Join(dir, "gangctl", "config.yaml")}
	e.doc.Kind = 1
	e.doc.Content = append(e.doc.Content, scalar("", true))
	if err := e.Save(); err == nil || !strings.HasPrefix(err.Error(), "write settings: ") || !strings.Contains(failure.From(err).Hint, "XDG_CONFIG_HOME") {
		t.Errorf("got %v", err)
	}
}
