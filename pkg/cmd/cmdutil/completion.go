package cmdutil

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

const (
	// completionBudget bounds the requests to the cluster. With the start of the program, the shell gets its prompt back within two
	// seconds, and whoever waits there cannot read errors: completion is brief, bounded and silent.
	completionBudget = 1600 * time.Millisecond
	// maxCompletions bounds what is offered: more than a screen of it does not help.
	maxCompletions = 100
)

// Finder gets completions from the cluster; args are the arguments before the one that is completed. It may return more than
// match the prefix, in any order, with a description after a tab.
type Finder func(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error)

// CompleteFromCluster completes with what find returns within completionBudget, and with nothing if that fails or takes longer. It
// does not rely on find to respect its context: the exec plugin of a kubeconfig does not.
func CompleteFromCluster(f *Factory, find Finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionBudget)
		defer cancel()
		found := make(chan []cobra.Completion, 1)
		go func() { found <- runFinder(ctx, f, find, args) }()
		select {
		case candidates := <-found:
			return FilterCompletions(candidates, prefix), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// runFinder returns nil if anything fails.
func runFinder(ctx context.Context, f *Factory, find Finder, args []string) []cobra.Completion {
	namespace, err := f.Namespace()
	if err != nil {
		return nil
	}
	client, err := f.Client()
	if err != nil {
		return nil
	}
	found, err := find(ctx, client, namespace, args)
	if err != nil {
		return nil
	}
	return found
}

// FilterCompletions returns the candidates that begin with the prefix, sorted, each once, at most maxCompletions of them. In a list
// with commas the prefix is what follows the last comma, and what stands before it is not offered again.
func FilterCompletions(candidates []cobra.Completion, prefix string) []cobra.Completion {
	before := ""
	if i := strings.LastIndex(prefix, ","); i >= 0 {
		before = prefix[:i+1]
	}
	given := strings.Split(before, ",")
	var offered []cobra.Completion
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		value, _, _ := strings.Cut(c, "\t")
		if strings.HasPrefix(before+value, prefix) && !slices.Contains(given, value) && len(offered) < maxCompletions {
			offered, given = append(offered, before+c), append(given, value)
		}
	}
	return offered
}

// objectKind is a kind of object whose names complete a flag.
type objectKind struct {
	schema.GroupVersionResource
	// namespaced kinds are listed in the namespace of the run.
	namespaced bool
	// description follows each name, where kinds are mixed.
	description string
}

// CompleteNamespaces completes with the namespaces of the cluster.
func CompleteNamespaces(f *Factory) cobra.CompletionFunc {
	return completeNames(f, objectKind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}})
}

// CompleteNodes completes with the nodes of the cluster.
func CompleteNodes(f *Factory) cobra.CompletionFunc {
	return completeNames(f, objectKind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}})
}

// CompletePriorityClasses completes with the priority classes of the cluster.
func CompletePriorityClasses(f *Factory) cobra.CompletionFunc {
	return completeNames(f, objectKind{GroupVersionResource: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}})
}

// CompleteServiceAccounts completes with the service accounts of the namespace.
func CompleteServiceAccounts(f *Factory) cobra.CompletionFunc {
	return completeNames(f, objectKind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, namespaced: true})
}

// CompleteQueues completes with the queues of Volcano, kube-batch, KAI and Kueue, as far as the cluster serves them.
func CompleteQueues(f *Factory) cobra.CompletionFunc {
	return completeNames(f,
		objectKind{schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"}, false, "Volcano"},
		objectKind{schema.GroupVersionResource{Group: "scheduling.incubator.k8s.io", Version: "v1alpha1", Resource: "queues"}, false, "kube-batch"},
		objectKind{schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2", Resource: "queues"}, false, "KAI"},
		objectKind{schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "localqueues"}, true, "Kueue"},
		objectKind{schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"}, true, "Kueue"})
}

// CompleteClaims completes with the volume claims of the namespace, each with the colon that its path follows.
func CompleteClaims(f *Factory) cobra.CompletionFunc {
	names := completeNames(f, objectKind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, namespaced: true})
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := names(cmd, args, prefix)
		for i := range found {
			found[i] += ":"
		}
		return found, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteNodeLabels completes with the keys of the labels of nodes that group them: names of nodes group none.
func CompleteNodeLabels(f *Factory) cobra.CompletionFunc {
	return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, _ string, _ []string) ([]cobra.Completion, error) {
		reader, err := metadata.NewForConfig(client.Config)
		if err != nil {
			return nil, err
		}
		list, err := reader.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		keys := map[string]bool{}
		for i := range list.Items {
			for key := range list.Items[i].Labels {
				keys[key] = key != corev1.LabelHostname
			}
		}
		maps.DeleteFunc(keys, func(_ string, groups bool) bool { return !groups })
		return slices.Sorted(maps.Keys(keys)), nil
	})
}

// CompleteDevices completes with the devices that the nodes have.
func CompleteDevices(f *Factory) cobra.CompletionFunc {
	return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, _ string, _ []string) ([]cobra.Completion, error) {
		list, err := client.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		devices := map[string]bool{}
		for i := range list.Items {
			for name := range list.Items[i].Status.Capacity {
				devices[string(name)] = devices[string(name)] || request.IsExtended(name)
			}
		}
		maps.DeleteFunc(devices, func(_ string, device bool) bool { return !device })
		return slices.Sorted(maps.Keys(devices)), nil
	})
}

// completeNames completes with the names of objects. Only their metadata is read, from the API server's cache, all kinds at once; a
// kind that cannot be listed has none.
func completeNames(f *Factory, kinds ...objectKind) cobra.CompletionFunc {
	return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, namespace string, _ []string) ([]cobra.Completion, error) {
		reader, err := metadata.NewForConfig(client.Config)
		if err != nil {
			return nil, err
		}
		listed := make([][]cobra.Completion, len(kinds))
		var all sync.WaitGroup
		for i, kind := range kinds {
			all.Go(func() { listed[i] = listNames(ctx, reader, kind, namespace) })
		}
		all.Wait()
		return slices.Concat(listed...), nil
	})
}

// listNames returns nil if the list fails.
func listNames(ctx context.Context, reader metadata.Interface, kind objectKind, namespace string) []cobra.Completion {
	if !kind.namespaced {
		namespace = ""
	}
	list, err := reader.Resource(kind.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	names := make([]cobra.Completion, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
		if kind.description != "" {
			names[i] = cobra.CompletionWithDesc(names[i], kind.description)
		}
	}
	return names
}
