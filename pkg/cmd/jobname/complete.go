package jobname

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cmd/complete"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/registry"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// states are the names of the jobs that args lack, each with its state. Jobs and pods are read at the same time; without the pods
// the names alone are worth having.
func states(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
	pods := make(chan []corev1.Pod, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, complete.Budget*3/4) // before the time of the whole answer is over
		defer cancel()
		list, err := client.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: tfjob.PodSelector()})
		if err != nil {
			close(pods)
			return
		}
		pods <- list.Items
	}()
	jobs, err := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	listed, known := <-pods
	owned := tfjob.ByOwner(listed)
	var words []cobra.Completion
	for i := range jobs.Items {
		name := jobs.Items[i].GetName()
		if slices.Contains(args, name) {
			continue
		}
		job, err := tfjob.Decode(&jobs.Items[i])
		if err != nil || !known {
			words = append(words, name)
			continue
		}
		words = append(words, cobra.CompletionWithDesc(name, string(tfjob.Summarize(job, owned[job.UID]).State)))
	}
	return words, nil
}

// roles are those of the job that args name.
func roles(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	job, err := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).Get(ctx, args[0], metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return rolesOf(job)
}

func rolesOf(job *unstructured.Unstructured) ([]cobra.Completion, error) {
	reader, known := registry.ByKind(job.GroupVersionKind().GroupKind())
	if !known {
		return nil, nil
	}
	read, err := reader.Read(job)
	if err != nil {
		return nil, err
	}
	var words []cobra.Completion
	for _, role := range read.Roles {
		members := fmt.Sprintf("%d members", role.Replicas)
		if role.Replicas == 1 {
			members = "1 member"
		}
		words = append(words, cobra.CompletionWithDesc(strings.ToLower(role.Name), members))
	}
	return words, nil
}
