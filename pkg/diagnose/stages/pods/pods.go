// Package pods is the stage of a diagnosis that evaluates whether the API server accepts the pods of a gang.
package pods

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// Evaluate looks whether the API server accepts the gang's pods. What can be computed is computed from the objects as they are
// now; a refusal that was seen counts only where nothing shows that its cause is gone.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	claimQuotas(c, out)
	missing, spare := missing(c)
	if c.Gang.End != nil || c.Has(answer.JobInvalid) {
		return stage.OK(c.Created())
	}
	if len(spare) > 0 {
		spareQuotas(c, out, missing, spare)
	}
	if len(missing) == 0 {
		return stage.OK(c.Created())
	}
	before := len(out.Findings)
	quotas(c, out, missing)
	limitRanges(c, out, missing)
	_, accepted := refusal.Tried(c.View, c.Gang)
	if !accepted { // else a webhook states what the templates do not
		mandatory(c, out, missing)
	}
	refusals := slices.Concat(refusal.Of(c.View, c.Gang), refusal.Held(c.View, c.Gang), implied(c, missing))
	other := func(r refusal.Refusal) bool { return r.Kind == refusal.Other } // which is that, in the API server's words
	if !accepted && !slices.ContainsFunc(refusals, other) {
		refusals = slices.Concat(refusals, invalid(c, missing, refusals))
	}
	if refusals = slices.Concat(refusals, insecure(c, out, missing, refusals)); len(refusals) == 0 {
		namesLeave(c, out)
	}
	for _, r := range refusals {
		refused(c, out, missing, r)
	}
	inAdmissionOrder(out.Findings[before:])
	if out.NoPods = out.NoPods || len(out.Findings) > before; out.NoPods || c.NoPods {
		return stage.OK(c.Created()) // what may not be read does not keep pods from being made that are not made anyway
	}
	return unreadable(c, out)
}

// inAdmissionOrder moves what quotas refuse behind the rest: the API server charges quotas when all else has accepted a pod, so that is what
// its refusals are about.
func inAdmissionOrder(found []stage.Finding) {
	slices.SortStableFunc(found, func(a, b stage.Finding) int { return cmp.Compare(turn(a), turn(b)) })
}

// turn is 1 for a finding about what a quota has left, and 0 for any other.
func turn(f stage.Finding) int {
	if f.Code == answer.NSQuota || f.Code == answer.NSQuotaTooSmall {
		return 1
	}
	return 0
}

// absent are the members of one role without a pod: one of them, which the others are like, and how many there are.
type absent struct {
	gang.Member
	count int64
	// pod is that of one of them, and charge what quotas are charged for it.
	pod    *corev1.Pod
	charge corev1.ResourceList
}

// missing are the members without a pod that the gang cannot do without, by role, and those that it can do without: also those that are too many to be listed.
func missing(c *stage.Context) (all, beyond []absent) {
	at := map[string]int{}
	add := func(m gang.Member, n int64) {
		if _, known := at[m.Role]; !known {
			at[m.Role] = len(all)
			pod := c.View.Virtual(c.Gang, m)
			all = append(all, absent{Member: m, pod: pod, charge: quota.Charge(pod)})
		}
		all[at[m.Role]].count += n
	}
	for _, m := range c.Gang.Members {
		if m.State == gang.Missing {
			add(m, 1)
		}
	}
	for _, r := range c.Gang.Roles {
		if n := c.Gang.Unlisted[r.Name]; n > 0 && c.Gang.Unmade(r.Name) == gang.Missing {
			add(gang.Member{Role: r.Name, State: gang.Missing}, int64(n))
		}
	}
	beyond = slices.Clone(all)
	spare := int64(max(0, c.Gang.Total()-c.Gang.Min))
	for i, a := range slices.Backward(all) { // it is the last that are not made
		beyond[i].count = min(spare, a.count, spareOf(c.Gang, a))
		all[i].count -= beyond[i].count
		spare -= beyond[i].count
	}
	none := func(a absent) bool { return a.count == 0 }
	return slices.DeleteFunc(all, none), slices.DeleteFunc(beyond, none)
}

// spareOf is how many of the missing members of a role the gang can do without for the sake of the role's own minimum.
func spareOf(g *gang.Gang, a absent) int64 {
	if g.Decl == nil {
		return a.count
	}
	least, stated := g.Decl.RoleMin[strings.ToLower(a.Role)]
	if !stated {
		return a.count
	}
	return max(0, int64(g.RoleByName(a.Role).Replicas)-int64(least))
}

// countAll is how many members there are of all roles.
func countAll(members []absent) (n int64) {
	for _, m := range members {
		n += m.count
	}
	return n
}

// refused adds the finding for a refusal whose cause is still there, as far as can be determined.
func refused(c *stage.Context, out *stage.Result, missing []absent, r refusal.Refusal) {
	var f *stage.Finding
	switch r.Kind {
	case refusal.Forbidden, refusal.Finalizers, refusal.Namespace:
		return // reported by another stage
	case refusal.Quota:
		quotaRefused(c, out, missing, r)
		return
	case refusal.LimitRange:
		f = limitRefused(c, out, r)
	case refusal.PriorityClass, refusal.ServiceAccount, refusal.RuntimeClass:
		f = classMissing(c, r)
	case refusal.QuotaField:
		f = quotaNeedsField(c, r)
	case refusal.Controller:
		out.Add(controllerFails(c, r))
		return
	case refusal.WebhookDown:
		f = refusal.Down(c, r, "pod")
	case refusal.Passing:
		f = passing(c, r)
	case refusal.Taken:
		if named(out, r.Object) {
			return // with others
		}
		if f = nameTaken(c, r); f == nil {
			f = admissionDenied(c, r)
		}
	default:
		f = admissionDenied(c, r)
	}
	if f == nil {
		return
	}
	if _, misnamed := r.Misnamed(c.Gang); out.Has(f.Code) && (f.Code != answer.AdmissionDenied || misnamed) {
		return // of one cause, or of one name
	}
	role := refusal.RoleOf(c.Gang, r)
	if role != "" {
		f.Fact("role", role)
	}
	f.Detail("%d/%d pods exist; %s %s", c.Gang.Created(), c.Gang.Total(), ofRole(role), times(c, r)).SinceTime(r.First)
	out.Add(f)
}

// named reports whether a finding names an object that has the name of a member.
func named(out *stage.Result, object string) bool {
	return slices.ContainsFunc(out.Findings, func(f stage.Finding) bool {
		names, _ := f.Facts["names"].([]string)
		return slices.Contains(names, object)
	})
}

func ofRole(role string) string {
	if role == "" {
		return "the others"
	}
	return "those of " + role
}

// times reads like: were refused 3 times, last 4s ago.
func times(c *stage.Context, r refusal.Refusal) string {
	switch {
	case r.Probed:
		return "were refused, queried just now"
	case r.Count == 0:
		return "are not accepted"
	}
	return fmt.Sprintf("were refused %s, last %s ago", phrase.Count(r.Count, "time"), phrase.Age(c.View.Age(r.Last)))
}

func admissionDenied(c *stage.Context, r refusal.Refusal) *stage.Finding {
	by := r.Object
	if by == "" || r.Kind == refusal.Taken {
		by = "the API server"
	}
	if _, misnamed := r.Misnamed(c.Gang); misnamed {
		return deniedName(c, r)
	}
	what, change := podsOf(c, r), "the pods"
	if kind, name := r.Invalid(); kind != "" && kind != "Pod" && kind != "Job" { // whose template is that of the pods
		what, change = kind+" "+name+", which comes before its pods", "the job, or what it is made by,"
	}
	fix := refusal.Lift(c.Gang, r, answer.User, "change "+change+" as "+by+" requires, and submit again", "")
	if strings.HasPrefix(r.Object, podSecurity) {
		fix = secured(c, fix)
	}
	f := stage.Found(answer.AdmissionDenied, "%s denies %s: %s", by, what, withoutPolicy(r.Message, by)).
		Fact("webhook", r.Object).Fact("message", r.Message)
	if strings.Contains(r.Message, unquoted) {
		role := refusal.RoleOf(c.Gang, r)
		i := slices.IndexFunc(c.Gang.Roles, func(of gang.Role) bool {
			return of.Template.Spec.PriorityClassName != "" && (of.Name == role || role == "")
		})
		if i >= 0 {
			class := c.Gang.Roles[i].Template.Spec.PriorityClassName
			f.Detail("namespace %s takes pods of priorityClassName %s only where a ResourceQuota of it has that scope, and none has: an administrator creates one", c.Gang.Meta.Namespace, class)
			fix.Text = "name another priorityClassName than " + class + ", and submit again"
		}
	}
	return f.Fix(fix)
}

// podsOf are the pods that a refusal is about: those of one role of several, where it is known.
func podsOf(c *stage.Context, r refusal.Refusal) string {
	role := refusal.RoleOf(c.Gang, r)
	if role == "" || len(c.Gang.Roles) < 2 {
		return "the pods"
	}
	return "the pods of " + role
}

// policyDenied is how the API server begins what a policy denies, which has been named.
var policyDenied = regexp.MustCompile(`^ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: `)

// withoutPolicy is a message without the name of the policy that it begins with, where that stands before it.
func withoutPolicy(message, by string) string {
	if rest := policyDenied.ReplaceAllString(message, ""); strings.HasPrefix(by, "ValidatingAdmissionPolicy ") && rest != "" {
		return rest
	}
	return message
}

// deniedName finds that the name of a job makes names of its objects that are not valid: all of them are refused for that one.
func deniedName(c *stage.Context, r refusal.Refusal) *stage.Finding {
	var raw []string
	longest := 0
	for _, other := range refusal.Of(c.View, c.Gang) {
		if too, ok := other.Misnamed(c.Gang); ok {
			raw, longest = append(raw, other.Raw), max(longest, too)
		}
	}
	text := "give the job another name, and submit again"
	if longest > 0 {
		text = fmt.Sprintf("give the job a name that is shorter by %s at least, and submit again", phrase.Count(longest, "character"))
	}
	fix := refusal.Lift(c.Gang, r, answer.User, text, "")
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		s = whatif.WithoutEvents(s, func(e *corev1.Event) bool {
			return e.Namespace == c.Gang.Meta.Namespace && slices.Contains(raw, e.Message)
		})
		return whatif.WithoutProbes(s, "Pod")
	}
	return stage.Found(answer.AdmissionDenied, "the name of the job is not one for all that is made of it: %s", r.Message).Fact("message", r.Message).Fix(fix)
}

// unquoted is how the API server refuses pods of a PriorityClass that its configuration lets into namespaces only by a quota for that class.
const unquoted = "insufficient quota to match these scopes: [{PriorityClass "

// lasts is after how long a failure of the API server is none that passes by itself.
const lasts = 5 * time.Minute

// passing finds that the API server, or the way to it, failed: the controller tries again. Where it goes on for minutes it is for an administrator.
func passing(c *stage.Context, r refusal.Refusal) *stage.Finding {
	f := stage.Found(answer.BelowQuorum, "the API server failed to create the pods, and the controller tries again: %s", r.Message).At(answer.StagePods).
		Fact("exist", c.Gang.Created()).Fact("needed", c.Gang.Min).Fact("message", r.Message)
	since := r.First
	for _, p := range c.Gang.ExistingPods() {
		since = view.Later(since, p.CreationTimestamp.Time)
	}
	if r.Last.Sub(since) <= lasts {
		return f
	}
	f.Message = fmt.Sprintf("the API server has failed to create the pods for %s: %s", phrase.Age(c.View.Age(since)), r.Message)
	return f.As(answer.Blocked, answer.Admin).Fix(refusal.Lift(c.Gang, r, answer.Admin, "find out why the API server fails", ""))
}

// controllerFails finds that the controller cannot make what pods are made through, for a reason of its own.
func controllerFails(c *stage.Context, r refusal.Refusal) *stage.Finding {
	f := stage.Found(answer.AdmissionDenied, "the controller reports that it cannot make the pods: %s", r.Message).Fact("message", r.Message).SinceTime(r.First)
	if unserved := noMatches.FindStringSubmatch(r.Message); unserved != nil {
		f.As(answer.Blocked, answer.Admin).Detail("the cluster does not serve %s of %s: its CRD is not installed", unserved[1], unserved[2])
	}
	return f.Detail("%d/%d pods exist; it has reported that %s, last %s ago", c.Gang.Created(), c.Gang.Total(), phrase.Count(r.Count, "time"), phrase.Age(c.View.Age(r.Last)))
}

// noMatches is how clients of Kubernetes report a kind that the API server does not serve.
var noMatches = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"]+)"`)

// unreadable is the state of the stage of pods where none was found to be refused: that means little if it could not be looked for.
func unreadable(c *stage.Context, out *stage.Result) stage.State {
	ns := c.Gang.Meta.Namespace
	unseen := out.DeniedAny(c, ns, "resourcequotas", "limitranges", "events")
	if c.View.Snap.Denial(snapshot.VerbCreate, "pods", ns) != nil {
		out.Lack(snapshot.VerbCreate, "pods", ns)
		unseen = true
	}
	policies(c, out)
	if refusal.Unanswered(c, out, "Pod", "the pods") || unseen {
		return stage.Unknown(c.Created())
	}
	return stage.OK(c.Created())
}

// policies records what decides whether the API server accepts the pods of a job that has not been submitted, and is not evaluated: a dry run of its pods would show it.
func policies(c *stage.Context, out *stage.Result) {
	if tried, _ := refusal.Tried(c.View, c.Gang); tried || !submitted(c) {
		return
	}
	var names []string
	hooks, _ := refusal.Hooks(c.View)
	for _, h := range hooks {
		if h.Creates("pods") && !slices.Contains(names, h.Name) && h.Concerns(c.View, c.Gang, "pods", "") {
			names = append(names, h.Name)
		}
	}
	if len(names) > 0 {
		out.Unmodelled = append(out.Unmodelled, "what webhooks make of the pods ("+phrase.Names(names)+")")
	}
}
