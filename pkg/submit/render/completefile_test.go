package render

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/gang"
)

// file is a job as users keep it: a PS and two workers, without a gang.
const file = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: llama, namespace: research}
spec:
  tfReplicaSpecs:
    PS:
      template:
        spec:
          containers: [{name: tensorflow, image: i, resources: {limits: {cpu: 1}}}]
    Worker:
      replicas: 2
      template:
        metadata:
          labels:
        spec:
          containers: [{name: tensorflow, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
          volumes: [{name: tmp, emptyDir: {}}]
`

// edited is the file with something set on the pod template of some roles.
func edited(t *testing.T, value any, path string, roles ...string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, file)
	for _, role := range roles {
		set(u, value, append([]string{"spec", "tfReplicaSpecs", role, "template"}, strings.Split(path, "|")...)...)
	}
	return u
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// batchFile is a Job of three members at a time.
const batchFile = `apiVersion: batch/v1
kind: Job
metadata: {name: llama, namespace: research}
spec:
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]
`

// setFile is a JobSet of a driver and of two Jobs of two workers each.
const mpiFile = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: llama, namespace: research}
spec:
  launcherCreationPolicy: WaitForWorkersReady
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: main, image: i}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: main, image: i}]}}}
`

const setFile = `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: llama, namespace: research}
spec:
  replicatedJobs:
  - name: driver
    template:
      spec:
        template:
          spec:
            containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          metadata:
            labels:
          spec:
            containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
`

// rayFile is a RayJob of a head, and of replicas of two hosts each, of which an autoscaler may take all but one away.
const rayFile = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: llama, namespace: research}
spec:
  entrypoint: python train.py
  rayClusterSpec:
    enableInTreeAutoscaling: true
    headGroupSpec:
      rayStartParams: {}
      template:
        metadata:
        spec:
          containers: [{name: head, image: i, resources: {requests: {cpu: 1}}}]
    workerGroupSpecs:
    - groupName: small
      replicas: 3
      minReplicas: 1
      maxReplicas: 5
      numOfHosts: 2
      template:
        spec:
          containers: [{name: worker, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
`

// leftTo is a RayJob whose gang a label leaves to the operator.
func leftTo(t *testing.T) *unstructured.Unstructured {
	job := object(t, rayFile)
	set(job, "true", "metadata", "labels", "ray.io/gang-scheduling-enabled")
	return job
}

// operatorOf is what is seen of the operator: the scheduler that it makes gangs for.
func operatorOf(scheduler string) FileSpec {
	s := fileSpec()
	s.Operator = &scheduler
	return s
}

func groupOf(t *testing.T, apiVersion, spec string) *unstructured.Unstructured {
	return object(t, "apiVersion: "+apiVersion+"\nkind: PodGroup\nmetadata: {name: mine, namespace: research}\nspec: {"+spec+"}\n")
}

func podGroupNamed(t *testing.T, name string) *unstructured.Unstructured {
	return object(t, "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: "+name+", namespace: research}\nspec: {minMember: 2}\n")
}

// held are the PodGroups of a file that holds this one; nil for none.
func held(group *unstructured.Unstructured) []*unstructured.Unstructured {
	if group == nil {
		return nil
	}
	return []*unstructured.Unstructured{group}
}

// inOrder is a JobSet whose workers are made when its driver runs.
func inOrder(t *testing.T) *unstructured.Unstructured {
	u := object(t, setFile)
	set(u, "InOrder", "spec", "startupPolicy", "startupPolicyOrder")
	return u
}

// withRack has each Job of its workers in a rack of its own, which the node of the first pod decides.
func withRack(t *testing.T) *unstructured.Unstructured {
	u := object(t, setFile)
	set(u, "rack", "metadata", "annotations", "alpha.jobset.sigs.k8s.io/exclusive-topology")
	return u
}

// fileSpec is what `submit -f` requests without further flags.
func fileSpec(options ...func(*FileSpec)) FileSpec {
	s := FileSpec{Dialect: gang.SchedulerPlugins, Scheduler: "gang-scheduler"}
	for _, o := range options {
		o(&s)
	}
	return s
}

const groupLabel = "metadata|labels|scheduling.x-k8s.io/pod-group"

// A file may have as many members as an int32 holds; TestGangResourcesOfAnyNumberOfReplicas fails first where each of them takes memory.
func TestCompleteAnyNumberOfMembers(t *testing.T) {
	if t.Run("resources", TestGangResourcesOfAnyNumberOfReplicas); t.Failed() {
		return
	}
	job := object(t, batchFile)
	set(job, int64(math.MaxInt32), "spec", "parallelism")
	c, err := Complete(job, nil, fileSpec())
	if err != nil {
		t.Fatal(err)
	}
	if cpu, _, _ := unstructured.NestedString(c.PodGroups[0].Object, "spec", "minResources", "cpu"); cpu != "2147483647" {
		t.Errorf("the gang needs %q cpu", cpu)
	}
}

func TestComplete(t *testing.T) {
	withPolicy := object(t, file)
	set(withPolicy, int64(2), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
	set(withPolicy, int64(60), "spec", "runPolicy", "schedulingPolicy", "scheduleTimeoutSeconds")
	serving := func(groups ...string) func(*FileSpec) {
		return func(s *FileSpec) { s.Serves = func(group string) bool { return slices.Contains(groups, group) } }
	}
	annotated := func(scheduler string) *unstructured.Unstructured {
		u := edited(t, "mine", "metadata|annotations|scheduling.k8s.io/group-name", "PS", "Worker")
		for _, role := range []string{"PS", "Worker"} {
			set(u, scheduler, "spec", "tfReplicaSpecs", role, "template", "spec", "schedulerName")
		}
		return u
	}
	tests := map[string]struct {
		job, group *unstructured.Unstructured
		s          FileSpec
		notes      []string
	}{
		"plain":  {job: object(t, file), s: fileSpec(func(s *FileSpec) { s.CommandLine = "gangctl submit -f job.yaml" })},
		"labels": {job: object(t, file), s: fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet, s.MinAvailable = gang.Labels, true, 2 })},
		"none":   {job: object(t, file), s: fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet, s.Scheduler = gang.None, true, "" })},
		"native": {job: object(t, file), s: fileSpec(func(s *FileSpec) { s.Dialect, s.DialectSet, s.Scheduler = gang.Native, true, "" })},
		"volcano, wanted": {job: object(t, file), s: fileSpec(func(s *FileSpec) {
			s.Dialect, s.DialectSet, s.Scheduler, s.Queue = gang.Volcano, true, "volcano", "research"
		})},
		"volcano, marked": {job: edited(t, "mine", "metadata|annotations|scheduling.k8s.io/group-name", "PS", "Worker"), s: fileSpec(func(s *FileSpec) { s.Dialect, s.Scheduler = gang.Volcano, "volcano" })},
		"kube-batch, marked": {job: edited(t, "mine", "metadata|annotations|scheduling.k8s.io/group-name", "PS", "Worker"), s: fileSpec(func(s *FileSpec) {
			s.Dialect, s.Scheduler, s.Version = gang.KubeBatch, "kube-batch", schema.GroupVersion{Group: "scheduling.sigs.dev", Version: "v1alpha2"}
		})},
		"volcano's podgroup": {job: object(t, file), group: groupOf(t, "scheduling.volcano.sh/v1beta1", "minMember: 2"), s: fileSpec()},
		"native podgroup":    {job: object(t, file), group: groupOf(t, "scheduling.k8s.io/v1beta1", "schedulingPolicy: {gang: {minCount: 2}}"), s: fileSpec()},
		"batch job":          {job: object(t, batchFile), s: fileSpec()},
		"job set":            {job: object(t, setFile), s: fileSpec()},
		"job set in order": {job: inOrder(t), s: fileSpec(),
			notes: []string{"its replicated jobs start one after the other, workers after driver (startupPolicyOrder: InOrder): each of them is a gang of its own"}},
		"job set in order with a podgroup": {job: inOrder(t), group: podGroupNamed(t, "mine"), s: fileSpec()},
		"ray job":                          {job: object(t, rayFile), s: operatorOf("")},
		"ray job of the operator": {job: leftTo(t), s: fileSpec(),
			notes: []string{"its label ray.io/gang-scheduling-enabled leaves the gang to kuberay-operator: nothing is declared"}},
		"ray job of volcano": {job: object(t, rayFile), s: operatorOf("volcano"),
			notes: []string{"kuberay-operator makes a gang of it for scheduler volcano: nothing is declared"}},
		"policy":    {job: withPolicy, s: fileSpec()},
		"podgroup":  {job: object(t, file), group: podGroupNamed(t, "mine"), s: fileSpec()},
		"scheduler": {job: edited(t, "gang", "spec|schedulerName", "Worker"), s: fileSpec()},
		"marked":    {job: edited(t, "mine", groupLabel, "PS", "Worker"), s: fileSpec()},
		"partly marked": {job: edited(t, "mine", groupLabel, "Worker"), s: fileSpec(),
			notes: []string{"the pods of PS are in no gang, as the file has it"}},
		"volcano":             {job: edited(t, "mine", "metadata|annotations|scheduling.k8s.io/group-name", "PS", "Worker"), s: fileSpec()},
		"volcano's scheduler": {job: edited(t, "volcano", "spec|schedulerName", "PS", "Worker"), s: fileSpec()},
		"volcano's scheduler alone": {job: edited(t, "volcano", "spec|schedulerName", "PS", "Worker"), s: fileSpec(serving()),
			notes: []string{"its PodGroup is one of scheduling.x-k8s.io, as there are none of volcano: gangctl's scheduler reads it if it answers to volcano"}},
		"kube-batch": {job: annotated("kube-batch"), s: fileSpec(),
			notes: []string{"its PodGroup is one of scheduling.x-k8s.io, as there are none of kube-batch: gangctl's scheduler reads it if it answers to kube-batch"}},
		"kube-batch served": {job: annotated("kube-batch"), s: fileSpec(serving("scheduling.sigs.dev"))},
		"volcano's podgroup not served": {job: object(t, file), group: groupOf(t, "scheduling.volcano.sh/v1beta1", "minMember: 2, queue: fast"), s: fileSpec(serving()),
			notes: []string{"PodGroup mine is one of scheduling.x-k8s.io now, as the cluster serves none of scheduling.volcano.sh; its queue, fast, is left out"}},
		"kube-batch's podgroup served": {job: annotated("kube-batch"), group: groupOf(t, "scheduling.incubator.k8s.io/v1alpha1", "minMember: 2"), s: fileSpec(serving("scheduling.incubator.k8s.io"))},
		"koordinator's scheduler": {job: edited(t, "koord-scheduler", "spec|schedulerName", "PS", "Worker"), s: fileSpec(),
			notes: []string{"scheduler koord-scheduler reads gangs of another dialect than scheduler-plugins: nothing is added"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.job.DeepCopy()
			c, err := Complete(tt.job, held(tt.group), tt.s)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.Notes, tt.notes) {
				t.Errorf("notes: %q, want %q", c.Notes, tt.notes)
			}
			if diff := cmp.Diff(before, tt.job); diff != "" {
				t.Errorf("the object given was changed:\n%s", diff)
			}
			got, err := yaml.Marshal(c.Job.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range c.PodGroups {
				group, err := yaml.Marshal(u.Object)
				if err != nil {
					t.Fatal(err)
				}
				got = append(append(got, "---\n"...), group...)
			}
			path := filepath.Join("testdata", "file", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".yaml")
			golden.Compare(t, path, string(got))
			again, err := Complete(c.Job, c.PodGroups, FileSpec{Dialect: tt.s.Dialect, Scheduler: tt.s.Scheduler, Version: tt.s.Version, Serves: tt.s.Serves, Operator: tt.s.Operator})
			if err != nil {
				t.Fatalf("what was completed cannot be completed again: %v", err)
			}
			if diff := cmp.Diff(c.Job, again.Job); diff != "" {
				t.Errorf("completing it again changes it:\n%s", diff)
			}
		})
	}
}

func TestCompleteRefuses(t *testing.T) {
	typed := func(flag, value string) FileSpec {
		return fileSpec(func(s *FileSpec) {
			switch flag {
			case "dialect":
				s.Dialect, s.DialectSet = gang.Dialect(value), true
			case "scheduler":
				s.Scheduler, s.SchedulerSet = value, true
			default:
				s.MinAvailable = int32(len(value))
			}
		})
	}
	volcano := edited(t, "mine", "metadata|annotations|scheduling.k8s.io/group-name", "PS", "Worker")
	labelled := edited(t, "mine", "metadata|labels|pod-group.scheduling.sigs.k8s.io/name", "PS", "Worker")
	counted := labelled.DeepCopy()
	set(counted, "2", "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels", "pod-group.scheduling.sigs.k8s.io/min-available")
	nonsense := labelled.DeepCopy()
	set(nonsense, "two", "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels", "pod-group.scheduling.sigs.k8s.io/min-available")
	policy := object(t, file)
	set(policy, int64(2), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
	twoNames := edited(t, "a", groupLabel, "PS")
	set(twoNames, "b", "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "labels", "scheduling.x-k8s.io/pod-group")
	twoSchedulers := edited(t, "a", "spec|schedulerName", "PS")
	set(twoSchedulers, "b", "spec", "tfReplicaSpecs", "Worker", "template", "spec", "schedulerName")
	tooMany := podGroupNamed(t, "mine")
	set(tooMany, int64(4), "spec", "minMember")
	tests := map[string]struct {
		job, group *unstructured.Unstructured
		s          FileSpec
		want       string
	}{
		"left to nobody":        {job: leftTo(t), s: operatorOf(""), want: "its label ray.io/gang-scheduling-enabled leaves the gang to kuberay-operator, which makes none: its members would start one by one"},
		"left to a scheduler":   {job: object(t, rayFile), s: operatorOf("yunikorn"), want: "kuberay-operator gives its pods to scheduler yunikorn, and makes a gang of them only with the label ray.io/gang-scheduling-enabled: its members would start one by one"},
		"left, and declared":    {job: leftTo(t), s: typed("dialect", "volcano"), want: "--dialect contradicts the file: its label ray.io/gang-scheduling-enabled leaves the gang to kuberay-operator"},
		"after the first":       {job: withRack(t), s: fileSpec(), want: "the other pods of a Job of workers are made only when its first has a node (annotation alpha.jobset.sigs.k8s.io/exclusive-topology): its members cannot start together"},
		"the launcher last":     {job: object(t, mpiFile), s: fileSpec(), want: "the launcher is made only when all workers are ready (launcherCreationPolicy: WaitForWorkersReady): its members cannot start together"},
		"each by itself":        {job: inOrder(t), s: typed("min-available", "xx"), want: "--min-available contradicts the file: its replicated jobs start one after the other, workers after driver (startupPolicyOrder: InOrder): each of them is a gang of its own"},
		"another scheduler":     {job: edited(t, "gang", "spec|schedulerName", "PS"), s: typed("scheduler", "mine"), want: "--scheduler contradicts the file: its members request scheduler gang"},
		"two schedulers":        {job: twoSchedulers, s: fileSpec(), want: "its members request two schedulers, a and b: a gang has one"},
		"two gangs":             {job: twoNames, s: fileSpec(), want: "the pods of PS are in the gang a (scheduler-plugins), those of Worker in b (scheduler-plugins)"},
		"default scheduler":     {job: edited(t, "default-scheduler", "spec|schedulerName", "PS"), s: fileSpec(), want: "its members request scheduler default-scheduler: no scheduler would start its members together"},
		"volcano, dialect":      {job: volcano, s: typed("dialect", "labels"), want: "--dialect contradicts the file: its pods are labelled as gang mine in dialect volcano"},
		"volcano's, dialect":    {job: edited(t, "volcano", "spec|schedulerName", "PS"), s: typed("dialect", "labels"), want: "--dialect contradicts the file: its members request scheduler volcano"},
		"labels, dialect":       {job: labelled, s: typed("dialect", "scheduler-plugins"), want: "--dialect contradicts the file: its pods are labelled as gang mine in dialect labels"},
		"labels, minimum":       {job: counted, s: typed("min-available", "xxx"), want: "the pods of Worker: --min-available contradicts the file: label pod-group.scheduling.sigs.k8s.io/min-available is 2"},
		"labels, nonsense":      {job: nonsense, s: fileSpec(), want: `the pods of Worker: label pod-group.scheduling.sigs.k8s.io/min-available="two" is not a whole number`},
		"policy, minimum":       {job: policy, s: typed("min-available", "x"), want: "--min-available contradicts the file: spec.runPolicy.schedulingPolicy.minAvailable is 2"},
		"group, queue":          {job: object(t, file), group: groupOf(t, "scheduling.volcano.sh/v1beta1", "minMember: 2, queue: fast"), s: FileSpec{Queue: "slow", QueueSet: true}, want: "--queue contradicts the file: PodGroup mine waits in queue fast"},
		"group, minimum":        {job: object(t, file), group: podGroupNamed(t, "mine"), s: typed("min-available", "x"), want: "--min-available contradicts the file: it holds PodGroup mine, whose minimum counts"},
		"group, dialect":        {job: object(t, file), group: podGroupNamed(t, "mine"), s: typed("dialect", "none"), want: "--dialect contradicts the file: it holds PodGroup mine"},
		"group of another name": {job: edited(t, "b", groupLabel, "PS"), group: podGroupNamed(t, "mine"), s: fileSpec(), want: "it holds PodGroup mine, but its pods name PodGroup b"},
		"group and labels":      {job: labelled, group: podGroupNamed(t, "mine"), s: fileSpec(), want: "it holds PodGroup mine, but its pods are labelled as gang mine in dialect labels"},
		"more than there are":   {job: object(t, file), group: tooMany, s: fileSpec(), want: "its gang needs 4 members, but has 3"},
		"more than typed":       {job: object(t, file), s: typed("min-available", "xxxx"), want: "its gang needs 4 members, but has 3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Complete(tt.job, held(tt.group), tt.s)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			var flag *ContradictionError
			if errors.As(err, &flag) != strings.Contains(tt.want, "contradicts") {
				t.Errorf("the kind of error is lost: %v", err)
			}
		})
	}
}

// The PodGroup of a file waits in the queue of the command line, unless it names one itself.
func TestQueueOfTheFile(t *testing.T) {
	for spec, want := range map[string]string{"minMember: 2": "slow", "minMember: 2, queue: fast": "fast"} {
		c, err := Complete(object(t, file), held(groupOf(t, "scheduling.volcano.sh/v1beta1", spec)), FileSpec{Queue: "slow", Serves: func(string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(c.PodGroups[0].Object, "spec", "queue"); got != want {
			t.Errorf("%s: queue %q", spec, got)
		}
	}
}
