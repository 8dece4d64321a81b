package stages

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// operatorNotices is how long an operator may take to see a new job.
	operatorNotices = time.Minute
	// operatorSilent is after how long an operator that seems well is taken not to look at the job.
	operatorSilent = 5 * time.Minute
)

// operatorMissing: there is no operator, or others are the reasons why those that there are do not look at the job.
func (c *climb) operatorMissing(age time.Duration, others []string) *Finding {
	g := c.g
	f := found(answer.StageController, answer.OperatorMissing, answer.Blocked, answer.Admin,
		"nobody turns %ss into pods: no %s runs in this cluster, and %s has waited for %s", g.Kind.Kind, g.Reader.Controller.Name, g.Meta.Name, phrase.Age(age)).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status").
		run(command.Kubectl("", "get", "deployments", "-A"))
	if len(others) > 0 {
		f.Message = fmt.Sprintf("nobody turns %ss like %s/%s into pods: %s", g.Kind.Kind, g.Meta.Namespace, g.Meta.Name, joinAnd(others))
	}
	for _, d := range c.w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if repository(container.Image) == "trainer-controller-manager" {
				f.detail("%s/%s (trainer-controller-manager) runs TrainJobs only, no %ss", d.Namespace, d.Name, g.Kind.Kind)
			}
		}
	}
	return f
}

// leaderLost: the operator's pods look well, but none of them leads.
func (c *climb) leaderLost(d *appsv1.Deployment, l *coordinationv1.Lease) *Finding {
	at := l.Spec.RenewTime.Time
	return found(answer.StageController, answer.OperatorDown, answer.Blocked, answer.Admin,
		"%s gives no sign of life: its lease was last renewed %s ago", d.Name, phrase.Age(c.w.Age(at))).
		see("coordination.k8s.io/v1", "Lease", l, ".spec.renewTime").since(at).
		detail("Lease %s/%s; Deployment %s/%s: %d/%d ready", l.Namespace, l.Name, d.Namespace, d.Name, d.Status.ReadyReplicas, wanted(d)).
		run(command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--tail=100")).fix(startDeployment(d))
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
	f := found(answer.StageController, answer.OperatorDown, answer.Blocked, answer.Admin,
		"%s runs (Deployment %s/%s, %d/%d ready) but has not looked at %s for %s: it may not handle this kind or namespace",
		d.Name, d.Namespace, d.Name, d.Status.ReadyReplicas, wanted(d), c.g.Meta.Name, phrase.Age(age)).
		see("apps/v1", "Deployment", d, ".spec.template.spec.containers").
		run(command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--tail=100"))
	if u := c.object(c.g.Kind.GroupKind(), c.g.Meta.Namespace, c.g.Meta.Name); u != nil {
		fields := gang.Fields{Object: u}
		if by := fields.String("spec", "runPolicy", "managedBy"); by != "" && by != "kubeflow.org/training-operator" {
			f.detail("spec.runPolicy.managedBy is %s: the operator leaves it to that", by)
		}
	}
	return f
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
	var lines []string
	for _, pod := range c.selected(d.Namespace, d.Spec.Selector) {
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
			"the operator may not create %s in namespace %s: %s", r.resource(), c.g.Meta.Namespace, r.message).
			seeRef("v1/Event/"+c.g.Meta.Namespace, ".message").since(r.first).
			fact("subject", r.object).
			run(c.kubectl("auth", "can-i", "create", r.resource(), "--as", r.object)).
			fix(c.forgive(r, answer.Admin, "let "+r.object+" create "+r.resource()+" in "+c.g.Meta.Namespace,
				c.kubectl("create", "rolebinding", "operator-"+r.resource(), "--clusterrole=edit", "--serviceaccount="+strings.TrimPrefix(r.object, "system:serviceaccount:")))))
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
