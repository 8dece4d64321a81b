package ladder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

const (
	// operatorNotices is how long an operator may take to see a new job.
	operatorNotices = time.Minute
	// operatorSilent is after how long an operator that seems well is taken not to look at the job.
	operatorSilent = 5 * time.Minute
)

// controller looks whether somebody turns the job into pods.
func (c *climb) controller() state {
	g := c.g
	if len(g.Reader.Controller.Images) == 0 {
		return okf("run by Kubernetes itself")
	}
	pending := !g.Seen || g.Count(world.Missing) > 0 && !g.Suspended
	if !pending || c.held {
		return ok
	}
	age := c.w.Age(g.Meta.CreationTimestamp.Time)
	operators := c.operators()
	switch {
	case c.w.Assumed && !g.Seen:
		// A job that was only just assumed to be submitted: what counts is that somebody is there.
		switch {
		case len(operators) > 0 && allDown(operators):
			c.add(*c.operatorDown(operators[0], age))
		case len(operators) == 0 && len(c.w.Snap.Deployments) > 0 && c.w.Snap.CanList("deployments.apps", ""):
			c.add(*c.operatorMissing(age))
		}
	case len(operators) == 0 && c.denied("deployments.apps", ""):
		return unknown("deployments may not be listed")
	case len(operators) == 0 && age > operatorNotices:
		c.held = true
		c.add(*c.operatorMissing(age))
	case len(operators) > 0 && allDown(operators):
		c.held = true
		c.add(*c.operatorDown(operators[0], age))
	case len(operators) > 0 && !g.Seen && age > operatorSilent:
		c.held = true
		c.add(*c.operatorSilent(operators[0], age))
	}
	c.operatorRights()
	return ok
}

// operators are the Deployments of the job's controller.
func (c *climb) operators() []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, d := range c.w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if slices.ContainsFunc(c.g.Reader.Controller.Images, func(part string) bool { return strings.Contains(repository(container.Image), part) }) {
				all = append(all, d)
				break
			}
		}
	}
	return all
}

// repository is the last part of an image's name, without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ := strings.Cut(image, ":")
	return name
}

func allDown(deployments []*appsv1.Deployment) bool {
	return !slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 })
}

func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func (c *climb) operatorMissing(age time.Duration) *Finding {
	g := c.g
	return found(answer.StageController, answer.OperatorMissing, answer.Blocked, answer.Admin,
		"nobody turns %ss into pods: no %s runs in this cluster, and %s has waited for %s", g.Kind.Kind, g.Reader.Controller.Name, g.Meta.Name, phrase.Age(age)).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status").
		run(command.Kubectl("", "get", "deployments", "-A"))
}

func (c *climb) operatorDown(d *appsv1.Deployment, age time.Duration) *Finding {
	f := found(answer.StageController, answer.OperatorDown, answer.Blocked, answer.Admin,
		"%s is down: %d/%d pods of Deployment %s/%s are ready, so nobody has acted on %s for %s",
		d.Name, d.Status.ReadyReplicas, wanted(d), d.Namespace, d.Name, c.g.Meta.Name, phrase.Age(age)).
		see("apps/v1", "Deployment", d, ".status.readyReplicas").
		fact("ready", d.Status.ReadyReplicas).fact("wanted", wanted(d))
	for _, cond := range d.Status.Conditions {
		if cond.Type == appsv1.DeploymentAvailable && cond.Status == corev1.ConditionFalse {
			f.since(cond.LastTransitionTime.Time).detail("not available for %s", phrase.Age(c.w.Age(cond.LastTransitionTime.Time)))
		}
	}
	if wanted(d) == 0 {
		return f.detail("it is scaled to 0").run(command.Kubectl(d.Namespace, "scale", "deployment/"+d.Name, "--replicas=1")).fix(startDeployment(d))
	}
	for _, line := range c.deploymentTrouble(d) {
		f.detail("%s", line)
	}
	return f.run(command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--previous", "--tail=50")).
		run(command.Kubectl(d.Namespace, "rollout", "status", "deployment/"+d.Name)).fix(startDeployment(d))
}

func (c *climb) operatorSilent(d *appsv1.Deployment, age time.Duration) *Finding {
	return found(answer.StageController, answer.OperatorDown, answer.Blocked, answer.Admin,
		"%s runs (Deployment %s/%s, %d/%d ready) but has not looked at %s for %s: it may not handle this kind or namespace",
		d.Name, d.Namespace, d.Name, d.Status.ReadyReplicas, wanted(d), c.g.Meta.Name, phrase.Age(age)).
		see("apps/v1", "Deployment", d, ".spec.template.spec.containers").
		run(command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--tail=100"))
}

// startDeployment brings all pods of a Deployment up.
func startDeployment(d *appsv1.Deployment) Fix {
	text := fmt.Sprintf("get Deployment %s/%s to run again", d.Namespace, d.Name)
	return Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: text, Change: map[string]any{"deployment": d.Namespace + "/" + d.Name},
			Command: command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--previous", "--tail=50")},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			c := s.Clone()
			for i, other := range c.Deployments {
				if other.Namespace == d.Namespace && other.Name == d.Name {
					up := other.DeepCopy()
					up.Status.ReadyReplicas = max(1, wanted(d))
					c.Deployments[i] = up
				}
			}
			return freshLeases(c)
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

// deploymentTrouble says what the pods of a Deployment suffer from.
func (c *climb) deploymentTrouble(d *appsv1.Deployment) []string {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil // the API server would not have accepted it
	}
	var lines []string
	for _, pod := range c.w.Snap.Pods {
		if pod.Namespace != d.Namespace || !selector.Matches(labelSet(pod.Labels)) {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting == nil {
				continue
			}
			line := fmt.Sprintf("pod %s: %s, %s", pod.Name, s.State.Waiting.Reason, phrase.Count(s.RestartCount, "restart"))
			if t := s.LastTerminationState.Terminated; t != nil {
				line += fmt.Sprintf("; last exit code %d: %s", t.ExitCode, cmp.Or(t.Message, t.Reason))
			}
			lines = append(lines, line)
		}
		if len(pod.Status.ContainerStatuses) == 0 {
			lines = append(lines, fmt.Sprintf("pod %s: %s", pod.Name, pod.Status.Phase))
		}
	}
	return lines
}

// operatorRights looks for refusals that are about the operator's own rights.
func (c *climb) operatorRights() {
	for _, r := range c.refusals() {
		if r.kind != refusedRights {
			continue
		}
		c.held = true
		c.add(*found(answer.StageController, answer.OperatorRBAC, answer.Blocked, answer.Admin,
			"the operator may not create pods in namespace %s: %s", c.g.Meta.Namespace, r.message).
			seeRef("v1/Event/"+c.g.Meta.Namespace, ".message").since(r.first).
			fact("subject", r.object).
			run(c.kubectl("auth", "can-i", "create", "pods", "--as", r.object)).
			fix(c.forgive(r, answer.Admin, "let "+r.object+" create pods in "+c.g.Meta.Namespace,
				c.kubectl("create", "rolebinding", "operator-pods", "--clusterrole=edit", "--serviceaccount="+strings.ReplaceAll(strings.TrimPrefix(r.object, "system:serviceaccount:"), "/", ":")))))
		return
	}
}

// forgive removes the cause of a refusal that only the API server knows: after it, creates are accepted.
func (c *climb) forgive(r refusal, who answer.Who, text, command string) Fix {
	return Fix{
		Action: answer.Action{Kind: answer.Fix, By: who, Text: text, Command: command, Change: map[string]any{"refusal": string(r.kind), "object": r.object}},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			s = whatif.WithoutEvents(s, func(e *corev1.Event) bool { return e.InvolvedObject.Name == c.g.Meta.Name && e.Message == r.raw })
			return whatif.WithoutProbes(s, "Pod")
		},
	}
}
