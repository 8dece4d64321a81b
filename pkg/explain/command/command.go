// Package command writes commands that work when they are pasted into a shell with kubectl.
package command

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kubectl is a kubectl command in a namespace; an empty namespace is a cluster-wide object. Words that a shell would read
// otherwise are quoted.
func Kubectl(namespace string, words ...string) string {
	parts := []string{"kubectl"}
	if namespace != "" {
		parts = append(parts, "-n", namespace)
	}
	for _, w := range words {
		parts = append(parts, quote(w))
	}
	return strings.Join(parts, " ")
}

// Patch is a step of a JSON patch.
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// JSONPatch patches an object.
func JSONPatch(namespace, resource, name string, steps ...Patch) string {
	return Kubectl(namespace, "patch", resource, name, "--type=json", "-p", encode(steps))
}

// MergePatch patches an object.
func MergePatch(namespace, resource, name string, patch any) string {
	return Kubectl(namespace, "patch", resource, name, "--type=merge", "-p", encode(patch))
}

// Then joins commands that follow one another, a line each.
func Then(commands ...string) string {
	var lines []string
	for _, c := range commands {
		if c != "" {
			lines = append(lines, c)
		}
	}
	return strings.Join(lines, "\n")
}

// Escape makes one part of a JSON pointer.
func Escape(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // only values that marshal are passed
	}
	return string(text)
}

func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$&|;<>()[]{}*?!#~\\") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
