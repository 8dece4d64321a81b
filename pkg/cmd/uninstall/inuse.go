package uninstall

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// shown is how many objects of a kind a refusal or a note names.
const shown = 10

// refuseInUse returns an error that lists the pods which are scheduled by one of the names and have not ended.
func refuseInUse(ctx context.Context, client *kube.Client, names []string) error {
	var users []string
	var bare podsBy
	total := 0
	for _, name := range names {
		options := metav1.ListOptions{FieldSelector: fields.AndSelectors(
			fields.OneTermEqualSelector("spec.schedulerName", name),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
		).String()}
		pages, err := paging.All(ctx, options, client.Typed.CoreV1().Pods(metav1.NamespaceAll).List)
		if err != nil {
			return failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod"}.Wrap(err)
		}
		for _, page := range pages {
			for i := range page.Items {
				pod := &page.Items[i]
				if total++; total <= shown {
					bare.add(pod)
					users = append(users, fmt.Sprintf("%s/%s (%s, schedulerName %s)", pod.Namespace, pod.Name, pod.Status.Phase, name))
				}
			}
		}
	}
	if total == 0 {
		return nil
	}
	more := ""
	if total > shown {
		more = fmt.Sprintf(" and %d more", total-shown)
	}
	hint := strings.Join(append([]string{"wait until their jobs have ended, or delete these: gangctl list -A, gangctl delete NAME"}, bare.deletions()...), "\n")
	return failure.Errorf("%s %s the scheduler: %s%s", phrase.Count(total, "pod"), phrase.Verb(total, "uses", "use"), strings.Join(users, ", "), more).WithHint("%s", hint)
}

// podsBy are pods that nothing controls, so that no job is to be deleted for them, by namespace in the order in which they were found.
type podsBy struct {
	namespaces []string
	names      map[string][]string
}

// add notes a pod, unless something controls it.
func (p *podsBy) add(pod *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return
	}
	if p.names == nil {
		p.names = map[string][]string{}
	}
	if p.names[pod.Namespace] == nil {
		p.namespaces = append(p.namespaces, pod.Namespace)
	}
	p.names[pod.Namespace] = append(p.names[pod.Namespace], pod.Name)
}

// deletions are the commands that delete them, a line each.
func (p *podsBy) deletions() (lines []string) {
	for _, namespace := range p.namespaces {
		lines = append(lines, "pods of no job: "+command.Kubectl(namespace, append([]string{"delete", "pod"}, p.names[namespace]...)...))
	}
	return lines
}
