package results

// Differences are the tests that our scheduler fails by design, each with the decision that argues it.
func Differences() []Difference {
	const gangs, preemption = "podgroup/topology_aware_scheduling", "preemption/podgroup"
	const consumed = "TestTopologyAwareSchedulingWithGangPolicy/gang_uses_pod_group_preemption_when_resources_are_consumed_by_lower_priority_existing_pods_"
	const percentage = "TestTopologyAwareSchedulingWithGangPolicy/gang_uses_preemption_and_schedules_on_a_single_rack," +
		"_choosing_placement_with_highest_allocation_percentage_with_pre-existing_pods_in_cluster_"
	const youngest = "the youngest pod goes, and the gang to its rack; the test expects the fullest rack, which it is if the pods were created in the same second"
	return []Difference{
		{gangs, consumed + "(CPG:_false)", "0015", "the gang has its places when one pod is gone, and the test expects two to go", false},
		{gangs, consumed + "(CPG:_true)", "0012", "members are packed onto as few nodes as hold them, so that one pod has to go, and the test expects two to go", false},
		{gangs, percentage + "(CPG:_false)", "0015", youngest, true},
		{gangs, percentage + "(CPG:_true)", "0015", youngest, true},
		{preemption, "TestPodGroupPreemption/Partial_Preemption_with_basic_policy", "0015", "the pod of the lowest priority goes, and not that on the node with the best score", false},
	}
}
