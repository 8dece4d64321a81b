package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// JobWithUID is the job of a namespace that has a UID; nil if there is none.
func (w *View) JobWithUID(namespace string, uid types.UID) *gang.Job {
	return w.byIdentity()[gang.Identity{Namespace: namespace, UID: uid}]
}

// Jobs are all jobs in the snapshot, sorted by namespace, name and kind.
func (w *View) Jobs() []*gang.Job { return w.jobs() }

func (w *View) readJobs() []*gang.Job {
	if w.sameJobs() {
		return w.base.Jobs()
	}
	var all []*gang.Job
	for _, reader := range kinds.Readers() {
		for _, u := range w.Snap.Custom[reader.GroupKind] {
			if id := gang.IdentityOf(u); w.tops()[id] != id {
				continue // the JobSet of a TrainJob is no job of its own
			}
			if job := w.decode(reader, u); job != nil {
				all = append(all, job)
			}
		}
	}
	for _, j := range w.Snap.Jobs {
		if _, part := w.whose(j); part {
			continue // the launcher of an MPIJob is a part of it, and so are the Jobs of a JobSet
		}
		all = append(all, w.convert(j))
	}
	slices.SortStableFunc(all, func(a, b *gang.Job) int {
		return cmp.Or(strings.Compare(a.Meta.Namespace, b.Meta.Namespace), strings.Compare(a.Meta.Name, b.Meta.Name), strings.Compare(a.Kind.Kind, b.Kind.Kind))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Meta.Namespace == b.Meta.Namespace && a.Meta.Name == b.Meta.Name && a.Kind != b.Kind {
			a.SharesName, b.SharesName = true, true
		}
	}
	return all
}

// joined are a job and the object that was made of it.
type joined struct{ job, made *unstructured.Unstructured }

// decode reads a job, with the members of the object that was made of it; nil where it cannot be read.
func (w *View) decode(reader gang.JobReader, u *unstructured.Unstructured) *gang.Job {
	job := w.decodeOne(reader, u)
	made := w.madeOf(reader, u)
	if job == nil || made == nil {
		return job
	}
	key := joined{u, made}
	if whole := w.decoded.job(key); whole != nil {
		return whole
	}
	makes, _ := kinds.ByKind(reader.Makes)
	read := w.decodeOne(makes, made)
	if read == nil {
		return job
	}
	whole := *job
	reader.Join(&whole, read)
	w.decoded.jobs[key] = &whole
	return &whole
}

// madeOf is the object with whose members a job is read; nil if there is none.
func (w *View) madeOf(reader gang.JobReader, u *unstructured.Unstructured) *unstructured.Unstructured {
	if reader.Join == nil {
		return nil
	}
	made := w.made().as[gang.IdentityOf(u)]
	if len(made) == 0 {
		return nil
	}
	return made[0]
}

// decodeOne reads a job once, for all views of one decoding; nil where it cannot be read.
func (w *View) decodeOne(reader gang.JobReader, u *unstructured.Unstructured) *gang.Job {
	if job := w.decoded.job(u); job != nil {
		return job
	}
	job, err := reader.Job(u)
	if err != nil {
		w.problem(u, err)
		return nil
	}
	w.decoded.share(job, u)
	w.decoded.jobs[u] = job
	return job
}

// convert does the same for a Job of Kubernetes.
func (w *View) convert(j *batchv1.Job) *gang.Job {
	if job := w.decoded.job(j); job != nil {
		return job
	}
	job := batchjob.Convert(j)
	w.decoded.jobs[j] = &job
	return &job
}

// Query names a job.
type Query struct {
	// Kind is what was typed before the slash; empty or "job" for any kind.
	Kind string
	// Namespace and Name find the object.
	Namespace, Name string
	// Portion is one of the gangs of a job of several, as [gang.Job.Portion] has it; empty for the job.
	Portion string
}

// Find returns the job of a query: by name, or as the owner of a pod. A gang that no job owns has its own name and that of what makes its pods. The error is a [gang.JobNotFoundError], a
// [gang.AmbiguousJobError] or a [gang.PortionNotFoundError].
func (w *View) Find(q Query) (*gang.Job, error) {
	job, err := w.find(q)
	if err != nil || q.Portion == "" {
		return job, err
	}
	g := w.Gang(job)
	for _, one := range g.Each {
		if strings.EqualFold(one.Portion(), q.Portion) {
			return one.Job, nil
		}
	}
	return nil, &gang.PortionNotFoundError{Job: g.Job, Portion: q.Portion}
}

func (w *View) find(q Query) (*gang.Job, error) {
	if kinds.MeansPod(q.Kind) {
		return w.findByPod(q)
	}
	var found []*gang.Job
	for _, s := range w.Jobs() {
		if s.Meta.Namespace == q.Namespace && s.Meta.Name == q.Name && matches(s, q.Kind) {
			found = append(found, s)
		}
	}
	if typed := strings.ToLower(q.Kind); len(found) == 0 && (typed == "" || typed == "job" || typed == "jobs") {
		if found = w.bareNamed(q.Namespace, q.Name); len(found) == 0 {
			found = w.podless(q.Namespace, q.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, w.notFound(q)
	case 1:
		return found[0], nil
	}
	return nil, &gang.AmbiguousJobError{Jobs: found}
}

// matches reports whether a typed kind is that of a job.
func matches(s *gang.Job, typed string) bool {
	if reader, known := kinds.ByName(typed); known {
		return reader.GroupKind == s.Reader.GroupKind
	}
	typed = strings.ToLower(typed)
	return typed == "" || typed == "job" || typed == "jobs"
}

func (w *View) notFound(q Query) error {
	e := &gang.JobNotFoundError{Namespace: q.Namespace, Name: q.Name}
	readers := kinds.Readers()
	if reader, ok := kinds.ByName(q.Kind); ok {
		e.Kind, readers = reader.Kind, []gang.JobReader{reader}
	} else if kinds.MeansPod(q.Kind) {
		e.Kind, readers = "pod", nil
	}
	for _, r := range readers {
		if w.Snap.Denial("", schema.GroupResource{Group: r.Group, Resource: r.Resource}.String(), q.Namespace) != nil {
			e.Unreadable = append(e.Unreadable, r.Title()+"s")
		}
	}
	var names []string
	for _, s := range w.Jobs() {
		switch {
		case s.Meta.Namespace == q.Namespace && s.Meta.Name == q.Name: // of another kind than was typed
			e.Nearest = append(e.Nearest, s.Reader.Argument(q.Name))
		case s.Meta.Namespace == q.Namespace:
			names = append(names, s.Meta.Name)
		case s.Meta.Name == q.Name:
			e.Elsewhere = append(e.Elsewhere, s.Meta.Namespace)
		}
	}
	if e.Elsewhere = slices.Compact(e.Elsewhere); e.Nearest == nil {
		e.Nearest = suggest.Similar(q.Name, names)
	}
	e.Instead = w.instead(q)
	return e
}

// maxInstead is how many Jobs of a CronJob are named, and how many kinds: users write those of what controls pods.
const maxInstead = 3

// instead is what else has the name of a query: an application of a kind that is no job, of which a pod is, or a CronJob, of which the Jobs are seen that it has made.
func (w *View) instead(q Query) (all []string) {
	for _, kind := range w.kindsNamed(q.Namespace, q.Name) {
		all = append(all, "there is a "+kind.Kind+" of this name"+w.insteadOf(kind, q))
	}
	if of := w.cronJob(q); of != "" {
		all = append(all, of)
	}
	return all
}

// kindsNamed are the kinds, which are no jobs, of what has a name and is seen, or controls pods: not all kinds are collected.
func (w *View) kindsNamed(namespace, name string) []schema.GroupKind {
	named := map[schema.GroupKind]bool{}
	if gang.Named(w.Snap.Deployments, namespace, name) != nil {
		named[deployment()] = true
	}
	if gang.Named(w.Snap.StatefulSets, namespace, name) != nil {
		named[statefulSet()] = true
	}
	auxiliary := AuxiliaryKinds()
	for kind, list := range w.Snap.Custom {
		if !declares(kind) && !slices.Contains(auxiliary, kind) && slices.ContainsFunc(list, func(u *unstructured.Unstructured) bool { return u.GetNamespace() == namespace && u.GetName() == name }) {
			named[kind] = true
		}
	}
	for _, p := range w.Snap.Pods {
		if p.Namespace == namespace {
			for _, kind := range w.madeUnder(p, name) {
				named[kind] = true
			}
		}
	}
	maps.DeleteFunc(named, func(kind schema.GroupKind, _ bool) bool {
		_, job := kinds.ByKind(kind)
		return job || kind.Group == "" || kind == cronJobKind() // a pod is named as such, and a CronJob with its Jobs
	})
	all := slices.SortedFunc(maps.Keys(named), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return all[:min(len(all), maxInstead)]
}

// madeUnder are the kinds of what controls a pod, at once or at the top, and has a name.
func (w *View) madeUnder(p *corev1.Pod, name string) (all []schema.GroupKind) {
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Name == name {
		all = append(all, gang.OwnerKind(ref))
	}
	if root := rootOf(p, Once(w, ofOwners{}, w.owners)); root.name == name {
		all = append(all, root.kind)
	}
	return all
}

// insteadOf is what to type in place of the name of an application: a pod of it that has no node, or is not Ready, or else any; without pods the jobs that it has made, or what was reported
// of it last.
func (w *View) insteadOf(kind schema.GroupKind, q Query) string {
	var best *corev1.Pod
	worth := func(p *corev1.Pod) int {
		switch {
		case podutil.IsPodTerminal(p), podutil.IsPodReady(p):
			return 0
		case p.Spec.NodeName != "":
			return 1
		}
		return 2
	}
	for _, p := range w.Snap.Pods {
		if p.Namespace == q.Namespace && slices.Contains(w.madeUnder(p, q.Name), kind) && (best == nil || worth(p) > worth(best)) {
			best = p
		}
	}
	if best != nil {
		return ": give the name of one of its pods, as pod/" + best.Name
	}
	if made := w.jobsMadeBy(kind, q); len(made) > 0 {
		return ", which has made " + strings.Join(made, ", ")
	}
	for _, e := range w.EventsNamed(kind, q.Namespace, q.Name) {
		if e.Warning {
			return ", which has no pods; " + e.By + " reported of it: " + e.Reason + ": " + e.Message
		}
	}
	return ", which has no pods"
}

// jobsMadeBy are the first jobs that something of a kind and a name controls, as the RayClusters of a RayService: those that have pods without a node first.
func (w *View) jobsMadeBy(kind schema.GroupKind, q Query) (made []string) {
	var waiting, others []string
	for _, s := range w.Jobs() {
		ref := metav1.GetControllerOfNoCopy(&s.Meta)
		switch {
		case ref == nil || s.Meta.Namespace != q.Namespace || ref.Name != q.Name || gang.OwnerKind(ref) != kind:
		case w.Gang(s).Count(gang.Pending, gang.Missing, gang.Gated) > 0:
			waiting = append(waiting, s.Reader.Argument(s.Meta.Name))
		default:
			others = append(others, s.Reader.Argument(s.Meta.Name))
		}
	}
	made = slices.Concat(waiting, others)
	return made[:min(len(made), maxInstead)]
}

func (w *View) findByPod(q Query) (*gang.Job, error) {
	pod := w.Pod(q.Namespace, q.Name)
	if pod == nil {
		return nil, w.notFound(q)
	}
	if s := w.byIdentity()[w.root(pod)]; s != nil {
		return w.gangOf(s, pod), nil
	}
	return w.bare(pod), nil
}

// gangOf is a job as the gang of one of its pods only, of a job of several.
func (w *View) gangOf(job *gang.Job, pod *corev1.Pod) *gang.Job {
	for _, one := range w.Gang(job).Each {
		if slices.ContainsFunc(one.Members, func(m gang.Member) bool { return m.Pod == pod }) {
			return one.Job
		}
	}
	return job
}

// root is the job that owns a pod, directly, through one of its parts or through what was made of it; zero if none does.
func (w *View) root(pod *corev1.Pod) gang.Identity {
	owner, ok := gang.ControllerOf(pod)
	if !ok {
		return gang.Identity{}
	}
	if job := w.labelled(pod); job != nil {
		return gang.IdentityOf(&job.Meta)
	}
	if j := w.batchJobs().all[owner]; j != nil {
		if whole, part := w.whose(j); part {
			return whole
		}
	}
	if of, made := w.made().from[owner]; made {
		return of
	}
	return owner
}

// madeIndex finds the job that an object was made of, and the objects that were made of a job.
type madeIndex struct {
	from map[gang.Identity]gang.Identity
	as   map[gang.Identity][]*unstructured.Unstructured
}

// made are the objects that were made of jobs which are in the snapshot. Those of a job that may not be read are jobs: they are what is seen
// of it.
func (w *View) made() madeIndex {
	type ofSnapshot struct{}
	return Once(w, ofSnapshot{}, func() madeIndex {
		x := madeIndex{map[gang.Identity]gang.Identity{}, map[gang.Identity][]*unstructured.Unstructured{}}
		for _, above := range kinds.Readers() {
			objects := w.Snap.Custom[above.Makes]
			if above.Makes.Empty() || len(objects) == 0 {
				continue
			}
			there := map[gang.Identity]bool{}
			for _, u := range w.Snap.Custom[above.GroupKind] {
				there[gang.IdentityOf(u)] = true
			}
			for _, u := range objects {
				ref, reader := kinds.SourceOf(above.Makes, u)
				if ref == nil || reader.GroupKind != above.GroupKind {
					continue
				}
				if of := (gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}); there[of] {
					x.from[gang.IdentityOf(u)] = of
					x.as[of] = append(x.as[of], u)
				}
			}
		}
		return x
	})
}

// labelled is the job of a kind with [gang.JobReader.ByLabel] that a pod is of; nil if it is of none.
func (w *View) labelled(pod *corev1.Pod) *gang.Job {
	reader, name := kinds.ByLabel(pod)
	if name == "" {
		return nil
	}
	u := w.Object(reader.GroupKind, pod.Namespace, name)
	if u == nil {
		return nil
	}
	return w.decode(reader, u)
}

// whose is the job that a Job of Kubernetes is a part of; part is false for a job of its own. The Jobs of a JobSet that may not be read are
// jobs: they are what is seen of it.
func (w *View) whose(j *batchv1.Job) (whole gang.Identity, part bool) {
	ref, reader := kinds.WholeOf(j)
	if ref == nil {
		return gang.Identity{}, false
	}
	whole = gang.Identity{Namespace: j.Namespace, UID: ref.UID}
	if top, there := w.tops()[whole]; there {
		return top, true
	}
	return whole, reader.GroupKind != jobset.Reader().GroupKind
}

// tops are, by each job in the snapshot that is none of Kubernetes itself, the job that users know: a JobSet that was made of a TrainJob is
// that TrainJob.
func (w *View) tops() map[gang.Identity]gang.Identity {
	type ofSnapshot struct{}
	return Once(w, ofSnapshot{}, func() map[gang.Identity]gang.Identity {
		all := map[gang.Identity]gang.Identity{}
		for _, reader := range kinds.Readers() {
			for _, u := range w.Snap.Custom[reader.GroupKind] {
				all[gang.IdentityOf(u)] = gang.IdentityOf(u)
			}
		}
		maps.Copy(all, w.made().from)
		return all
	})
}

// Lookup reads one job, without reading all others; nil if there is none that can be read.
func (w *View) Lookup(kind schema.GroupKind, namespace, name string) *gang.Job {
	if reader := batchjob.Reader(); kind == reader.GroupKind {
		for _, j := range w.Snap.Jobs {
			if j.Namespace != namespace || j.Name != name {
				continue
			}
			return w.convert(j)
		}
		return nil
	}
	if reader, ok := kinds.ByKind(kind); ok {
		if u := w.Object(kind, namespace, name); u != nil {
			return w.decode(reader, u)
		}
		if reader.GangScheduler == "" {
			return nil
		}
	}
	for _, job := range w.podless(namespace, name) {
		if job.Kind.GroupKind() == kind {
			return job
		}
	}
	return nil
}
