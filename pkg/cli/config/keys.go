package config

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// typedOnly are flags that mean something else in another command, so that a default meant for one would change the others, and
// those that are about one run: what it does instead of the usual, what it confirms, and which part of a job it is about.
var typedOnly = []string{
	"abort", "all-namespaces", "apply", "diff", "dry-run", "failed", "file", "filename", "first-error", "for", "from", "index", "name", "node", "output", "overwrite",
	"pre", "previous", "recreate", "replica", "save", "smoke", "timeout", "wait", "watch", "what-fits", "yes",
}

// notSettings are all flags that make no sense as a default.
var notSettings = append([]string{"help", "profile", "version"}, typedOnly...)

// MayBeEmpty reports whether an empty flag has a meaning: all, as with kubectl, or none.
func MayBeEmpty(flag string) bool {
	return slices.Contains([]string{"selector", "field-selector", "metrics-from", "gang-scheduler"}, flag)
}

// OnlyTyped is the annotation of a command whose own flags, and those of the commands below it, count only when they are typed: a default
// that is meant for jobs must not change an installation. The flags of every command, such as --context, are settings there, too.
const OnlyTyped = "gangctl.dev/only-typed"

func onlyTyped(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Annotations[OnlyTyped] != "" {
			return true
		}
	}
	return false
}

// onlyTypedFlag reports whether a command below root has a flag of that name that only counts when it is typed.
func onlyTypedFlag(root *cobra.Command, name string) bool {
	if onlyTyped(root) && root.LocalFlags().Lookup(name) != nil {
		return true
	}
	return slices.ContainsFunc(root.Commands(), func(sub *cobra.Command) bool { return onlyTypedFlag(sub, name) })
}

// Keys are the names of settings: the flags of every command under root that is in the help, sorted.
func Keys(root *cobra.Command) []string {
	var names []string
	add := func(flag *pflag.Flag) {
		if !slices.Contains(notSettings, flag.Name) && !slices.Contains(names, flag.Name) {
			names = append(names, flag.Name)
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			if !sub.Hidden && !onlyTyped(sub) { // what the help does not show is not offered here either
				walk(sub)
			}
		}
	}
	walk(root)
	slices.Sort(names)
	return names
}

// Usage is the description of the flag of a key, or "" if there is no such flag.
func Usage(root *cobra.Command, key string) string {
	usage := ""
	visit(root, key, func(_ *cobra.Command, flag *pflag.Flag) {
		if usage == "" {
			usage = flag.Usage
		}
	})
	return usage
}

// Completion completes the values of the flag of a key; nil if nothing does.
func Completion(root *cobra.Command, key string) (complete cobra.CompletionFunc) {
	visit(root, key, func(cmd *cobra.Command, _ *pflag.Flag) {
		if own, ok := cmd.GetFlagCompletionFunc(key); ok && complete == nil {
			complete = own
		}
	})
	return complete
}

// Plain reports whether the values of a flag are written without quotes: numbers and yes or no.
func Plain(root *cobra.Command, key string) bool {
	is := false
	visit(root, key, func(_ *cobra.Command, flag *pflag.Flag) {
		kind := flag.Value.Type()
		is = is || kind == "bool" || strings.HasPrefix(kind, "int")
	})
	return is
}

// visit calls do for the flag of every command under root that has one of that name.
func visit(cmd *cobra.Command, name string, do func(*cobra.Command, *pflag.Flag)) {
	for _, flags := range []*pflag.FlagSet{cmd.LocalNonPersistentFlags(), cmd.PersistentFlags()} {
		if flag := flags.Lookup(name); flag != nil {
			do(cmd, flag)
		}
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && !onlyTyped(sub) {
			visit(sub, name, do)
		}
	}
}
