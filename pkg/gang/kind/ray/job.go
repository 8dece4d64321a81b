package ray

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// JobReader reads RayJobs.
func JobReader() gang.JobReader {
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: JobKind}, Resource: JobResource, Versions: []string{Version},
		Names: []string{"rayjob", "rayjobs", "ray"}, Makes: ClusterReader().GroupKind,
		Read: readJob, NameLabels: []string{clusterLabel}, RoleIndexOf: roleIndexOf, Labels: labels,
		Template: template("spec", "rayClusterSpec"), WriteRoles: writeRoles("spec", "rayClusterSpec"),
		Helper: Submitter, GangLabel: GangLabel, Controller: controller(),
	}
}

// WaitGCS is the init container that KubeRay puts into workers, which ends when the head is there.
const WaitGCS = "wait-gcs-ready"

// WrittenJob is what is read of what users write of a RayJob.
type WrittenJob struct {
	Spec jobSpec `json:"spec,omitempty"`
}

type jobSpec struct {
	Suspend               bool              `json:"suspend,omitempty"`
	ActiveDeadlineSeconds *int32            `json:"activeDeadlineSeconds,omitempty"`
	ClusterSelector       map[string]string `json:"clusterSelector,omitempty"`
	RayClusterSpec        *clusterSpec      `json:"rayClusterSpec,omitempty"`
}

// UsesAnother reports whether a RayJob runs on a RayCluster that is there already: it has no members of its own.
func UsesAnother(u *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedMap(u.Object, "spec", "clusterSelector")
	return u.GroupVersionKind().GroupKind() == JobReader().GroupKind && len(selector) > 0
}

// Unsuspendable is why the operator would not suspend a RayJob: it takes one that is suspended for invalid, then, and leaves it alone. It is
// empty for one that it does suspend, and for any other kind.
func Unsuspendable(u *unstructured.Unstructured) string {
	if u.GroupVersionKind().GroupKind() != JobReader().GroupKind {
		return ""
	}
	shutdown, _, _ := unstructured.NestedBool(u.Object, "spec", "shutdownAfterJobFinishes")
	switch {
	case UsesAnother(u):
		return "it runs on a RayCluster that is not its own (clusterSelector)"
	case !shutdown:
		return "KubeRay suspends no RayJob without shutdownAfterJobFinishes: true"
	}
	return ""
}

// ReportsSuspended reports whether the operator has suspended a RayJob: its RayCluster is gone then, and the next is made of what the RayJob then is.
func ReportsSuspended(u *unstructured.Unstructured) bool {
	status, _, _ := unstructured.NestedString(u.Object, "status", "jobDeploymentStatus")
	return status == "Suspended"
}

func readJob(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u)}
	f := &gang.Fields{Object: u}
	var s jobSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return job, fmt.Errorf("decode spec: %w", err)
	}
	job.Suspended, job.Unsuspendable = s.Suspend, Unsuspendable(u) != ""
	job.Problems = tooLong(JobKind, job.Meta.Name, maxJobName)
	if s.ActiveDeadlineSeconds != nil {
		job.Deadline = gang.Seconds(int64(*s.ActiveDeadlineSeconds))
	}
	switch {
	case len(s.ClusterSelector) > 0:
	case s.RayClusterSpec == nil:
		job.Problems = append(job.Problems, "spec has neither rayClusterSpec nor clusterSelector")
	default:
		s.RayClusterSpec.readInto(&job, "spec.rayClusterSpec")
		job.MadeAs = f.String("status", "rayClusterName")
		job.Alongside = submitter(f)
	}
	readJobStatus(&job, f)
	return job, f.Err
}

// submitter is the role of the pod that submits the entrypoint once the members run; none in a mode in which another process does that.
func submitter(f *gang.Fields) []gang.Role {
	if mode := f.String("spec", "submissionMode"); mode != "" && mode != "K8sJobMode" {
		return nil
	}
	role := gang.Role{Name: Submitter, Replicas: 1}
	written := f.Map("spec", "submitterPodTemplate")
	if len(written) == 0 || runtime.DefaultUnstructuredConverter.FromUnstructured(written, &role.Template) != nil {
		role.Template.Spec.Containers = []corev1.Container{{Name: "ray-job-submitter", Resources: corev1.ResourceRequirements{ // as KubeRay has it by default
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("200Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		}}}
	}
	return []gang.Role{role}
}

// readJobStatus reads how far a RayJob is. It ends when the entrypoint has ended, or will never run.
func readJobStatus(job *gang.Job, f *gang.Fields) {
	deployment, status := f.String("status", "jobDeploymentStatus"), f.String("status", "jobStatus")
	job.Seen = deployment != ""
	job.Started, _ = time.Parse(time.RFC3339, f.String("status", "startTime")) // an unreadable time is an unknown one
	switch deployment {
	case "Complete", "Failed", "ValidationFailed":
	case "Initializing": // it submits once the members run
		job.Unsubmitted = gang.ByController
		return
	case "Waiting": // InteractiveMode
		job.Unsubmitted = gang.ByUser
		return
	default:
		return
	}
	end := &gang.End{Failed: deployment != "Complete" || status == "FAILED" || status == "STOPPED", Message: f.String("status", "message")}
	if end.Reason = f.String("status", "reason"); end.Reason == "" {
		end.Reason = status
	}
	end.At, _ = time.Parse(time.RFC3339, f.String("status", "endTime"))
	job.End = end
	if deployment == "ValidationFailed" {
		job.Problems = append(job.Problems, cmp.Or(end.Message, end.Reason, deployment))
	}
}
