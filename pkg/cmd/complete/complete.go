// Package complete offers words at a prompt that only the cluster knows. Somebody waits there and cannot read errors: it is brief,
// bounded and silent.
package complete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
)

const (
	// Budget is how long the cluster may take. With the start of the program, the shell gets its prompt back within two seconds.
	Budget = 1600 * time.Millisecond
	// Most is how many words are offered: more than a screen of them helps nobody.
	Most = 100
)

// Find asks the cluster for words; args are those on the command line before the one that is completed. It may return more than
// fit the prefix, in any order, with a description behind a tab.
type Find func(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error)

// Cluster completes with what find finds within Budget, and with nothing if that fails or takes longer. It does not rely on find
// to heed its context: what a kubeconfig has run to log in does not.
func Cluster(f *factory.Factory, find Find) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), Budget)
		defer cancel()
		found := make(chan []cobra.Completion, 1)
		go func() { found <- ask(ctx, f, find, args) }()
		select {
		case words := <-found:
			return Offer(words, prefix), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// ask is nil if anything fails.
func ask(ctx context.Context, f *factory.Factory, find Find, args []string) []cobra.Completion {
	namespace, err := f.Namespace()
	if err != nil {
		return nil
	}
	client, err := f.Client()
	if err != nil {
		return nil
	}
	words, err := find(ctx, client, namespace, args)
	if err != nil {
		return nil
	}
	return words
}

// Offer are the words that begin with the prefix, sorted, each once, at most Most of them. In a list with commas the prefix is what
// follows the last one, and what stands before it is not offered again.
func Offer(words []cobra.Completion, prefix string) []cobra.Completion {
	before := ""
	if i := strings.LastIndex(prefix, ","); i >= 0 {
		before = prefix[:i+1]
	}
	given := strings.Split(before, ",")
	var offered []cobra.Completion
	for _, w := range slices.Sorted(slices.Values(words)) {
		word, _, _ := strings.Cut(w, "\t")
		if strings.HasPrefix(before+word, prefix) && !slices.Contains(given, word) && len(offered) < Most {
			offered, given = append(offered, before+w), append(given, word)
		}
	}
	return offered
}
