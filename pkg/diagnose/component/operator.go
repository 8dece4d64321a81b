package component

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Operators are the Deployments of the job's controller.
func Operators(v *view.View, job *gang.Job) []*appsv1.Deployment {
	return controllersOf(v, job.Kind.GroupKind(), job.Reader)
}

// Next is the job whose controller acts next: a job that was made into another one has been looked at, and the pods are made by the controller of
// that. It is the job itself where one controller runs both.
func Next(job *gang.Job) *gang.Job {
	if made := job.Made; made != nil && made.Reader.Controller.Name != job.Reader.Controller.Name {
		return made
	}
	return job
}

// ControllersOf are the Deployments of the controller of a kind of job.
func ControllersOf(v *view.View, reader gang.JobReader) []*appsv1.Deployment {
	return controllersOf(v, reader.GroupKind, reader)
}

// controllersOf are the Deployments of the controller of a kind.
func controllersOf(v *view.View, kind schema.GroupKind, reader gang.JobReader) []*appsv1.Deployment {
	type operatorsOf schema.GroupKind
	return view.Once(v, operatorsOf(kind), func() []*appsv1.Deployment {
		return Running(v, operators(reader), func(image string) bool {
			return slices.ContainsFunc(reader.Controller.Images, func(part string) bool { return isImage(image, part) })
		})
	})
}

// isImage reports whether an image has a part of a name in its own, or ends in the name of a repository and its own, where that alone means
// nothing: kuberay/operator.
func isImage(image, part string) bool {
	if !strings.Contains(part, "/") {
		return strings.Contains(imagename.Base(image), part)
	}
	repository, _ := imagename.Split(image)
	return strings.HasSuffix("/"+repository, "/"+part)
}

// trainingOperator is the operator that `gangctl install operator` installs.
const trainingOperator = "training-operator"

// OperatorsOf are the names of the operators that handle a kind of job.
func OperatorsOf(r gang.JobReader) []string {
	names := []string{r.Controller.Name}
	if r.Controller.Name != trainingOperator && slices.Contains(r.Controller.Images, trainingOperator) {
		names = append(names, trainingOperator)
	}
	return names
}

// Install is the command that installs the controller of a kind of job: gangctl's own, or that of the controller's project; "" if there is none.
func Install(r gang.JobReader) string { return cmp.Or(r.Controller.Install, InstallOperator(r)) }

// InstallOperator is the command of gangctl that installs an operator which handles kinds of job; "" if it has none for one of them.
func InstallOperator(readers ...gang.JobReader) string {
	var resources []string
	for _, r := range readers {
		if !slices.Contains(r.Controller.Images, trainingOperator) {
			return ""
		}
		resources = append(resources, r.Resource)
	}
	if len(resources) == 1 && resources[0] == "tfjobs" {
		return "gangctl install operator"
	}
	return "gangctl install operator --kinds " + strings.Join(resources, ",")
}

// OtherVersions are those of the kind of a job that a Deployment of a controller handles, if the job is of none of them.
func OtherVersions(job *gang.Job, d *appsv1.Deployment) []string {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, part := range slices.Sorted(maps.Keys(job.Reader.Controller.Versions)) {
			versions := job.Reader.Controller.Versions[part]
			if strings.Contains(imagename.Base(container.Image), part) && !slices.Contains(versions, job.Kind.Version) {
				return versions
			}
		}
	}
	return nil
}

// OperatorLog is the command that shows the log of the job's operator.
func OperatorLog(v *view.View, g *gang.Gang) string {
	job := Next(g.Job)
	for _, d := range Operators(v, job) {
		if len(OtherVersions(job, d)) > 0 {
			continue
		}
		return command.DeploymentLog(d)
	}
	return command.Kubectl("", "get", "deployments", "-A")
}

// MakesGroups reports whether the operator makes a group of the job: always, or because its flags switch gang scheduling on.
func MakesGroups(v *view.View, g *gang.Gang) bool { return OperatorScheduler(v, g) != "" }

// OperatorScheduler is the scheduler that the operator gives to gangs; "" if it leaves them alone.
func OperatorScheduler(v *view.View, g *gang.Gang) string {
	return cmp.Or(g.Reader.GangScheduler, schedulerIn(Operators(v, g.Job)))
}

// SchedulerOfOperator is the same of the controller of a kind; seen is false if none is seen.
func SchedulerOfOperator(v *view.View, reader gang.JobReader) (name string, seen bool) {
	all := controllersOf(v, reader.GroupKind, reader)
	return cmp.Or(reader.GangScheduler, schedulerIn(all)), len(all) > 0
}

// gangScheduler is the scheduler of gangs that a flag of the Training Operator or of the MPI Operator names; "" without one.
func gangScheduler(c corev1.Container) string {
	return cmp.Or(Flag(c, "gang-scheduler-name"), Flag(c, "gang-scheduling"))
}

// IgnoresPolicy reports whether a job has a policy for its gang, and its operator, which runs without the flag that switches gangs on, makes no group by it.
func IgnoresPolicy(v *view.View, g *gang.Gang) bool {
	return len(g.Reader.Policy) > 0 && g.MinMember != nil && g.Decl == nil && g.Named.Name == "" && g.Meant() == nil && len(Operators(v, g.Job)) > 0 && !MakesGroups(v, g)
}

// WithoutGroup reports whether a Job of Kubernetes states a gang of its pods, which are there, and its controller has made no group by it.
func WithoutGroup(g *gang.Gang) bool {
	if g.BatchJob == nil || g.Decl != nil || g.Named.Name != "" || g.Meant() != nil || len(g.ExistingPods()) == 0 {
		return false
	}
	_, states := batchjob.MinCount(g.BatchJob)
	return states
}

// NoGroup is why that is so.
func NoGroup() string {
	return "kube-controller-manager makes a PodGroup of it, and pods that name that, only with the feature gate " + batchjob.Gate
}

// schedulerIn is the scheduler that the flags of operators name for gangs; "" if they name none.
func schedulerIn(operators []*appsv1.Deployment) string {
	for _, d := range operators {
		for _, container := range d.Spec.Template.Spec.Containers {
			if name := gangScheduler(container); name != "" && name != "none" {
				return name
			}
			if name := Flag(container, "batch-scheduler"); name != "" { // of KubeRay
				return name
			}
			// A boolean that is only named is true.
			for _, flag := range []string{"enable-gang-scheduling", "enable-batch-scheduler"} {
				if on, given := argv.Last(container, flag); given && (on == "" || on == "true") {
					return "volcano"
				}
			}
		}
	}
	return ""
}
