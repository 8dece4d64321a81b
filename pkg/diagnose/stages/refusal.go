package stages

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
)

// refusalKind is why the API server did not accept an object.
type refusalKind string

// The kinds of refusal.
const (
	refusedQuota     refusalKind = "quota"
	refusedNoField   refusalKind = "quotaNeedsField"
	refusedLimit     refusalKind = "limitRange"
	refusedWebhook   refusalKind = "webhook"
	refusedCall      refusalKind = "webhookDown"
	refusedPriority  refusalKind = "priorityClass"
	refusedAccount   refusalKind = "serviceAccount"
	refusedRuntime   refusalKind = "runtimeClass"
	refusedRights    refusalKind = "rights"
	refusedNamespace refusalKind = "namespace"
	refusedOther     refusalKind = "other"
)

// refusal is one answer of the API server to the create of a pod, seen in an event of the job or by asking it.
type refusal struct {
	kind refusalKind
	// object is what the refusal names: a quota, a webhook, a class, an account.
	object string
	// pod is the name of the pod, if it is told.
	pod string
	// role is the role of the pod, if it is known by other means than the pod's name.
	role string
	// message is the reason without the words around it; raw is the text as it was.
	message, raw string
	first, last  time.Time
	count        int32
	probed       bool
}

// patterns tell refusals apart by the API server's own words. The first group, where there is one, is the object.
var patterns = []struct {
	kind refusalKind
	expr *regexp.Regexp
}{
	{refusedQuota, regexp.MustCompile(`exceeded quota: ([^,\s]+)`)},
	{refusedNoField, regexp.MustCompile(`failed quota: ([^:\s]+): must specify`)},
	{refusedCall, regexp.MustCompile(`failed calling (?:admission )?webhook "?([^\s":]+)"?`)},
	{refusedWebhook, regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)},
	{refusedWebhook, regexp.MustCompile(`(?i)(ValidatingAdmissionPolicy '[^']+')`)},
	{refusedWebhook, regexp.MustCompile(`violates (PodSecurity "[^"]+")`)},
	{refusedPriority, regexp.MustCompile(`no PriorityClass with name (\S+) was found`)},
	{refusedAccount, regexp.MustCompile(`serviceaccount "([^"]+)" not found`)},
	{refusedAccount, regexp.MustCompile(`error looking up service account [^/\s]+/([^\s:]+)`)},
	{refusedRuntime, regexp.MustCompile(`RuntimeClass "?([^\s"]+)"? not found`)},
	{refusedNamespace, regexp.MustCompile(`because it is being (terminated)`)},
	{refusedRights, regexp.MustCompile(`User "([^"]+)" cannot create resource "([^"]+)"`)},
	{refusedLimit, regexp.MustCompile(`(?:maximum|minimum) (\S+) usage per (?:Container|Pod)|limit to request ratio`)},
}

// exceeded are the amounts in a refusal by a quota: what is used, and the limit.
var exceeded = regexp.MustCompile(`used: (\S+), limited: (\S+)`)

// amountsIn reads cpu=4,memory=8Gi. What is no quantity is left out.
func amountsIn(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if q, err := resource.ParseQuantity(value); err == nil {
			list[corev1.ResourceName(name)] = q
		}
	}
	return list
}

// refusedPod is the pod in the API server's words, and what came before it.
var refusedPod = regexp.MustCompile(`^.*?pods "([^"]+)" is forbidden: `)

func parseRefusal(text string) refusal {
	r := refusal{kind: refusedOther, raw: text, message: strings.TrimPrefix(text, "Error creating: ")}
	if m := refusedPod.FindStringSubmatch(text); m != nil {
		r.pod, r.message = m[1], strings.TrimPrefix(text, m[0])
	}
	for _, p := range patterns {
		if m := p.expr.FindStringSubmatch(text); m != nil {
			r.kind = p.kind
			if len(m) > 1 {
				r.object = m[1]
			}
			break
		}
	}
	if r.kind == refusedWebhook {
		if _, after, ok := strings.Cut(r.message, "denied the request: "); ok {
			r.message = after
		}
	}
	r.message = strings.Join(strings.Fields(r.message), " ") // policies write several lines
	return r
}

// resource is what could not be created for lack of rights.
func (r refusal) resource() string {
	if _, after, ok := strings.Cut(r.message, "cannot create resource \""); ok {
		name, _, _ := strings.Cut(after, "\"")
		return name
	}
	return "pods"
}

// refusals are the creates of pods that failed and were not followed by one that did not, the latest first. Where every pod
// exists there is nothing to explain.
func (c *climb) refusals() []refusal {
	if c.g.Count(gang.Missing) == 0 {
		return nil
	}
	var all []refusal
	asked := false
	for _, p := range c.w.Snap.Probes {
		if p.Kind != "Pod" || p.Namespace != c.g.Meta.Namespace || !c.ownPod(p.Name) {
			continue
		}
		asked = true
		if !p.Accepted() {
			r := parseRefusal(p.Message)
			r.first, r.last, r.count, r.probed = c.w.Now, c.w.Now, 1, true
			all = append(all, r)
		}
	}
	for _, e := range c.w.Events(c.g.Kind.Kind, c.g.Meta.Namespace, c.g.Meta.Name) {
		if !strings.HasPrefix(e.Reason, "FailedCreate") && !strings.Contains(e.Message, "Error creating: ") {
			continue
		}
		r := parseRefusal(e.Message)
		if asked && r.kind != refusedRights {
			continue // the API server was asked again: that answer counts, but it was not the controller who asked
		}
		r.first, r.last, r.count = e.First, e.Last, e.Count
		if !slices.ContainsFunc(all, func(o refusal) bool { return o.kind == r.kind && o.object == r.object && o.message == r.message }) {
			all = append(all, r)
		}
	}
	return all
}

// ownPod reports whether a name is that of a pod of this job.
func (c *climb) ownPod(name string) bool { return strings.HasPrefix(name, c.g.Meta.Name+"-") }

// roleOf is the role of the pod that a refusal is about, or "".
func (c *climb) roleOf(r refusal) string {
	if r.role != "" {
		return r.role
	}
	for _, role := range c.g.Roles {
		if strings.HasPrefix(r.pod, c.g.Meta.Name+"-"+strings.ToLower(role.Name)+"-") {
			return role.Name
		}
	}
	if len(c.g.Roles) == 1 {
		return c.g.Roles[0].Name
	}
	return ""
}
