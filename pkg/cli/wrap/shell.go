package wrap

import (
	"strings"
)

// Shell fits lines that are typed into a shell. A command goes on with a backslash, so that it can still be copied; it is not broken
// within quotes. Comments are filled.
func Shell(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		switch rest := line[len(indent):]; {
		case columns(line) <= width:
			out = append(out, line)
		case strings.HasPrefix(rest, "# "):
			out = append(out, Fill(indent+"# ", indent+"# ", rest[2:], width)...)
		default:
			out = append(out, command(indent, rest, width)...)
		}
	}
	return strings.Join(out, "\n")
}

// onward ends a line that the next one continues.
const onward = ` \`

func command(indent, text string, width int) []string {
	var lines []string
	at := indent
	for i, word := range shellWords(text) {
		switch {
		case i == 0:
			at += word
		case columns(at)+1+columns(word)+len(onward) <= width:
			at += " " + word
		default:
			lines = append(lines, at+onward)
			at = indent + "    " + word
		}
	}
	return append(lines, at)
}

// shellWords splits at blanks outside of quotes. Quotes stay.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	for _, r := range text {
		switch {
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		word.WriteRune(r)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}
