package enginetest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// JobsClient returns a client of jobs of some kinds. Kueue has a Workload for every job that names a queue.
func JobsClient(resources []schema.GroupVersionResource, jobs ...runtime.Object) *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{{Group: kueue.Group, Version: "v1beta2", Resource: "workloads"}: "WorkloadList"}
	for _, resource := range resources {
		kinds[resource] = "JobList"
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, jobs...)
	client.PrependReactor("list", "workloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
		selector := action.(clienttesting.ListAction).GetListRestrictions().Labels.String()
		_, uid, _ := strings.Cut(selector, "=")
		workload := unstructured.Unstructured{Object: map[string]any{"apiVersion": kueue.Group + "/v1beta2", "kind": "Workload"}}
		workload.SetName("workload")
		workload.SetNamespace(action.GetNamespace())
		workload.SetLabels(map[string]string{kueue.Group + "/job-uid": uid})
		workload.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(uid)}})
		return true, &unstructured.UnstructuredList{Object: map[string]any{"kind": "WorkloadList"}, Items: []unstructured.Unstructured{workload}}, nil
	})
	return client
}
