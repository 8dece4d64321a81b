// Package members watches the training jobs of one namespace until their
// scheduler has decided about every pod, and reports which pods run and which
// wait. The demo shows what it sees; the tests compare it with what they
// expect.
package members

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Labels of the Training Operator, 1.6 and later, on the pods of a job.
const (
	JobLabel   = "training.kubeflow.org/job-name"
	RoleLabel  = "training.kubeflow.org/replica-type"
	indexLabel = "training.kubeflow.org/replica-index"
)

// Member is one pod of a training job.
type Member struct {
	Job, Role string
	Index     int
	Pod       string
	State     State
	// GPUs is how many accelerators the pod requests, of any kind.
	GPUs int64
	// Reason is the scheduler's message on a pod that waits.
	Reason string
}

// State is the state of a pod of a job.
type State string

const (
	// Undecided pods have neither a node nor a condition from a scheduler.
	Undecided State = "Undecided"
	// Pending pods were looked at by a scheduler, which found no node for them.
	Pending State = "Pending"
	// Starting pods have a node and do not run yet.
	Starting State = "Starting"
	// Running pods run.
	Running State = "Running"
	// Ended pods have succeeded or failed.
	Ended State = "Ended"
)

// List is the members of the jobs of a namespace, sorted by job, role, index.
type List []Member

// Of lists the members among pods; pods that belong to no training job, and pods that
// are being deleted, are left out.
func Of(pods []corev1.Pod) List {
	var s List
	for i := range pods {
		pod := &pods[i]
		if pod.Labels[JobLabel] == "" || pod.DeletionTimestamp != nil {
			continue
		}
		index, err := strconv.Atoi(pod.Labels[indexLabel])
		if err != nil {
			index = -1
		}
		member := Member{Job: pod.Labels[JobLabel], Role: pod.Labels[RoleLabel], Index: index, Pod: pod.Name, GPUs: request.GPUs(request.OfTemplate(pod.Spec))}
		member.State, member.Reason = state(pod)
		s = append(s, member)
	}
	slices.SortFunc(s, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index))
	})
	return s
}

// Job returns the members of one job.
func (s List) Job(name string) List {
	return slices.DeleteFunc(slices.Clone(s), func(m Member) bool { return m.Job != name })
}

// Decided reports whether nothing will change by itself: of n members expected,
// each has ended, runs, or was refused by a scheduler.
func (s List) Decided(n int) bool {
	return len(s) == n && s.Count(Undecided)+s.Count(Starting) == 0
}

// Count returns how many members are in a state.
func (s List) Count(state State) (n int) {
	for _, m := range s {
		if m.State == state {
			n++
		}
	}
	return n
}

// Held returns how many GPUs the members hold that have a node.
func (s List) Held() (n int64) {
	for _, m := range s {
		if m.State == Starting || m.State == Running {
			n += m.GPUs
		}
	}
	return n
}

// Partial reports whether some members hold their place while others have none:
// what they hold is idle.
func (s List) Partial() bool {
	placed := s.Count(Starting) + s.Count(Running)
	return placed > 0 && placed+s.Count(Ended) < len(s)
}

func state(pod *corev1.Pod) (State, string) {
	switch {
	case podutil.IsPodTerminal(pod):
		return Ended, ""
	case pod.Status.Phase == corev1.PodRunning:
		return Running, ""
	case pod.Spec.NodeName != "":
		return Starting, ""
	}
	if c := gang.Refusal(pod); c != nil {
		return Pending, c.Message
	}
	return Undecided, ""
}

// WaitFor watches the pods of a namespace until its members meet a condition,
// and returns them. When ctx ends first, the error lists the last ones.
func WaitFor(ctx context.Context, client kubernetes.Interface, namespace string, desired func(List) bool) (List, error) {
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	pods := map[string]corev1.Pod{}
	var last List
	reached := func() bool {
		all := make([]corev1.Pod, 0, len(pods))
		for _, pod := range pods {
			all = append(all, pod)
		}
		last = Of(all)
		return desired(last)
	}
	synced := func(store cache.Store) (bool, error) {
		for _, obj := range store.List() {
			if pod, ok := obj.(*corev1.Pod); ok {
				pods[pod.Name] = *pod
			}
		}
		return reached(), nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, synced, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, fmt.Errorf("watch pods of namespace %s: %v", namespace, e.Object)
		}
		if e.Type == watch.Deleted {
			delete(pods, pod.Name)
		} else {
			pods[pod.Name] = *pod
		}
		return reached(), nil
	})
	if err != nil {
		return last, fmt.Errorf("wait for the pods of namespace %s: %w; last seen: %s", namespace, err, last)
	}
	return last, nil
}

// String lists the members and their states, for errors and logs.
func (s List) String() string {
	parts := make([]string, 0, len(s))
	for _, m := range s {
		parts = append(parts, fmt.Sprintf("%s %s", m.Pod, m.State))
	}
	return strings.Join(parts, ", ")
}
