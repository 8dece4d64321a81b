package howto

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pages are the Markdown files of README.md and docs, below the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	err := filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
		}
		return err
	})
	if err != nil || len(all) < 40 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// links are those to other files, with the part behind #.
var links = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// A link leads to a page that is there, and to a heading that it has.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range links.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
			target, anchor := page, m[2]
			if m[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), m[1]))
			}
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s: %s: there is no such file", page, m[0])
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !hasHeading(read(t, target), anchor) {
				t.Errorf("%s: %s: there is no such heading", page, m[0])
			}
		}
	}
}

func withoutCode(text string) string {
	return regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(text, "")
}

// hasHeading finds a heading by what sites make of it: lower case, dashes for blanks, nothing else.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		heading := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, "")
		if strings.ReplaceAll(heading, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// The site's navigation has every page but those that are found from others, and nothing that is not there.
func TestNavigation(t *testing.T) {
	var config struct {
		Nav []any `json:"nav"`
	}
	if err := yaml.UnmarshalStrict([]byte(withoutRest(read(t, "mkdocs.yml"))), &config); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		case string:
			named["docs/"+v] = true
		}
	}
	walk(config.Nav)
	for _, page := range pages(t) {
		found := named[page]
		delete(named, page)
		if !found && strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/reference/") && !strings.HasPrefix(page, "docs/adr/") {
			t.Errorf("%s is not in the navigation: add it to nav in mkdocs.yml, and to the lists in docs/index.md", page)
		}
	}
	for page := range named {
		t.Errorf("mkdocs.yml names %s, which is not there", page)
	}
}

// withoutRest is the navigation alone.
func withoutRest(config string) string { return config[strings.Index(config, "\nnav:\n")+1:] }
