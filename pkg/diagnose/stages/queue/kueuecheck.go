package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// checks finds for which admission checks the Workload waits, and which has rejected it. Kueue looks at none before the quota is reserved.
func checks(c *stage.Context, out *stage.Result, u *unstructured.Unstructured) {
	eviction, evicted := kueue.Eviction(u)
	for _, check := range kueue.ChecksOf(u) {
		switch {
		case check.State == kueue.CheckRejected:
			out.Add(rejected(c, u, check, gang.Condition{}))
		case check.State == kueue.CheckRetry:
			out.Add(retried(c, u, check, eviction))
		case check.Before == kueue.CheckRetry && evicted && eviction.Reason == kueue.EvictedForCheck && kueue.RequeueAt(u).After(c.View.Now):
			check.State = check.Before
			out.Add(retried(c, u, check, eviction))
		case check.State != kueue.CheckReady && gang.IsTrue(u, "QuotaReserved"):
			out.Add(checked(c, u, check, gang.Condition{}))
		}
	}
}

// checked is the finding that a check is in some state, for which Kueue waits. What the check reported is in the eviction that it had as a result, if it is to be made again.
func checked(c *stage.Context, u *unstructured.Unstructured, check kueue.Check, eviction gang.Condition) *stage.Finding {
	if check.Before != "" {
		check.State, check.Message = check.Before, reportedIn(eviction.Message, check.Name)
	}
	f := stage.Found(answer.KueueCheck, "admission check %s is %s", check.Name, check.State).
		See(u.GetAPIVersion(), u.GetKind(), u, ".status.admissionChecks").Fact("check", check.Name).Fact("state", check.State).SinceTime(check.At)
	if check.Message != "" {
		f.Message += ": " + check.Message
	}
	if by := checkedBy(c, check.Name, check.Message); by != "" {
		f.Fact("controller", by).Detail("that is what %s reports, the controller of the check", by)
		switch by {
		case kueue.Provisioning:
			provisioning(c, f, u)
			retriesLeft(c, f, check)
		case kueue.MultiKueue:
			disconnected(c, f, u)
		}
	}
	return f
}

// provisioning adds what is reported of the requests for nodes that were made for a Workload.
func provisioning(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured) {
	type requestsByWorkload struct{}
	of := view.Once(c.View, requestsByWorkload{}, func() map[gang.Identity][]*unstructured.Unstructured {
		of := map[gang.Identity][]*unstructured.Unstructured{}
		for _, request := range c.View.Snap.Custom[kueue.RequestKind()] {
			if id, ok := gang.ControllerOf(request); ok {
				of[id] = append(of[id], request)
			}
		}
		return of
	})
	requests := slices.SortedStableFunc(slices.Values(of[gang.IdentityOf(u)]), func(a, b *unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	var lines []string
	for i, request := range requests {
		for _, name := range []string{"Failed", "CapacityRevoked", "BookingExpired", "Provisioned", "Accepted"} {
			if condition, status := gang.ConditionIn(request, name); status != "" && condition.Message != "" {
				lines = append(lines, fmt.Sprintf("ProvisioningRequest %s: %s is %s, reported %s ago: %s", request.GetName(), name, status, phrase.Age(c.View.Age(condition.At)), condition.Message))
				if i == 0 && name == "Failed" && status == "True" {
					atPoolMaximum(f, condition.Message)
				}
				break
			}
		}
	}
	args := []string{"describe", "provisioningrequests.autoscaling.x-k8s.io"}
	if len(requests) > 0 {
		args = append(args, requests[0].GetName())
	}
	stage.DetailEach(f, lines, func(line string) string { return line }).Run(command.Kubectl(u.GetNamespace(), args...))
}

// atMaximumSize is how GKE reports that a request for nodes has failed as a node pool has as many as it may.
var atMaximumSize = regexp.MustCompile(`(?:affected nodepools?: ([^:]+): )?[Mm]ax node ?pool size reached`)

// atPoolMaximum makes it the administrators' matter that no nodes are provisioned, as their pool is as large as it may be: Kueue tries in vain before somebody raises that.
func atPoolMaximum(f *stage.Finding, failure string) {
	m := atMaximumSize.FindStringSubmatch(failure)
	if m == nil {
		return
	}
	pool := "the node pool"
	if m[1] != "" {
		pool = "node pool " + m[1]
	}
	f.As(answer.Blocked, answer.Admin).Detail("an administrator can raise the maximum size of %s", pool)
}

// retriesLeft adds how often Kueue has requested nodes again, and how often it does at most before it rejects the Workload.
func retriesLeft(c *stage.Context, f *stage.Finding, check kueue.Check) {
	if check.Retries == 0 || check.State == kueue.CheckRejected {
		return
	}
	times := phrase.Count(check.Retries, "time")
	if object := queueing.Object(c.View, "AdmissionCheck", "", check.Name); object != nil {
		of := gang.Fields{Object: object}
		if config := queueing.Object(c.View, "ProvisioningRequestConfig", "", of.String("spec", "parameters", "name")); config != nil {
			limits := gang.Fields{Object: config}
			if n := limits.Int32("spec", "retryStrategy", "backoffLimitCount"); n > 0 {
				times = fmt.Sprintf("%d of at most %s", check.Retries, phrase.Count(n, "time"))
			}
		}
	}
	f.Detail("Kueue has requested them again %s: after the last the check has rejected the job", times)
}

// disconnected adds which clusters of MultiKueue, of those to which a Workload is offered, are not connected.
func disconnected(c *stage.Context, f *stage.Finding, u *unstructured.Unstructured) {
	of := gang.Fields{Object: u}
	offered := of.Strings("status", "nominatedClusterNames")
	if len(offered) > 0 {
		f.Detail("it is offered to %s: the first that reserves quota for it gets it", phrase.Names(offered))
	}
	var names []string
	for _, cluster := range c.View.Snap.Custom[kueue.Kind("MultiKueueCluster")] {
		condition, active := gang.ConditionIn(cluster, "Active")
		if active != "False" || len(offered) > 0 && !slices.Contains(offered, cluster.GetName()) {
			continue
		}
		names = append(names, cluster.GetName())
		f.Detail("%s", inactiveCluster(c, cluster, condition))
	}
	if len(names) == 0 {
		return
	}
	f.Message += fmt.Sprintf("; MultiKueue has no connection to %s", phrase.Names(names))
	f.Fact("disconnected", names).Run(command.Kubectl("", "get", "multikueueclusters."+kueue.Group, "-o", "wide"))
}

// inactiveCluster is why a cluster of MultiKueue is not active, and for how long.
func inactiveCluster(c *stage.Context, cluster *unstructured.Unstructured, condition gang.Condition) string {
	text := fmt.Sprintf("MultiKueueCluster %s is not active: %s", cluster.GetName(), condition.Message)
	if !condition.At.IsZero() {
		text += ", for " + phrase.Age(c.View.Age(condition.At))
	}
	return text
}

// rejected is the finding that a check has rejected the Workload: Kueue does not have it made again by itself.
func rejected(c *stage.Context, u *unstructured.Unstructured, check kueue.Check, eviction gang.Condition) *stage.Finding {
	f := checked(c, u, check, eviction).As(answer.Blocked, answer.Admin)
	return f.Run(command.Kubectl("", "describe", "admissioncheck."+kueue.Group, check.Name))
}

// again adds how a Workload that Kueue has switched off, as a check rejected it, is checked again.
func again(u *unstructured.Unstructured, f *stage.Finding) *stage.Finding {
	return f.Detail("Kueue has switched Workload %s off for that. Once the reason is gone, this has it checked again: %s", u.GetName(), queueing.SetActive(u, true))
}

// retried is the finding that a check has Kueue take the quota back and try again.
func retried(c *stage.Context, u *unstructured.Unstructured, check kueue.Check, eviction gang.Condition) *stage.Finding {
	f := checked(c, u, check, eviction)
	at := kueue.RequeueAt(u)
	if !check.At.IsZero() && check.After > 0 {
		at = view.Later(at, check.At.Add(check.After))
	}
	if at.After(c.View.Now) {
		return f.Detail("Kueue tries again at %s, in %s", phrase.Clock(at, c.View.Now), phrase.Age(at.Sub(c.View.Now))).Fact("requeueAt", at.UTC().Format(time.RFC3339))
	}
	requeued, status := gang.ConditionIn(u, "Requeued")
	if eviction, evicted := kueue.Eviction(u); status == "True" && evicted && !requeued.At.Before(eviction.At) && !gang.IsTrue(u, "QuotaReserved") && !c.View.Assumed && c.View.Age(requeued.At) > retriesAfter {
		f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf("; Kueue took the quota back for that and was to try again %s ago, and has not", phrase.Age(c.View.Age(requeued.At)))
		return f.Detail("without its Workload Kueue makes another one, which it tries at once: %s", command.Kubectl(u.GetNamespace(), "delete", "workload."+kueue.Group, u.GetName()))
	}
	return f.Detail("Kueue takes the quota back, and tries again")
}

// retriesAfter is how long Kueue may take to try a Workload again that it has put back into its queue.
const retriesAfter = 5 * time.Minute

// reportedIn is what a check reported, of a message about all checks for which a Workload was evicted; the message itself where it has another form.
func reportedIn(message, check string) string {
	if m := regexp.MustCompile(regexp.QuoteMeta(fmt.Sprintf("%q", check)) + ` \((.*?)\)(?:; "|$)`).FindStringSubmatch(message); m != nil {
		return m[1]
	}
	if strings.HasSuffix(message, fmt.Sprintf("%q", check)) {
		return ""
	}
	return message
}

// laterChecks adds the checks that a Workload without quota has to pass once it has some: to what Kueue holds it for, if that was found.
func laterChecks(out *stage.Result, u *unstructured.Unstructured) {
	if u == nil || gang.IsTrue(u, "QuotaReserved") || out.Has(answer.KueueCheck, answer.KueueInactive) {
		return
	}
	for _, check := range kueue.ChecksOf(u) {
		if check.State != kueue.CheckPending {
			continue
		}
		text := fmt.Sprintf("admission check %s has to pass", check.Name)
		if check.Before != "" && check.Before != kueue.CheckReady {
			text += fmt.Sprintf(" (it was %s before)", check.Before)
		}
		if check.Message != "" {
			text += ": " + check.Message
		}
		if i := slices.IndexFunc(out.Findings, func(x stage.Finding) bool {
			return slices.Contains([]answer.Code{answer.KueueQuota, answer.ReservedByStuck, answer.VictimsTerminating}, x.Code)
		}); i >= 0 {
			out.Findings[i].Detail("then %s", text)
			continue
		}
		out.Note("once its quota is reserved, %s", text)
	}
}

// checkedBy is the controller of an admission check; empty if it is not known. Where the check cannot be seen, its message shows that nodes are provisioned.
func checkedBy(c *stage.Context, name, message string) string {
	if check := queueing.Object(c.View, "AdmissionCheck", "", name); check != nil {
		f := gang.Fields{Object: check}
		return f.String("spec", "controllerName")
	}
	if strings.Contains(message, "ProvisioningRequest") {
		return kueue.Provisioning
	}
	return ""
}

// inactiveChecks adds which admission checks of a ClusterQueue that is not active are not active either, and why.
func inactiveChecks(c *stage.Context, f *stage.Finding, queue *unstructured.Unstructured) *stage.Finding {
	for _, name := range queueing.CheckNames(queue) {
		check := queueing.Object(c.View, "AdmissionCheck", "", name)
		if check == nil {
			continue
		}
		condition, active := gang.ConditionIn(check, "Active")
		if active != "False" {
			continue
		}
		f.Detail("AdmissionCheck %s is not active: %s", name, condition.Message).Run(command.Kubectl("", "describe", "admissioncheck."+kueue.Group, name))
		if by := checkedBy(c, name, ""); by == kueue.MultiKueue {
			for _, cluster := range c.View.Snap.Custom[kueue.Kind("MultiKueueCluster")] {
				if condition, active := gang.ConditionIn(cluster, "Active"); active == "False" {
					f.Detail("%s", inactiveCluster(c, cluster, condition))
				}
			}
			f.Run(command.Kubectl("", "get", "multikueueclusters."+kueue.Group, "-o", "wide"))
		}
	}
	return f
}
