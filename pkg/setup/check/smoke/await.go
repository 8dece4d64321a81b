package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// members are the pods of the gang as they were last seen, by name.
type members map[string]*corev1.Pod

func (m members) count(is func(*corev1.Pod) bool) int {
	n := 0
	for _, pod := range m {
		if is(pod) {
			n++
		}
	}
	return n
}

func bound(p *corev1.Pod) bool { return p.Spec.NodeName != "" }

func running(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded
}

func ended(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed }

// await follows the pods until all run, one fails, or the time is over.
func (r *run) await(ctx context.Context) check.Finding {
	limited, cancel := context.WithTimeoutCause(ctx, r.o.Timeout, errLate)
	defer cancel()
	pods, selector := r.client.Typed.CoreV1().Pods(r.o.Namespace), r.selector()
	lw := kube.ListWatch(r.client.Typed, pods, func(o *metav1.ListOptions) { o.LabelSelector = selector })
	// A watch would retry a forbidden request indefinitely; a list fails at once.
	if _, err := pods.List(limited, metav1.ListOptions{LabelSelector: selector, Limit: 1}); err != nil {
		return refused(operation("list", r.o.Namespace, "").Wrap(err))
	}
	seen := members{}
	_, err := watchtools.UntilWithSync(limited, lw, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return false, fmt.Errorf("pod %s was deleted while waiting for it", pod.Name)
		}
		seen[pod.Name] = pod
		if r.placed.Bound == 0 && seen.count(bound) == Members {
			r.placed.Bound = seconds(r.o.Now().Sub(r.began))
			r.o.Progress(fmt.Sprintf("both pods have a node after %.1f s", r.placed.Bound))
		}
		return seen.count(running) == Members || seen.count(ended) > 0, nil
	})
	switch {
	case seen.count(ended) > 0, errors.Is(context.Cause(limited), errLate):
		return r.missed(seen)
	case err != nil:
		return check.Finding{Status: check.Fail, Message: failure.From(err).Message}
	}
	r.placed.Running = seconds(r.o.Now().Sub(r.began))
	return check.Finding{Status: check.OK, Message: fmt.Sprintf("scheduler %s: both bound after %.1f s, both running after %.1f s", r.o.Scheduler, r.placed.Bound, r.placed.Running)}
}

// missed reports how far the gang came, with the messages on its pods.
func (r *run) missed(seen members) check.Finding {
	b, text := seen.count(bound), messages(seen)
	f := check.Finding{Status: check.Fail}
	switch {
	case b == Members:
		f.Message = fmt.Sprintf("scheduler %s bound both pods after %.1f s, but %d of %d run after %s", r.o.Scheduler, r.placed.Bound, seen.count(running), Members, r.o.Timeout)
		f.Hint = "if the image cannot be pulled, name one that can: gangctl check --smoke --smoke-image IMAGE"
	case b > 0:
		f.Message = fmt.Sprintf("scheduler %s bound %d of %d pods: it does not place gangs whole", r.o.Scheduler, b, Members)
		f.Hint = "see what answers to that name: gangctl check"
	default:
		f.Message = fmt.Sprintf("scheduler %s bound no pod in %s", r.o.Scheduler, r.o.Timeout)
		f.Hint = "see whether it lives, and whether nodes have room: gangctl check, gangctl why-pending"
	}
	if text != "" {
		f.Message += ": " + text
	}
	return f
}

// messages are the messages of scheduler and kubelets about the pods that do not run, each once.
func messages(seen members) string {
	var all []string
	for _, pod := range seen {
		if c := gang.Refusal(pod); c != nil && c.Message != "" {
			all = append(all, c.Message)
		}
		for _, s := range pod.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
				all = append(all, strings.TrimSuffix(w.Reason+": "+w.Message, ": "))
			}
		}
		if ended(pod) {
			all = append(all, strings.TrimSpace("a pod failed "+pod.Status.Reason+" "+pod.Status.Message))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}
