package list

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// fromCache lets the API server answer from its watch cache. A server that does not will answer in pages, which the pager
// asks for and follows.
func fromCache(selector string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: "0", LabelSelector: selector}
}

// listJobs returns the jobs sorted by namespace and name. An empty namespace is all of them.
func listJobs(ctx context.Context, client *kube.Client, namespace, selector string) (*unstructured.UnstructuredList, error) {
	resource := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(tfjob.GVK().GroupVersion().String())
	list.SetKind(tfjob.GVK().Kind + "List")
	err := each(ctx, selector, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		func(item runtime.Object) error {
			job, ok := item.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("unexpected %T", item)
			}
			list.Items = append(list.Items, *job)
			return nil
		})
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace}.Wrap(err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		if d := strings.Compare(a.GetNamespace(), b.GetNamespace()); d != 0 {
			return d
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return list, nil
}

// listPods returns the pods of every job in one request. An empty namespace is all of them.
func listPods(ctx context.Context, client *kube.Client, namespace string) ([]corev1.Pod, error) {
	resource := client.Typed.CoreV1().Pods(namespace)
	var pods []corev1.Pod
	err := each(ctx, tfjob.PodSelector(), func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		func(item runtime.Object) error {
			pod, ok := item.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("unexpected %T", item)
			}
			pods = append(pods, *pod)
			return nil
		})
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: namespace}.Wrap(err)
	}
	return pods, nil
}

func each(ctx context.Context, selector string, list pager.ListPageFunc, add func(runtime.Object) error) error {
	all, _, err := pager.New(list).List(ctx, fromCache(selector))
	if err != nil {
		return err
	}
	return meta.EachListItem(all, add)
}
