package usage

import "github.com/gangctl/gangctl/pkg/cluster/view"

// Measured is the real use of a node, or of the pods of a job, by the account of who measures it: CPU in thousandths of a core, memory
// in bytes.
type Measured struct {
	CPU    int64 `json:"cpuMilli"`
	Memory int64 `json:"memoryBytes"`
	// Pods is of how many pods a job's is the sum: those that have just started are not measured yet. Nodes have none.
	Pods int64 `json:"pods,omitempty"`
}

// Measure fills in what nodes really use, by their names.
func (r Nodes) Measure(used map[string]Measured) {
	for i := range r.Nodes {
		if m, ok := used[r.Nodes[i].Name]; ok {
			r.Nodes[i].Measured = &m
		}
	}
}

// Measure fills in what the pods of jobs really use, by NAMESPACE/NAME of the pod. A job none of whose pods is measured stays without.
func (r Jobs) Measure(w *view.View, used map[string]Measured) {
	type key struct{ kind, namespace, name string }
	at := make(map[key]*JobUsage, len(r.Jobs))
	for i := range r.Jobs {
		at[key{r.Jobs[i].Kind, r.Jobs[i].Namespace, r.Jobs[i].Name}] = &r.Jobs[i]
	}
	for _, h := range w.Consumers() {
		if h.Job == nil {
			continue
		}
		j := at[key{h.Job.Kind.Kind, h.Job.Meta.Namespace, h.Job.Meta.Name}]
		if j == nil {
			continue
		}
		for _, p := range h.Pods {
			m, ok := used[p.Namespace+"/"+p.Name]
			if !ok {
				continue
			}
			if j.Measured == nil {
				j.Measured = &Measured{}
			}
			j.Measured.CPU, j.Measured.Memory, j.Measured.Pods = j.Measured.CPU+m.CPU, j.Measured.Memory+m.Memory, j.Measured.Pods+1
		}
	}
}
