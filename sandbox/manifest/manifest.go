// Package manifest puts objects on the sandbox's cluster: the rights of its
// components and what it serves besides Kubernetes.
package manifest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang"
)

// fieldManager owns what is applied.
const fieldManager = "gangctl-sandbox"

// OperatorRBAC returns the Training Operator's account and rights.
func OperatorRBAC() []byte { return operatorRBAC }

// NodesRBAC returns the account and rights of the simulated kubelets.
func NodesRBAC() []byte { return nodesRBAC }

// StorageClass returns the default class of claims, whose volumes kube-controller-manager provisions.
func StorageClass() []byte { return storageClass }

//go:embed storage-class.yaml
var storageClass []byte

//go:embed operator-rbac.yaml
var operatorRBAC []byte

//go:embed nodes-rbac.yaml
var nodesRBAC []byte

// Applier applies manifests.
type Applier struct{ Client dynamic.Interface }

// Apply server-side applies the objects of YAML documents, in their order.
func (a *Applier) Apply(ctx context.Context, manifests ...[]byte) error {
	objects, err := install.Decode(manifests...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
		if _, err := a.resource(o).Apply(ctx, o.GetName(), o, options); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// WaitEstablished waits until the CustomResourceDefinitions among the objects
// are served.
func (a *Applier) WaitEstablished(ctx context.Context, manifests ...[]byte) error {
	objects, err := install.Decode(manifests...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			have, err := a.resource(o).Get(ctx, o.GetName(), metav1.GetOptions{})
			return err == nil && gang.IsTrue(have, "Established"), err
		})
		if err != nil {
			return fmt.Errorf("wait for %s %s to be served: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// resource needs no discovery: the kinds that a sandbox applies have regular plurals.
func (a *Applier) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return resourceIn(a.Client, gvr, o.GetNamespace())
}

func resourceIn(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return client.Resource(gvr)
	}
	return client.Resource(gvr).Namespace(namespace)
}
