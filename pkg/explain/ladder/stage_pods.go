package ladder

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// pods looks whether the API server accepts the gang's pods. What can be computed is computed from the objects as they are
// now; a refusal that was seen counts only where nothing shows that its cause is gone.
func (c *climb) pods() state {
	missing := c.missing()
	if c.held || len(missing) == 0 {
		return okf(c.created())
	}
	before := len(c.findings)
	c.quotas(missing)
	c.limitRanges(missing)
	for _, r := range c.refusals() {
		c.refused(r)
	}
	if len(c.findings) > before {
		c.held = true
	}
	return okf(c.created())
}

// created reads like 2/4.
func (c *climb) created() string {
	return fmt.Sprintf("%d/%d", c.g.Total()-c.g.Count(world.Missing), c.g.Total())
}

// missing are the members without a pod that the gang cannot do without.
func (c *climb) missing() []world.Member {
	var missing []world.Member
	for _, m := range c.g.Members {
		if m.State == world.Missing {
			missing = append(missing, m)
		}
	}
	spare := c.g.Total() - c.g.Min
	if keep := int32(len(missing)) - spare; spare > 0 && keep < int32(len(missing)) {
		missing = missing[:max(0, keep)]
	}
	return missing
}

// refused adds the finding for a refusal whose cause is still there, as far as can be told.
func (c *climb) refused(r refusal) {
	var f *Finding
	switch r.kind {
	case refusedQuota, refusedLimit, refusedRights, refusedNamespace:
		return // computed from objects, or told by another stage
	case refusedPriority:
		f = c.priorityMissing(r)
	case refusedAccount:
		f = c.accountMissing(r)
	case refusedRuntime:
		f = c.runtimeMissing(r)
	case refusedNoField:
		f = c.quotaNeedsField(r)
	case refusedCall:
		f = c.webhookDown(r)
	default:
		f = c.admissionDenied(r)
	}
	if f == nil {
		return
	}
	if c.has(f.Code) && f.Code != answer.AdmissionDenied {
		return
	}
	role := c.roleOf(r)
	if role != "" {
		f.fact("role", role)
	}
	f.detail("%d/%d pods exist; %s refused%s", c.g.Total()-c.g.Count(world.Missing), c.g.Total(), cmpRole(role), c.times(r)).since(r.first)
	c.add(*f)
}

func cmpRole(role string) string {
	if role == "" {
		return "the others were"
	}
	return "those of " + role + " were"
}

func (c *climb) times(r refusal) string {
	if r.probed {
		return ", asked just now"
	}
	return fmt.Sprintf(" %s, last %s ago", phrase.Count(r.count, "time"), phrase.Age(c.w.Age(r.last)))
}

func (c *climb) admissionDenied(r refusal) *Finding {
	by := r.object
	if by == "" {
		by = "the API server"
	}
	return found(answer.StagePods, answer.AdmissionDenied, answer.Blocked, answer.User, "%s denies the pods: %s", by, r.message).
		fact("webhook", r.object).fact("message", r.message).
		fix(c.forgive(r, answer.User, "change the pods as "+by+" asks, and submit again", ""))
}

func (c *climb) webhookDown(r refusal) *Finding {
	f := found(answer.StagePods, answer.WebhookDown, answer.Blocked, answer.Admin, "webhook %s does not answer, and without it no pod is accepted", r.object).
		fact("webhook", r.object).detail("%s", r.message)
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		for _, u := range c.w.Snap.Custom[gk("admissionregistration.k8s.io", kind)] {
			service, namespace := webhookService(u.Object, r.object)
			if service == "" {
				continue
			}
			f.see("admissionregistration.k8s.io/v1", kind, u, ".webhooks").detail("it is served by Service %s/%s", namespace, service).
				run(command.Kubectl(namespace, "get", "endpointslices", "-l", "kubernetes.io/service-name="+service))
		}
	}
	return f.fix(c.forgive(r, answer.Admin, "get webhook "+r.object+" to answer again", ""))
}

// webhookService finds the service behind a webhook.
func webhookService(config map[string]any, webhook string) (name, namespace string) {
	hooks, _ := config["webhooks"].([]any)
	for _, item := range hooks {
		hook, _ := item.(map[string]any)
		if hook["name"] != webhook {
			continue
		}
		client, _ := hook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		name, _ = service["name"].(string)
		namespace, _ = service["namespace"].(string)
	}
	return name, namespace
}

func (c *climb) priorityMissing(r refusal) *Finding {
	var have []string
	for _, class := range c.w.Snap.PriorityClasses {
		if class.Name == r.object {
			return nil // it has been made since
		}
		if !strings.HasPrefix(class.Name, "system-") {
			have = append(have, class.Name)
		}
	}
	f := found(answer.StagePods, answer.PriorityMissing, answer.Blocked, answer.User, "PriorityClass %q does not exist; there are: %s", r.object, phrase.Names(have)).
		fact("priorityClass", r.object).fact("have", have)
	if nearest := near.Nearest(r.object, have); nearest != "" {
		f.detail("did you mean %s?", nearest)
		f.fix(c.rename("priorityClassName", r.object, nearest, func(spec *corev1.PodSpec) {
			if spec.PriorityClassName == r.object {
				spec.PriorityClassName = nearest
			}
		}, r))
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "create PriorityClass " + r.object, Change: map[string]any{"priorityClass": r.object},
			Command: command.Kubectl("", "create", "priorityclass", r.object, "--value=1000")},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			n.PriorityClasses = append(n.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.object}, Value: 1000})
			return n
		},
	})
}

// rename is a fix that writes another name into every pod template.
func (c *climb) rename(field, from, to string, edit func(*corev1.PodSpec), r refusal) Fix {
	var commands []string
	for _, role := range c.g.Roles {
		commands = append(commands, c.patchRole(role.Name, command.Patch{Op: "replace", Path: "/template/spec/" + field, Value: to}))
	}
	return Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("write %s: %s instead of %s", field, to, from),
			Change: map[string]any{field: to}, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Resubmit(s, c.g, func(spec *whatif.Spec) {
				for i := range spec.Roles {
					edit(&spec.Roles[i].Template.Spec)
				}
			})
			if n == nil {
				return nil
			}
			n = whatif.WithoutProbes(n, "Pod")
			return whatif.WithoutEvents(n, func(e *corev1.Event) bool { return e.Message == r.raw })
		},
	}
}

func (c *climb) accountMissing(r refusal) *Finding {
	var have []string
	for _, a := range c.w.Snap.ServiceAccounts {
		if a.Namespace != c.g.Meta.Namespace {
			continue
		}
		if a.Name == r.object {
			return nil
		}
		have = append(have, a.Name)
	}
	ns := c.g.Meta.Namespace
	f := found(answer.StagePods, answer.AccountMissing, answer.Blocked, answer.User, "ServiceAccount %q does not exist in namespace %s, so its pods are not accepted", r.object, ns).
		fact("serviceAccount", r.object).fact("have", have)
	if len(have) > 0 {
		f.detail("there are: %s", phrase.Names(have))
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "create ServiceAccount " + r.object, Change: map[string]any{"serviceAccount": r.object},
			Command: command.Kubectl(ns, "create", "serviceaccount", r.object)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			n.ServiceAccounts = append(slices.Clone(n.ServiceAccounts), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: r.object}})
			return n
		},
	})
}

func (c *climb) runtimeMissing(r refusal) *Finding {
	var have []string
	for _, class := range c.w.Snap.RuntimeClasses {
		if class.Name == r.object {
			return nil
		}
		have = append(have, class.Name)
	}
	return found(answer.StagePods, answer.RuntimeMissing, answer.Blocked, answer.User, "RuntimeClass %q does not exist; there are: %s", r.object, phrase.Names(have)).
		fact("runtimeClass", r.object).fact("have", have).
		fix(c.forgive(r, answer.Admin, "create RuntimeClass "+r.object+", or name one that exists", ""))
}

func (c *climb) quotaNeedsField(r refusal) *Finding {
	for _, q := range c.w.Snap.ResourceQuotas {
		if q.Namespace == c.g.Meta.Namespace && q.Name == r.object {
			return found(answer.StagePods, answer.QuotaNeedsField, answer.Blocked, answer.User, "quota %s makes a field of the pods mandatory: %s", r.object, r.message).
				see("v1", "ResourceQuota", q, ".spec.hard").fact("quota", r.object).
				fix(c.forgive(r, answer.User, "set the field that quota "+r.object+" asks for, and submit again", ""))
		}
	}
	return nil
}
