package jobs

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/gang"
)

// PodsOf lists the pods that the job controls, from the API server's cache, under the label of its operator. Only if there are none
// it lists those of older operators, too.
func PodsOf(ctx context.Context, client *kube.Client, job *gang.Job) ([]*corev1.Pod, error) {
	return podsOf(ctx, client, job, fromCache)
}

// PodsOfNow is PodsOf, as of now: where something hangs on it that there are none.
func PodsOfNow(ctx context.Context, client *kube.Client, job *gang.Job) ([]*corev1.Pod, error) {
	return podsOf(ctx, client, job, func(selector string) metav1.ListOptions { return metav1.ListOptions{LabelSelector: selector} })
}

func podsOf(ctx context.Context, client *kube.Client, job *gang.Job, options func(string) metav1.ListOptions) ([]*corev1.Pod, error) {
	name := job.NameInLabels()
	if name == "" {
		return nil, nil // nothing was made of it that could have pods
	}
	for _, label := range labels(job) {
		pods, err := listPods(ctx, client, job.Meta.Namespace, options(label+"="+name))
		if err != nil {
			return nil, err
		}
		own := []*corev1.Pod{}
		for _, pod := range pods {
			if job.Owns(pod) {
				own = append(own, pod)
			}
		}
		if len(own) > 0 {
			return own, nil
		}
	}
	return nil, nil
}

// labels are those to look for pods under, in order.
func labels(j *gang.Job) []string {
	if !j.Seen {
		return j.Reader.NameLabels[:1]
	}
	return j.Reader.NameLabels
}

// PodsOfAll lists the pods of many jobs of a namespace, or of all if it is empty, with one request for each kind of label; what is
// returned is by the uid of the job. Pods with labels of older operators are listed only if a job that has begun has no pods. Of the pods
// there is what [collect.Pods] keeps: it may be all pods of a cluster. Count, if it is not nil, counts them while they are read.
func PodsOfAll(ctx context.Context, client *kube.Client, namespace string, all []*gang.Job, count *atomic.Int64) (map[types.UID][]*corev1.Pod, error) {
	byName := map[string][]*gang.Job{}
	for _, j := range all {
		if name := j.NameInLabels(); name != "" {
			name = j.Meta.Namespace + "/" + name
			byName[name] = append(byName[name], j)
		}
	}
	owned := map[types.UID][]*corev1.Pod{}
	listed, seen := map[string]bool{}, map[types.NamespacedName]bool{}
	for _, desired := range []func(*gang.Job) []string{func(j *gang.Job) []string { return j.Reader.NameLabels[:1] }, func(j *gang.Job) []string {
		if len(owned[j.Meta.UID]) > 0 || j.End != nil || j.Suspended {
			return nil
		}
		return labels(j)
	}} {
		for _, j := range all {
			for _, label := range desired(j) {
				if listed[label] {
					continue
				}
				listed[label] = true
				pods, err := collect.Pods(ctx, client, namespace, label, count)
				if err != nil {
					return nil, ListPods(namespace).Wrap(err)
				}
				for _, pod := range pods {
					name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
					for _, owner := range byName[pod.Namespace+"/"+pod.Labels[label]] {
						if owner.Owns(pod) && !seen[name] { // some releases write two labels
							seen[name] = true
							owned[owner.Meta.UID] = append(owned[owner.Meta.UID], pod)
						}
					}
				}
			}
		}
	}
	return owned, nil
}

func listPods(ctx context.Context, client *kube.Client, namespace string, options metav1.ListOptions) ([]*corev1.Pod, error) {
	pages, err := paging.All(ctx, options, client.Typed.CoreV1().Pods(namespace).List)
	var pods []*corev1.Pod
	for _, page := range pages {
		for i := range page.Items {
			pods = append(pods, &page.Items[i])
		}
	}
	return pods, ListPods(namespace).Wrap(err)
}

// ListPods names the request for the pods of a namespace, or of all if it is empty, for errors.
func ListPods(namespace string) failure.Op {
	return failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: namespace}
}
