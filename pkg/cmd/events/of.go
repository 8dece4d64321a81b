package events

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
)

// Of returns the events of a job, its gang and its pods, those that are gone included; the latest is the last.
func Of(ctx context.Context, client *kube.Client, job *unstructured.Unstructured, pods []corev1.Pod) ([]corev1.Event, error) {
	all, err := list(ctx, client, job.GetNamespace())
	if err != nil {
		return nil, err
	}
	return (&Options{}).pick(all, newFamily(job, pods)), nil
}

// Print prints events as the table of `gangctl events`.
func Print(io *iostreams.IOStreams, events []corev1.Event) error {
	return (&Options{IO: io}).printTable(events)
}
