// Package architecture draws the packages of this module as one picture, docs/architecture.svg, from docs/architecture.txt, and holds
// the pages that describe them to the tree.
package architecture

import (
	"errors"
	"fmt"
	"html"
	"path"
	"strings"
)

//go:generate go run ./generate ../../docs/architecture.txt ../../docs/architecture.svg

// cell is the unit of the source, in pixels.
const cell = 10

// Room is a box of the picture: the package Path and all below it, unless these have rooms of their own.
type Room struct {
	X, Y, Width, Height int
	Path                string
	Text                []string
	// Frame is set of a room that is drawn around others.
	Frame bool
}

// Arrow leads from room to room.
type Arrow struct {
	From, To string
	// Imports is false of what flows between packages that know each other by interface only.
	Imports bool
	// At is the column of an upright arrow or the row of a level one; 0 is the middle of what the rooms have in common.
	At int
}

// Drawing is what a source describes. Sizes and positions are in cells of ten pixels.
type Drawing struct {
	Width, Height int
	Rooms         []Room
	Arrows        []Arrow
}

// Parse reads the source of a drawing. Its errors name the line.
func Parse(source string) (Drawing, error) {
	var d Drawing
	for i, line := range strings.Split(source, "\n") {
		if err := d.parseLine(line); err != nil {
			return Drawing{}, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return d, nil
}

func (d *Drawing) parseLine(line string) error {
	line, text, _ := strings.Cut(strings.TrimSpace(line), "|")
	fields := strings.Fields(line)
	if len(fields) == 0 || strings.HasPrefix(line, "#") {
		return nil
	}
	switch fields[0] {
	case "size":
		_, err := fmt.Sscan(strings.Join(fields[1:], " "), &d.Width, &d.Height)
		return err
	case "room", "frame":
		room := Room{Frame: fields[0] == "frame"}
		if _, err := fmt.Sscan(strings.Join(fields[1:], " "), &room.X, &room.Y, &room.Width, &room.Height, &room.Path); err != nil {
			return err
		}
		for _, part := range strings.Split(text, "|") {
			room.Text = append(room.Text, strings.TrimSpace(part))
		}
		d.Rooms = append(d.Rooms, room)
		return nil
	}
	if len(fields) < 3 || fields[1] != "->" && fields[1] != "~>" {
		return errors.New("want size, room, frame or an arrow")
	}
	arrow := Arrow{From: fields[0], To: fields[2], Imports: fields[1] == "->"}
	if len(fields) > 3 {
		if _, err := fmt.Sscanf(strings.Join(fields[3:], " "), "at %d", &arrow.At); err != nil {
			return err
		}
	}
	d.Arrows = append(d.Arrows, arrow)
	return nil
}

func (d *Drawing) room(path string) (Room, error) {
	for _, r := range d.Rooms {
		if r.Path == path {
			return r, nil
		}
	}
	return Room{}, fmt.Errorf("no room %s", path)
}

// line returns the ends of an arrow in pixels. It crosses no room but frames.
func (d *Drawing) line(a Arrow) (x1, y1, x2, y2 int, err error) {
	from, err := d.room(a.From)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	to, err := d.room(a.To)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	left, right := max(from.X, to.X), min(from.X+from.Width, to.X+to.Width)
	top, bottom := max(from.Y, to.Y), min(from.Y+from.Height, to.Y+to.Height)
	switch {
	case left < right:
		x1 = a.middle(left, right)
		x2, y1, y2 = x1, cell*(from.Y+from.Height), cell*to.Y
		if to.Y < from.Y {
			y1, y2 = cell*from.Y, cell*(to.Y+to.Height)
		}
	case top < bottom:
		y1 = a.middle(top, bottom)
		y2, x1, x2 = y1, cell*(from.X+from.Width), cell*to.X
		if to.X < from.X {
			x1, x2 = cell*from.X, cell*(to.X+to.Width)
		}
	default:
		return 0, 0, 0, 0, fmt.Errorf("%s and %s do not face each other", a.From, a.To)
	}
	for _, r := range d.Rooms {
		inWay := min(x1, x2) < cell*(r.X+r.Width) && max(x1, x2) > cell*r.X && min(y1, y2) < cell*(r.Y+r.Height) && max(y1, y2) > cell*r.Y
		if inWay && !r.Frame {
			return 0, 0, 0, 0, fmt.Errorf("%s stands between %s and %s", r.Path, a.From, a.To)
		}
	}
	return x1, y1, x2, y2, nil
}

func (a Arrow) middle(from, to int) int {
	if a.At != 0 {
		return cell * a.At
	}
	return cell * (from + to) / 2
}

// The background is opaque, so that the picture is readable whichever theme the page around it has.
const style = `<style>
text{font:11px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#4b5563}
text.name{font-weight:600;font-size:12px;fill:#111827}
.page{fill:#ffffff}.room{fill:#f3f4f6;stroke:#9ca3af}.frame{fill:none;stroke:#9ca3af;stroke-dasharray:2 3}
.arrow{stroke:#2563eb;stroke-width:1.5;fill:none}.flow{stroke-dasharray:4 3}.head{fill:#2563eb}
@media (prefers-color-scheme:dark){
text{fill:#aab2bf}text.name{fill:#f3f4f6}.page{fill:#16181d}.room{fill:#242830;stroke:#5b6472}.frame{stroke:#5b6472}
.arrow{stroke:#7aa2f7}.head{fill:#7aa2f7}}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" ` +
	`orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>
`

// SVG draws it: colours for light and for dark pages, fonts of the reader's system.
func (d *Drawing) SVG() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" `+
		`aria-label="The packages of gangctl, and which uses which">`+"\n", cell*d.Width, cell*d.Height)
	b.WriteString("<!-- Made by `make generate` from docs/architecture.txt: change that. -->\n" + style)
	b.WriteString(`<rect class="page" width="100%" height="100%" rx="8"/>` + "\n")
	for _, r := range d.Rooms {
		r.draw(&b)
	}
	for _, a := range d.Arrows {
		x1, y1, x2, y2, err := d.line(a)
		if err != nil {
			return "", err
		}
		class := "arrow"
		if !a.Imports {
			class += " flow"
		}
		fmt.Fprintf(&b, `<path class="%s" marker-end="url(#head)" d="M%d %d %d %d"/>`+"\n", class, x1, y1, x2, y2)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

func (r Room) draw(b *strings.Builder) {
	class, name := "room", r.Path
	if r.Frame {
		class = "frame"
	}
	if dir := path.Dir(name); strings.HasPrefix(dir, "scheduler") {
		name = path.Base(name)
	}
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="5"/>`+"\n",
		class, cell*r.X, cell*r.Y, cell*r.Width, cell*r.Height)
	x, y := cell*r.X+8, cell*r.Y+17
	fmt.Fprintf(b, `<text class="name" x="%d" y="%d">%s</text>`+"\n", x, y, html.EscapeString(name))
	for _, line := range r.Text {
		y += 16
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x, y, html.EscapeString(line))
	}
}
