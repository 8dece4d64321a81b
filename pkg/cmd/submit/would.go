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
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Would is a job of flags that is never submitted: what `gangctl fit` asks about.
type Would struct {
	o *Options
	// all has every flag of submit; a few of them are shown.
	all *cobra.Command
}

// asked are the flags that say something of where a gang has room.
var asked = []string{"gpu-resource", "cpu", "memory", "limit-cpu", "limit-memory", "device", "min-available", "queue", "priority-class", "scheduler",
	"dialect", "node-selector", "toleration", "topology", "affinity-node", "affinity-pod", "affinity-same-node", "affinity-spread", "service-account",
	"host-network", "rdma", "shm", "data", "image", "label", "from"}

// Word is what `gangctl submit` calls a kind of job, and Kind its name in the API.
type Word struct{ Word, Kind string }

// Words are those of every kind of job that flags can describe, the most usual first.
func Words() []Word {
	var all []Word
	for _, k := range kinds() {
		all = append(all, Word{k.word, k.reader.Kind})
	}
	return all
}

// NewWould adds the flags of a kind of job to a command; word is one of [Words].
func NewWould(f *cmdutil.Factory, cmd *cobra.Command, word string) *Would {
	w := &Would{all: &cobra.Command{Use: word}}
	k := kinds()[slices.IndexFunc(kinds(), func(k kind) bool { return k.word == word })]
	w.o = &Options{Submission: Submission{IO: f.IO}, Suffix: f.Suffix, ConfigPath: f.ConfigPath, kind: k, Roles: k.roles()}
	w.o.addFlags(w.all)
	cmd.Flags().SortFlags = false
	names := []string{"workers", "gpus"}
	for _, r := range w.o.shown() {
		if r.count != "workers" {
			names = append(names, r.count)
		}
	}
	names = append(names, asked...)
	for _, r := range w.o.Roles {
		for _, what := range []string{"gpus", "cpu", "memory"} {
			names = append(names, r.flag()+"-"+what)
		}
	}
	for _, name := range names {
		if flag := w.all.Flags().Lookup(name); flag != nil {
			cmd.Flags().AddFlag(flag)
		}
	}
	cmd.Flags().Lookup("image").Usage = "Container image, where an admission rule looks at it"
	cmd.Flags().Lookup("from").Usage = "Answer from a saved file instead of the cluster; - is standard input"
	return w
}

// noImage stands for the image that nobody needs to say.
const noImage = "gangctl.dev/any"

// Prepare checks the flags of a command whose words have been read, and fills in what the factory knows by then.
func (w *Would) Prepare(f *cmdutil.Factory) error {
	w.o.Namespace, w.o.Client, w.o.Suffix = f.Namespace, f.Client, f.Suffix
	w.o.Image = cmp.Or(w.o.Image, noImage)
	w.o.Name = "gang-" + w.o.Suffix()
	w.o.DryRun = dryRunFit
	if err := w.o.complete(w.all, nil); err != nil {
		return err
	}
	return w.o.validate(w.all.Flags())
}

// GPUResource is the resource that the GPU flags count.
func (w *Would) GPUResource() corev1.ResourceName { return corev1.ResourceName(w.o.GPUResource) }

// Stage is what trials are made on.
type Stage struct {
	Snapshot *snapshot.Snapshot

	w         *Would
	client    *kube.Client
	namespace string
}

// Stage reads the file of --from, or the cluster, of which it lets the API server look at the job and a pod of each role.
func (w *Would) Stage(ctx context.Context) (*Stage, error) {
	namespace, err := w.o.Namespace()
	if err != nil {
		return nil, err
	}
	s := &Stage{w: w, namespace: namespace}
	s.Snapshot, s.client, err = collect.Read(ctx, w.o.From, w.o.IO.In, w.o.Client, collect.Options{Namespace: namespace, Now: w.o.IO.Clock.Now})
	return s, err
}

// Shape is what a trial changes of the flags; what is zero is as the flags have it.
type Shape struct {
	Workers int32
	GPUs    int64
	// CPU and Memory come with each GPU, in thousandths of a core and in bytes, where the flags do not say what a worker gets.
	CPU, Memory int64
}

// Try answers whether a gang of the shape would start now.
func (s *Stage) Try(ctx context.Context, shape Shape, options diagnose.Options) (*answer.Answer, error) {
	o := s.w.shaped(shape)
	trial, err := o.try(ctx, s.Snapshot, s.client, o.plan(s.namespace), options)
	s.client = nil // what the API server said of one job it says of all
	if err != nil {
		return nil, err
	}
	return trial.Answer, nil
}

// Worker is a pod of a worker of the shape.
func (s *Stage) Worker(shape Shape) (*corev1.Pod, error) {
	o := s.w.shaped(shape)
	wanted, err := o.render(s.namespace, o.plan(s.namespace).usual())
	if err != nil {
		return nil, err
	}
	job, err := jobs.Read(wanted.Job)
	if err != nil {
		return nil, err
	}
	template := job.Roles[len(job.Roles)-1].Template
	for _, r := range job.Roles {
		if r.Name == s.w.worker().Name {
			template = r.Template
		}
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = s.namespace, "worker"
	return pod, nil
}

func (w *Would) worker() *role {
	return w.o.Roles[slices.IndexFunc(w.o.Roles, func(r *role) bool { return r.count == "workers" })]
}

// shaped is a copy of the options.
func (w *Would) shaped(shape Shape) *Options {
	o := *w.o
	o.Roles = slices.Clone(w.o.Roles)
	i := slices.Index(w.o.Roles, w.worker())
	worker := *o.Roles[i]
	o.Roles[i] = &worker
	all := o.members()
	worker.Replicas = cmp.Or(shape.Workers, worker.Replicas)
	worker.GPUs = cmp.Or(shape.GPUs, worker.GPUs)
	if shape.CPU > 0 && worker.CPU == nil {
		worker.CPU = milli(shape.CPU * worker.GPUs)
	}
	if shape.Memory > 0 && worker.Memory == nil {
		worker.Memory = bytes(shape.Memory * worker.GPUs)
	}
	if o.MinAvailable == all || o.MinAvailable > o.members() {
		o.MinAvailable = o.members()
	}
	return &o
}

func milli(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }

func bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// GPUs are those of each worker, as the flags have it.
func (w *Would) GPUs() int64 { return w.worker().GPUs }
