// Package refusal reads why the API server did not accept the pods of a gang.
package refusal

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Kind is why the API server did not accept an object.
type Kind string

// The kinds of refusal.
const (
	Quota          Kind = "quota"
	QuotaField     Kind = "quotaNeedsField"
	LimitRange     Kind = "limitRange"
	Webhook        Kind = "webhook"
	WebhookDown    Kind = "webhookDown"
	PriorityClass  Kind = "priorityClass"
	ServiceAccount Kind = "serviceAccount"
	RuntimeClass   Kind = "runtimeClass"
	Forbidden      Kind = "rights"
	// Finalizers is that the controller may not set finalizers on the object that it makes others for, as the owner of which they are to block its deletion.
	Finalizers Kind = "finalizers"
	Namespace  Kind = "namespace"
	Taken      Kind = "name"
	// Passing is a failure of the API server, or of the way to it, which is about no object: the controller tries again.
	Passing Kind = "passing"
	Other   Kind = "other"
	// Controller is what the controller reports of itself: it could not make what pods are made through, and the API server refused nothing.
	Controller Kind = "controller"
)

// Refusal is one answer of the API server to the create of a pod, seen in an event of the job or by a dry run.
type Refusal struct {
	Kind Kind
	// Object is what the refusal names: a quota, a webhook, a class, an account.
	Object string
	// Pod is the name of the pod, if the message has it.
	Pod string
	// Role is the role of the pod, if it is known by other means than the pod's name.
	Role string
	// Message is the reason without the text around it; Raw is the text as it was.
	Message, Raw string
	First, Last  time.Time
	Count        int32
	Probed       bool
}

// Name is the name of the object that could not be created; "" where the message does not have it.
func (r Refusal) Name() string {
	if m := refusedObject.FindStringSubmatch(r.Raw); m != nil {
		return m[2]
	}
	return ""
}

// Resource is what could not be created: pods, unless the message has something else.
func (r Refusal) Resource() string {
	if m := lacking.FindStringSubmatch(r.Message); m != nil {
		resource, part, _ := strings.Cut(m[3], "/")
		return strings.TrimSuffix(strings.TrimSuffix(resource+"."+m[4], ".")+"/"+part, "/")
	}
	if m := refusedObject.FindStringSubmatch(r.Raw); m != nil {
		return m[1]
	}
	return "pods"
}

// Verb is what the controller may not do, of a refusal for want of rights; else it is create.
func (r Refusal) Verb() string {
	if m := lacking.FindStringSubmatch(r.Message); m != nil {
		return m[2]
	}
	return "create"
}

// lacking recognises that a user may not do something with a resource, of an API group where the message has that.
var lacking = regexp.MustCompile(`User "([^"]+)" cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?`)

// patterns recognise the kinds of refusal by the API server's messages. The first group, where there is one, is the object.
var patterns = []struct {
	kind Kind
	expr *regexp.Regexp
}{
	{Quota, regexp.MustCompile(`exceeded quota: ([^,\s]+)`)},
	{QuotaField, regexp.MustCompile(`failed quota: ([^:\s]+): must specify`)},
	{WebhookDown, regexp.MustCompile(`failed calling (?:admission )?webhook "?([^\s":]+)"?`)},
	{Webhook, regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)},
	{Webhook, regexp.MustCompile(`(?i)(ValidatingAdmissionPolicy '[^']+')`)},
	{Webhook, regexp.MustCompile(`violates (PodSecurity "[^"]+")`)},
	{PriorityClass, regexp.MustCompile(`no PriorityClass with name (\S+) was found`)},
	{ServiceAccount, regexp.MustCompile(`serviceaccount "([^"]+)" not found`)},
	{ServiceAccount, regexp.MustCompile(`error looking up service account [^/\s]+/([^\s:]+)`)},
	{RuntimeClass, regexp.MustCompile(`RuntimeClass "?([^\s"]+)"? not found`)},
	{Namespace, regexp.MustCompile(`because it is being (terminated)`)},
	{Forbidden, lacking},
	{LimitRange, regexp.MustCompile(`(?:maximum|minimum) (\S+) usage per (?:Container|Pod)|limit to request ratio`)},
	{LimitRange, regexp.MustCompile(`must be less than or equal to (\S+) limit of`)},
	{Taken, regexp.MustCompile(`"([^"]+)" already exists`)},
	{Finalizers, regexp.MustCompile(`cannot set blockOwnerDeletion`)},
	{Passing, regexp.MustCompile(`status unknown for quota: ([^,\s]+)`)},
	{Passing, regexp.MustCompile(`Operation cannot be fulfilled on|Internal error occurred: |etcdserver: |not yet ready to handle request`)},
	{Passing, regexp.MustCompile(`[Tt]oo [Mm]any [Rr]equests|currently unable to handle the request|the time allotted|did not complete within`)},
	{Passing, regexp.MustCompile(`connection (?:refused|reset|lost)|i/o timeout|no route to host|handshake timeout|context deadline exceeded|Client\.Timeout|\bEOF\b`)},
}

// attempted is what KubeRay writes before the API server's message.
var attempted = regexp.MustCompile(`^Failed to create \w+ Pod \S+, (?:Error: )?`)

// refusedPod is the pod in the API server's message, and what came before it.
var refusedPod = regexp.MustCompile(`^.*?pods "([^"]+)" is forbidden: `)

// refusedObject is the resource, and the name, of the object that the API server's message is about.
var refusedObject = regexp.MustCompile(`(?:^|\s)([a-z0-9.-]+) "([^"]+)" (?:is forbidden: |already exists)`)

// invalidObject is the kind, and the name, of the object that the API server's message finds invalid.
var invalidObject = regexp.MustCompile(`([A-Z]\w*)\S* "([^"]+)" is invalid: `)

// Invalid is the kind, and the name, of the object that is not valid, as the API server found it; empty where it was refused for something else.
func (r Refusal) Invalid() (kind, name string) {
	if m := invalidObject.FindStringSubmatch(r.Raw); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// badName is how the API server refuses a name, or a label that is made of one: it has the value.
var badName = regexp.MustCompile(`Invalid value: "([^"]*)": (?:must be no more than 63 |[^",]*DNS-1)`)

// Misnamed reports whether an object of a job is not valid for its name, which begins with the job's, and by how many characters it is too long. A label of the
// user's own, with another value, is none of that.
func (r Refusal) Misnamed(g *gang.Gang) (too int, ok bool) {
	_, name := r.Invalid()
	made := slices.ContainsFunc(badName.FindAllStringSubmatch(r.Raw, -1), func(m []string) bool { return strings.Contains(m[1], g.Meta.Name) })
	return len(name) - maxLabel, made && strings.HasPrefix(name, g.Meta.Name)
}

// maxLabel is how many characters a label has at most, and a name that is one.
const maxLabel = 63

// Parse reads a refusal from a message of the API server.
func Parse(text string) Refusal {
	r := Refusal{Kind: Other, Raw: text, Message: strings.TrimPrefix(attempted.ReplaceAllString(text, ""), "Error creating: ")}
	if m := refusedPod.FindStringSubmatch(text); m != nil {
		r.Pod, r.Message = m[1], strings.TrimPrefix(text, m[0])
	}
	for _, p := range patterns {
		if m := p.expr.FindStringSubmatch(text); m != nil {
			r.Kind = p.kind
			if len(m) > 1 {
				r.Object = m[1]
			}
			break
		}
	}
	if r.Kind == Webhook {
		if _, after, ok := strings.Cut(r.Message, "denied the request: "); ok {
			r.Message = after
		}
	}
	r.Message = strings.Join(strings.Fields(r.Message), " ") // policies write several lines
	return r
}

// Of are the creates of pods that failed and were not followed by one that did not, the latest first. Where every pod
// exists there is nothing to explain.
func Of(v *view.View, g *gang.Gang) []Refusal {
	all, _ := divided(v, g)
	return all
}

// Over is the latest of the creates that failed of which the cause is gone, as far as the cluster shows that: the controller tries again. ok is false where there is none.
func Over(v *view.View, g *gang.Gang) (r Refusal, ok bool) {
	_, over := divided(v, g)
	for _, r := range over {
		if r.Kind != Taken && !awaitsFirst(g, r) && !(r.Kind == Passing && counted(v, g, r)) {
			return r, true
		}
	}
	return Refusal{}, false
}

// divided are the creates that failed, those of which the cause is gone apart.
func divided(v *view.View, g *gang.Gang) (all, past []Refusal) {
	if g.Count(gang.Missing) == 0 {
		return nil, nil
	}
	probed := false
	for _, p := range v.Snap.Probes {
		if p.Kind != "Pod" || p.Namespace != g.Meta.Namespace || !ownPod(g, p.Name) {
			continue
		}
		probed = true
		r := Parse(p.Message)
		if r.First, r.Last, r.Count, r.Probed = v.Now, v.Now, 1, true; !p.Accepted() && !over(v, g, r) {
			all = append(all, r)
		}
	}
	if assumedNew(v, g) { // which no controller has made pods of
		return slices.Concat(all, lasting(v, g)), nil
	}
	for _, e := range v.MakerEvents(g.Job) {
		if !reportsCreate(e) || e.Last.Before(g.Meta.CreationTimestamp.Time) { // about an earlier job of the same name
			continue
		}
		r := Parse(e.Message)
		if probed && r.Kind != Forbidden && r.Kind != Finalizers {
			continue // the create was tried again: that answer counts, but it was not the controller who tried
		}
		r.First, r.Last, r.Count = e.First, e.Last, e.Count
		if over(v, g, r) {
			past = append(past, r)
			continue
		}
		if r.Kind == Other && strings.HasSuffix(e.Reason, creationFailed) && !byServer.MatchString(e.Message) {
			r.Kind = Controller
		}
		if !slices.ContainsFunc(all, func(o Refusal) bool { return o.Kind == r.Kind && o.Object == r.Object && o.Message == r.Message }) {
			all = append(all, r)
		}
	}
	return all, past
}

// Tried reports whether a dry run of a pod of the gang was answered, and whether one was accepted.
func Tried(v *view.View, g *gang.Gang) (tried, accepted bool) {
	for _, p := range v.Snap.Probes {
		if p.Kind == "Pod" && p.Namespace == g.Meta.Namespace && ownPod(g, p.Name) {
			tried, accepted = true, accepted || p.Accepted()
		}
	}
	return tried, accepted
}

// Unanswered records that a dry run of the gang's objects of a kind had no answer, each reason once, and reports whether it is so; what names them.
func Unanswered(c *stage.Context, out *stage.Result, kind, what string) bool {
	g := c.Gang
	var reasons []string
	for _, u := range c.View.Snap.Unanswered {
		own := u.Name == g.Meta.Name // as a PodGroup is named that is submitted, too
		if kind == "Pod" {
			own = ownPod(g, u.Name)
		}
		if u.Kind == kind && u.Namespace == g.Meta.Namespace && own && !slices.Contains(reasons, u.Message) {
			reasons = append(reasons, u.Message)
			out.Note("whether the API server accepts %s is not known: %s", what, u.Message)
		}
	}
	if len(reasons) > 0 {
		out.Unmodelled = append(out.Unmodelled, "whether the API server accepts "+what)
	}
	return len(reasons) > 0
}

// assumedNew reports whether the job is only assumed to be submitted, or to be submitted again. The times of events do not show that: they are of whole
// seconds, and of another clock.
func assumedNew(v *view.View, g *gang.Gang) bool {
	if v.Present() == v {
		return false
	}
	was := present(v, g)
	return was == nil || !was.Meta.CreationTimestamp.Equal(&g.Meta.CreationTimestamp)
}

// lasting are the denials by webhooks and policies of the job as it is, of one that is only assumed to be submitted again: what these make of it is not computed, and nothing shows
// that it is something else. One that was assumed to be lifted has no event any more.
func lasting(v *view.View, g *gang.Gang) []Refusal {
	was := present(v, g)
	if was == nil || was.Meta.UID != g.Meta.UID { // another job of that name
		return nil
	}
	now := v.Present()
	return slices.DeleteFunc(slices.Clone(Of(now, now.Gang(was))), func(r Refusal) bool {
		return r.Probed || r.Kind != Webhook ||
			!slices.ContainsFunc(v.Snap.Events, func(e *corev1.Event) bool { return e.Namespace == g.Meta.Namespace && e.Message == r.Raw })
	})
}

// present is the job of a gang as it is in the cluster, also where another one is assumed; nil if there is none.
func present(v *view.View, g *gang.Gang) *gang.Job {
	now := v.Present()
	if g.Bare == nil {
		return now.Lookup(g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name)
	}
	all := now.BareGangs(g.Meta.Namespace)
	if i := slices.IndexFunc(all, func(job *gang.Job) bool { return job.Meta.UID == g.Meta.UID }); i >= 0 {
		return all[i]
	}
	return nil
}

// ByQuota are the refusals by quotas, and the gang that they are about. Of a job that is only assumed to be submitted again they are those of the job as it is: what a
// quota allows that may not be read, and what a controller creates besides pods, is known by them alone.
func ByQuota(v *view.View, g *gang.Gang) ([]Refusal, *gang.Gang) {
	all, of := Of(v, g), g
	if assumedNew(v, g) {
		if was := present(v, g); was != nil {
			now := v.Present()
			of = now.Gang(was)
			all = slices.Concat(all, Of(now, of))
		}
	}
	return slices.DeleteFunc(all, func(r Refusal) bool { return r.Kind != Quota }), of
}

// creationFailed ends the reasons of events of controllers that could not make something: JobCreationFailed of JobSet, TrainJobResourcesCreationFailed of
// the Trainer, which has it for whatever keeps it from that.
const creationFailed = "CreationFailed"

// byServer recognises that a message is the API server's.
var byServer = regexp.MustCompile(`\b(?:is forbidden|is invalid|already exists|denied the request|denied request)\b`)

// reportsCreate reports whether an event is about a create that failed: of a pod, or of what pods are made through, which JobSet reports as
// JobCreationFailed and the like; but not of the PodGroup.
func reportsCreate(e view.Event) bool {
	return !strings.Contains(e.Reason, "PodGroup") && (strings.HasPrefix(e.Reason, "FailedCreate") || strings.HasPrefix(e.Reason, "FailedToCreate") || strings.HasSuffix(e.Reason, creationFailed) ||
		strings.Contains(e.Message, "Error creating: "))
}

// ownPod reports whether a name is that of a pod of this job.
func ownPod(g *gang.Gang, name string) bool { return strings.HasPrefix(name, g.Meta.Name+"-") }

// RoleOf is the role of the pod that a refusal is about, or "".
func RoleOf(g *gang.Gang, r Refusal) string {
	if r.Role != "" {
		return r.Role
	}
	for _, role := range g.Roles {
		if strings.HasPrefix(r.Pod, g.Meta.Name+"-"+strings.ToLower(role.Name)+"-") {
			return role.Name
		}
	}
	if len(g.Roles) == 1 {
		return g.Roles[0].Name
	}
	return namedIn(g, r.Raw)
}

// namedIn is the role of the member whose pod a message names, as that of a webhook may; "" if it names none.
func namedIn(g *gang.Gang, message string) string {
	for name := range strings.FieldsFuncSeq(message, func(r rune) bool { return r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, role := range g.Roles {
			index, is := strings.CutPrefix(name, g.Meta.Name+"-"+strings.ToLower(role.Name)+"-")
			if _, err := strconv.Atoi(index); is && err == nil {
				return role.Name
			}
		}
	}
	return ""
}

// exceeded are the amounts in a refusal by a quota: what is used, and the limit.
var exceeded = regexp.MustCompile(`used: (\S+), limited: (\S+)`)

// requested are the amounts in a refusal by a quota that the object would have been charged.
var requested = regexp.MustCompile(`requested: (\S+), used: `)

// Requested are the amounts of a quota that the refused object would have been charged; empty where they were not reported.
func (r Refusal) Requested() corev1.ResourceList {
	m := requested.FindStringSubmatch(r.Message)
	if r.Kind != Quota || m == nil {
		return nil
	}
	return amountsIn(m[1])
}

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

// Amounts are what is used and what is allowed, of a refusal by a quota; ok is false where they were not reported.
func (r Refusal) Amounts() (used, limit corev1.ResourceList, ok bool) {
	m := exceeded.FindStringSubmatch(r.Message)
	if r.Kind != Quota || m == nil {
		return nil, nil, false
	}
	return amountsIn(m[1]), amountsIn(m[2]), true
}
