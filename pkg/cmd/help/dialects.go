package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// membership is how a pod names its gang.
func membership(d gang.Dialect) string {
	return map[gang.Dialect]string{
		gang.Native:           "field spec.schedulingGroup.podGroupName",
		gang.SchedulerPlugins: "label scheduling.x-k8s.io/pod-group, of old pod-group.scheduling.sigs.k8s.io",
		gang.Volcano:          "annotation scheduling.k8s.io/group-name",
		gang.KubeBatch:        "annotation scheduling.k8s.io/group-name",
		gang.Koordinator:      "label pod-group.scheduling.sigs.k8s.io, or annotation gang.scheduling.koordinator.sh/name",
		gang.KAI:              "annotation pod-group-name",
		gang.YuniKorn:         "annotation yunikorn.apache.org/task-group-name",
		gang.Labels:           "labels pod-group.scheduling.sigs.k8s.io/name and …/min-available",
		gang.Kueue:            "label kueue.x-k8s.io/pod-group-name",
		gang.LeaderWorkerSet:  "labels leaderworkerset.sigs.k8s.io/name and …/group-index, by its controller",
		gang.PDB:              "the controller that it shares with a PodDisruptionBudget",
	}[d]
}

func newDialects() *cobra.Command {
	var long strings.Builder
	long.WriteString(`A dialect is the form in which a gang is declared: which object holds its minimum, and how pods declare that they belong to it. Every
gang scheduler has its own. gangctl reads all of these, whoever wrote them; which of them submit writes is the choice of --dialect.
`)
	add := func(d gang.Dialect, groups, schedulers []string) {
		fmt.Fprintf(&long, "\n    %s\n        pods:    %s\n", d, membership(d))
		if len(groups) > 0 {
			fmt.Fprintf(&long, "        object:  PodGroup of %s\n", strings.Join(groups, ", "))
		}
		if len(schedulers) > 0 {
			fmt.Fprintf(&long, "        read by: %s\n", strings.Join(schedulers, ", "))
		}
	}
	for _, r := range dialect.Readers() {
		var groups []string
		for _, kind := range r.Kinds {
			if !slices.Contains(groups, kind.Group) {
				groups = append(groups, kind.Group)
			}
		}
		add(r.Dialect, groups, r.Schedulers)
	}
	add(gang.PDB, nil, []string{"kube-batch"})
	long.WriteString(`
With none, submit declares no gang, and members start one by one.

A dialect that no scheduler reads keeps a gang waiting indefinitely: gangctl check reports which schedulers and definitions a cluster has, and
gangctl install scheduler --serve NAME lets the gang scheduler answer to the name of another.`)
	return &cobra.Command{Use: "dialects", Short: "How gangs are declared, and who reads it", Long: long.String()}
}
