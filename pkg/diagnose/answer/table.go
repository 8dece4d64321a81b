package answer

import "slices"

// Entry is what is fixed about a code: findings take it from here, and so does the reference in docs/why-pending/codes.md.
type Entry struct {
	Code Code
	// Stages are those that report it. It is listed under the first, which a finding has unless it sets another.
	Stages []Stage
	// Outcomes are what it means for the gang: the usual one first, then the others.
	Outcomes []Outcome
	// Meaning, Evidence and Remedy are the text of the reference, in Markdown. Evidence is empty where there is none.
	Meaning, Evidence, Remedy string
}

// Outcome is a verdict with who has to act.
type Outcome struct {
	Verdict Verdict
	Who     Who
	// Never is true where a hard ceiling is exceeded.
	Never bool
	// When completes "if ..."; empty for the usual outcome.
	When string
}

// Exit is the exit code of the outcome.
func (o Outcome) Exit() int { return ExitCode(o.Verdict, o.Who, o.Never) }

// Lookup returns the entry of a code. Of a code that has none it is that of [SearchIncomplete], under the other name: nothing is
// claimed of such a gang.
func Lookup(code Code) Entry {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Code == code })
	if i < 0 {
		e := Lookup(SearchIncomplete)
		e.Code = code
		return e
	}
	return entries[i]
}

// Codes are all codes, in the order of the stages.
func Codes() []Code {
	codes := make([]Code, 0, len(entries))
	for _, e := range entries {
		codes = append(codes, e.Code)
	}
	return codes
}

// entries is the table of codes.
var entries = []Entry{
	{
		Code: CRDNotInstalled, Stages: []Stage{StageRequest}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The cluster does not know the kind of the job.",
		Evidence: "discovery",
		Remedy:   "Install the operator.",
	},
	{
		Code: NamespaceGone, Stages: []Stage{StageRequest}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The namespace is being deleted; nothing new is created in it.",
		Evidence: "`Namespace.status.phase`",
		Remedy:   "Use another namespace.",
	},
	{
		Code: NoPermission, Stages: []Stage{StageRequest, StagePods}, Outcomes: []Outcome{{Verdict: Uncertain, Who: Admin}, {Verdict: Uncertain, Who: User, When: "the file that was read has no nodes"}},
		Meaning:  "What would have to be computed cannot be seen, most often because nodes or the pods of other namespaces may not be listed.",
		Evidence: "the API server's refusal to list, or to create with `dryRun=All`",
		Remedy:   "Let an administrator apply the rule that the answer prints; `kubectl auth can-i --list` shows what you have.",
	},
	{
		Code: JobInvalid, Stages: []Stage{StageJob, StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The controller, the API server or the scheduler does not accept the spec: no container of the expected name, no roles, no members, a training runtime that does not exist, a PodGroup of Kubernetes whose priority or preemption policy is not that of all its members.",
		Evidence: "the spec; a condition `Failed` with reason `Invalid…`; an event of the controller with a reason like `InvalidRayJobSpec`; a dry-run create; `spec.priority` and `spec.preemptionPolicy` of the PodGroup and its pods",
		Remedy:   "Change the spec as the message says, and submit again.",
	},
	{
		Code: JobSuspended, Stages: []Stage{StageJob}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "`suspend` is set, and no queue manager did that; or it is set on what was made of the job, and not on the job. A label that was probably meant for Kueue is named.",
		Evidence: "`spec.runPolicy.suspend`, and the labels and annotations of the job and its pods",
		Remedy:   "Resume it, or label it for its queue.",
	},
	{
		Code: JobFailed, Stages: []Stage{StageJob}, Outcomes: []Outcome{{Verdict: Failed, Who: User}},
		Meaning:  "The job has ended badly. It is not pending.",
		Evidence: "condition `Failed`",
		Remedy:   "Read the logs of the failed member.",
	},
	{
		Code: JobTerminating, Stages: []Stage{StageJob}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "a finalizer or a pod has held it for longer than that takes"}},
		Meaning:  "The job is being deleted. Its controller makes nothing for it any more, so no later stage is evaluated.",
		Evidence: "`metadata.deletionTimestamp` and `metadata.finalizers` of the job and of its pods",
		Remedy:   "Wait; after that, whoever set the finalizer has to take it away. Submit the job again when it is gone.",
	},
	{
		Code: OperatorMissing, Stages: []Stage{StageController}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "No operator for this kind of job runs in the cluster, or those that run look at other namespaces or other kinds only, or the kind that it makes of the job is not served.",
		Evidence: "no Deployment with the operator's image; its flags `--namespace` and `--enable-scheme`; an empty status",
		Remedy:   "Install the operator.",
	},
	{
		Code: OperatorDown, Stages: []Stage{StageController}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The operator's pods are not ready, its lease has run out, or it has not looked at the job for minutes, or has not submitted to members that are ready what they run. For a job that Kueue suspends, the same of Kueue's controller, or that has made no Workload for minutes, as for pods that it holds; for a Job, of the controllers of Kubernetes itself, or of the one that it is left to.",
		Evidence: "`Deployment.status.readyReplicas`, the pods' container states, `Lease.spec.renewTime`",
		Remedy:   "Read the operator's log; get its Deployment ready.",
	},
	{
		Code: OperatorRBAC, Stages: []Stage{StageController}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The operator may not create pods, or services, in the namespace, or do what else it has to for that; or it may not set finalizers on the job, without which it creates nothing where the API server protects owners.",
		Evidence: "event `FailedCreatePod` or `FailedCreateService` \"User … cannot create resource …\", or \"cannot set blockOwnerDeletion …\"",
		Remedy:   "Bind a role that may.",
	},
	{
		Code: NSQuota, Stages: []Stage{StagePods, StagePodGroup}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "no end of a job frees enough of it"}, {Verdict: Blocked, Who: User, When: "pods or jobs that have ended, or wait and cannot start, or PodGroups that nothing uses, count until they are deleted"}},
		Meaning:  "A ResourceQuota of the namespace is used up for now. The whole gang is counted, not the pod that was refused; and other objects that its controller makes, as refused or as is known of the kind; and the PodGroup. Or the quota was raised, and that is not in force yet.",
		Evidence: "`ResourceQuota.status.used` plus what the missing members would be charged; where quotas may not be read, the amounts in the refusal",
		Remedy:   "Wait for the jobs that are named, delete those that have ended, request less, leave the scope of the quota where it has one, or raise the limit to the number given.",
	},
	{
		Code: NSQuotaTooSmall, Stages: []Stage{StagePods, StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: User, Never: true}},
		Meaning:  "The gang alone is larger than the quota.",
		Evidence: "`ResourceQuota` and the requests of all members",
		Remedy:   "Fewer or smaller members, out of the scope of the quota where it has one, or a larger quota.",
	},
	{
		Code: QuotaNeedsField, Stages: []Stage{StagePods}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "A quota makes a request or limit mandatory that the pods lack.",
		Evidence: "the keys of the quota and the templates; event \"failed quota: … must specify …\"",
		Remedy:   "Set the field.",
	},
	{
		Code: LimitRange, Stages: []Stage{StagePods}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "A container requests more, or less, than a LimitRange allows, or its limit is too many times its request.",
		Evidence: "`LimitRange.spec.limits` and the template",
		Remedy:   "Request the value that is allowed.",
	},
	{
		Code: AdmissionDenied, Stages: []Stage{StagePods}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "its controller needs a CRD that is not installed"}},
		Meaning:  "A policy denies the pods: a webhook, a ValidatingAdmissionPolicy, Pod Security; or a pod that is none of the gang's, such as one of an earlier job that is stuck in its deletion, has the name of a member; or a request is above its own limit; or the controller reports that it cannot make them.",
		Evidence: "event or dry-run create with the policy's message; the level of Pod Security that the labels of the namespace enforce, against the template, of a job that has had no pod for a minute; the pods that have the names",
		Remedy:   "Change the pods as the policy requires; delete what has the name, or submit under another.",
	},
	{
		Code: WebhookDown, Stages: []Stage{StagePods, StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "A webhook that has to be called, for pods or for the PodGroup, does not answer.",
		Evidence: `event or dry-run create "failed calling webhook …"`,
		Remedy:   "Get its Service to answer again.",
	},
	{
		Code: PriorityMissing, Stages: []Stage{StagePods, StageController}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The PriorityClass does not exist. For a job that Kueue suspends, it may be the WorkloadPriorityClass.",
		Evidence: "the template, or an event, and the classes that exist now",
		Remedy:   "Name one that exists, or have it created.",
	},
	{
		Code: AccountMissing, Stages: []Stage{StagePods, StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The ServiceAccount does not exist in the namespace.",
		Evidence: "event or dry-run create, and the accounts that exist now",
		Remedy:   "Create it.",
	},
	{
		Code: RuntimeMissing, Stages: []Stage{StagePods}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The RuntimeClass does not exist.",
		Evidence: "event, and the classes that exist now",
		Remedy:   "Name one that exists.",
	},
	{
		Code: PodGroupMissing, Stages: []Stage{StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "the operator should have made it and could not, or the controller of Volcano, for pods that name none, and has not"}},
		Meaning:  "The pods name a gang object that is not there, or the operator should have made one and could not, as where its CRD is not installed; or there is one of the name that their scheduler does not read; or no pod states the minimum of a gang that labels or annotations declare; or a CompositePodGroup above their PodGroup is not there.",
		Evidence: "the objects of the dialect; a dry-run create of the PodGroup; what the API server serves",
		Remedy:   "Create it, with the command if one is given, or see why it is refused.",
	},
	{
		Code: PodGroupForeign, Stages: []Stage{StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The gang object belongs to an earlier job of the same name.",
		Evidence: "`metadata.ownerReferences`",
		Remedy:   "Delete it; it is made again.",
	},
	{
		Code: MinMemberTooHigh, Stages: []Stage{StagePodGroup}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The gang requests more members than the job makes, with other jobs whose pods name its group; or members of a task of Volcano that no pod is of; or, of KAI, more than are left when others have completed.",
		Evidence: "`minMember` against the replicas of all roles; `minTaskMember` against the tasks that pods name",
		Remedy:   "Set `minMember` to at most the number of replicas; name tasks as the pods do.",
	},
	{
		Code: BelowQuorum, Stages: []Stage{StagePodGroup, StagePods}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody},
			{Verdict: Blocked, Who: User, When: "the others are made only when these run, or have completed, or by another job that waits for its user, or name another scheduler or group, or none; or a gang that Koordinator places together with it does not exist"},
			{Verdict: Blocked, Who: Admin, When: "another job makes the others, and waits for an administrator, or the API server has failed to create them for minutes, or their controller has been silent for half an hour"}},
		Meaning:  "Fewer pods exist than the gang needs; the controller is making them, waits for other pods of the job that come first, tries again after a failure of the API server, or does not report why not. Or enough exist, and some name another group, another scheduler or none, so that they do not count. Jobs whose pods name one group, as those of a JobSet may, are one gang, of any kind. Or too few parts of a CompositePodGroup have theirs, or a gang that Koordinator places together with this one has not.",
		Evidence: "pods against `minMember`, with the group and the schedulerName that each names; parts against `minGroupCount`",
		Remedy:   "Wait; after a minute read the operator's log. Of pods that do not count, change what their template names.",
	},
	{
		Code: QueueNotFound, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "it is a ClusterQueue"}},
		Meaning:  "The queue does not exist. Schedulers ignore such a gang silently.",
		Evidence: "the queues that exist",
		Remedy:   "Name one that exists.",
	},
	{
		Code: QueueClosed, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The queue admits nothing new, or nothing of this namespace.",
		Evidence: "`Queue.status.state`, `stopPolicy`, condition `Active`, `namespaceSelector`",
		Remedy:   "Open it.",
	},
	{
		Code: QueueNotLeaf, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The queue has queues below it and takes no gangs itself.",
		Evidence: "`spec.parent` of other queues",
		Remedy:   "Use one of its leaves.",
	},
	{
		Code: QueueQuota, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin,
			When: "no end of a job frees enough of it, or the scheduler alone reports it, for a quarter of an hour, and by the numbers the queue has room"}},
		Meaning:  "What the queue may use is used by other gangs for now.",
		Evidence: "`capability` or limit, or what the guarantees of other queues leave of the cluster, against the bound pods and reservations of the queue's gangs; `max` and `min` of ElasticQuotas of scheduler-plugins against the bound pods of their namespaces, where the scheduler is known to apply them, and of Koordinator's, with the runtime that it writes on them, against the bound pods that name them; for YuniKorn's queues, which are not computed, the scheduler's message",
		Remedy:   "Wait for the gangs that are named, or raise the limit to the number given.",
	},
	{
		Code: QueueTooSmall, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Blocked, Who: User, Never: true}, {Verdict: Blocked, Who: User, When: "another flavor of the ClusterQueue has enough, which a node selector or the lack of a toleration keeps the pods off, or its job asks for another queue where Volcano does not look for that"}},
		Meaning:  "The gang alone, or what `minResources` of its PodGroup state, is larger than the queue, than what the guarantees of other queues leave for it, or than its ClusterQueue with all that it may borrow, in the flavors that its pods may use.",
		Evidence: "the queue's limit, `spec.guarantee` of other queues, and the requests of all members or `spec.minResources` of the PodGroup",
		Remedy:   "Fewer or smaller members, another node selector or toleration where that is named, or a larger limit; lower `minResources` where they state more than the members request.",
	},
	{
		Code: KueueQuota, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "Workloads of jobs that are gone, or that Kueue has evicted, keep the quota, or no end of a job frees enough of it, or Kueue reports that it is misconfigured"}},
		Meaning:  "Kueue holds the job: its ClusterQueue has too little left in the flavors that suit the pods, or Kueue pauses after an eviction. Do not resume it by hand. Whom Kueue has preempted for it is named, and whom it may preempt; of a queue with fair sharing that is not evaluated.",
		Evidence: "`nominalQuota`, `borrowingLimit`, `lendingLimit` and the cohorts, against admitted Workloads; `preemption` of the ClusterQueue, and the condition `Evicted` of Workloads; `requeueState`; `queueingStrategy` of the other queues of the cohort",
		Remedy:   "Wait for the jobs that are named, remove the Workloads of jobs that are gone, raise the borrowing limit where the cohort has the room, or else the quota.",
	},
	{
		Code: KueueCheck, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "the check has rejected the job, or Kueue does not try it again, or the node pool of which nodes are requested is as large as it may be"}},
		Meaning:  "Kueue waits for an admission check, or MultiKueue has the job run in another cluster, and not enough members run there yet.",
		Evidence: "`Workload.status.admissionChecks`, and the condition `Evicted` of a Workload that was switched off or put back for one",
		Remedy:   "See the controller of the check. A Workload that a check has rejected is switched off: once the reason is gone, switch it on.",
	},
	{
		Code: KueueInactive, Stages: []Stage{StageQueue}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "The Workload is switched off: by a user, or by Kueue, as its pods were not ready in time too often, or it ran for too long.",
		Evidence: "`Workload.spec.active`, and the condition `Evicted`",
		Remedy:   "Remove the reason, and submit the job again, or have an administrator switch it on: Kueue's own roles let users no more than read Workloads.",
	},
	{
		Code: ReservedByStuck, Stages: []Stage{StageQueue, StageOrder}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  `Idle resources, or quota of Kueue, are reserved for an admitted gang that can never start, or not before an administrator acts. The scheduler only reports "overused". Or a scheduler with a Permit stage keeps room, in its memory alone, for pods of such a gang that wait for the others of it.`,
		Evidence: "`minResources` of PodGroups in phase `Inqueue` or `Running`, with what is used, against the queue's limit or 1.2 times the cluster, or admitted Workloads, and the reason why each does not start; of the Permit stage, the scheduler's report that it lacks what is free, and pods of the other gang of which it has refused only some",
		Remedy:   "Fix or delete that gang.",
	},
	{
		Code: ReservedByOthers, Stages: []Stage{StageQueue, StageOrder}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "Idle resources are promised to a gang that was admitted first and is starting, or the scheduler keeps them for a gang that comes first.",
		Evidence: "`minResources` of PodGroups in phase `Inqueue`; the gang scheduler's message in the condition `PodScheduled` of members; Volcano's event that the cluster is overused, where the gang fits; a report of the scheduler that it lacks what is free, where it has refused only some of the pods of an older gang",
		Remedy:   "Wait.",
	},
	{
		Code: SchedulerNotFound, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}},
		Meaning:  "No scheduler serves the pods' schedulerName. There is no event about that.",
		Evidence: "leases, Deployments, events of that name",
		Remedy:   "Write the name of a scheduler that runs.",
	},
	{
		Code: SchedulerDown, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The scheduler gives no sign of life.",
		Evidence: "`Lease.spec.renewTime`, ready pods, its last event",
		Remedy:   "Get it to run again.",
	},
	{
		Code: GangBypassed, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: Degraded, Who: User}, {Verdict: Degraded, Who: Admin, When: "kube-scheduler runs without the feature gate of its PodGroups, or the operator makes none"}},
		Meaning:  "Pods of the gang use a scheduler that does not read it, or none of them names its group, or its operator makes none in spite of its schedulingPolicy, and they are placed one by one.",
		Evidence: "the schedulerName of each pod against the operator's flag and the dialect; the flags of kube-scheduler; a group object of the job, or of its name, that no pod names",
		Remedy:   "Leave schedulerName out, or write the gang's scheduler; name the group in the template of the pods.",
	},
	{
		Code: SchedulingGated, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}, {Verdict: Waiting, Who: Nobody, When: "Kueue has just admitted the gang, or looks for another node"}},
		Meaning:  "A scheduling gate that no queue manager owns holds the pods, or one of Kueue's does though it has admitted the gang.",
		Evidence: "`spec.schedulingGates`",
		Remedy:   "Its owner has to lift it.",
	},
	{
		Code: Fits, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: FitsNow, Who: Nobody}},
		Meaning:  "All members have a place now and nothing stands in the way.",
		Evidence: "a placement",
		Remedy:   "Nothing; the answer says when the scheduler last tried.",
	},
	{
		Code: FitsNotPlaced, Stages: []Stage{StageScheduler}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The gang has fitted for minutes and the scheduler did not try, or it has refused it for a quarter of an hour in which nothing has changed, or for minutes by tries that failed, or it has just rejected nodes for a reason that is not evaluated here. What it was refused for may have gone a moment ago and left no time, as a taint does that is lifted: it counts as FITS for a while then.",
		Evidence: "a placement, the age of the last attempt, the age of everything that could have changed",
		Remedy:   "Read the scheduler's log.",
	},
	{
		Code: NoDevicePlugin, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "Nodes look like they have devices and advertise none: all of them, or those that are needed.",
		Evidence: "labels of the hardware, `allocatable`, ResourceSlices, the DaemonSet of the plugin or the DRA driver",
		Remedy:   "Repair the device plugin, or the DRA driver.",
	},
	{
		Code: ResourceNotOffered, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Waiting, Who: Nobody, When: "GPUs are being cut into it"}, {Verdict: Blocked, Who: Admin, When: "cutting GPUs into it has failed, or nothing cuts them, or an autoscaler has not brought what it ordered, or cannot"}},
		Meaning:  "No node has the requested resource.",
		Evidence: "`allocatable` and `capacity` of all nodes; what autoscalers have ordered, and report of that: `FailedScaleUp`, NodeClaims",
		Remedy:   "Correct the name; the nearest one that exists is named.",
	},
	{
		Code: SelectorNoMatch, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "a ResourceFlavor of Kueue, or what changes pods at admission, has the pods require it, or an autoscaler has not brought the nodes that it ordered, or HyperNodes have members that do not exist"}},
		Meaning:  "No node has the label, or all labels together, that the pods require, or by which they are to be together or spread.",
		Evidence: "node labels against nodeSelector, node affinity and topology keys",
		Remedy:   "Choose a value that exists; all are listed with counts.",
	},
	{
		Code: PVCUnbound, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Waiting, Who: Nobody, When: "the volume is being provisioned or bound, or the VolumeSnapshot that it is restored from is not ready yet"}, {Verdict: Blocked, Who: Admin, When: "its provisioner does not run or is not installed, or the claim of a generic ephemeral volume is not made, or it takes a PersistentVolume that nothing makes, or the volume that fits is kept for an earlier claim of that name, or a StatefulSet makes the claim and no StorageClass is the default one"}},
		Meaning:  "A volume claim is missing, lost, being deleted, or will not be bound; or the scheduler has given it to a node, and its volume is not made yet, for which its pod waits; or its volume is on a node that is gone, or is to be made for one; or it gets its volume where the first member goes, and the others that share it do not fit there; or too few nodes have storage for volumes that are to be made.",
		Evidence: "`PersistentVolumeClaim.status`, the StorageClasses, CSIDrivers and VolumeSnapshots, the Deployment of the provisioner, events `ExternalProvisioning` and `ProvisioningFailed`",
		Remedy:   "Repair the claim or its class.",
	},
	{
		Code: TooBig, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: User, Never: true}, {Verdict: Blocked, Who: User, When: "Kueue has assigned members to nodes that take none"}, {Verdict: Blocked, Who: Admin, Never: true, When: "the cluster has no node"}, {Verdict: Blocked, Who: Admin, When: "an autoscaler has ordered nodes that are not there, or of which it is not known what they will have, or tries again, or removes nodes with which it would fit"},
			{Verdict: Blocked, Who: User, When: "its StatefulSet has a smaller template by now, of which it makes a pod when the one that waits is deleted"}},
		Meaning:  "No placement even on the cluster at its best, of the gang or of the parts of a CompositePodGroup that start with it; or `minResources` of its PodGroup are more than all nodes have, under scheduler-plugins. It is never as long as the job is as it is: also where only a taint, a selector or another rule of its pods keeps them off nodes that would do. `unblock` lists what the job may change.",
		Evidence: "a proof: one member is larger than any node, or there are fewer places than members",
		Remedy:   "Another shape, fewer members, or more nodes.",
	},
	{
		Code: NodeNotReady, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}, {Verdict: Waiting, Who: Nobody, When: "an operator upgrades a driver of the nodes, and opens them after that"}},
		Meaning:  "Without the nodes that take no pods there are too few: they are not Ready, under pressure, tainted as unhealthy, about to be removed, or cordoned, as the message says. A node that is being deleted does not come back: it is not counted at all.",
		Evidence: "condition `Ready`, taints, `spec.unschedulable`",
		Remedy:   "Repair or uncordon the node; fewer members may fit meanwhile.",
	},
	{
		Code: GPUUnhealthy, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "A node has fewer healthy devices than it should, and they would be enough.",
		Evidence: "`capacity` above `allocatable`; in ResourceSlices and DeviceTaintRules, taints of devices, and pools of which slices are missing",
		Remedy:   "Drain and repair the node.",
	},
	{
		Code: StuckTerminating, Stages: []Stage{StagePlacement, StageLife}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "A pod that should be gone for long, or is being deleted on a node whose kubelet has not reported for 5 minutes, holds the room; or it is one of the gang's own, which is suspended, and has no successor before it is gone.",
		Evidence: "`deletionTimestamp`, finalizers, its node",
		Remedy:   "Bring back the node, or taint it out of service once it is known to be off; on a node that reports clear the finalizer, or force the deletion.",
	},
	{
		Code: NodesBusy, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "services that never end hold the room, and the gang's scheduler does not preempt them"},
			{Verdict: Blocked, Who: User, When: "pods of its own Deployment from before a rollout do"}},
		Meaning:  "A device, or another resource that has no code of its own, is taken on the nodes that members may use; or less of it is left in all than `minResources` of the PodGroup state, under scheduler-plugins.",
		Evidence: "a placement without that request; what is free against what is needed; who holds what",
		Remedy:   "Wait for the jobs that are named; other options are listed.",
	},
	{
		Code: Fragmented, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "Enough is free in total, but not on single nodes; or others have taken the host port, or the volume attachments, of the nodes where it is free; or anti-affinity keeps members apart.",
		Evidence: "a placement without that constraint; what is free node by node",
		Remedy:   "Reshape to the size of the holes, or wait for the jobs that are named.",
	},
	{
		Code: InsufficientCPU, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "Everything would fit if cpu did not count, with what else the message names. Devices are free.",
		Evidence: "a placement without that request",
		Remedy:   "Trim the request to the number given, or wait.",
	},
	{
		Code: InsufficientMemory, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The same for memory.",
		Evidence: "as above",
		Remedy:   "as above",
	},
	{
		Code: InsufficientStorage, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The same for local disk.",
		Evidence: "as above",
		Remedy:   "as above",
	},
	{
		Code: InsufficientPods, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The same for the number of pods a node takes.",
		Evidence: "`allocatable.pods`",
		Remedy:   "Wait for small pods to end.",
	},
	{
		Code: TopologyFragmented, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "All members must share a rack or zone, and no single one has room.",
		Evidence: "places domain by domain",
		Remedy:   "Wait, take fewer members, or make the rule a preference.",
	},
	{
		Code: TopologySpread, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "A spread constraint keeps members from the room that there is.",
		Evidence: "`topologySpreadConstraints`",
		Remedy:   "Wait, or make the rule a preference.",
	},
	{
		Code: VolumeZone, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The data is in one zone, the free room in another; or the nodes with room can attach no more volumes.",
		Evidence: "the volume's node affinity, the topologies that its class allows, `CSINode.spec.drivers`",
		Remedy:   "Wait for room where the data is.",
	},
	{
		Code: DRAUnallocatable, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: User, When: "a claim, template or class does not exist"}, {Verdict: Blocked, Who: Admin, When: "no driver publishes devices, or claims have them whose pods are gone"}},
		Meaning:  "The devices that resource claims request are allocated to others, or cannot be claimed.",
		Evidence: "`ResourceClaim.status`, ResourceSlices, DeviceClasses",
		Remedy:   "Wait for the jobs that are named, or free the devices of the claims that are.",
	},
	{
		Code: CompositeBusy, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}, {Verdict: Blocked, Who: Admin, When: "services that never end hold the room"}},
		Meaning:  "The PodGroup has room by itself, and is a part of a CompositePodGroup, of which it starts with other parts, or one of several gangs that Koordinator places at once. They have no room together.",
		Evidence: "`minGroupCount` of the composite ones above it; a placement of the parts that have to be placed together",
		Remedy:   "Wait for the jobs that are named.",
	},
	{
		Code: SearchIncomplete, Stages: []Stage{StagePlacement}, Outcomes: []Outcome{{Verdict: Uncertain, Who: Nobody}},
		Meaning: "The search found neither a placement nor a proof that there is none, in its time, or the proof alone and not what keeps the gang from the room that there is; or what decides is not known, as with shares of a GPU, and parts of a CompositePodGroup that may not be read.",
		Remedy:  "Query again; a smaller or more uniform gang is decided faster.",
	},
	{
		Code: QueueOrder, Stages: []Stage{StageOrder}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The gang fits, but another one is ahead: by priority or by age in a strictly ordered queue, or as the scheduler keeps the room for it.",
		Evidence: "`StrictFIFO`, `dequeueStrategy: fifo`, priorities, creation times; `status.nominatedNodeName` of other pods",
		Remedy:   "See why the gang ahead waits: the answer says so.",
	},
	{
		Code: VictimsTerminating, Stages: []Stage{StageOrder, StageQueue}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "Pods are being deleted or preempted, and their room is enough; or they are the gang's own, and those that follow them have room.",
		Evidence: "`deletionTimestamp` within the grace period",
		Remedy:   "Wait; the time left is given.",
	},
	{
		Code: ScalingUp, Stages: []Stage{StageOrder}, Outcomes: []Outcome{{Verdict: Waiting, Who: Nobody}},
		Meaning:  "The autoscaler has ordered nodes, or new nodes are not ready yet or do not advertise their devices yet, and they will be enough; or they are a part of what the gang waits for.",
		Evidence: "event `TriggeredScaleUp`, nodes of the same group; event `Nominated` with a NodeClaim; nodes that were created less than ten minutes ago, and what nodes of the same kind have",
		Remedy:   "Wait.",
	},
	{
		Code: ImagePulling, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Starting, Who: Nobody}},
		Meaning:  "Members are placed, and the image is being pulled, or waits until its kubelet pulls more images.",
		Evidence: "event `Pulling` without `Pulled`; `pull QPS exceeded`",
		Remedy:   "Wait.",
	},
	{
		Code: ImagePull, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "the disk of the node is full, or it cannot reach or trust the registry where other nodes can"}},
		Meaning:  "The image cannot be pulled.",
		Evidence: "container state `ErrImagePull`, `ImagePullBackOff`",
		Remedy:   "Correct the name, or create the pull secret that is named; where the registry limits pulls, the kubelet tries again.",
	},
	{
		Code: ConfigMissing, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "it is a NetworkAttachmentDefinition that the job itself does not name"}},
		Meaning:  "A Secret, ConfigMap or NetworkAttachmentDefinition that the pods use does not exist.",
		Evidence: "container state `CreateContainerConfigError` that names it, event `FailedMount`, event `FailedCreatePodSandBox` of Multus",
		Remedy:   "Create it.",
	},
	{
		Code: InitRunning, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Starting, Who: Nobody}, {Verdict: Uncertain, Who: Nobody, When: "it has run for half an hour"}},
		Meaning:  "An init container runs.",
		Evidence: "`initContainerStatuses`",
		Remedy:   "Wait, or read its log.",
	},
	{
		Code: InitFailing, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "it lacks memory, and its operator or a webhook puts it into the pods"}},
		Meaning:  "An init container fails. Where another member has no node yet, or has not run, and the report does not rule out that it fails for want of that, it is remarked and does not count.",
		Evidence: "exit code and restarts",
		Remedy:   "Read its log.",
	},
	{
		Code: CrashLoop, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "the runtime or a driver of the node does not start what starts on others"}},
		Meaning:  "A member starts and ends again and again, out of memory or with an exit code, or cannot be started. It counts while the container is up, too, until that has run for longer than the last time. What may be for want of another member that has not run is remarked only, as for an init container.",
		Evidence: "`state.terminated`, `lastState.terminated`, `RunContainerError`, event `Killing` for a probe",
		Remedy:   "Read the log of its last run; request more memory.",
	},
	{
		Code: SidecarKeepsPod, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Waiting, Who: Nobody, When: "it has only just ended"}},
		Meaning:  "The container that does the work has ended well, and another one of its pod runs on: the member does not end, keeps what it has, and the job cannot complete.",
		Evidence: "`state.terminated` with exit code 0 of the one, `state.running` of the other",
		Remedy:   "End the other container; have it as an init container with `restartPolicy: Always`, which ends with the pod.",
	},
	{
		Code: NodeRefused, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}, {Verdict: Blocked, Who: User, When: "the pod requests more of a shared device than one may have, or no whole cores"},
			{Verdict: Waiting, Who: Nobody, When: "the node had only just started, and has the devices now"}},
		Meaning:  "The kubelet refused a pod that the scheduler had placed. Where it did for something else than devices, this comes before devices of the node that are unhealthy.",
		Evidence: "reason `UnexpectedAdmissionError`, `OutOf…`, `TopologyAffinityError`, `SMTAlignmentError`, `NodeAffinity` and the like",
		Remedy:   "Keep new pods off a node that has less than it reports, or is sick, until it is repaired; for a reason that is about the node itself, see its labels, its taints and its other pods; for the alignment of resources, wait for room on one NUMA node, or request less.",
	},
	{
		Code: SandboxFailed, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: Admin}},
		Meaning:  "The node cannot set the pod up: no address, network or runtime trouble, or a DRA driver that does not prepare the devices which the pod claims, such as a channel of a ComputeDomain of which a daemon does not run.",
		Evidence: "event `FailedCreatePodSandBox`, `FailedPrepareDynamicResources`",
		Remedy:   "Repair the node's network or runtime, or the driver.",
	},
	{
		Code: VolumeMultiAttach, Stages: []Stage{StageStart, StagePlacement}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Waiting, Who: Nobody, When: "a job that ends uses a volume for a single pod, or a volume is being detached"}, {Verdict: Blocked, Who: Admin, When: "a pod that does not end has the volume, as on a node that is down"}},
		Meaning:  "A volume for one node is needed on two, or one for a single pod by several.",
		Evidence: "event `FailedAttachVolume`, access modes, attachments",
		Remedy:   "Use a ReadWriteMany volume, or one claim per member.",
	},
	{
		Code: VolumeMount, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Blocked, Who: User}, {Verdict: Blocked, Who: Admin, When: "the node lacks the driver, or what members on other nodes mount, or the storage of a claim that is bound does not answer"}},
		Meaning:  "A volume does not mount.",
		Evidence: "event `FailedMount`; of several the latest that gives a reason",
		Remedy:   "See the message.",
	},
	{
		Code: ContainersStarting, Stages: []Stage{StageStart}, Outcomes: []Outcome{{Verdict: Starting, Who: Nobody}, {Verdict: Blocked, Who: User, When: "a readiness probe has failed for a quarter of an hour, and other members, or pods of its StatefulSet, are made only when it passes"}},
		Meaning:  "Containers are being started; or they are up and not ready, and the probe or the readiness gate that fails is named; or the kubelet gives the files of a volume to the fsGroup of the pod, or has not begun. Or one has failed to reach members that have only just come up; or all are ready, and the operator is to submit to them what they run.",
		Evidence: "container state `ContainerCreating`",
		Remedy:   "Wait; see the logs of a container whose probe fails for long.",
	},
	{
		Code: SlotStolen, Stages: []Stage{StageLife}, Outcomes: []Outcome{{Verdict: Degraded, Who: Nobody}},
		Meaning:  "A member was lost, and another job took the room before it came back. What the others hold idles.",
		Evidence: "creation and start times; nodes that went away",
		Remedy:   "Wait for the job that is named, or let it give way.",
	},
	{
		Code: MemberLost, Stages: []Stage{StageLife}, Outcomes: []Outcome{{Verdict: Degraded, Who: Nobody}},
		Meaning: "A member was lost or never placed, and nothing has room for it; or for what the members wait for, such as the pod that submits to them what they run. Or indexes of a Job have " +
			"failed for good, and too few others are left for the gang.",
		Evidence: "as above; `facts.lost` are members that ran, `facts.waiting` those that never had a node, `facts.failedIndexes` those of which no pod is made again",
		Remedy:   "Repair the node, or add one; what has failed for good is submitted again.",
	},
	{
		Code: MutualDeadlock, Stages: []Stage{StageLife}, Outcomes: []Outcome{{Verdict: Degraded, Who: User}},
		Meaning:  "Two gangs hold a part each, and each waits for the other's.",
		Evidence: "each would fit without the other",
		Remedy:   "One has to give way.",
	},
}
