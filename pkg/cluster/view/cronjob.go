package view

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// cronJobKind is the kind of what makes Jobs by the clock. It is seen in files: of a cluster only its Jobs are read.
func cronJobKind() schema.GroupKind {
	return schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"}
}

// cronJob is the CronJob that has the name of a query, as a clause: the Jobs that it has made, those that have not ended first, and why it makes no other now; empty if there is none.
func (w *View) cronJob(q Query) string {
	var active, ended []string
	for _, j := range w.Snap.Jobs {
		ref := metav1.GetControllerOfNoCopy(j)
		switch {
		case ref == nil || j.Namespace != q.Namespace || ref.Kind != cronJobKind().Kind || ref.Name != q.Name:
		case slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True"
		}):
			ended = append(ended, j.Name)
		default:
			active = append(active, j.Name)
		}
	}
	u := w.Object(cronJobKind(), q.Namespace, q.Name)
	made := slices.Concat(active, ended)
	if u == nil && len(made) == 0 {
		return ""
	}
	text := "there is a CronJob of this name"
	if len(made) > 0 {
		text += ", which has made Job " + strings.Join(made[:min(len(made), maxInstead)], ", ")
	}
	if u == nil {
		return text
	}
	f := gang.Fields{Object: u}
	if at, err := time.Parse(time.RFC3339, f.String("status", "lastScheduleTime")); err == nil {
		text += "; its last was due at " + at.UTC().Format("2006-01-02 15:04:05Z")
	} else if len(made) == 0 {
		text += ", which has made no Job yet"
	}
	switch {
	case f.Bool("spec", "suspend"):
		text += "; it is suspended, and makes none"
	case f.String("spec", "concurrencyPolicy") == string(batchv1.ForbidConcurrent) && len(active) > 0:
		text += "; it makes none while " + active[0] + " has not ended (concurrencyPolicy Forbid)"
	}
	return text
}
