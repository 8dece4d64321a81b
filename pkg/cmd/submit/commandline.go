package submit

import (
	"strings"

	shellquote "github.com/kballard/go-shellquote"
	"github.com/spf13/pflag"
)

// maxCommandLine is the longest command line, in bytes, that is kept on a job. All annotations of an object share 256 KiB, and
// what is kept for the curious must not be what makes a job too large.
const maxCommandLine = 32 << 10

// commandLine is the shell-quoted command line to keep on the job, or "" if it is too long. The flags of every command stay
// out: they say how this user reaches the cluster, which may take a password, and everybody who may read the job would read
// it. The namespace stays. Both flag sets are those of a command whose words have been parsed without an error.
func commandLine(words []string, all, inherited *pflag.FlagSet) string {
	r := reader{all: all, inherited: inherited}
	kept := []string{"gangctl"}
	for len(words) > 0 {
		keep, size := r.next(words)
		kept, words = append(kept, keep...), words[size:]
	}
	line := shellquote.Join(kept...)
	if len(line) > maxCommandLine {
		return ""
	}
	return line
}

// reader reads words as pflag does.
type reader struct{ all, inherited *pflag.FlagSet }

// next returns what to keep of the first words, and how many they are: a flag with its value, or any other word, or everything
// from "--" on.
func (r reader) next(words []string) (keep []string, size int) {
	word := words[0]
	switch {
	case word == "--":
		return words, len(words)
	case strings.HasPrefix(word, "--"):
		name, _, hasValue := strings.Cut(word[2:], "=")
		flag, size := r.all.Lookup(name), 1
		if !hasValue && wantsValue(flag) {
			size = min(2, len(words))
		}
		if r.drops(flag) {
			return nil, size
		}
		return words[:size], size
	case strings.HasPrefix(word, "-"):
		return r.letters(words)
	}
	return words[:1], 1
}

// letters is next for a word of one-letter flags. A letter may have its value right behind it, with or without "=", and the
// last one in the word that follows.
func (r reader) letters(words []string) (keep []string, size int) {
	word, kept := words[0], ""
	size = 1
	for i := 1; i < len(word); {
		flag, end := r.all.ShorthandLookup(word[i:i+1]), i+1
		follows := end == len(word) && wantsValue(flag) && len(words) > 1
		if end < len(word) && (word[end] == '=' || wantsValue(flag)) {
			end = len(word)
		}
		drop := r.drops(flag)
		if !drop {
			kept += word[i:end]
		}
		if follows {
			size = 2
			if !drop {
				keep = words[1:2]
			}
		}
		i = end
	}
	if kept != "" || word == "-" {
		keep = append([]string{"-" + kept}, keep...)
	}
	return keep, size
}

// drops reports whether a flag stays out of what is kept.
func (r reader) drops(flag *pflag.Flag) bool {
	return flag != nil && flag.Name != "namespace" && r.inherited.Lookup(flag.Name) != nil
}

// wantsValue reports whether a flag without "=" takes what follows for its value.
func wantsValue(flag *pflag.Flag) bool { return flag != nil && flag.NoOptDefVal == "" }
