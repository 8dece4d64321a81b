package queue

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// dispatched finds that a job of another cluster, whose Workload is given if there is one, has not enough members that run there. Why that is only that cluster knows.
func dispatched(c *stage.Context, u *unstructured.Unstructured) *stage.Finding {
	g := c.Gang
	if u == nil || queueing.ClusterOf(u) == "" && !kueue.Admitted(u) {
		return stage.Found(answer.KueueCheck, "MultiKueue has not dispatched it to another cluster yet").See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec")
	}
	cluster, where := clusterOf(u)
	f := stage.Found(answer.KueueCheck, "MultiKueue has dispatched it to %s, where %d of %d members run, as far as is reported: why they wait is to be seen there", where, g.ReportedUp, g.Total()).
		See(u.GetAPIVersion(), u.GetKind(), u, ".status").Fact("cluster", cluster)
	fields := gang.Fields{Object: u}
	for _, check := range fields.List("status", "admissionChecks") {
		if of := fields.Of(check); of.String("message") != "" {
			f.Detail("admission check %s: %s", of.String("name"), of.String("message"))
		}
	}
	if cluster != "" {
		f.Run(fmt.Sprintf("gangctl why-pending %s -n %s --context %s", argument(g), g.Meta.Namespace, shell.Quote(cluster)))
	}
	return f
}

// argument is how a command names the job of a gang.
func argument(g *gang.Gang) string {
	if g.SharesName {
		return g.Reader.Argument(g.Meta.Name)
	}
	return g.Meta.Name
}

// clusterOf is the cluster to which a Workload is dispatched, if that is known, and what it is called in a sentence.
func clusterOf(u *unstructured.Unstructured) (name, title string) {
	if u == nil || queueing.ClusterOf(u) == "" {
		return "", "another cluster"
	}
	return queueing.ClusterOf(u), "cluster " + queueing.ClusterOf(u)
}

// RunsElsewhere is how many members run of a job that MultiKueue has dispatched: none of its pods is here.
func RunsElsewhere(v *view.View, g *gang.Gang) string {
	_, where := clusterOf(v.Workload(g.Job))
	return fmt.Sprintf("MultiKueue has dispatched it to %s, where %d of %d members run, as is reported; none of its pods is here", where, g.ReportedUp, g.Total())
}
