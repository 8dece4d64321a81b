package results

// Differences are the tests that our scheduler fails by design, each with the decision that argues it.
func Differences() []Difference {
	const queueing, topology, preemption = "podgroup/queueing", "podgroup/topology_aware_scheduling", "preemption/podgroup"
	const consumed = "TestTopologyAwareSchedulingWithGangPolicy/gang_uses_pod_group_preemption_when_resources_are_consumed_by_lower_priority_existing_pods_"
	const percentage = "TestTopologyAwareSchedulingWithGangPolicy/gang_uses_preemption_and_schedules_on_a_single_rack," +
		"_choosing_placement_with_highest_allocation_percentage_with_pre-existing_pods_in_cluster_"
	const youngest = "the youngest pod goes, and the gang to its rack; the test expects the fullest rack, which it is if the pods were created in the same second"
	const added = "_pod_group_member_pod_added_mid-cycle_is_correctly_buffered_and_retried_after_unschedulable_attempt"
	const planned = "the gang has no placement, and is refused before the plugin of the test is called that would add a member"
	const binding = "TestPodGroupPreemption/Binding_first_before_preemption_for_"
	const alongside = "the attempt for the last member, which preempts, does not wait for the binding of the one before to be written"
	return []Difference{
		{queueing, "TestPodGroupQueueing/Gang_scheduling" + added, "0009", planned, false},
		{queueing, "TestPodGroupQueueing/Basic_policy" + added, "0009", planned, false},
		{
			queueing, "TestPodGroupSequentialQueueing/Gang_scheduling_pod_group_fails_scheduling_and_retries_without_any_cluster_change", "0010",
			"a gang that failed is not in the active queue before an event could help it", false,
		},
		{topology, consumed + "(CPG:_false)", "0015", "the gang has its places when one pod is gone, and the test expects two to go", false},
		{topology, consumed + "(CPG:_true)", "0012", "members are packed onto as few nodes as hold them, so that one pod has to go, and the test expects two to go", false},
		{topology, percentage + "(CPG:_false)", "0015", youngest, true},
		{topology, percentage + "(CPG:_true)", "0015", youngest, true},
		{preemption, "TestPodGroupPreemption/Partial_Preemption_with_basic_policy", "0015", "the pod of the lowest priority goes, and not that on the node with the best score", false},
		{preemption, binding + "gang_policy", "0015", alongside, true},
		{preemption, binding + "basic_policy", "0015", alongside, true},
		{
			preemption, "TestPodGroupPreemption/Topology-Aware_Preemption:_two_topologies,_both_eligible,_selects_higher_scored_topology", "0043",
			"the plugin that the test adds at Score does not choose between domains", false,
		},
		{
			preemption, "TestCompositePodGroupPreemption/CPG_Victim_Across_Multiple_Nodes,_CPG_DisruptionModeSingle", "0015",
			"a gang below its minimum is of no use: it goes as a whole, and not the one pod that is in the way", false,
		},
		{preemption, "TestPodGroupPreemptionStatus", "0016", "the test expects kube-scheduler's text in the condition of the group", false},
	}
}
