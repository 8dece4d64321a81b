package jobname

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Read gets the TFJob of a name as the cluster has it. That there is none is an error with names that resemble it.
func Read(ctx context.Context, client *kube.Client, namespace, name string) (*unstructured.Unstructured, error) {
	op := failure.Op{Verb: "get", Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace, Name: name}
	job, err := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, NotFound(ctx, client, op, err)
	}
	return job, nil
}

// Pods lists the pods of the TFJobs of a name, from the API server's cache.
func Pods(ctx context.Context, client *kube.Client, namespace, name string) ([]corev1.Pod, error) {
	pods, err := client.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: tfjob.PodSelectorFor(name)})
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: namespace}.Wrap(err)
	}
	return pods.Items, nil
}
