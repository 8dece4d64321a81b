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
		case Columns(line) <= width:
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
	for i, arg := range shellArgs(text) {
		switch {
		case i == 0:
			at += arg
		case Columns(at)+1+Columns(arg)+len(onward) <= width:
			at += " " + arg
		default:
			lines = append(lines, at+onward)
			at = indent + "    " + arg
		}
	}
	return append(lines, at)
}

// shellArgs splits at blanks outside of quotes. Quotes stay.
func shellArgs(text string) []string {
	var args []string
	var arg strings.Builder
	var quote rune
	for _, r := range text {
		switch {
		case quote == 0 && r == ' ':
			if arg.Len() > 0 {
				args = append(args, arg.String())
				arg.Reset()
			}
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		arg.WriteRune(r)
	}
	if arg.Len() > 0 {
		args = append(args, arg.String())
	}
	return args
}
