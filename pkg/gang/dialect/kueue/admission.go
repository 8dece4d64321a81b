package kueue

import (
	"maps"
	"slices"
)

// patchManager is who writes the patch of a TrainJob's runtime by which Kueue admits it.
const patchManager = "kueue.x-k8s.io/manager"

// admission are the labels and annotations that Kueue writes into the pod templates of a job that it admits. Another job must not have them: Kueue fails
// one whose template has them with other values.
var admission = []string{PodSetLabel, WorkloadAnnotation, "kueue.x-k8s.io/workload-slice-name", "kueue.x-k8s.io/podset-unconstrained-topology",
	"kueue.x-k8s.io/cluster-queue-name", "kueue.x-k8s.io/local-queue-name"}

// Written reports whether Kueue writes a label or an annotation into the pod templates of a job that it admits.
func Written(key string) bool { return slices.Contains(admission, key) }

// Forget takes out of the spec of a job what Kueue may write there when it admits the job, and takes back when it suspends it: of the pod templates node
// selectors, tolerations, scheduling gates, and labels and annotations of its own; the patch of a TrainJob's runtime. What users wrote in these fields of
// pods goes, too: which is whose only Kueue's Workload shows.
func Forget(spec map[string]any) {
	for key, value := range spec {
		switch value := value.(type) {
		case map[string]any:
			Forget(value)
			if key == "template" {
				forgetPod(value)
			}
		case []any:
			if key == "runtimePatches" {
				value = slices.DeleteFunc(value, func(item any) bool {
					patch, _ := item.(map[string]any)
					return patch["manager"] == patchManager
				})
				if spec[key] = value; len(value) == 0 {
					delete(spec, key)
				}
			}
			for _, item := range value {
				if object, ok := item.(map[string]any); ok {
					Forget(object)
				}
			}
		}
	}
}

// forgetPod does so in the template of a pod. Those of jobs in between, such as a JobSet's, have none of these fields.
func forgetPod(template map[string]any) {
	if pod, ok := template["spec"].(map[string]any); ok {
		for _, field := range []string{"nodeSelector", "tolerations", "schedulingGates"} {
			delete(pod, field)
		}
	}
	metadata, ok := template["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{"labels", "annotations"} {
		values, ok := metadata[field].(map[string]any)
		if !ok {
			continue
		}
		maps.DeleteFunc(values, func(key string, _ any) bool { return Written(key) })
		if len(values) == 0 {
			delete(metadata, field)
		}
	}
	if len(metadata) == 0 {
		delete(template, "metadata")
	}
}
