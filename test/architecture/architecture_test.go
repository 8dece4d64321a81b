package architecture

import (
	"encoding/xml"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	tree   = "../.."
	module = "github.com/gangctl/gangctl/"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(tree, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func drawing(t *testing.T) Drawing {
	t.Helper()
	d, err := Parse(read(t, "docs/architecture.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// imports returns the packages of this module, by their folders, with the folders that each imports outside of tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	err := filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != tree && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || nested == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(tree, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		packages[dir] = append(packages[dir], []string{}...) // a package of tests only is one, too
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, spec := range file.Imports {
			if name, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasPrefix(name, module) {
				packages[dir] = append(packages[dir], strings.TrimPrefix(name, module))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// below reports whether a package is a room's: in its folder or below.
func below(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

func TestPicture(t *testing.T) {
	d := drawing(t)
	want, err := d.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if read(t, "docs/architecture.svg") != want {
		t.Error("docs/architecture.svg is not what docs/architecture.txt says: make generate, and look at what changed")
	}
	for decoder := xml.NewDecoder(strings.NewReader(want)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if d.Width > 90 {
		t.Errorf("the picture is %d pixels wide, want 900 or less", cell*d.Width)
	}
}

// A room is wide enough for its text, which is measured generously: what is drawn depends on the reader's fonts.
func TestTextFits(t *testing.T) {
	for _, r := range drawing(t).Rooms {
		for _, line := range r.Text {
			if width := 6 * len(line); width > cell*r.Width-10 {
				t.Errorf("%s: %q takes %d pixels of %d", r.Path, line, width, cell*r.Width-10)
			}
		}
		if height := 17 + 16*len(r.Text); height > cell*r.Height {
			t.Errorf("%s: its text is %d pixels high, and it is %d", r.Path, height, cell*r.Height)
		}
	}
}

func TestRoomsDoNotOverlap(t *testing.T) {
	d := drawing(t)
	for i, a := range d.Rooms {
		if a.X+a.Width > d.Width || a.Y+a.Height > d.Height {
			t.Errorf("%s is outside of the picture", a.Path)
		}
		for _, b := range d.Rooms[:i] {
			if !b.Frame && a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height {
				t.Errorf("%s and %s overlap", b.Path, a.Path)
			}
		}
	}
}

// The picture is of this tree: every package is in a room, every room has packages, every arrow is an import.
func TestPictureIsOfTheTree(t *testing.T) {
	d, packages := drawing(t), imports(t)
	for dir := range packages {
		if !slices.ContainsFunc(d.Rooms, func(r Room) bool { return below(dir, r.Path) }) {
			t.Errorf("%s is in no room", dir)
		}
	}
	for _, r := range d.Rooms {
		if _, err := os.Stat(filepath.Join(tree, r.Path)); err != nil {
			t.Errorf("room %s: %v", r.Path, err)
		}
	}
	for _, a := range d.Arrows {
		drawn := false
		for dir, names := range packages {
			drawn = drawn || below(dir, a.From) && slices.ContainsFunc(names, func(name string) bool { return below(name, a.To) })
		}
		if a.Imports && !drawn {
			t.Errorf("nothing of %s imports anything of %s", a.From, a.To)
		}
	}
	for dir := range packages {
		own := func(r Room) bool { return r.Path != "scheduler" && below(dir, r.Path) }
		if strings.HasPrefix(dir, "scheduler/") && !slices.ContainsFunc(d.Rooms, own) {
			t.Errorf("%s has no room of its own", dir)
		}
	}
}

var (
	code = regexp.MustCompile("`([^`]+)`")
	// ofTheTree matches what is a path of this repository; the rest after a folder may be a pattern: pkg/cmd/<verb>.
	ofTheTree = regexp.MustCompile(`^(?:cmd|completions|docs|install|internal|pkg|sandbox|scheduler|templates|test)(?:/[\w.<>*-]*)*$`)
	variable  = regexp.MustCompile(`<[^>]*>`)
)

// The pages on where things are name what is there.
func TestPathsInPages(t *testing.T) {
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		found := 0
		for _, match := range code.FindAllStringSubmatch(read(t, page), -1) {
			if !ofTheTree.MatchString(match[1]) {
				continue
			}
			found++
			paths, err := filepath.Glob(filepath.Join(tree, variable.ReplaceAllString(match[1], "*")))
			if err != nil {
				t.Errorf("%s: %s: %v", page, match[1], err)
			} else if len(paths) == 0 {
				t.Errorf("%s: %s does not exist", page, match[1])
			}
		}
		if found < 20 {
			t.Errorf("%s names %d paths, want 20 or more: is what looks for them still right?", page, found)
		}
	}
}

// A file that is named without its folder is in one of the folders that its line names.
func TestFilesInPages(t *testing.T) {
	bare, found := regexp.MustCompile(`^[a-z]\w*\.go$`), 0
	for i, line := range strings.Split(read(t, "docs/architecture.md"), "\n") {
		var folders, files []string
		for _, match := range code.FindAllStringSubmatch(line, -1) {
			switch name := variable.ReplaceAllString(match[1], "*"); {
			case bare.MatchString(name):
				files = append(files, name)
			case ofTheTree.MatchString(match[1]) && strings.Contains(filepath.Base(name), "."):
				folders = append(folders, filepath.Dir(name))
			case ofTheTree.MatchString(match[1]):
				folders = append(folders, name)
			}
		}
		for _, file := range files {
			found++
			if !slices.ContainsFunc(folders, func(folder string) bool {
				paths, err := filepath.Glob(filepath.Join(tree, folder, file))
				return err == nil && len(paths) > 0
			}) {
				t.Errorf("docs/architecture.md:%d: %s is in none of %s", i+1, file, strings.Join(folders, ", "))
			}
		}
	}
	if found < 50 {
		t.Errorf("%d files are named, want 50 or more: is what looks for them still right?", found)
	}
}

// The table of CONTRIBUTING.md has a row for every package.
func TestHouseIsComplete(t *testing.T) {
	var patterns []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		for _, match := range code.FindAllStringSubmatch(row[1], -1) {
			if ofTheTree.MatchString(match[1]) {
				patterns = append(patterns, strings.TrimRight(variable.ReplaceAllString(match[1], ""), "/"))
			}
		}
	}
	for dir := range imports(t) {
		if !slices.ContainsFunc(patterns, func(pattern string) bool { return below(dir, pattern) }) {
			t.Errorf("%s is not in the house of CONTRIBUTING.md", dir)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, source := range []string{"room 1 2 3", "room a 2 3 4 pkg/x", "hall 1 2 3 4 pkg/x", "a => b", "a -> b beside c"} {
		if _, err := Parse("size 10 10\n" + source); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: got %v, want an error of line 2", source, err)
		}
	}
}

func TestArrowsThatCannotBeDrawn(t *testing.T) {
	const rooms = "size 40 40\nroom 1 1 5 5 a\nroom 1 10 5 5 b\nroom 1 20 5 5 c\nroom 20 30 5 5 d\n"
	for arrow, want := range map[string]string{
		"a -> c": "b stands between a and c",
		"a -> d": "a and d do not face each other",
		"a -> e": "no room e",
	} {
		d, err := Parse(rooms + arrow)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.SVG(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", arrow, err, want)
		}
	}
}
