package cmdutil

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// NoteMissingNamespace reports that a namespace in which nothing was found does not exist. Nothing is reported of all namespaces, "", of those in a saved
// file, for which there is no client, and where the caller may not see whether there is one.
func NoteMissingNamespace(ctx context.Context, io *iostreams.IOStreams, client *kube.Client, namespace string) {
	if client != nil && namespace != "" && namespaceMissing(ctx, client, namespace) {
		fmt.Fprintf(io.ErrOut, "note: there is no namespace %s\n", namespace)
	}
}

// namespaceMissing reports whether the API server has no namespace of a name, with one GET; not where it does not say so.
func namespaceMissing(ctx context.Context, client *kube.Client, namespace string) bool {
	_, err := client.Typed.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	return failure.NamespaceMissing(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) // as a proxy answers
}
