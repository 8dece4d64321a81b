// Package transcript plays the sessions that pages of the documentation show: what is typed there is typed, and what it prints is put
// below it. The code blocks are those of the language console; lines that begin with "$ " are typed, the others are their output.
//
// Comments before a block configure it:
//
//	<!-- until: REGEXP -->                                 type the last line again until its output matches
//	<!-- lines: N -->                                      show the first N lines of each output, and "..."
//	<!-- setup: COMMAND -->                                type this first; it is not shown
//	<!-- screen: FILE COLUMNSxROWS REGEXP: COMMAND -->     instead of a block: a picture of the terminal when it matches
package transcript

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Step is one block, or one picture, of a page.
type Step struct {
	// first and last are the lines of the page between its fences, the last one not included.
	first, last int
	Setup       []string
	Until       *regexp.Regexp
	// Lines bounds each output; 0 is no bound.
	Lines    int
	Commands []Command
	Screen   *Picture
}

// Command is what is typed, and what the page shows as its output.
type Command struct {
	// Shown is how the page shows the command, with its prompt; Typed is the command itself.
	Shown  []string
	Typed  string
	Output []string
}

// Picture is a screen to be drawn.
type Picture struct {
	File          string
	Columns, Rows int
	Until         *regexp.Regexp
	Command       string
}

// Page is a page and its steps.
type Page struct {
	lines []string
	Steps []Step
}

var comment = regexp.MustCompile(`^\s*<!-- (until|lines|setup|screen): (.*) -->$`)

// Parse reads a page.
func Parse(text string) (*Page, error) {
	p := &Page{lines: strings.Split(text, "\n")}
	var next Step
	for i := 0; i < len(p.lines); i++ {
		if m := comment.FindStringSubmatch(p.lines[i]); m != nil {
			if err := next.apply(m[1], m[2]); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			if next.Screen != nil {
				p.Steps, next = append(p.Steps, next), Step{}
			}
			continue
		}
		if p.lines[i] != "```console" {
			continue
		}
		next.first = i + 1
		for i++; i < len(p.lines) && p.lines[i] != "```"; i++ {
		}
		if i == len(p.lines) {
			return nil, fmt.Errorf("line %d: the block has no end", next.first)
		}
		next.last = i
		if err := next.read(p.lines[next.first:next.last]); err != nil {
			return nil, fmt.Errorf("line %d: %w", next.first, err)
		}
		p.Steps, next = append(p.Steps, next), Step{}
	}
	return p, nil
}

func (s *Step) apply(key, value string) error {
	var err error
	switch key {
	case "until":
		s.Until, err = regexp.Compile(value)
	case "lines":
		s.Lines, err = strconv.Atoi(value)
	case "setup":
		s.Setup = append(s.Setup, value)
	case "screen":
		s.Screen, err = picture(value)
	}
	return err
}

var picturePattern = regexp.MustCompile(`^(\S+) (\d+)x(\d+) (.*?): (.*)$`)

func picture(text string) (*Picture, error) {
	m := picturePattern.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("screen: %q: want FILE COLUMNSxROWS REGEXP: COMMAND", text)
	}
	columns, _ := strconv.Atoi(m[2]) // the pattern has digits only
	rows, _ := strconv.Atoi(m[3])
	until, err := regexp.Compile(m[4])
	return &Picture{File: m[1], Columns: columns, Rows: rows, Until: until, Command: m[5]}, err
}

// read takes the commands and their output from a block.
func (s *Step) read(lines []string) error {
	for i := 0; i < len(lines); i++ {
		typed, isCommand := strings.CutPrefix(lines[i], "$ ")
		if !isCommand {
			if len(s.Commands) == 0 {
				return fmt.Errorf("%q: no command stands before it", lines[i])
			}
			last := &s.Commands[len(s.Commands)-1]
			last.Output = append(last.Output, lines[i])
			continue
		}
		c := Command{Shown: []string{lines[i]}, Typed: typed}
		for strings.HasSuffix(lines[i], `\`) && i+1 < len(lines) {
			i++
			c.Shown, c.Typed = append(c.Shown, lines[i]), c.Typed+"\n"+lines[i]
		}
		s.Commands = append(s.Commands, c)
	}
	return nil
}

// String is the page with the output that its steps have now.
func (p *Page) String() string {
	var out []string
	at := 0
	for _, s := range p.Steps {
		if s.Screen != nil {
			continue
		}
		out = append(out, p.lines[at:s.first]...)
		for _, c := range s.Commands {
			out = append(append(out, c.Shown...), c.Output...)
		}
		at = s.last
	}
	return strings.Join(append(out, p.lines[at:]...), "\n")
}
