// Package howto extracts the command lines of the documentation, so that tests can type them.
package howto

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Line is a command line in a page.
type Line struct {
	// Page is the file, below the root of the tree; Number is that of its first line.
	Page   string
	Number int
	// Text is what is typed into a shell; lines that end with a backslash are joined.
	Text string
}

// Place is PAGE:NUMBER.
func (l Line) Place() string { return l.Page + ":" + strconv.Itoa(l.Number) }

// Documented are the command lines of ours in README.md and the pages below docs, in order. Decisions (docs/adr) describe what was, and
// are left out.
func Documented(root string) ([]Line, error) {
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "adr" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			page, err := filepath.Rel(root, path)
			pages = append(pages, filepath.ToSlash(page))
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Line
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		all = append(all, lines(page, string(text))...)
	}
	return all, nil
}

// ours begins a command of ours: at the start of a line, behind an operator, or in a substitution.
var ours = regexp.MustCompile(`(?:^|[|;&(]\s*)(?:gangctl|gangctl-sandbox|kubectl gang|make)(?:\s|$|\))`)

// lines are the commands of ours in the code of a page. In a block with prompts, only what follows a prompt is typed. In the
// reference, which is made from the help, only the examples are.
func lines(page, text string) []Line {
	examplesOnly := strings.HasPrefix(page, "docs/reference/")
	var found []Line
	for _, b := range blocks(text) {
		if examplesOnly && b.section != "Examples" {
			continue
		}
		prompts := slices.ContainsFunc(b.lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "$ ") })
		for i := 0; i < len(b.lines); i++ {
			line, isCommand := strings.CutPrefix(strings.TrimSpace(b.lines[i]), "$ ")
			if prompts && !isCommand {
				continue
			}
			number := b.first + i
			for strings.HasSuffix(line, `\`) && i+1 < len(b.lines) {
				i++
				line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(strings.TrimPrefix(b.lines[i], "> "))
			}
			if ours.MatchString(line) {
				found = append(found, Line{Page: page, Number: number, Text: strings.TrimSpace(line)})
			}
		}
	}
	return found
}

// block is code in a page, without its indentation.
type block struct {
	section string
	first   int // number of its first line
	lines   []string
}

// notShell are the languages of fenced code that is not typed into a shell.
var notShell = []string{"yaml", "json", "go", "toml", "ini", "python", "xml", "text"}

// blocks are the fenced and the indented code of a page.
func blocks(text string) []block {
	var all []block
	var now *block
	section, fence, indent := "", "", 0
	end := func() {
		if now != nil && len(now.lines) > 0 {
			all = append(all, *now)
		}
		now = nil
	}
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case fence != "":
			if bare == fence {
				fence = ""
				end()
			} else if now != nil {
				now.lines = append(now.lines, cutIndent(line, indent))
			}
		case strings.HasPrefix(bare, "```"):
			end()
			fence, indent = "```", len(line)-len(strings.TrimLeft(line, " "))
			if language, _, _ := strings.Cut(strings.TrimPrefix(bare, "```"), " "); !slices.Contains(notShell, language) {
				now = &block{section: section, first: i + 2}
			}
		case strings.HasPrefix(line, "    ") && bare != "":
			if now == nil {
				now = &block{section: section, first: i + 1}
				indent = len(line) - len(strings.TrimLeft(line, " "))
			}
			now.lines = append(now.lines, cutIndent(line, indent))
		default:
			end()
			if strings.HasPrefix(line, "#") {
				section = strings.TrimSpace(strings.TrimLeft(line, "#"))
			}
		}
	}
	end()
	return all
}

// cutIndent takes away blanks at the beginning of a line, at most n.
func cutIndent(line string, n int) string {
	for range n {
		line = strings.TrimPrefix(line, " ")
	}
	return line
}
