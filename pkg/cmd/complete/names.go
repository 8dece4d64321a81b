package complete

import (
	"context"
	"sync"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
)

// Kind is a kind of object whose names complete a flag.
type Kind struct {
	schema.GroupVersionResource
	// Namespaced kinds are listed in the namespace of the run.
	Namespaced bool
	// Description follows each name, where kinds are mixed.
	Description string
}

// Namespaces are those of the cluster.
func Namespaces() []Kind {
	return []Kind{{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}}}
}

// Nodes are those of the cluster.
func Nodes() []Kind {
	return []Kind{{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}}
}

// PriorityClasses are those of the cluster.
func PriorityClasses() []Kind {
	return []Kind{{GroupVersionResource: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}}}
}

// ServiceAccounts are those of the namespace.
func ServiceAccounts() []Kind {
	return []Kind{{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Namespaced: true}}
}

// Queues are those of Volcano, kube-batch, KAI and Kueue, as far as the cluster serves them.
func Queues() []Kind {
	return []Kind{
		{schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues"}, false, "Volcano"},
		{schema.GroupVersionResource{Group: "scheduling.incubator.k8s.io", Version: "v1alpha1", Resource: "queues"}, false, "kube-batch"},
		{schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2", Resource: "queues"}, false, "KAI"},
		{schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "localqueues"}, true, "Kueue"},
		{schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "localqueues"}, true, "Kueue"},
	}
}

// Names completes with the names of objects. Only their metadata is read, from the API server's cache, all kinds at once; a kind
// that cannot be listed has none.
func Names(f *factory.Factory, kinds []Kind) cobra.CompletionFunc {
	return Cluster(f, func(ctx context.Context, client *kube.Client, namespace string, _ []string) ([]cobra.Completion, error) {
		reader, err := metadata.NewForConfig(client.Config)
		if err != nil {
			return nil, err
		}
		found := make([][]cobra.Completion, len(kinds))
		var all sync.WaitGroup
		for i, kind := range kinds {
			all.Go(func() { found[i] = names(ctx, reader, kind, namespace) })
		}
		all.Wait()
		var words []cobra.Completion
		for _, some := range found {
			words = append(words, some...)
		}
		return words, nil
	})
}

// names is nil if the list fails.
func names(ctx context.Context, reader metadata.Interface, kind Kind, namespace string) []cobra.Completion {
	if !kind.Namespaced {
		namespace = ""
	}
	list, err := reader.Resource(kind.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	words := make([]cobra.Completion, len(list.Items))
	for i := range list.Items {
		words[i] = list.Items[i].Name
		if kind.Description != "" {
			words[i] = cobra.CompletionWithDesc(words[i], kind.Description)
		}
	}
	return words
}
