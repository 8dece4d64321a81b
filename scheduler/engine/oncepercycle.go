package engine

import fwk "k8s.io/kube-scheduler/framework"

// seen marks a gang's cycle in which a plugin has looked at the snapshot.
type seen struct{}

// Clone implements fwk.StateData.
func (s seen) Clone() fwk.StateData { return s }

// FirstInCycle reports whether a plugin looks at the snapshot for the first time in the cycle of a pod or of a gang. Later in a gang's cycle, the
// members that it has tried already are on the snapshot, and would look as if they were placed.
func FirstInCycle(state fwk.CycleState, plugin string) bool {
	if !state.IsPodGroupSchedulingCycle() {
		return true
	}
	cycle := state.GetPodGroupSchedulingCycle()
	if _, err := cycle.Read(fwk.StateKey(plugin)); err == nil {
		return false
	}
	cycle.Write(fwk.StateKey(plugin), seen{})
	return true
}
