package iostreams

// ColorMode is the value of --color.
type ColorMode string

// The values of --color.
const (
	ColorAuto   ColorMode = "auto"   // colour for terminals, unless NO_COLOR or TERM=dumb
	ColorAlways ColorMode = "always" // colour, whatever reads it
	ColorNever  ColorMode = "never"
)

// Style is one ANSI SGR parameter list. Meaning never rests on a style alone.
type Style string

// The styles gangctl uses.
const (
	Red    Style = "1;31"
	Yellow Style = "33"
	Green  Style = "32"
	Cyan   Style = "36"

	plain Style = "0" // ends every other style
)

// sequence is the escape sequence of the style.
func (s Style) sequence() string { return "\x1b[" + string(s) + "m" }

// SetColor decides for both output streams; the empty mode is ColorAuto.
func (s *IOStreams) SetColor(mode ColorMode) { s.color = mode }

// OutStyled is text in a style if Out takes colour, else text.
func (s *IOStreams) OutStyled(style Style, text string) string {
	return s.styled(s.outTTY, style, text)
}

// ErrStyled is text in a style if ErrOut takes colour, else text.
func (s *IOStreams) ErrStyled(style Style, text string) string {
	return s.styled(s.errTTY, style, text)
}

func (s *IOStreams) styled(tty bool, style Style, text string) string {
	if !s.colored(tty) || style == "" || text == "" {
		return text
	}
	return style.sequence() + text + plain.sequence()
}

func (s *IOStreams) colored(tty bool) bool {
	switch s.color {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	default:
		return tty && !s.noColor
	}
}

// noColor implements https://no-color.org (a non-empty NO_COLOR) and the dumb terminal.
func noColor(getenv func(string) string) bool {
	return getenv("NO_COLOR") != "" || getenv("TERM") == "dumb"
}
