// Package shell writes command lines that a POSIX shell reads back as they are meant, and reads such lines.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	shellquote "github.com/kballard/go-shellquote"
)

// Quote returns an argument such that every POSIX shell reads it as it is. One without special characters stays bare.
func Quote(arg string) string {
	if arg != "" && strings.IndexFunc(arg, special) < 0 && arg[0] != '=' { // zsh replaces an argument that begins with = by the path of a program
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// special reports whether a character may mean something to a shell, wherever it stands in an argument. Shells take what is not ASCII
// as it is, but for spaces.
func special(r rune) bool {
	if r > unicode.MaxASCII {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-+=:,./@%", r)
}

// Join returns the command line of an argv.
func Join(argv ...string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// OneLine is Join for arguments that another user wrote: whatever they hold, it is one line. Bash, zsh, ksh and POSIX of 2024 read an argument with
// control characters in this notation.
func OneLine(argv ...string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = Quote(arg)
		if strings.ContainsFunc(arg, unicode.IsControl) {
			quoted[i] = "$'" + ansi(arg) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// ansi is the text between the quotes of $'…'.
func ansi(arg string) string {
	var b strings.Builder
	for _, c := range []byte(arg) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Split returns the argv of a command line, or an error for one with a quote that does not end. It knows quotes and backslashes,
// and neither variables nor operators.
func Split(line string) ([]string, error) { return shellquote.Split(line) }
