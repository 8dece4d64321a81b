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
		parts = append(parts, "-n", Quote(namespace))
	}
	for _, w := range words {
		parts = append(parts, Quote(w))
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

// Pipe joins commands of which each reads what the one before wrote.
func Pipe(commands ...string) string { return strings.Join(commands, " | ") }

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

// plain are the characters that no shell gives a meaning to, wherever they stand in a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%"

// Quote writes a word such that every POSIX shell reads it as it is.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" && word[0] != '=' {
		return word // zsh replaces a word that begins with = by the path of a program
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Evict asks the API server to evict a pod. Unlike a deletion that heeds PodDisruptionBudgets.
func Evict(namespace, pod string) string {
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":%q,"name":%q}}`, namespace, pod)
	return Pipe("echo "+Quote(body), Kubectl("", "create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/"+pod+"/eviction", "-f", "-"))
}
