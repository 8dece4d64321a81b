package answer

// Stage is one step on the way from the request to the running gang.
type Stage string

// The stages in their order, which is the precedence of findings.
const (
	StageRequest    Stage = "request"
	StageJob        Stage = "job"
	StageController Stage = "controller"
	StagePods       Stage = "pods"
	StagePodGroup   Stage = "podgroup"
	StageQueue      Stage = "queue"
	StageScheduler  Stage = "scheduler"
	StagePlacement  Stage = "placement"
	StageOrder      Stage = "order"
	StageStart      Stage = "start"
	StageLife       Stage = "life"
)

// Stages are all stages in order.
func Stages() []Stage {
	return []Stage{StageRequest, StageJob, StageController, StagePods, StagePodGroup, StageQueue, StageScheduler, StagePlacement, StageOrder, StageStart, StageLife}
}

// Code is the stable name of a reason.
type Code string

// The codes. An INSUFFICIENT_ code ends in the name of the resource that is short.
const (
	CRDNotInstalled     Code = "CRD_NOT_INSTALLED"
	NamespaceGone       Code = "NAMESPACE_TERMINATING"
	NoPermission        Code = "NO_PERMISSION"
	JobInvalid          Code = "JOB_INVALID"
	JobSuspended        Code = "JOB_SUSPENDED"
	JobFailed           Code = "JOB_FAILED"
	JobTerminating      Code = "JOB_TERMINATING"
	OperatorMissing     Code = "OPERATOR_MISSING"
	OperatorDown        Code = "OPERATOR_DOWN"
	OperatorRBAC        Code = "OPERATOR_RBAC"
	NSQuota             Code = "NS_QUOTA"
	NSQuotaTooSmall     Code = "NS_QUOTA_TOO_SMALL"
	QuotaNeedsField     Code = "QUOTA_NEEDS_FIELD"
	LimitRange          Code = "LIMITRANGE"
	AdmissionDenied     Code = "ADMISSION_DENIED"
	WebhookDown         Code = "WEBHOOK_DOWN"
	PriorityMissing     Code = "PRIORITYCLASS_MISSING"
	AccountMissing      Code = "SERVICEACCOUNT_MISSING"
	RuntimeMissing      Code = "RUNTIMECLASS_MISSING"
	PodGroupMissing     Code = "PODGROUP_MISSING"
	PodGroupForeign     Code = "PODGROUP_NOT_REFRESHED"
	MinMemberTooHigh    Code = "MIN_MEMBER_EXCEEDS_REPLICAS"
	BelowQuorum         Code = "BELOW_QUORUM"
	QueueNotFound       Code = "QUEUE_NOT_FOUND"
	QueueClosed         Code = "QUEUE_CLOSED"
	QueueNotLeaf        Code = "QUEUE_NOT_LEAF"
	QueueQuota          Code = "QUEUE_QUOTA"
	QueueTooSmall       Code = "QUEUE_TOO_SMALL"
	KueueQuota          Code = "KUEUE_QUOTA"
	KueueCheck          Code = "KUEUE_ADMISSION_CHECK"
	KueueInactive       Code = "KUEUE_DEACTIVATED"
	ReservedByStuck     Code = "RESERVED_BY_STUCK_GANG"
	ReservedByOthers    Code = "RESERVED_BY_GANG"
	SchedulerNotFound   Code = "SCHEDULER_NOT_FOUND"
	SchedulerDown       Code = "SCHEDULER_DOWN"
	GangBypassed        Code = "GANG_BYPASSED"
	SchedulingGated     Code = "SCHEDULING_GATED"
	Fits                Code = "FITS"
	FitsNotPlaced       Code = "FITS_NOT_PLACED"
	NoDevicePlugin      Code = "NO_DEVICE_PLUGIN"
	ResourceNotOffered  Code = "RESOURCE_NOT_OFFERED"
	SelectorNoMatch     Code = "SELECTOR_NO_MATCH"
	PVCUnbound          Code = "PVC_UNBOUND"
	TooBig              Code = "TOO_BIG"
	NodeNotReady        Code = "NODE_NOT_READY"
	GPUUnhealthy        Code = "GPU_UNHEALTHY"
	StuckTerminating    Code = "STUCK_TERMINATING"
	NodesBusy           Code = "NODES_BUSY"
	Fragmented          Code = "FRAGMENTED"
	TopologyFragmented  Code = "TOPOLOGY_FRAGMENTED"
	TopologySpread      Code = "TOPOLOGY_SPREAD"
	VolumeZone          Code = "VOLUME_ZONE"
	DRAUnallocatable    Code = "DRA_UNALLOCATABLE"
	CompositeBusy       Code = "COMPOSITE_NO_ROOM"
	SearchIncomplete    Code = "PLACEMENT_NOT_FOUND"
	QueueOrder          Code = "QUEUE_ORDER"
	VictimsTerminating  Code = "VICTIMS_TERMINATING"
	ScalingUp           Code = "SCALING_UP"
	ImagePulling        Code = "IMAGE_PULLING"
	ImagePull           Code = "IMAGE_PULL"
	ConfigMissing       Code = "CONFIG_MISSING"
	InitRunning         Code = "INIT_RUNNING"
	InitFailing         Code = "INIT_FAILING"
	CrashLoop           Code = "CRASH_LOOP"
	SidecarKeepsPod     Code = "SIDECAR_KEEPS_POD"
	NodeRefused         Code = "NODE_REFUSED"
	SandboxFailed       Code = "SANDBOX_FAILED"
	VolumeMultiAttach   Code = "VOLUME_MULTI_ATTACH"
	VolumeMount         Code = "VOLUME_MOUNT"
	ContainersStarting  Code = "CONTAINERS_STARTING"
	SlotStolen          Code = "SLOT_STOLEN"
	MemberLost          Code = "MEMBER_LOST"
	MutualDeadlock      Code = "MUTUAL_DEADLOCK"
	insufficientPrefix       = "INSUFFICIENT_"
	InsufficientCPU     Code = insufficientPrefix + "cpu"
	InsufficientMemory  Code = insufficientPrefix + "memory"
	InsufficientStorage Code = insufficientPrefix + "ephemeral-storage"
	InsufficientPods    Code = insufficientPrefix + "pods"
)

// Shortage is the code for a gang that waits for one resource: of those that users look at last the one of their own, of any other
// FRAGMENTED if enough of it is free in all, else NODES_BUSY.
func Shortage(resource string, enough bool) Code {
	code := Insufficient(resource)
	switch {
	case code == InsufficientCPU || code == InsufficientMemory || code == InsufficientStorage || code == InsufficientPods:
		return code
	case enough:
		return Fragmented
	}
	return NodesBusy
}

// Insufficient is the code for a shortage of one resource.
func Insufficient(resource string) Code { return Code(insufficientPrefix + resource) }
