package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
)

// neighbours are other gang schedulers by the API group of their PodGroups, and the names that their pods have.
var neighbours = []struct{ group, scheduler, name string }{
	{"scheduling.incubator.k8s.io", "kube-batch", "kube-batch"},
	{"scheduling.sigs.dev", "kube-batch", "kube-batch"},
	{"scheduling.volcano.sh", "Volcano", "volcano"},
	{"scheduling.sigs.k8s.io", "coscheduling or Koordinator", "koord-scheduler"},
	{"scheduling.run.ai", "KAI", "kai-scheduler"},
}

// nameNeighbours reports which other gang schedulers have definitions on the cluster, and what becomes of their pods.
func (i *Installer) nameNeighbours(ctx context.Context, serve []string) error {
	groups, err := i.Client.Typed.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("list the served APIs: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	served := map[string]bool{}
	for _, group := range groups.Groups {
		served[group.Name] = true
	}
	for _, n := range neighbours {
		switch {
		case !served[n.group]:
		case slices.Contains(serve, n.name):
			fmt.Fprintf(i.IO.ErrOut, "note: the cluster has the PodGroups of %s (%s): pods with schedulerName %s are scheduled by gang-scheduler from now on; stop their scheduler, if it runs\n",
				n.scheduler, n.group, n.name)
		default:
			fmt.Fprintf(i.IO.ErrOut, "note: the cluster has the PodGroups of %s (%s): its pods stay its own; to take over those with schedulerName %s: --serve %s\n",
				n.scheduler, n.group, n.name, n.name)
		}
	}
	return nil
}

// usable returns why a definition that gangctl did not make cannot be used for ours: it must serve the version that is written.
func usable(there, ours *unstructured.Unstructured) error {
	if ours.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	var served []string
	for _, v := range versions(there) {
		if v["served"] == true {
			served = append(served, fmt.Sprint(v["name"]))
		}
	}
	for _, v := range versions(ours) {
		if !slices.Contains(served, fmt.Sprint(v["name"])) {
			return failure.Errorf("%s is there already, made by %s, and does not serve %v, which training operators write (it serves %s)",
				apply.Describe(ours), apply.Owner(there), v["name"], strings.Join(served, ", ")).
				WithHint("ask its owner for a version that does, or remove it: kubectl delete crd %s", ours.GetName())
		}
	}
	return nil
}

func versions(definition *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var out []map[string]any
	for _, v := range list {
		if v, ok := v.(map[string]any); ok {
			out = append(out, v)
		}
	}
	return out
}
