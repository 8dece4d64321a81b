package iostreams

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text that gangctl prints holds names, conditions, events and annotations that other users wrote. A control character among them is
// a command to the terminal: it moves the cursor, hides text, or writes the clipboard (OSC 52). So both output streams escape what
// passes through them. Only the sequences of our own styles reach the terminal, where the stream takes colour, and what is written
// with Verbatim.

// Escape makes text safe to print on a terminal. Newlines and tabs stay. Escape is ^[ and a carriage return \r, as kubectl prints them;
// other control characters, and those that have no width or turn the direction of text, are written as in JSON.
func Escape(text string) string { return escape(text, false) }

// escape is Escape, which leaves the sequences of our own styles if colored.
func escape(text string, colored bool) string {
	var b strings.Builder
	for len(text) > 0 {
		if style := ownStyle(text); style != "" && colored {
			b.WriteString(style)
			text = text[len(style):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		b.WriteString(visible(r, text[:size]))
		text = text[size:]
	}
	return b.String()
}

// The two characters without a width that scripts and emoji are written with.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// visible is the notation of a rune, which is encoded as given.
func visible(r rune, encoded string) string {
	switch {
	case r == utf8.RuneError && len(encoded) == 1:
		return fmt.Sprintf(`\x%02x`, encoded[0]) // some terminals take a lone byte for a control character
	case r == '\n' || r == '\t':
		return encoded
	case r == '\x1b':
		return "^["
	case r == '\r':
		return `\r`
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
		return encoded
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}
	return encoded
}

// ownStyle is the sequence of one of our styles with which text begins, or "".
func ownStyle(text string) string {
	if text[0] != '\x1b' {
		return ""
	}
	for _, style := range []Style{plain, Red, Yellow, Green, Cyan} {
		if strings.HasPrefix(text, style.sequence()) {
			return style.sequence()
		}
	}
	return ""
}

// escaper escapes what is written. A character may come in two writes.
type escaper struct {
	w       io.Writer
	colored func() bool

	mu   sync.Mutex
	rest []byte
}

// SetOut makes w standard output.
func (s *IOStreams) SetOut(w io.Writer) {
	s.Out = &escaper{w: &recorder{w: w}, colored: func() bool { return s.colored(s.outTTY) }}
}

func (s *IOStreams) setErrOut(w io.Writer) {
	s.ErrOut = &escaper{w: w, colored: func() bool { return s.colored(s.errTTY) }}
}

// Write implements io.Writer.
func (e *escaper) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := append(e.rest, p...)
	whole := len(text) - incomplete(text)
	e.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(e.w, escape(string(text[:whole]), e.colored())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incomplete is how many bytes at the end of text may be the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// VerbatimOut is standard output without escaping: for logs and terminals of containers, and for files.
func (s *IOStreams) VerbatimOut() io.Writer { return verbatim(s.Out) }

// VerbatimErrOut is standard error without escaping, for prompts that move the cursor themselves.
func (s *IOStreams) VerbatimErrOut() io.Writer { return verbatim(s.ErrOut) }

func verbatim(w io.Writer) io.Writer {
	if e, ok := w.(*escaper); ok {
		return e.w
	}
	return w
}
