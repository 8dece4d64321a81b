package submit

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// FitFlags describe a job that is never submitted, for `gangctl fit`.
type FitFlags struct {
	o *Options
	// all has every flag of submit; a few of them are shown.
	all *cobra.Command
}

// fitFlags are the flags that matter to where a gang has room.
var fitFlags = []string{"gpu-resource", "cpu", "memory", resize.FlagStorage, "limit-cpu", "limit-memory", "device", "min-available", "queue", "priority-class", "scheduler",
	"dialect", "node-selector", "toleration", "topology", "topology-preferred", "affinity-node", "affinity-pod", "affinity-same-node", "affinity-spread", "service-account",
	"host-network", "rdma", "shm", "data", "image", "label", "from"}

// KindName is the name of a kind of job in `gangctl submit`, and Kind its name in the API.
type KindName struct{ Name, Kind string }

// KindNames are those of every kind of job that flags can describe, the most usual first.
func KindNames() []KindName {
	var all []KindName
	for _, k := range kinds() {
		all = append(all, KindName{k.name, k.reader.Kind})
	}
	return all
}

// NewFitFlags adds the flags of a kind of job to a command; name is one of [KindNames].
func NewFitFlags(shared *cmdutil.Factory, cmd *cobra.Command, name string) *FitFlags {
	f := &FitFlags{all: &cobra.Command{Use: name}}
	k := kinds()[slices.IndexFunc(kinds(), func(k kind) bool { return k.name == name })]
	f.o = &Options{Submission: Submission{IO: shared.IO}, Suffix: shared.Suffix, ConfigPath: shared.ConfigPath, kind: k, Roles: k.roles()}
	f.o.addFlags(f.all)
	cmd.Flags().SortFlags = false
	names := []string{"workers", "gpus"}
	for _, r := range f.o.shown() {
		if r.count != "workers" {
			names = append(names, r.count)
		}
	}
	names = append(names, fitFlags...)
	for _, r := range f.o.Roles {
		for _, what := range resize.FlagRequests() {
			names = append(names, r.flag()+"-"+what)
		}
	}
	for _, name := range names {
		if flag := f.all.Flags().Lookup(name); flag != nil {
			cmd.Flags().AddFlag(flag)
		}
	}
	cmd.Flags().Lookup("image").Usage = "Container image, where an admission rule looks at it"
	cmd.Flags().Lookup("from").Usage = "Answer from a saved file instead of the cluster; - is standard input"
	return f
}

// noImage stands for the image, which makes no difference to whether a gang fits.
const noImage = "gangctl.dev/any"

// Prepare checks the flags once they have been parsed, and fills in what the factory knows by then.
func (f *FitFlags) Prepare(shared *cmdutil.Factory) error {
	f.o.Namespace, f.o.Client, f.o.Suffix = shared.Namespace, shared.Client, shared.Suffix
	f.o.Image = cmp.Or(f.o.Image, noImage)
	f.o.Name = "gang-" + f.o.Suffix()
	f.o.DryRun = dryRunFit
	if err := f.o.complete(f.all, nil); err != nil {
		return err
	}
	return f.o.validate(f.all.Flags())
}

// GPUResource is the resource that the GPU flags count.
func (f *FitFlags) GPUResource() corev1.ResourceName { return corev1.ResourceName(f.o.GPUResource) }

// FitCheck answers whether gangs of some flags would start now.
type FitCheck struct {
	// Snapshot is the cluster that is answered from.
	Snapshot *snapshot.Snapshot

	flags *FitFlags
	facts choose.Facts
	// client is nil where there is no API server, and once it has checked one job: what it reports of one it reports of all.
	client    *kube.Client
	namespace string
}

// NewCheck reads the file of --from, or the cluster.
func (f *FitFlags) NewCheck(ctx context.Context) (*FitCheck, error) {
	namespace, err := f.o.Namespace()
	if err != nil {
		return nil, err
	}
	b := &batch{jobs: []*desiredJob{f.o.job(namespace)}, namespace: namespace}
	t, err := f.o.connect(ctx, b)
	if err != nil {
		return nil, err
	}
	facts, err := f.o.facts(ctx, t, b)
	return &FitCheck{Snapshot: t.snapshot, flags: f, facts: facts, client: t.client, namespace: namespace}, err
}

// Shape is the change of the flags by a check; what is zero is as the flags have it.
type Shape struct {
	Workers int32
	GPUs    int64
	// CPU and Memory come with each GPU, in thousandths of a core and in bytes, where the flags do not set what a worker gets.
	CPU, Memory int64
}

// Answer answers whether a gang of the shape would start now. The first time, the API server checks the job and a pod of each role.
func (c *FitCheck) Answer(ctx context.Context, shape Shape, options diagnose.Options) (*answer.Answer, error) {
	o := c.flags.shaped(shape)
	j := o.job(c.namespace)
	decided, err := o.decideJob(c.facts, j.request)
	if err != nil {
		return nil, err
	}
	objects, _, err := j.objects(decided[0], nil)
	if err != nil {
		return nil, err
	}
	client := c.client
	c.client = nil
	trial, err := fits(ctx, c.Snapshot, client, c.namespace, candidate{decided[0], objects}, options)
	if err != nil {
		return nil, err
	}
	return trial.Answer, nil
}

// Worker is a pod of a worker of the shape, with the defaults of the API server.
func (c *FitCheck) Worker(shape Shape) (*corev1.Pod, error) {
	o := c.flags.shaped(shape)
	objects, err := o.objects(c.namespace, o.request().Default())
	if err != nil {
		return nil, err
	}
	job, err := jobs.Read(objects.Job)
	if err != nil {
		return nil, err
	}
	template := job.Roles[len(job.Roles)-1].Template
	for _, r := range job.Roles {
		if r.Name == c.flags.worker().Name {
			template = r.Template
		}
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = c.namespace, "worker"
	request.Default(pod)
	return pod, nil
}

func (f *FitFlags) worker() *role {
	return f.o.Roles[slices.IndexFunc(f.o.Roles, func(r *role) bool { return r.count == "workers" })]
}

// shaped is a copy of the options.
func (f *FitFlags) shaped(shape Shape) *Options {
	o := *f.o
	o.Roles = slices.Clone(f.o.Roles)
	i := slices.Index(f.o.Roles, f.worker())
	worker := *o.Roles[i]
	o.Roles[i] = &worker
	all := o.members()
	worker.Replicas = cmp.Or(shape.Workers, worker.Replicas)
	worker.GPUs = cmp.Or(shape.GPUs, worker.GPUs)
	if shape.CPU > 0 && worker.CPU == nil {
		worker.CPU = resource.NewMilliQuantity(shape.CPU*worker.GPUs, resource.DecimalSI)
	}
	if shape.Memory > 0 && worker.Memory == nil {
		worker.Memory = resource.NewQuantity(shape.Memory*worker.GPUs, resource.BinarySI)
	}
	if o.MinAvailable == all || o.MinAvailable > o.members() {
		o.MinAvailable = o.members()
	}
	return &o
}

// GPUs are those of each worker, as the flags have it.
func (f *FitFlags) GPUs() int64 { return f.worker().GPUs }
