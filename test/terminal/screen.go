package terminal

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is how a character looks: the parameters of ECMA-48's SGR that gangctl and shells use.
type Style struct {
	// Foreground and Background are the numbers of SGR, 30 to 37, 90 to 97 and 40 to 47, 100 to 107; 0 is the terminal's own.
	Foreground, Background int
	Bold, Reverse          bool
}

// Cell is a character on the screen.
type Cell struct {
	Rune  rune
	Style Style
}

// Screen is what a terminal shows. It understands what xterm does as far as programs here use it, and ignores the rest.
type Screen struct {
	// Title is the last that a program has set.
	Title string

	columns, rows int
	cells         [][]Cell
	x, y          int
	style         Style
	rest          []byte // the beginning of a sequence or a character whose end has not come
}

// NewScreen returns an empty screen.
func NewScreen(columns, rows int) *Screen {
	s := &Screen{columns: columns, rows: rows}
	for range rows {
		s.cells = append(s.cells, blank(columns))
	}
	return s
}

func blank(columns int) []Cell {
	row := make([]Cell, columns)
	for i := range row {
		row[i].Rune = ' '
	}
	return row
}

func (s *Screen) clone() *Screen {
	c := *s
	c.cells = make([][]Cell, len(s.cells))
	for i, row := range s.cells {
		c.cells[i] = slices.Clone(row)
	}
	return &c
}

// Lines are the rows as text, without blanks at their ends and without empty rows at the end.
func (s *Screen) Lines() []string {
	lines := make([]string, len(s.cells))
	for i, row := range s.cells {
		var b strings.Builder
		for _, c := range row {
			b.WriteRune(c.Rune)
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// String is the screen as text.
func (s *Screen) String() string { return strings.Join(s.Lines(), "\n") }

// Write shows what a program prints. It never fails.
func (s *Screen) Write(p []byte) {
	data := append(s.rest, p...)
	for len(data) > 0 {
		n := s.next(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	s.rest = slices.Clone(data)
}

// next shows one character or obeys one sequence and returns its length; 0 if its end is missing.
func (s *Screen) next(data []byte) int {
	switch c := data[0]; {
	case c == 0x1b:
		return s.escape(data)
	case c == '\r':
		s.x = 0
	case c == '\n':
		s.down()
	case c == '\b':
		s.x = max(0, min(s.x, s.columns-1)-1)
	case c == '\t':
		s.x = min(s.columns-1, (s.x/8+1)*8)
	case c < ' ':
	default:
		if !utf8.FullRune(data) {
			return 0
		}
		r, n := utf8.DecodeRune(data)
		s.put(r)
		return n
	}
	return 1
}

// put shows a character. After the last column the cursor waits for the next one before it goes on below.
func (s *Screen) put(r rune) {
	if s.x >= s.columns {
		s.x = 0
		s.down()
	}
	s.cells[s.y][s.x] = Cell{Rune: r, Style: s.style}
	s.x++
}

func (s *Screen) down() {
	if s.y < s.rows-1 {
		s.y++
		return
	}
	s.cells = append(s.cells[1:], blank(s.columns))
}

// escape obeys a sequence: CSI, OSC, or one of two or three bytes.
func (s *Screen) escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '[':
		for i := 2; i < len(data); i++ {
			if data[i] >= 0x40 && data[i] <= 0x7e {
				s.control(string(data[2:i]), data[i])
				return i + 1
			}
		}
		return 0
	case ']': // a title or the like: until BEL or ST
		for i := 2; i < len(data); i++ {
			if data[i] == 0x07 || data[i] == '\\' && data[i-1] == 0x1b {
				if title, ok := strings.CutPrefix(string(data[2:i]), "0;"); ok {
					s.Title = strings.TrimSuffix(title, "\x1b")
				}
				return i + 1
			}
		}
		return 0
	case '(', ')', '#':
		if len(data) < 3 {
			return 0
		}
		return 3
	case 'M': // reverse index
		s.y = max(0, s.y-1)
	}
	return 2
}

// control obeys a CSI sequence.
func (s *Screen) control(parameters string, final byte) {
	if strings.HasPrefix(parameters, "?") {
		if parameters == "?1049" { // the other screen, which is empty; what was on this one is not kept
			s.erase(0, 0, s.rows-1, s.columns-1)
			s.x, s.y = 0, 0
		}
		return
	}
	var n []int
	for p := range strings.SplitSeq(parameters, ";") {
		v, _ := strconv.Atoi(p) // absent is 0
		n = append(n, v)
	}
	at := func(i int) int {
		if i < len(n) {
			return max(1, n[i])
		}
		return 1
	}
	x := min(s.x, s.columns-1)
	switch final {
	case 'A':
		s.y = max(0, s.y-at(0))
	case 'B':
		s.y = min(s.rows-1, s.y+at(0))
	case 'C':
		s.x = min(s.columns-1, x+at(0))
	case 'D':
		s.x = max(0, x-at(0))
	case 'G':
		s.x = min(s.columns, at(0)) - 1
	case 'H', 'f':
		s.y, s.x = min(s.rows, at(0))-1, min(s.columns, at(1))-1
	case 'J':
		switch n[0] {
		case 0:
			s.erase(s.y, x, s.rows-1, s.columns-1)
		case 1:
			s.erase(0, 0, s.y, x)
		default:
			s.erase(0, 0, s.rows-1, s.columns-1)
		}
	case 'K':
		switch n[0] {
		case 0:
			s.erase(s.y, s.x, s.y, s.columns-1)
		case 1:
			s.erase(s.y, 0, s.y, x)
		default:
			s.erase(s.y, 0, s.y, s.columns-1)
		}
	case 'P':
		row := s.cells[s.y]
		copy(row[x:], row[min(s.columns, x+at(0)):])
		s.erase(s.y, max(x, s.columns-at(0)), s.y, s.columns-1)
	case '@':
		row := s.cells[s.y]
		copy(row[min(s.columns, x+at(0)):], slices.Clone(row[x:]))
		s.erase(s.y, x, s.y, min(s.columns, x+at(0))-1)
	case 'm':
		s.style = s.style.with(n)
	}
}

// erase blanks what is from one place to another, both included.
func (s *Screen) erase(fromY, fromX, toY, toX int) {
	for y := fromY; y <= toY; y++ {
		first, last := 0, s.columns-1
		if y == fromY {
			first = fromX
		}
		if y == toY {
			last = toX
		}
		for x := first; x <= last; x++ {
			s.cells[y][x] = Cell{Rune: ' '}
		}
	}
}

// with applies the parameters of SGR.
func (s Style) with(parameters []int) Style {
	for _, p := range parameters {
		switch {
		case p == 0:
			s = Style{}
		case p == 1:
			s.Bold = true
		case p == 22:
			s.Bold = false
		case p == 7:
			s.Reverse = true
		case p == 27:
			s.Reverse = false
		case p >= 30 && p <= 37, p >= 90 && p <= 97:
			s.Foreground = p
		case p == 39:
			s.Foreground = 0
		case p >= 40 && p <= 47, p >= 100 && p <= 107:
			s.Background = p
		case p == 49:
			s.Background = 0
		}
	}
	return s
}

// Rewrite replaces the text of rows, character by character, with what change makes of it; what it leaves out at the end of a row is
// blank, and the styles stay.
func (s *Screen) Rewrite(change func(row string) string) {
	for _, row := range s.cells {
		var b strings.Builder
		for _, c := range row {
			b.WriteRune(c.Rune)
		}
		changed := []rune(change(strings.TrimRight(b.String(), " ")))
		for i := range row {
			row[i].Rune = ' '
			if i < len(changed) {
				row[i].Rune = changed[i]
			}
		}
	}
}
