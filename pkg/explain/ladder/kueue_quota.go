package ladder

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/demand"
)

// allowance is what a ClusterQueue has of one resource in one flavor. Amounts are in the unit of fit.Quantity.
type allowance struct {
	flavor string
	name   corev1.ResourceName
	// most is what the queue may ever use, borrowing included; left is what it may use now; used is its own use.
	nominal, most, left, used int64
	path                      []any // of nominalQuota
}

// allowances reads the quota of a queue, with what its cohort lends.
func (c *climb) allowances(queue *unstructured.Unstructured) []allowance {
	var all []allowance
	cohort := c.cohort(queue)
	each(queue, func(flavor string, res map[string]any, path []any) {
		a := allowance{flavor: flavor, name: corev1.ResourceName(fmt.Sprint(res["name"])), path: path}
		a.nominal = amount(a.name, res["nominalQuota"])
		a.used = c.kueueUsed(queue.GetName(), flavor, a.name)
		a.most, a.left = a.nominal, a.nominal-a.used
		if len(cohort) > 1 {
			var total, used int64
			for _, q := range cohort {
				each(q, func(f string, r map[string]any, _ []any) {
					if f == flavor && corev1.ResourceName(fmt.Sprint(r["name"])) == a.name {
						lent := amount(a.name, r["nominalQuota"])
						if limit, ok := r["lendingLimit"]; ok && q.GetName() != queue.GetName() {
							lent = min(lent, amount(a.name, limit))
						}
						total += lent
					}
				})
				used += c.kueueUsed(q.GetName(), flavor, a.name)
			}
			a.most = total
			if limit, ok := res["borrowingLimit"]; ok {
				a.most = min(a.most, a.nominal+amount(a.name, limit))
			}
			a.left = min(a.most-a.used, total-used)
		}
		all = append(all, a)
	})
	return all
}

// each visits every resource of every flavor of a ClusterQueue.
func each(queue *unstructured.Unstructured, visit func(flavor string, res map[string]any, path []any)) {
	f := gang.Fields{Object: queue}
	for gi, group := range f.List("spec", "resourceGroups") {
		flavors, _ := group["flavors"].([]any)
		for fi, item := range flavors {
			flavor, _ := item.(map[string]any)
			resources, _ := flavor["resources"].([]any)
			for ri, r := range resources {
				if res, ok := r.(map[string]any); ok {
					visit(fmt.Sprint(flavor["name"]), res, []any{"spec", "resourceGroups", gi, "flavors", fi, "resources", ri, "nominalQuota"})
				}
			}
		}
	}
}

func amount(name corev1.ResourceName, value any) int64 {
	q, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return 0 // the API server would not have accepted it
	}
	return fit.Amount(name, q)
}

// cohort are the queues that lend to one another, the queue itself included.
func (c *climb) cohort(queue *unstructured.Unstructured) []*unstructured.Unstructured {
	name := cohortName(queue)
	if name == "" {
		return []*unstructured.Unstructured{queue}
	}
	var all []*unstructured.Unstructured
	for _, q := range c.w.Snap.Custom[kueue.Kind("ClusterQueue")] {
		if cohortName(q) == name {
			all = append(all, q)
		}
	}
	return all
}

func cohortName(q *unstructured.Unstructured) string {
	f := gang.Fields{Object: q}
	return cmp.Or(f.String("spec", "cohortName"), f.String("spec", "cohort"))
}

// kueueUsed is what admitted Workloads use of a queue.
func (c *climb) kueueUsed(queue, flavor string, name corev1.ResourceName) int64 {
	var sum int64
	for _, u := range c.kueueAdmitted(queue) {
		sum += kueueUse(u, flavor, name)
	}
	return sum
}

func (c *climb) kueueAdmitted(queue string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, u := range c.w.Snap.Custom[kueue.Kind("Workload")] {
		f := gang.Fields{Object: u}
		if _, finished := condition(u, "Finished"); finished != "True" && f.String("status", "admission", "clusterQueue") == queue {
			all = append(all, u)
		}
	}
	return all
}

func kueueUse(u *unstructured.Unstructured, flavor string, name corev1.ResourceName) int64 {
	f := gang.Fields{Object: u}
	var sum int64
	for _, set := range f.List("status", "admission", "podSetAssignments") {
		flavors, _ := set["flavors"].(map[string]any)
		usage, _ := set["resourceUsage"].(map[string]any)
		if flavors[string(name)] == flavor {
			sum += amount(name, usage[string(name)])
		}
	}
	return sum
}

// shortage is what keeps one role from every flavor.
type shortage struct {
	allowance
	want int64
}

// kueueQuota assigns each role the first flavor with enough left, as Kueue does, and reports the first role without one.
func (c *climb) kueueQuota(queue *unstructured.Unstructured, wl *unstructured.Unstructured) *Finding {
	all := c.allowances(queue)
	for _, role := range c.g.Roles {
		if short := assign(all, role); short != nil {
			return c.kueueShort(queue, wl, *short)
		}
	}
	return nil
}

// assign takes what a role needs from the allowances; it returns the worst shortage of the best flavor if none has enough.
func assign(all []allowance, role workload.Role) *shortage {
	need := whatif.Needs([]workload.Role{role}, role.Replicas)
	need[corev1.ResourcePods] = *resource.NewQuantity(int64(role.Replicas), resource.DecimalSI)
	var flavors []string
	for _, a := range all {
		if !slices.Contains(flavors, a.flavor) {
			flavors = append(flavors, a.flavor)
		}
	}
	var worst *shortage
	for _, flavor := range flavors {
		short := shortOf(all, flavor, need)
		if short == nil {
			for i := range all {
				if all[i].flavor == flavor {
					all[i].left -= fit.Amount(all[i].name, need[all[i].name])
					all[i].used += fit.Amount(all[i].name, need[all[i].name])
				}
			}
			return nil
		}
		if worst == nil || short.most > worst.most {
			worst = short
		}
	}
	return worst
}

// shortOf is the shortage in one flavor: one that can never be met first, then that of a device.
func shortOf(all []allowance, flavor string, need corev1.ResourceList) *shortage {
	var worst *shortage
	for _, a := range all {
		want := fit.Amount(a.name, need[a.name])
		if a.flavor != flavor || want <= a.left {
			continue
		}
		s := &shortage{a, want}
		if worst == nil || s.rank() > worst.rank() {
			worst = s
		}
	}
	return worst
}

func (s shortage) rank() int {
	rank := 0
	if s.want > s.most {
		rank += 2
	}
	if demand.IsGPU(s.name) {
		rank++
	}
	return rank
}

func (c *climb) kueueShort(queue, wl *unstructured.Unstructured, s shortage) *Finding {
	text := func(n int64) string { return phrase.Quantity(s.name, n) }
	name := queue.GetName()
	var f *Finding
	if s.want > s.most {
		f = found(answer.StageQueue, answer.QueueTooSmall, answer.Blocked, answer.User, "Kueue can never admit it: ClusterQueue %s allows %s in all (flavor %s), and the gang needs %s",
			name, phrase.Amount(s.name, s.most), s.flavor, text(s.want)).never()
	} else {
		f = found(answer.StageQueue, answer.KueueQuota, answer.Waiting, answer.Nobody, "Kueue holds it: ClusterQueue %s has %s of %s left (flavor %s), and the gang needs %s, %s more",
			name, text(max(0, s.left)), phrase.Amount(s.name, s.most), s.flavor, text(s.want), text(s.want-s.left))
	}
	f.see(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.resourceGroups").
		detail("requested %s, used %s, limit %s (%s)", text(s.want), text(s.used), text(s.most), s.name).
		fact("queue", name).fact("flavor", s.flavor).fact("resource", string(s.name)).fact("requested", s.want).fact("used", s.used).fact("limit", s.most)
	for _, q := range c.cohort(queue) {
		for _, u := range c.kueueAdmitted(q.GetName()) {
			if n := kueueUse(u, s.flavor, s.name); n > 0 {
				f.detail("%s uses %s", c.jobOfWorkload(u), text(n))
			}
		}
	}
	if wl != nil {
		if word, status := condition(wl, "QuotaReserved"); status == "False" {
			f.since(word.At).detail("Kueue said %s ago: %s", phrase.Age(c.w.Age(word.At)), word.Message)
		}
	}
	limit := s.nominal + s.want - s.left
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise nominalQuota of %s in flavor %s of ClusterQueue %s to %s", s.name, s.flavor, name, text(limit)),
			Change:  map[string]any{"limit": text(limit), "object": "ClusterQueue/" + name, "resource": string(s.name)},
			Command: command.JSONPatch("", "clusterqueue."+kueue.Group, name, command.Patch{Op: "replace", Path: jsonPath(s.path), Value: text(limit)})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) {
				each(u, func(flavor string, res map[string]any, _ []any) {
					if flavor == s.flavor && res["name"] == string(s.name) {
						res["nominalQuota"] = text(limit)
					}
				})
			})
		},
	})
}

func jsonPath(path []any) string {
	p := ""
	for _, part := range path {
		p += "/" + command.Escape(fmt.Sprint(part))
	}
	return p
}
