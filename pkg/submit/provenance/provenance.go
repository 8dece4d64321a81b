// Package provenance knows what a job keeps of how it was submitted: the command line, by whom, and what its spec was. It is pure.
package provenance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// CommandAnnotation keeps, on the job, the shell-quoted command line that submitted it.
const CommandAnnotation = "gangctl.dev/command"

// HashAnnotation keeps, on the job, the hash of its spec as the API server was going to store it, with its defaults.
const HashAnnotation = "gangctl.dev/spec-hash"

// UserAnnotation keeps, on the job, who submitted it, as the API server called them. Any user who may write the job may write it: it is no
// proof.
const UserAnnotation = "gangctl.dev/submitted-by"

// ResizeAnnotation keeps, on a job that is being resized, what it is to become.
const ResizeAnnotation = "gangctl.dev/resize"

// MadeFromAnnotation keeps, on a job that was deleted and made again, the uid of the one that was deleted, and a hash of the change.
const MadeFromAnnotation = "gangctl.dev/made-again-from"

// User is the user who submitted the job, or "" if that was not kept.
func User(job *unstructured.Unstructured) string { return job.GetAnnotations()[UserAnnotation] }

// SetUser keeps who submits the job; an unknown user, "", is not kept.
func SetUser(job *unstructured.Unstructured, user string) {
	if user != "" {
		annotate(job, UserAnnotation, user)
	}
}

// CommandLine is the command line that submitted the job, as the job keeps it, or "" if it does not keep one. It is another user's text,
// and not to be shown or run as it is: package redact has what to show, and [Argv] what to read.
func CommandLine(job *unstructured.Unstructured) string {
	return job.GetAnnotations()[CommandAnnotation]
}

// Argv are the arguments of a kept command line, the program's name first. It is nil for a line that is not of `gangctl submit`:
// whoever may write the job may have written it.
func Argv(line string) []string {
	argv, err := shell.Split(line)
	if err != nil || len(argv) < 3 || argv[0] != "gangctl" || argv[1] != "submit" {
		return nil
	}
	return argv
}

// Files are the flags of submit that read files of this machine.
func Files() []string { return []string{"filename", "template", "config-file"} }

// OfThisMachine reports whether the value of a flag is about the machine on which the line is typed, and not about the job: a file there, or how
// the cluster is reached from there. Kept lines of ours have none of the latter.
func OfThisMachine(flag string) bool {
	return slices.Contains(Files(), flag) || slices.Contains([]string{"kubeconfig", "context", "cluster", "user", "server", "proxy-url", "token", "as", "as-group", "as-uid", "as-user-extra",
		"certificate-authority", "client-certificate", "client-key", "tls-server-name", "cache-dir"}, flag)
}

// Stamp puts the hash of the spec of stored, which is what the API server makes of the job, on the job.
func Stamp(job, stored *unstructured.Unstructured) {
	annotate(job, HashAnnotation, hash(stored))
}

func annotate(job *unstructured.Unstructured, key, value string) {
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	job.SetAnnotations(annotations)
}

// Changed reports whether the spec of a job is another than the one that was submitted. To suspend and resume it is no change, and neither is what
// Kueue writes into one in its queues. It is not known of a job that keeps no hash.
func Changed(job *unstructured.Unstructured) (changed, known bool) {
	then := job.GetAnnotations()[HashAnnotation]
	return then != hash(job), then != ""
}

// hash is that of the spec, without what differs each time it is stored.
func hash(job *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	unstructured.RemoveNestedField(spec, "suspend")
	unstructured.RemoveNestedField(spec, "runPolicy", "suspend")
	if policy, ok := spec["runPolicy"].(map[string]any); ok && len(policy) == 0 {
		delete(spec, "runPolicy")
	}
	if _, queued := kueue.QueueOf(job); queued {
		kueue.Forget(spec)
	}
	unstructured.RemoveNestedField(spec, "selector") // of a Job of Kubernetes: it holds the uid
	if labels, ok, _ := unstructured.NestedMap(spec, "template", "metadata", "labels"); ok {
		for key := range labels {
			if strings.HasSuffix(key, "controller-uid") {
				unstructured.RemoveNestedField(spec, "template", "metadata", "labels", key)
			}
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // it came from JSON
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Bare is a copy of a job as a user could have written it: without its status, and without what the API server, controllers and
// kubectl wrote into its metadata.
func Bare(job *unstructured.Unstructured) *unstructured.Unstructured {
	bare := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(job.Object)}
	unstructured.RemoveNestedField(bare.Object, "status")
	old, _, _ := unstructured.NestedMap(bare.Object, "metadata")
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if value, ok := old[key]; ok {
			metadata[key] = value
		}
	}
	bare.Object["metadata"] = metadata
	annotations := bare.GetAnnotations()
	for key := range annotations {
		if Written(key) {
			delete(annotations, key)
		}
	}
	bare.SetAnnotations(annotations)
	labels := bare.GetLabels()
	for key := range labels {
		if Written(key) {
			delete(labels, key)
		}
	}
	bare.SetLabels(labels)
	return bare
}

// Written reports whether a key of labels or annotations is written by programs about one object, and means nothing on another.
func Written(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return key == CommandAnnotation || key == HashAnnotation || key == UserAnnotation || key == ResizeAnnotation || key == MadeFromAnnotation || key == "kubectl.kubernetes.io/last-applied-configuration" ||
		strings.HasPrefix(key, "gangctl.dev/suspended-") || domain == "batch.kubernetes.io" || domain == "deployment.kubernetes.io" ||
		key == "job-name" || key == "controller-uid" || kueue.Written(key)
}
