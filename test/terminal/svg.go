package terminal

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The size of a character in pixels, and the room around the text.
const (
	charWidth, lineHeight = 8.4, 19
	fontSize              = 14
	margin, bar           = 16, 34
	maxRadius             = 8
)

// The colours of the picture: a dark terminal, whose text has a contrast of 4.5 and more against its background.
const (
	background, barColor = "#16181d", "#22252c"
	text, dim            = "#d7dae0", "#8b919c"
)

// color is the colour of an SGR number; those of backgrounds are 10 more than those of text.
func color(n int) string {
	return map[int]string{
		30: "#16181d", 31: "#ff6b6b", 32: "#7bd88f", 33: "#f2c55c", 34: "#7aa2f7", 35: "#c792ea", 36: "#56c7d6", 37: "#d7dae0",
		90: "#8b919c", 91: "#ff8f8f", 92: "#a3e8b2", 93: "#ffd988", 94: "#a5c1ff", 95: "#dcb6f5", 96: "#8be0ea", 97: "#ffffff",
	}[n]
}

// SVG is a picture of the screen, without empty rows at its end, under a title. It holds text, not outlines, and no script.
func (s *Screen) SVG(title string) string {
	rows := len(s.Lines())
	width := float64(s.columns)*charWidth + 2*margin
	height := rows*lineHeight + bar + margin + margin/2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="%s">`+"\n", width, height, width, height, escaped(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="%d" fill="%s"/>`+"\n", maxRadius, background)
	fmt.Fprintf(&b, `<path d="M0 %d V%d a%d %d 0 0 1 %d -%d H%.0f a%d %d 0 0 1 %d %d V%d Z" fill="%s"/>`+"\n",
		bar-8, maxRadius, maxRadius, maxRadius, maxRadius, maxRadius, width-maxRadius, maxRadius, maxRadius, maxRadius, maxRadius, bar-8, barColor)
	fmt.Fprintf(&b, `<text x="%d" y="18" fill="%s" font-family="ui-sans-serif,system-ui,sans-serif" font-size="12">%s</text>`+"\n", margin, dim, escaped(title))
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d" xml:space="preserve">`+"\n", fontSize)
	for y := range rows {
		s.row(&b, y)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// row draws runs of characters of one style, each at its own place and of its own length, so that no font moves columns.
func (s *Screen) row(b *strings.Builder, y int) {
	row := s.cells[y]
	baseline := bar + margin/2 + y*lineHeight + lineHeight - 5
	for x := 0; x < len(row); {
		end := x
		for end < len(row) && row[end].Style == row[x].Style && !(row[end].Rune == ' ' && end+1 < len(row) && row[end+1].Rune == ' ' && !row[x].Style.filled()) {
			end++
		}
		if end == x { // a gap
			x++
			continue
		}
		s.run(b, row[x:end], x, y, baseline)
		x = end
	}
}

func (s Style) filled() bool { return s.Reverse || s.Background != 0 }

func (s *Screen) run(b *strings.Builder, cells []Cell, x, y, baseline int) {
	style := cells[0].Style
	front, back := text, ""
	if c := color(style.Foreground); c != "" {
		front = c
	}
	if c := color(style.Background - 10); c != "" {
		back = c
	}
	if style.Reverse {
		if back == "" {
			back = background
		}
		front, back = back, front
	}
	var text strings.Builder
	for _, c := range cells {
		text.WriteRune(c.Rune)
	}
	left := margin + float64(x)*charWidth
	if back != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, bar+margin/2+y*lineHeight, float64(len(cells))*charWidth, lineHeight, back)
	}
	shown := strings.TrimRight(text.String(), " ")
	if shown == "" {
		return
	}
	lead := len(shown) - len(strings.TrimLeft(shown, " "))
	left += float64(lead) * charWidth
	shown = shown[lead:]
	weight := ""
	if style.Bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		left, baseline, float64(utf8.RuneCountInString(shown))*charWidth, front, weight, escaped(shown))
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
