package stages

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
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
	for _, r := range slices.Concat(c.refusals(), c.implied(missing)) {
		c.refused(r)
	}
	if len(c.findings) > before {
		c.held = true
		return okf(c.created())
	}
	return c.unseenRefusals()
}

// created reads like 2/4.
func (c *climb) created() string {
	return fmt.Sprintf("%d/%d", c.g.Total()-c.g.Count(gang.Missing), c.g.Total())
}

// missing are the members without a pod that the gang cannot do without.
func (c *climb) missing() []gang.Member {
	var missing []gang.Member
	for _, m := range c.g.Members {
		if m.State == gang.Missing {
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
	case refusedQuota, refusedRights, refusedNamespace:
		return // computed from objects, or told by another stage
	case refusedLimit:
		f = c.limitRefused(r)
	case refusedPriority, refusedAccount, refusedRuntime:
		f = c.classMissing(r)
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
	f.detail("%d/%d pods exist; %s %s", c.g.Total()-c.g.Count(gang.Missing), c.g.Total(), cmpRole(role), c.times(r)).since(r.first)
	c.add(*f)
}

func cmpRole(role string) string {
	if role == "" {
		return "the others"
	}
	return "those of " + role
}

// times reads like: were refused 3 times, last 4s ago.
func (c *climb) times(r refusal) string {
	switch {
	case r.probed:
		return "were refused, asked just now"
	case r.count == 0:
		return "are not accepted"
	}
	return fmt.Sprintf("were refused %s, last %s ago", phrase.Count(r.count, "time"), phrase.Age(c.w.Age(r.last)))
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
