// Package component finds the components that a gang depends on, by their Deployments, leases and flags: the operator of its job
// and the schedulers; and reports how they are.
package component

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// Start brings all pods of a Deployment up.
func Start(c *stage.Context, d *appsv1.Deployment) stage.Fix {
	text := fmt.Sprintf("get %s to run again", c.TitleOf("Deployment", d))
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: text, Change: map[string]any{"deployment": c.NameOf("Deployment", d)},
			Command: Log(c.View, "deployment", d, d.Spec.Selector)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			for i, other := range n.Deployments {
				if other.Namespace == d.Namespace && other.Name == d.Name {
					up := other.DeepCopy()
					up.Status.ReadyReplicas = max(1, Replicas(d))
					n.Deployments[i] = up
				}
			}
			return freshLeases(n)
		},
	}
}

// freshLeases lets every component that holds a lease have renewed it just now.
func freshLeases(c *snapshot.Snapshot) *snapshot.Snapshot {
	for i, l := range c.Leases {
		l = l.DeepCopy()
		now := metav1.NewMicroTime(c.At)
		l.Spec.RenewTime = &now
		c.Leases[i] = l
	}
	return c
}

// AllDown reports whether none of the Deployments has a ready pod.
func AllDown(deployments []*appsv1.Deployment) bool {
	return !slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 })
}

// Replicas is how many pods a Deployment is to have.
func Replicas(d *appsv1.Deployment) int32 {
	return ptr.Deref(d.Spec.Replicas, 1)
}

// Flag is the value that counts of a flag of a container; "" without.
func Flag(container corev1.Container, name string) string {
	value, _ := argv.Last(container, name)
	return value
}

// DeadAfter is how long a scheduler may be silent before it counts as down: several times the usual lease of 15 s.
const DeadAfter = time.Minute

// Problems are what the pods of a Deployment suffer from, a line each; none for a reader who may not see them, as messages are theirs.
func Problems(c *stage.Context, d *appsv1.Deployment) []string {
	if !c.Reader.Sees(d.Namespace) {
		return nil
	}
	var lines []string
	for _, pod := range Broken(selected(c.View, d.Namespace, d.Spec.Selector)) {
		lines = append(lines, fmt.Sprintf("pod %s: %s", pod.Name, problem(pod)))
	}
	return lines
}

// selected are the pods of a namespace that a selector of an object matches. The caller does not change the list.
func selected(v *view.View, namespace string, selector *metav1.LabelSelector) []*corev1.Pod {
	type selectedBy struct {
		namespace string
		selector  *metav1.LabelSelector
	}
	return view.Once(v, selectedBy{namespace, selector}, func() (pods []*corev1.Pod) {
		sel, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return nil // the API server would not have accepted it
		}
		for _, p := range v.Snap.Pods {
			if p.Namespace == namespace && sel.Matches(labels.Set(p.Labels)) {
				pods = append(pods, p)
			}
		}
		return pods
	})
}
