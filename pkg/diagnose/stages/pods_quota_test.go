package stages_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Pods leave the scope of a quota, and keep what they request.
func TestLeaveScope(t *testing.T) {
	list := clustertest.List
	class := func(c *clustertest.Cluster, name string, value int32) {
		c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	of := func(q *corev1.ResourceQuota, operator corev1.ScopeSelectorOperator, values ...string) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}
	}
	prod := spec(func(p *corev1.PodSpec) { p.PriorityClassName = "prod" })
	full := func(c *clustertest.Cluster) *corev1.ResourceQuota {
		return quota(c, "gpus", list("requests.nvidia.com/gpu", "16"), list("requests.nvidia.com/gpu", "16"))
	}
	check(t, []testCase{
		{name: "pods that request nothing request something", code: answer.NSQuotaTooSmall, exit: 6, wantText: []string{"it counts only pods of scope BestEffort, as those of gang are"}, fix: "request 1 cpu for each worker: quota best does not count such pods", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "best", list("pods", "1"), list("pods", "1")).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
			c.Add(gangOf(2, 8, none, spec(onlyGPUs)))
		}},
		{name: "the next lower class", code: answer.NSQuota, exit: 3, fix: "name PriorityClass batch instead of prod: quota gpus does not count such pods", not: []string{"PriorityClass idle", "PriorityClass rush", "PriorityClass system"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			for name, value := range map[string]int32{"prod": 1000, "batch": 100, "idle": 0, "rush": 2000, "system-node-critical": 500} {
				class(c, name, value)
			}
			of(full(c), corev1.ScopeSelectorOpIn, "prod", "rush")
			c.Add(gangOf(2, 8, none, prod))
		}},
		{name: "another quota has no room for that class", code: answer.NSQuota, exit: 3, fix: "name PriorityClass idle instead of prod", not: []string{"PriorityClass batch"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			class(c, "prod", 1000)
			class(c, "batch", 100)
			class(c, "idle", 0)
			of(full(c), corev1.ScopeSelectorOpIn, "prod")
			of(quota(c, "batch", list("pods", "1"), nil), corev1.ScopeSelectorOpIn, "batch")
			c.Add(gangOf(2, 8, none, prod))
		}},
		{name: "one of those that it does not count", code: answer.NSQuota, exit: 3, fix: "name PriorityClass batch instead of prod", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			class(c, "prod", 1000)
			class(c, "normal", 500)
			class(c, "batch", 100)
			of(full(c), corev1.ScopeSelectorOpNotIn, "batch")
			c.Add(gangOf(2, 8, none, prod))
		}},
		{name: "there is no other class", code: answer.NSQuota, exit: 3, not: []string{"name PriorityClass"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			class(c, "prod", 1000)
			of(full(c), corev1.ScopeSelectorOpIn, "prod")
			c.Add(gangOf(2, 8, none, prod))
		}},
		{name: "the deadline of the job in its pods", code: answer.NSQuota, exit: 3, fix: "set activeDeadlineSeconds: 7200 in the template of the pods, too", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			full(c).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
			c.Add(gangOf(2, 8, none, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](7200) }
			}))
		}},
		{name: "no deadline anywhere", code: answer.NSQuota, exit: 3, wantText: []string{"it does not count pods with activeDeadlineSeconds"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			full(c).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
			c.Add(gangOf(2, 8, none))
		}},
		{name: "without the deadline of the pods", code: answer.NSQuota, exit: 3, fix: "take activeDeadlineSeconds out of the template", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			full(c).Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
			c.Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = ptr.To[int64](60) })))
		}},
	})
}

// Jobs that have ended use up a quota of Jobs until they are deleted, which their user can do.
func TestEndedJobsCount(t *testing.T) {
	// of is a JobSet of which one Job is refused, as the quota has no more, of which others have so many.
	of := func(hard string, others ...*batchv1.Job) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			quota(c, "cap", clustertest.List("count/jobs.batch", hard), clustertest.List("count/jobs.batch", hard))
			c.Nodes(4, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.Kind, g.NoGroup, g.More = "JobSet", true, []clustertest.Role{{Name: "Other", Replicas: 1, GPUs: 8, Missing: 1}}
			}))
			c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return strings.Contains(j.Name, "other") })
			for _, j := range others {
				c.Put(j)
			}
			c.Event("JobSet", "team", "gang", "jobset-controller", "JobCreationFailed",
				`jobs.batch "gang-other-0" is forbidden: exceeded quota: cap, requested: count/jobs.batch=1, used: count/jobs.batch=`+hard+`, limited: count/jobs.batch=`+hard, time.Second)
		}
	}
	named := func(name string, changes ...func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("job-" + name)}}
		for _, change := range changes {
			change(j)
		}
		return j
	}
	done := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(48 * time.Hour)}}
	}
	earlier := func(j *batchv1.Job) { j.Status.Conditions[0].LastTransitionTime = clustertest.Ago(72 * time.Hour) }
	passing := func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](600) }
	by := func(kind string) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "nightly", UID: "nightly", Controller: ptr.To(true)}}
		}
	}
	check(t, []testCase{
		{name: "two have ended", code: answer.NSQuota, exit: 4, first: "3 of 3 jobs.batch used, 1 more member needs 1; of these done-b, done-a have ended", wantText: []string{"they count until they are deleted"},
			fix: "delete done-b, which has ended", not: []string{"delete done-a"}, build: of("3", named("done-a", done), named("done-b", done, earlier))},
		{name: "two have ended, and two have to go", code: answer.NSQuota, exit: 4, fix: "delete done-b, done-a, which have ended", build: func(c *clustertest.Cluster) {
			of("3", named("done-a", done), named("done-b", done, earlier))(c)
			c.S.ResourceQuotas[0].Status.Used = clustertest.List("count/jobs.batch", "4")
		}},
		{name: "one of a CronJob", code: answer.NSQuota, exit: 4, fix: "delete done-a, which has ended", build: of("2", named("done-a", done, by("CronJob")))},
		{name: "one that something makes again", code: answer.NSQuota, exit: 5, not: []string{"delete done-a"}, build: of("2", named("done-a", done, by("Workflow")))},
		{name: "none has ended, and none is deleted by itself", code: answer.NSQuota, exit: 5, wantText: []string{"they count until they are deleted"}, build: of("2", named("runs"))},
		{name: "one is deleted by itself some day", code: answer.NSQuota, exit: 3, wantText: []string{"1 of them is deleted some time after its end .ttlSecondsAfterFinished."}, build: of("2", named("runs", passing))},
	})
}
