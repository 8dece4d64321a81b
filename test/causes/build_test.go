package causes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	gangs "github.com/gangctl/gangctl/pkg/gang"
)

const (
	zoneLabel  = corev1.LabelTopologyZone
	classLabel = "class"
	rackLabel  = "rack"
	gangName   = "gang"
	namespace  = "team"
)

// dialect is how a gang is declared.
type dialect = gangs.Dialect

// schedulers are the dialects and the scheduler that reads each.
var schedulers = map[dialect]string{
	gangs.SchedulerPlugins: clustertest.Scheduler, gangs.Volcano: "volcano", gangs.KubeBatch: "kube-batch", gangs.Koordinator: "koord-scheduler",
	gangs.KAI: "kai-scheduler", gangs.Native: corev1.DefaultSchedulerName, gangs.Labels: corev1.DefaultSchedulerName, gangs.YuniKorn: "yunikorn", gangs.PDB: "kube-batch",
}

// groups are the API groups of the objects that declare gangs, in dialects that have such objects.
var groups = map[dialect]string{
	gangs.SchedulerPlugins: "scheduling.x-k8s.io", gangs.Volcano: "scheduling.volcano.sh", gangs.KubeBatch: "scheduling.incubator.k8s.io",
	gangs.Koordinator: "scheduling.sigs.k8s.io", gangs.KAI: "scheduling.run.ai", gangs.Native: "scheduling.k8s.io",
}

// build makes the snapshot that gangctl reads.
func (s scenario) build() *snapshot.Snapshot {
	c := clustertest.New()
	for _, n := range s.nodes {
		n.build(c)
	}
	for _, consumer := range s.consumers {
		s.run(c, consumer)
	}
	s.control.build(c, s.gang)
	c.Add(s.gang.build(s.control, s.nodes))
	s.gang.suffer(c)
	if s.gang.kind == barePods {
		orphan(c)
	}
	if s.control.group != declared {
		s.withoutGroup(c)
	}
	return c.Done()
}

// list is amounts as the API writes them.
func (a amounts) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, n := range a {
		list[corev1.ResourceName(name)] = quantity(name, n)
	}
	return list
}

// texts is amounts as an object without a type has them.
func (a amounts) texts() map[string]any {
	texts := map[string]any{}
	for name, q := range a.list() {
		texts[string(name)] = q.String()
	}
	return texts
}

func quantity(name string, n int64) resource.Quantity {
	switch name {
	case cpu:
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	case memory, disk, hugePages:
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}

func (n node) build(c *clustertest.Cluster) {
	made := c.Node(n.name, 0)
	made.Status.Allocatable, made.Status.Capacity = n.total.list(), n.total.list()
	for name, count := range n.unhealthy {
		made.Status.Capacity[corev1.ResourceName(name)] = quantity(name, n.total[name]+count)
	}
	maps.Copy(made.Labels, n.labels)
	if n.taint != "" {
		made.Spec.Taints = []corev1.Taint{{Key: n.taint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	if made.Spec.Unschedulable = n.cordoned; n.cordoned {
		made.Spec.Taints = append(made.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	if n.down {
		clustertest.NotReady(made, 30*time.Minute)
	}
}

// run adds a consumer with its pods.
func (s scenario) run(c *clustertest.Cluster, consumer consumer) {
	var nodes []string
	for _, n := range consumer.nodes {
		nodes = append(nodes, s.nodes[n].name)
	}
	before := len(c.S.Pods)
	switch {
	case len(nodes) == 0:
	case consumer.kind == aJob:
		c.Add(clustertest.Gang{Namespace: "research", Name: consumer.name, Workers: len(nodes), Nodes: nodes, Age: 2 * time.Hour})
	case consumer.kind == aService:
		c.Serves(consumer.name, 0, nodes...)
	default:
		for _, node := range nodes {
			p := c.Daemon(consumer.name, node, "1")
			if consumer.kind == aPlainPod {
				p.OwnerReferences, p.Namespace, p.Name, p.Spec.RestartPolicy = nil, "research", consumer.name, corev1.RestartPolicyNever
			}
		}
	}
	for _, p := range c.S.Pods[before:] {
		consumer.describe(p)
	}
}

// describe gives a pod of a consumer what it requests, and its state.
func (c consumer) describe(p *corev1.Pod) {
	main := &p.Spec.Containers[0]
	main.Resources = corev1.ResourceRequirements{Requests: c.each.list(), Limits: c.each.list()}
	if c.hostPort != 0 {
		main.Ports = []corev1.ContainerPort{{ContainerPort: c.hostPort, HostPort: c.hostPort}}
	}
	if c.priority != 0 {
		p.Spec.Priority = new(c.priority)
	}
	switch c.leaving {
	case going:
		p.DeletionTimestamp = new(metav1.NewTime(clustertest.Now.Add(200 * time.Second)))
	case stuck:
		p.DeletionTimestamp, p.Finalizers = new(clustertest.Ago(40*time.Minute)), []string{"example.com/checkpoint"}
	case staying:
	}
}

// build is the gang with its job and pods, in the terms of package clustertest.
func (g gang) build(control control, nodes []node) clustertest.Gang {
	made := clustertest.Gang{
		Name: gangName, Kind: g.kind, Min: g.min, Age: 40 * time.Second, Dialect: g.dialect, Scheduler: schedulers[g.dialect],
	}
	if g.kind == barePods {
		made.Kind = "TFJob" // which goes afterwards
	}
	if g.misnamed != "" {
		made.Scheduler = g.misnamed
	}
	for i, r := range g.roles {
		role := r.build(g)
		role.Nodes = g.nodesOf(i, nodes)
		if i == 0 {
			made.Workers, made.GPUs, made.CPU, made.Memory, made.Spec, made.Nodes = r.replicas, role.GPUs, role.CPU, role.Memory, role.Spec, role.Nodes
			continue
		}
		made.More = append(made.More, role)
	}
	missing := g.late
	if !g.created {
		made.Age, missing = 10*time.Minute, g.members()
	}
	for i := len(made.More) - 1; i >= 0; i-- {
		made.More[i].Missing = min(missing, made.More[i].Replicas)
		missing -= made.More[i].Missing
	}
	made.Missing = missing
	if q := control.queue; q != nil {
		made.Queue = q.name
	}
	made.NoGroup = control.operator != up || control.kueue != nil
	made.Job = func(job map[string]any) {
		clustertest.Set(g.suspended || control.kueue != nil, "spec", "runPolicy", "suspend")(job)
		if control.kueue != nil {
			clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(job)
		}
		clustertest.Set(int64(g.min), "spec", "runPolicy", "schedulingPolicy", "minAvailable")(job)
		if control.operator != up {
			clustertest.Set(map[string]any{}, "status")(job)
		}
	}
	if groups[g.dialect] != "" && g.dialect != gangs.Native {
		made.Group = clustertest.Set(g.least().texts(), "spec", "minResources")
	}
	made.BatchJob = func(j *batchv1.Job) { j.Spec.Suspend = new(g.suspended) }
	return made
}

// least is what the first members request together, as many as the gang needs.
func (g gang) least() amounts {
	sum, left := amounts{}, g.min
	for _, r := range g.roles {
		count := min(left, r.replicas)
		left -= count
		for name, n := range r.requests {
			sum[name] += int64(count) * n
		}
	}
	return sum
}

// build is a role; its Spec writes every field that roles have, whatever was there before.
func (r role) build(g gang) clustertest.Role {
	milli, bytes := quantity(cpu, r.requests[cpu]), quantity(memory, r.requests[memory])
	return clustertest.Role{Name: r.name, Replicas: r.replicas, GPUs: r.requests[gpu], CPU: milli.String(), Memory: bytes.String(),
		Spec: func(p *corev1.PodSpec) { r.write(p, g) }}
}

func (r role) write(p *corev1.PodSpec, g gang) {
	main := &p.Containers[0]
	main.Resources = corev1.ResourceRequirements{Requests: r.requests.list(), Limits: r.requests.list()}
	main.Ports, p.Volumes, p.Tolerations, p.TopologySpreadConstraints = nil, nil, nil, nil
	p.NodeSelector, p.Affinity = maps.Clone(r.selector), r.affinity(g)
	switch g.absent {
	case priorityClass:
		p.PriorityClassName = "gpld"
	case runtimeClass:
		p.RuntimeClassName = new("gvisro")
	case account:
		p.ServiceAccountName = "trainre"
	}
	if r.hostPort != 0 {
		main.Ports = []corev1.ContainerPort{{ContainerPort: r.hostPort, HostPort: r.hostPort}}
	}
	if g.gate != "" {
		p.SchedulingGates = []corev1.PodSchedulingGate{{Name: g.gate}}
	}
	for _, key := range r.tolerates {
		p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	if r.spread != "" {
		p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: r.spread, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.selector()}}
	}
	if r.mounts != "" {
		p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: r.mounts}}}}
	}
	if g.priority != 0 {
		p.Priority = new(g.priority)
	}
}

// selector selects all pods of the gang's job.
func (g gang) selector() *metav1.LabelSelector {
	key := "training.kubeflow.org/job-name"
	if g.kind == "Job" {
		key = "batch.kubernetes.io/job-name"
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: gangName}}
}

func (r role) affinity(g gang) *corev1.Affinity {
	a := &corev1.Affinity{}
	term := func(key string) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: g.selector()}}
	}
	if len(r.zones) > 0 {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: r.zones}}}}}}
	}
	if r.apart {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname)}
	}
	if g.together != "" {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(g.together)}
	}
	if *a == (corev1.Affinity{}) {
		return nil
	}
	return a
}

// suffer gives the last member that has a node its trouble.
func (g gang) suffer(c *clustertest.Cluster) {
	if g.trouble == "" {
		return
	}
	p := c.S.Pods[len(c.S.Pods)-1]
	waiting := func(reason, message string) {
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
	switch g.trouble {
	case imageTrouble:
		waiting("ImagePullBackOff", "train:v1: not found")
	case configTrouble:
		waiting("CreateContainerConfigError", `secret "wandb" not found`)
	case crashTrouble:
		waiting("CrashLoopBackOff", "back-off")
		p.Status.ContainerStatuses[0].RestartCount = 7
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	case kubeletRefuse:
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Allocate failed"
	case noSandbox:
		waiting("ContainerCreating", "")
		c.Event("Pod", namespace, p.Name, "kubelet", "FailedCreatePodSandBox", "no free addresses", 20*time.Second)
	}
}

// orphan takes the job away, and what its pods and its group have of it.
func orphan(c *clustertest.Cluster) {
	kind := schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}
	c.S.Custom[kind] = slices.DeleteFunc(c.S.Custom[kind], func(u *unstructured.Unstructured) bool { return u.GetNamespace() == namespace })
	for _, p := range c.S.Pods {
		if p.Namespace == namespace && strings.HasPrefix(p.Name, gangName+"-") {
			p.OwnerReferences = nil
		}
	}
	for kind, list := range c.S.Custom {
		for _, u := range list {
			if kind.Kind == "PodGroup" && u.GetNamespace() == namespace && u.GetName() == gangName {
				u.SetOwnerReferences(nil)
			}
		}
	}
}

// withoutGroup takes the object away that declares the gang, or makes it that of an earlier job.
func (s scenario) withoutGroup(c *clustertest.Cluster) {
	kind := schema.GroupKind{Group: groups[s.gang.dialect], Kind: "PodGroup"}
	own := func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == namespace && u.GetName() == gangName
	}
	if s.control.group == undeclared {
		c.S.Custom[kind] = slices.DeleteFunc(c.S.Custom[kind], own)
		return
	}
	for _, u := range c.S.Custom[kind] {
		if own(u) {
			refs := u.GetOwnerReferences()
			refs[0].UID = "gone"
			u.SetOwnerReferences(refs)
		}
	}
}

// build adds the state of operator, scheduler, quotas, queue and claim.
func (c control) build(cl *clustertest.Cluster, g gang) {
	scheduler := schedulers[g.dialect]
	if scheduler != clustertest.Scheduler {
		cl.Schedules(scheduler).GangScheduler("")
	}
	if g.dialect == gangs.Volcano {
		cl.GangScheduler(scheduler)
	}
	if c.namespaceGone {
		cl.S.Namespaces[0].Status.Phase = corev1.NamespaceTerminating
	}
	switch c.operator {
	case missing:
		cl.S.Deployments = cl.S.Deployments[1:]
	case down:
		cl.S.Deployments[0].Spec.Replicas, cl.S.Deployments[0].Status.ReadyReplicas = new(int32), 0
	case up:
	}
	if c.scheduler == down {
		at := metav1.NewMicroTime(clustertest.Now.Add(-12 * time.Minute))
		for _, l := range cl.S.Leases {
			l.Spec.RenewTime = &at
		}
	}
	for _, q := range c.quotas {
		q.build(cl)
	}
	if len(c.limits) > 0 {
		cl.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "caps"}, Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: c.limits.list()}}}})
	}
	if c.queue != nil {
		c.queue.build(cl)
	}
	if g.absent != "" {
		cl.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
		cl.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}})
		cl.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trainer"}})
	}
	if c.kueue != nil {
		c.kueue.build(cl)
	}
	if c.claim != nil && !c.claim.missing {
		c.claim.build(cl)
	}
}

func (q quota) build(c *clustertest.Cluster) {
	key := corev1.ResourceName("requests." + q.resource)
	if q.resource == pods {
		key = pods
	}
	hard, used := corev1.ResourceList{key: quantity(q.resource, q.hard)}, corev1.ResourceList{key: quantity(q.resource, q.used)}
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: q.name},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}})
}

func (q queue) build(c *clustertest.Cluster) {
	if q.missing {
		c.Queue("other", "Open", nil)
		return
	}
	state, capability := "Open", map[string]any{}
	if q.closed {
		state = "Closed"
	}
	for name, n := range q.limits {
		amount := quantity(name, n)
		capability[name] = amount.String()
	}
	made := c.Queue(q.name, state, capability)
	if q.older {
		clustertest.Set("fifo", "spec", "dequeueStrategy")(made.Object)
		c.Add(clustertest.Gang{Namespace: "research", Name: "older", Workers: 9, GPUs: 64, Dialect: gangs.Volcano, Queue: q.name, Scheduler: "volcano", Missing: 9, Age: time.Hour})
	}
	if q.stuck {
		c.Add(clustertest.Gang{Namespace: "research", Name: "stuck", Workers: 1, GPUs: 200, Dialect: gangs.Volcano, Queue: q.name, Scheduler: "volcano", Age: time.Hour})
	}
	if len(q.used) > 0 {
		q.usedBy(c)
	}
}

// build adds Kueue's objects, with another job that was admitted before.
func (k kueue) build(c *clustertest.Cluster) {
	var quotas []clustertest.Quota
	for _, name := range slices.Sorted(maps.Keys(k.limits)) {
		nominal := quantity(name, k.limits[name])
		quotas = append(quotas, clustertest.Quota{Flavor: "f", Resource: name, Nominal: nominal.String()})
	}
	queue := c.ClusterQueue("cq", "", quotas...)
	if k.stopped {
		clustertest.Set("Hold", "spec", "stopPolicy")(queue.Object)
	}
	if !k.noQueue {
		c.LocalQueue("lq", "cq")
	}
	workload := c.Workload(gangName, "lq", 10*time.Minute)
	clustertest.Set(!k.inactive, "spec", "active")(workload.Object)
	if k.checking { // Kueue looks at it once the quota is reserved
		clustertest.Set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)}, "status", "conditions")(workload.Object)
		clustertest.Set([]any{map[string]any{"name": "prov", "state": "Pending", "message": "waits for nodes"}}, "status", "admissionChecks")(workload.Object)
	}
	if k.usedGPUs > 0 {
		c.Add(clustertest.Gang{Namespace: "team", Name: "tenant", Workers: 1, Missing: 1, NoGroup: true, Age: 2 * time.Hour}) // which starts any moment
		clustertest.Admit(c.Workload("tenant", "lq", time.Hour), "cq", "f", fmt.Sprint(k.usedGPUs))
	}
}

// usedBy is another gang of the queue. The node that it runs on has nothing left for anybody.
func (q queue) usedBy(c *clustertest.Cluster) {
	n := c.Node("elsewhere", 0)
	n.Status.Allocatable = q.used.list()
	n.Status.Allocatable[pods] = resource.MustParse("1")
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	c.Add(clustertest.Gang{Namespace: "research", Name: "tenant", Workers: 1, Nodes: []string{"elsewhere"}, Dialect: gangs.Volcano, Queue: q.name, Scheduler: "volcano", Age: 2 * time.Hour,
		Group: clustertest.Set(q.used.texts(), "spec", "minResources"),
		Spec: func(p *corev1.PodSpec) {
			p.Containers[0].Resources = corev1.ResourceRequirements{Requests: q.used.list(), Limits: q.used.list()}
		}})
}

func (v claim) build(c *clustertest.Cluster) {
	c.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: "disks.example.com"})
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data", UID: "pvc", CreationTimestamp: clustertest.Ago(time.Hour)},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	c.Put(pvc)
	if v.class != "" {
		pvc.Spec.StorageClassName = &v.class
		return
	}
	pvc.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	pvc.Spec.VolumeName, pvc.Status.Phase = "volume", corev1.ClaimBound
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: "data", UID: "pvc"}, AccessModes: pvc.Spec.AccessModes}}
	if v.zone != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{v.zone}}}}}}}
	}
	c.Put(pv)
}

// query is how gangctl is queried: by the job, or by a pod where there is none.
func (s scenario) query() (kind, name string) {
	if s.gang.kind == barePods {
		return "pod", fmt.Sprintf("%s-worker-0", gangName)
	}
	return "", gangName
}
