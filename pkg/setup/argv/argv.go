// Package argv reads the flags that a container is started with: from outside, they are all that shows how a component was
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
	all := slices.Concat(c.Command, c.Args)
	for i, arg := range all {
		key, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(arg, "-"):
		case joined:
			values = append(values, value)
		case i+1 < len(all) && !strings.HasPrefix(all[i+1], "-"):
			values = append(values, all[i+1])
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
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}
