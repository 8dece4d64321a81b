// Package argv reads the flags that a container is started with: from outside, they are all that tells how a component was
// set up. It is pure.
package argv

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Values are the values of a flag, given as --name=value or --name value, in the order of the command and its arguments. A
// flag without a value, such as a boolean that is only named, has the value "".
func Values(c corev1.Container, name string) []string {
	var values []string
	words := slices.Concat(c.Command, c.Args)
	for i, word := range words {
		key, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(word, "-"):
		case joined:
			values = append(values, value)
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			values = append(values, words[i+1])
		default:
			values = append(values, "")
		}
	}
	return values
}

// Last is the value that counts of a flag that is given once or more; ok is false if it is not given.
func Last(c corev1.Container, name string) (value string, ok bool) {
	values := Values(c, name)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// List are the values of a flag that takes a list, with commas or several times.
func List(c corev1.Container, name string) []string {
	var all []string
	for _, value := range Values(c, name) {
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word != "" {
				all = append(all, word)
			}
		}
	}
	return all
}
