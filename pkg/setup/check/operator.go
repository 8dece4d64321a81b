package check

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/pkg/setup/operator"
)

// operatorNotices is how long an operator may take to act on a new job.
const operatorNotices = time.Minute

func operatorsAlive(f *Facts) []Finding {
	if !f.View.Snap.Serves(tfjob.GVR().GroupResource(), tfjob.Kind) {
		return nil // reported by crd-jobs
	}
	operators, others := f.foundOperators()
	var findings []Finding
	for _, o := range others {
		findings = append(findings, warnf("Deployment %s looks like a training operator, and its account may not write the status of the cluster's TFJobs: it is not taken for one", o.Name()))
	}
	for _, o := range operators {
		d := o.Deployment
		text := fmt.Sprintf("Deployment %s (%s): %d/%d ready", o.Name(), o.Release, d.Status.ReadyReplicas, component.Replicas(d))
		switch {
		case o.Stopped():
			findings = append(findings, failf("%s: it is scaled to 0", text).hint("kubectl -n %s scale deployment/%s --replicas=1", d.Namespace, d.Name))
		case d.Status.ReadyReplicas == 0:
			findings = append(findings, failf("%s", text).hint("kubectl -n %s logs deployment/%s --tail=50", d.Namespace, d.Name))
		default:
			findings = append(findings, okf("%s", text))
		}
	}
	if len(operators) > 1 && !operators[0].Stopped() {
		findings = append(findings, failf("%d operators act on the same TFJobs", len(operators)).hint("keep one of them, or limit each to a namespace (--namespace)"))
	}
	if untouched := untouchedJobs(f); len(untouched) > 0 {
		findings = append(findings, failf("no controller has handled %s for over %s: %s", phrase.Count(len(untouched), "TFJob"), phrase.Age(operatorNotices), phrase.Names(untouched)).
			hint("see the operator's log for what it is refused"))
	}
	if len(operators) > 0 || failed(findings) {
		return findings
	}
	if at := lastTouched(f); !at.IsZero() && f.View.Age(at) <= lately {
		return append(findings, okf("no Deployment, but a TFJob's status was written %s ago", phrase.Age(f.View.Age(at))))
	}
	if component.Validated(f.View, tfjob.Reader()) {
		return append(findings, okf("no Deployment, but TFJobs are validated by its webhook"))
	}
	return append(findings, failf("no training operator: no Deployment of it, and no TFJob that an operator acts on").hint("gangctl install operator"))
}

func failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Status == Fail })
}

func operatorsBefore(f *Facts) []Finding {
	if all := f.operators(); len(all) > 0 {
		return operatorsAlive(f)
	}
	if f.View.Snap.Serves(tfjob.GVR().GroupResource(), tfjob.Kind) {
		return []Finding{okf("TFJobs are served; their operator does not run as a Deployment")}
	}
	return []Finding{warnf("no training operator: TFJobs need one, other pods do not").hint("gangctl install operator")}
}

// jobs are all TFJobs.
func jobs(f *Facts) []*unstructured.Unstructured {
	return f.View.Snap.Custom[schema.GroupKind{Group: tfjob.GVR().Group, Kind: tfjob.Kind}]
}

// untouchedJobs are TFJobs old enough that an operator would have written a condition.
func untouchedJobs(f *Facts) []string {
	var all []string
	for _, job := range jobs(f) {
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		elsewhere, _ := tfjob.Reader().Controller.ManagedBy(job)
		if len(conditions) == 0 && elsewhere == "" && f.View.Age(job.GetCreationTimestamp().Time) > operatorNotices {
			all = append(all, job.GetNamespace()+"/"+job.GetName())
		}
	}
	return all
}

// lastTouched is when the newest condition of any TFJob was written.
func lastTouched(f *Facts) time.Time {
	var last time.Time
	for _, job := range jobs(f) {
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			text, _, _ := unstructured.NestedString(c, "lastUpdateTime")
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				last = view.Later(last, at)
			}
		}
	}
	return last
}

func operatorGangs(f *Facts) []Finding {
	var findings []Finding
	for _, o := range f.operators() {
		m := o.Mode()
		switch {
		case m.Problem != "":
			findings = append(findings, warnf("Deployment %s: %s", o.Name(), m.Problem))
		case !m.On:
			findings = append(findings, okf("Deployment %s leaves gangs alone; gangctl submit makes the gang of each job itself", o.Name()))
		default:
			findings = append(findings, gangMode(f, o, m))
		}
	}
	return findings
}

func gangMode(f *Facts, o operator.Operator, m operator.Mode) Finding {
	text := fmt.Sprintf("Deployment %s makes groups of %s for scheduler %s", o.Name(), m.Group, m.Scheduler)
	kind := "PodGroup"
	if m.Group == "policy" {
		return okf("Deployment %s makes a PodDisruptionBudget for each job", o.Name())
	}
	if !f.View.Snap.Serves(schema.GroupResource{Group: m.Group, Resource: "podgroups"}, kind) {
		return failf("%s, and the cluster does not serve them", text).hint("install the CustomResourceDefinition podgroups.%s, or take the gang flag out of the operator", m.Group)
	}
	if m.Scheduler != "" && !find(f, m.Scheduler).alive(f) {
		finding := failf("%s, which gives no sign of life: every TFJob without a schedulerName waits for it", text)
		if m.Scheduler != "gang-scheduler" {
			return finding.hint("%s --serve %s, or take the gang flag out of the operator", installHint, m.Scheduler)
		}
		return finding.hint("%s", installHint)
	}
	return okf("%s", text)
}
